"""The published ONNX node tests, run by the program rlx_onnx_nodes: how many pass, and why the others do not."""
import collections
import json
import os
import pathlib
import re
import subprocess

PROGRAM = "build/release/tests/onnx_nodes/rlx_onnx_nodes"


def folder():
    """Where scripts/make_onnx_node_tests puts them."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models")) / "onnx-node-tests"


def results(root, tests):
    """The tests' records and the counts."""
    done = subprocess.run([root / PROGRAM, tests], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[:-1], lines[-1]


def short_reason(record):
    """What is missing, without the names of models and nodes."""
    groups = re.findall(r"\d+ x ([^\n]*?)(?:: node [^\n]*)?$", record["reason"], re.MULTILINE)
    text = "; ".join(groups) or record["reason"]
    return re.sub(r"'[^']*'(\.\.\. \(\d+ bytes\))?", "…", text)[:160]


def missing(records):
    """Reasons with the number of tests, most frequent first."""
    count = collections.Counter(short_reason(r) for r in records if r["verdict"] == "unsupported")
    return count.most_common()


def figures(root):
    tests = folder()
    if not (tests / "version").is_file() or not (root / PROGRAM).is_file():
        yield "node tests (scripts/make_onnx_node_tests, target rlx_onnx_nodes)", "missing", 1, False
        return
    _, counts = results(root, tests)
    version = (tests / "version").read_text(encoding="utf-8").strip()
    share = counts["passed"] / counts["all"]
    yield f"node tests of onnx {version}: share passed of all", share, 0.905, share >= 0.905
    share = counts["tensor_passed"] / counts["tensor_tests"]
    yield "node tests with tensors only: share passed", share, 0.97, share >= 0.97
    yield "node tests: wrong answers", counts["wrong"], 0, counts["wrong"] == 0
    yield "node tests passed with operands fixed at import", counts["fixed"], counts["all"], True
