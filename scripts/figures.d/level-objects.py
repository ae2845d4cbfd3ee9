"""Level objects: what they define outside their namespace, per instruction level, in the release build."""
import re
import subprocess

import build
import symbols


def figures(root):
    problem = build.release(root)
    if problem:
        raise SystemExit(problem)
    objects = sorted((root / "build/release").rglob("*.simd.cpp.o"))
    for level in ("v2", "v3", "v4", "v4b"):
        mine = [path for path in objects if re.search(rf"_{level}\.dir/", str(path))]
        leaked = 0
        for path in mine:
            listing = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
            leaked += len(symbols.leaks(listing, level))
        yield f"{level}: symbols outside rlx::{level}", leaked, 0, leaked == 0 and bool(mine)
