"""All tests but those with the label `bulk`."""
import subprocess

import build


def check(root, _files):
    problem = build.release(root)
    if problem:
        return [problem]
    done = subprocess.run(["ctest", "--preset", "release", "-LE", "^bulk$", "--progress"], cwd=root,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [] if done.returncode == 0 else [done.stdout[-6000:]]
