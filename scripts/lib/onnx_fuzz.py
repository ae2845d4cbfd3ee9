"""The fuzzer of ONNX models, and random graphs in their thousands."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

FUZZER = "build/fuzz/tests/fuzz/fuzz_onnx_run"
TESTS = "build/release/tests/rlx_tests_runtime"


def fuzz_figures(root):
    """A run of RLX_FUZZ_SECONDS seconds, where that is given; docs/figures/onnx.json has the longest one."""
    seconds = os.environ.get("RLX_FUZZ_SECONDS")
    if not seconds:
        return
    if not (root / FUZZER).is_file():
        yield "fuzz (preset fuzz, target fuzz_onnx_run)", "missing", 1, False
        return
    with tempfile.TemporaryDirectory() as work:
        seeds = pathlib.Path(work, "seeds")
        subprocess.run([root / "scripts/make_fuzz_seeds", seeds], check=True, capture_output=True)
        command = [root / FUZZER, f"-max_total_time={seconds}", "-max_len=4096", "-timeout=120", "-rss_limit_mb=2048",
                   "-print_final_stats=1", f"-artifact_prefix={root}/build/", seeds]
        done = subprocess.run(command, capture_output=True, text=True, cwd=work)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    yield f"fuzz for {seconds} s: models run", int(runs[1]) if runs else 0, 1, runs is not None
    yield f"fuzz for {seconds} s: exit code without findings", done.returncode, 0, done.returncode == 0


def random_figures(root):
    if not (root / TESTS).is_file():
        yield "random graphs (target rlx_tests_runtime)", "missing", 1, False
        return
    with tempfile.TemporaryDirectory() as work:
        report = pathlib.Path(work, "report.json")
        command = [root / TESTS, "--gtest_also_run_disabled_tests", "--gtest_filter=SlowRandomOptimised.*",
                   f"--gtest_output=json:{report}"]
        done = subprocess.run(command, capture_output=True, text=True)
        test = json.loads(report.read_text())["testsuites"][0]["testsuite"][0]
    graphs = int(test.get("graphs", 0))
    yield "random graphs: optimised as unoptimised", graphs, 10000, graphs >= 10000 and done.returncode == 0
    yield "random graphs: changed by exact passes only, bit by bit", int(test.get("exact", 0)), 1, "exact" in test
    yield ("random graphs: changed by passes that round, within bounds", int(test.get("rounding", 0)), 1,
           "rounding" in test)
