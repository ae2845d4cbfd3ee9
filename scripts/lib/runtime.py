"""Figures of the planned runtime: what is right, whether bits stay, speed beside a peer, and what a program needs."""
import json
import os
import pathlib
import statistics
import subprocess

import answers
import build


def tests(root, program, pattern):
    """How many tests match and ran, whether all passed, and their records."""
    all_tests = answers.run(root, program, pattern)
    ran = [t for t in all_tests if t["result"] == "COMPLETED"]
    return len(ran), bool(ran) and all(answers.passed(t) for t in all_tests), ran


def model_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models")) / "all-MiniLM-L6-v2"


def right(root):
    yield from answers.right(root)
    for name, pattern, key, bound, better in (
            ("right: largest error through the ONNX export", "BulkCompiled.MiniLmExport*", "worst", 1e-6, "less"),
            ("right: bf16, least cosine", "BulkCompiled.MiniLmInBf16", "least_cosine", 0.9999, "more")):
        _, good, ran = tests(root, "rlx_tests_models", pattern)
        value = float(ran[0][key]) if ran else "missing"
        ok = good and ran and (value <= bound if better == "less" else value >= bound)
        yield name, value, bound, ok
    count, good, ran = tests(root, "rlx_tests_runtime", "Ops/Compiled.*")
    yield "right: ops compiled at every level against their reference", count, 83, good and count >= 83
    yield "right: cases of these", sum(int(t["compiled"]) for t in ran), 1, good
    _, good, ran = tests(root, "rlx_tests_runtime", "BulkOptimised.*")
    graphs = sum(int(t["graphs"]) for t in ran)
    yield "right: random graphs, optimised has the bits of unoptimised", graphs, 2000, good and graphs >= 2000
    count, good, _ = tests(root, "rlx_tests_runtime", "BulkRandomPrograms.*")
    yield "right: random graphs against the reference (test suites)", count, 1, good
    count, good, _ = tests(root, "rlx_tests_models", "*Compiled.*SameBits*")
    yield "same bits: 1, 2, 4 threads, 100 runs, alone or in a batch of 32 (tests)", count, 2, good and count >= 2


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def decent(root):
    """The encoder beside ONNX Runtime: processes take turns, two threads pinned to processors 0 and 1."""
    model, export = model_folder(), model_folder().with_name("all-MiniLM-L6-v2-onnx") / "model.onnx"
    peers = subprocess.run([root / "bench/peers"], capture_output=True, text=True, check=False)
    if peers.returncode != 0 or not export.is_file():
        yield "decent: ONNX Runtime (bench/peers, scripts/export_onnx)", "missing", 0.8, False
        return
    python = peers.stdout.strip()
    for batch, rounds, runs in ((1, 9, 40), (8, 7, 10)):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(run_json(["taskset", "-c", "0,1", root / "build/release/rlx", "bench", model, "--dim",
                                  f"B={batch}", "--dim", "S=128", "--threads", "2", "--runs", str(runs), "--json"]))
            theirs.append(run_json(["taskset", "-c", "0,1", python, root / "bench/onnxruntime_encoder.py", export,
                                    str(batch), "128", "2", str(runs)]))
        mine, peer = (statistics.median(r["median_ms"] for r in rs) for rs in (ours, theirs))
        yield f"decent: ({batch},128), 2 threads: rlx, ms", mine, "-", True
        yield f"decent: ({batch},128), 2 threads: ONNX Runtime {theirs[0]['version']}, ms", peer, "-", True
        yield f"decent: ({batch},128), 2 threads: times ONNX Runtime", peer / mine, 0.8, peer / mine >= 0.8
        if batch == 1:
            PEER["added"] = statistics.median(r["added_bytes"] for r in theirs)


PEER = {}


def matmul(root):
    problem = build.release(root, "rlx_bench_matmul")
    if problem:
        raise SystemExit(problem)
    done = subprocess.run([root / "build/release/bench/rlx_bench_matmul"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if words[:2] == ["matmul", "f32"] and words[3] == "1024x1024x1024" and words[4] == "packed":
            percent = float(words[words.index("percent") + 1])
            name = f"decent: f32 matmul 1024 square, level {words[2]}, percent of the FMA peak"
            yield name, percent, 75, percent >= 75


def values(root, *arguments):
    lines = build.bench_values(root, "rlx_bench_runtime", *arguments)
    return {name: statistics.median(all_values) for name, all_values in lines.items()}


def light(root):
    model = str(model_folder())
    loads = [values(root, "memory", model) for _ in range(5)]
    load = statistics.median(v["load_compile_ms"] for v in loads)
    yield "light: load and compile, ms", load, 150, load <= 150
    compile_ms = values(root, "compile", "10000")["compile_ms"]
    yield "light: compile of a graph of 10,000 nodes, ms", compile_ms, 500, compile_ms <= 500
    added = statistics.median(v["added_bytes"] for v in loads)
    peer = PEER.get("added", 0)
    yield "light: memory that the model adds to the process, bytes", added, peer, 0 < added <= peer
    flat = values(root, "lengths", model, "2000")
    worst = max(flat["highest_ratio"] - 1, 1 - flat["lowest_ratio"])
    yield "light: change of memory over 2,000 random lengths", worst, 0.02, worst <= 0.02
    scalar = values(root, "scalar")
    yield "light: graph of five scalar nodes, steps", int(scalar["steps"]), 5, scalar["steps"] == 5
    yield "light: its run, p50 of 1e6, us", scalar["p50_us"], 1, scalar["p50_us"] <= 1
    count, good, _ = tests(root, "rlx_tests_allocation", "Allocation.*")
    yield "light: no allocation at sizes seen before (tests)", count, 2, good and count >= 2


def bad_input(root):
    ran = answers.run(root, "rlx_tests_io", "BulkOnnx*")
    mutants = sum(int(t.get("mutants", 0)) for t in ran)
    yield "bad input: ONNX: mutants", mutants, 20_000, mutants >= 20_000 and all(answers.passed(t) for t in ran)
    count, good, _ = tests(root, "rlx_tests_io", "OnnxHostile*")
    yield "bad input: ONNX: kinds of hostile files (tests)", count, 1, good
    count, good, _ = tests(root, "rlx_tests_runtime", "Executable.*")
    yield "bad input: through the API, and a usable program afterwards (tests)", count, 1, good
