"""The published ONNX node tests, run by the program rlx_onnx_nodes: how many pass, and why the others do not."""
import collections
import json
import os
import pathlib
import re
import subprocess

PROGRAM = "build/release/tests/onnx_nodes/rlx_onnx_nodes"


def folder(name="onnx-node-tests"):
    """Where scripts/make_onnx_node_tests puts them, and scripts/fetch_onnx_testdata the older ones."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models")) / name


def results(root, tests, prefix=""):
    """The records of the tests whose names begin so, and the counts."""
    done = subprocess.run([root / PROGRAM, tests, prefix], capture_output=True, text=True, check=True)
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


# Tests of onnx 1.12 whose data onnx has corrected since, and what was wrong with them.
CORRECTED = {
    "test_adam_multiple": "the model lacks the epsilon that its outputs were made with",
    "test_cast_FLOAT_to_BFLOAT16": "the floats were cut off, not rounded",
    "test_dft_inverse": "what cancels in f64 does not in the type of the operands",
}


def corrected(root, test):
    """Whether the data of a test are known to be wrong and the answer to the corrected ones is right."""
    if test not in CORRECTED:
        return False
    records, _ = results(root, folder(), test)
    return any(r["test"] == test and r["verdict"] == "pass" for r in records)


def debian_figures(root):
    tests = folder("onnx-debian-tests")
    if not (tests / "version").is_file() or not (root / PROGRAM).is_file():
        yield "debian (scripts/fetch_onnx_testdata, target rlx_onnx_nodes)", "missing", 1, False
        return
    version = (tests / "version").read_text(encoding="utf-8").strip()
    records, counts = [], collections.Counter()
    for part in sorted(path for path in tests.iterdir() if path.is_dir()):
        more, count = results(root, part)
        records += more
        counts.update(count)
    wrong = [r["test"] for r in records if r["verdict"] == "wrong"]
    old = [test for test in wrong if corrected(root, test)]
    yield f"debian libonnx-testdata {version}: tests", counts["all"], 1, counts["all"] > 0
    share = counts["passed"] / counts["all"]
    yield "debian: share passed of all", share, 0.905, share >= 0.905
    share = counts["tensor_passed"] / counts["tensor_tests"]
    yield "debian, tensors only: share passed", share, 0.97, share >= 0.97
    yield "debian: answers whose data onnx has corrected since", len(old), len(CORRECTED), True
    yield "debian: wrong answers", len(wrong) - len(old), 0, len(wrong) == len(old)
