"""Builds the release preset for checks that need it."""
import functools
import subprocess


@functools.cache
def release(root, *targets):
    """Builds all, or these targets. Empty if the build succeeds, else the end of its output."""
    chosen = ["--target", *targets] if targets else []
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", *chosen]):
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return f"`{' '.join(command)}` failed:\n{done.stdout[-4000:]}"
    return ""
