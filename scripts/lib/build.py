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


def bench_values(root, program, *arguments):
    """The lines `name value` that a benchmark prints, as a dictionary of lists."""
    problem = release(root, program)
    if problem:
        raise SystemExit(problem)
    done = subprocess.run([root / "build/release/bench" / program, *arguments], capture_output=True, text=True,
                          check=True)
    values = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    return values
