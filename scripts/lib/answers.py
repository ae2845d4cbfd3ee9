"""What the test programs measure: they record numbers as properties of a test, which are read here."""
import json
import subprocess
import tempfile

import build


def run(root, program, pattern):
    """The tests of build/release/tests/PROGRAM that match: a list of gtest's records, each with its properties."""
    problem = build.release(root, program)
    if problem:
        raise SystemExit(problem)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([root / "build/release/tests" / program, f"--gtest_filter={pattern}",
                        f"--gtest_output=json:{file.name}"], stdout=subprocess.DEVNULL, check=False)
        report = json.load(file)
    return [test | {"suite": suite["name"]} for suite in report["testsuites"] for test in suite["testsuite"]]


def passed(test):
    return test["result"] == "COMPLETED" and not test.get("failures")


def right(root):
    """The real model against PyTorch in f64."""
    for test in run(root, "rlx_tests_models", "BulkSentence.MiniLm*"):
        if test["result"] == "SKIPPED":
            yield "right: all-MiniLM-L6-v2 (scripts/fetch_models)", "missing", 1e-6, False
            continue
        worst = float(test["worst"])
        yield "right: texts, ids identical to the reference", int(test["texts"]), 40, passed(test)
        yield "right: largest error of an embedding", worst, 1e-6, passed(test) and worst <= 1e-6


def gradients(root):
    """Central differences of every op, and the second order of elementwise ops."""
    tests = run(root, "rlx_tests_ops", "Ops/Conformance.Gradient/*")
    checked = [t for t in tests if int(t.get("cases", 0)) > 0]
    good = all(passed(t) for t in tests)
    yield "gradients: ops checked", len(checked), 60, good and len(checked) >= 60
    yield "gradients: cases", sum(int(t["cases"]) for t in checked), 300, good
    for key, name in (("worst", "first order"), ("worst_second", "second order, elementwise ops")):
        worst = max(float(t[key]) for t in checked if key in t)
        yield f"gradients: worst relative error, {name}", worst, 1e-6, good and worst <= 1e-6


def bad_input(root):
    """Mutants of every reader: a right answer or an Error, within time and memory."""
    readers = (
        ("safetensors", "rlx_tests_io", "BulkSafetensors.*", 20_000),
        ("npy", "rlx_tests_io", "BulkNpy.*", 20_000),
        ("npz", "rlx_tests_io", "BulkNpz.*", 20_000),
        ("JSON", "rlx_tests_core", "*Json*", 20_000),
        ("tokenizer files", "rlx_tests_text", "WordPieceHostile.*", 20_000),
        ("model configuration", "rlx_tests_models", "BulkSentence.Damaged*", 6_000),
        ("text form", "rlx_tests_errors", "Bulk*", 20_000),
    )
    for name, program, pattern, least in readers:
        tests = run(root, program, pattern)
        mutants = sum(int(t.get("mutants", 0)) for t in tests)
        yield f"bad input: {name}: mutants", mutants, least, mutants >= least and all(passed(t) for t in tests)
