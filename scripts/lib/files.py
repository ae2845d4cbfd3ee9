"""Which files the checks look at."""
import subprocess


def git(root, *args):
    """The lines that a git command prints; none if it fails."""
    done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def existing(root, names):
    return sorted({name for name in names if (root / name).is_file()})


def tracked(root):
    """Every file of the work tree that git does not ignore."""
    return existing(root, git(root, "ls-files", "--cached", "--others", "--exclude-standard"))


def changed(root):
    """Files that differ from where this branch left main, uncommitted and new ones included."""
    base = ["HEAD"]
    for main in ("origin/main", "main"):
        found = git(root, "merge-base", "HEAD", main)
        if found:
            base = found
            break
    names = git(root, "diff", "--name-only", "--diff-filter=d", base[0])
    return existing(root, names + git(root, "ls-files", "--others", "--exclude-standard"))


def is_cpp(name):
    return name.endswith((".cpp", ".h"))
