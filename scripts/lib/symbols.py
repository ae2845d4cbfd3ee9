"""Level objects define nothing outside their namespace.

An inline function compiled for AVX-512 is a weak symbol; the linker may make it the copy that the whole program calls,
and the program then dies on older machines. So every symbol of a NAME.simd.cpp that other objects can see stands in
the namespace rlx::LEVEL.
"""
import re
import subprocess

import build

# What the sanitizers and exception tables add.
HARMLESS = re.compile(r"odr_asan|asan_globals|^DW\.ref")


def leaks(listing, level):
    """The symbols of an `nm` listing that are visible to other objects and not in the namespace of the level."""
    inside = re.compile(rf"^_ZZ?NK?3rlx{len(level)}{level}")
    found = []
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) != 3 or not re.fullmatch(r"[A-Zui]", fields[1]):
            continue
        if not inside.match(fields[2]) and not HARMLESS.search(fields[2]):
            found.append(fields[2])
    return found


def check_folder(root, folder):
    problems = []
    objects = sorted(folder.rglob("*.simd.cpp.o"))
    for path in objects:
        level = re.search(r"_(v\w+)\.dir/", str(path))[1]
        listing = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for symbol in leaks(listing, level):
            problems.append(f"{path.relative_to(root)}: {symbol} stands outside namespace rlx::{level}")
    if not objects:
        problems.append(f"{folder.relative_to(root)}: no level objects found")
    return problems


def check(root, _files):
    """Looks at the release build, made anew, and at every other build that is there."""
    problem = build.release(root)
    if problem:
        return [problem]
    problems = []
    for folder in sorted((root / "build").iterdir()):
        if (folder / "librlx.a").exists():
            problems += check_folder(root, folder)
    return problems
