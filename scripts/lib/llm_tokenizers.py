"""Tokenizers beside the reference libraries: ids of thousands of hard texts, run by the program rlx_tokenizer_cases."""
import json
import os
import pathlib
import subprocess

PROGRAM = "build/release/tests/tokenizers/rlx_tokenizer_cases"


def folder():
    """Where scripts/make_tokenizer_cases puts the cases."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models")) / "tokenizer-cases"


def run(root, files):
    done = subprocess.run([root / PROGRAM, *files], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def figures(root):
    """Lines (name, value, bound, ok): wrong answers of each kind, then their number and the fewest texts of a kind."""
    files = sorted(folder().glob("*.json")) if folder().is_dir() else []
    if not files or not (root / PROGRAM).is_file():
        yield "tokenizers (scripts/make_tokenizer_cases, target rlx_tokenizer_cases)", "missing", 0, False
        return
    fewest = None
    for record in run(root, files):
        name = f"tokenizers {record['file'].removesuffix('.json')}"
        if "error" in record:
            yield f"{name}: {record['error']}", "refused", 0, False
            continue
        fewest = min(fewest or record["cases"], record["cases"])
        yield f"{name}: wrong of {record['cases']} texts", record["wrong"], 0, record["wrong"] == 0
    yield "tokenizers: fewest texts of a kind", fewest or 0, 2000, (fewest or 0) >= 2000
