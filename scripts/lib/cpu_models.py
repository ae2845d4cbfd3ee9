"""Encoders beside ONNX Runtime, OpenVINO and PyTorch: f32, bf16 and int8, on one and two threads, and contention."""
import itertools
import statistics
import subprocess
import sys

import answers
import cpu_run
import runtime
import turns

# (batch, tokens): factors over ONNX Runtime with 1 and 2 threads.
MINILM = {(1, 16): (1.1, 1.4), (1, 128): (1.0, 1.3), (8, 128): (1.0, 1.25), (32, 128): (1.0, 1.2)}
BERT = {(1, 128): (1.0, 1.25), (8, 128): (1.0, 1.25)}
BF16, INT8 = 2.0, 2.8  # over ONNX Runtime in f32, at (8, 128)
OPENVINO, TORCH = 1.0, 1.3
MINILM_FLOPS, BERT_FLOPS = 2.72e9, 22.35e9  # of 128 tokens


class Model:
    def __init__(self, run, name, ours, export, sizes, flops):
        self.run, self.name, self.ours, self.export, self.sizes, self.flops = run, name, ours, export, sizes, flops

    def runs(self, batch, tokens, threads):
        return cpu_run.runs_for(batch * tokens / 128 * self.flops / threads / 90e9)

    def rlx(self, batch, tokens, threads, precision="f32"):
        sizes = dict(zip(self.sizes, (batch, tokens)))
        return lambda: self.run.seconds(self.ours, threads, self.runs(batch, tokens, threads), sizes=sizes,
                                        precision=precision)

    def peer(self, engine, batch, tokens, threads, export=None):
        server = self.run.engine(engine, threads)
        ask = {"encoder": str(export or self.export), "batch": batch, "tokens": tokens,
               "runs": self.runs(batch, tokens, threads)}
        return lambda: server and server.engine(**ask)

    def made(self, kind):
        """The export in a form of models.py, or the path of what cannot be there."""
        python = self.run.peers()
        done = subprocess.run([python or sys.executable, self.run.root / "bench/peer/models.py", kind, self.export],
                              capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else "missing"

    def f32(self, batch, tokens, threads, bound):
        contenders = {"rlx": self.rlx(batch, tokens, threads)}
        contenders |= {name: self.peer(name, batch, tokens, threads) for name in ("onnxruntime", "openvino", "torch")}
        rounds = 5 if batch * tokens * self.flops < 4e12 else 3
        times = turns.alternate(self.run.gate, contenders, rounds, threads > 1)
        yield from turns.against(label(self.name, batch, tokens, threads), times, "rlx",
                                 {"onnxruntime": bound, "openvino": OPENVINO, "torch": TORCH})

    def lower(self, batch, tokens, threads):
        """bf16 and int8, beside f32 of ONNX Runtime and the peers' own."""
        at = (batch, tokens, threads)
        contenders = {"rlx bf16": self.rlx(*at, "bf16"), "rlx int8": self.rlx(*at, "int8"),
                      "onnxruntime": self.peer("onnxruntime", *at),
                      "onnxruntime int8": self.peer("onnxruntime", *at, self.made("int8")),
                      "openvino bf16": self.peer("openvino-bf16", *at),
                      "openvino int8": self.peer("openvino", *at, self.made("openvino-int8")),
                      "torch bf16": self.peer("torch-bf16", *at)}
        times = turns.alternate(self.run.gate, contenders, 5 if self.flops < 1e10 else 3, threads > 1)
        name = label(self.name, *at) + ", lower precision"
        yield from turns.against(name, times, "rlx bf16",
                                 {"onnxruntime": BF16, "openvino bf16": 1.0, "torch bf16": 1.0})
        if "rlx int8" not in times:
            yield f"{name}: rlx int8", "missing", "-", False
            return
        for peer, bound in {"onnxruntime": INT8, "onnxruntime int8": 1.0, "openvino int8": 1.0}.items():
            yield from list(turns.against(name, times, "rlx int8", {peer: bound}))[len(times):]


def label(name, batch, tokens, threads):
    return f"{name} ({batch},{tokens}), {threads} thread{'s' if threads > 1 else ''}"


def minilm(run):
    folder = runtime.model_folder()
    return Model(run, "MiniLM", folder, folder.with_name(folder.name + "-onnx") / "model.onnx", ("B", "S"),
                 MINILM_FLOPS)


def bert(run):
    python = run.peers()
    done = subprocess.run([python, run.root / "bench/peer/models.py", "bert-base"], capture_output=True, text=True,
                          check=True)
    path = done.stdout.strip()
    return Model(run, "BERT-base", path, path, ("batch", "sequence"), BERT_FLOPS)


def accuracy(run):
    """The test of every lower precision records its least cosine."""
    for test in answers.run(run.root, "rlx_tests_models", "BulkCompiled.MiniLmIn*"):
        if "least_cosine" in test:
            bound = 0.9999 if "Bf16" in test["name"] else 0.99
            value = float(test["least_cosine"])
            yield f"accuracy: {test['name']}, least cosine to f32", value, bound, value >= bound


SPIN = "while True: pass"


def contention(run):
    """Unpinned, median of 200: under a process that spins on the first processor, and with more threads than there
    are processors."""
    model, sizes = runtime.model_folder(), {"B": 1, "S": 128}

    def one(threads):
        return run.bench(model, threads, 200, sizes=sizes, pinned=False)
    spinner = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", SPIN])
    run.gate.pids = (*run.gate.pids, spinner.pid)
    try:
        rounds = [(run.gate.run(lambda t=t: one(t))) for _, t in itertools.product(range(2), (1, 2))]
    finally:
        spinner.kill()
        spinner.wait()
    alone, two = rounds[0::2], rounds[1::2]
    quiet = all(r.quiet for r in rounds)
    words = "" if quiet else " (machine not quiet)"
    first = statistics.median(r.value["median_ms"] for r in alone)
    median = statistics.median(r.value["median_ms"] for r in two)
    p95 = statistics.median(r.value["p95_ms"] for r in two)
    yield "contention: 1 thread beside a spinner, median ms", first, "-", True
    yield "contention: 2 threads beside a spinner, median ms", median, "-", True
    yield f"contention: 2 threads over 1 thread, median{words}", median / first, 1.15, quiet and median / first <= 1.15
    yield f"contention: 2 threads, p95 over 1 thread's median{words}", p95 / first, 2, quiet and p95 / first <= 2
    rounds = [(run.gate.run(lambda t=t: one(t))) for _, t in itertools.product(range(2), (2, 4))]
    two, four = (statistics.median(r.value["median_ms"] for r in rounds[i::2]) for i in (0, 1))
    quiet = all(r.quiet for r in rounds)
    words = "" if quiet else " (machine not quiet)"
    yield f"contention: 4 threads over 2 threads, median{words}", four / two, 1.2, quiet and four / two <= 1.2


def parts():
    """Names of parts, and the function from Run to figures of each."""
    for (batch, tokens), bounds in MINILM.items():
        for threads in (1, 2):
            yield label("MiniLM", batch, tokens, threads), \
                lambda run, a=(batch, tokens, threads, bounds[threads - 1]): minilm(run).f32(*a)
    for threads in (1, 2):
        yield label("MiniLM", 8, 128, threads) + ", lower precision", \
            lambda run, t=threads: minilm(run).lower(8, 128, t)
    for (batch, tokens), bounds in BERT.items():
        for threads in (1, 2):
            yield label("BERT-base", batch, tokens, threads), \
                lambda run, a=(batch, tokens, threads, bounds[threads - 1]): bert(run).f32(*a)
    yield label("BERT-base", 8, 128, 2) + ", lower precision", lambda run: bert(run).lower(8, 128, 2)
    yield "accuracy", accuracy
    yield "contention", contention
