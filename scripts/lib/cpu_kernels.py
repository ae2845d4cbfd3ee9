"""Kernels: products beside oneDNN, OpenBLAS and the probe's peak; attention; what memory bounds; instruction levels."""
import subprocess

import build
import cpu_run
import machine
import runtime
import turns

SQUARES = (128, 256, 512, 1024, 2048)
PEAK = {"f32": "peak_f32_avx512", "bf16": "peak_bf16", "int8": "peak_int8"}
BYTES = {"f32": 4, "bf16": 2, "int8": 1}


CONVOLUTIONS = {  # as bench/serve_conv.h has them, without the number of images
    "3x3 64 to 64 at 56x56": "64 56 56 64 3 1 1 1",
    "depthwise 3x3 144 at 56x56": "144 56 56 144 3 1 1 144",
    "1x1 256 to 64 at 56x56": "256 56 56 64 1 1 0 1",
    "7x7/2 3 to 64 at 224x224": "3 224 224 64 7 2 3 1",
}


def threads_text(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def products(run, kind, m, k, n, threads):
    servers = {"rlx": run.product(threads), "oneDNN": run.library("onednn", threads)}
    contenders = {name: (lambda s=s: s and s.product(kind, m, k, n)) for name, s in servers.items()}
    times = turns.alternate(run.gate, contenders, 5, threads > 1)
    name = f"matmul {kind} {m}x{k}x{n}, {threads_text(threads)}"
    yield from turns.against(name, times, "rlx", {"oneDNN": 0.97}, "us", 1e6)
    if "rlx" in times:
        rate = 2e-9 * m * k * n / times["rlx"].median
        peak = run.probe()[0].get(f"{PEAK[kind]}_{threads}", float("inf"))
        bound = 93 if m == k == n and m >= 256 else "-"
        yield f"{name}: percent of the peak", 100 * rate / peak, bound, \
            bound == "-" or times["rlx"].enough and 100 * rate / peak >= bound


def convolution(run, name, batch, threads):
    """With bias and relu; oneDNN in its own layouts, which are not brought about, and in the order of rlx."""
    servers = {"rlx": run.convolution(threads), "oneDNN": run.library("onednn-conv", threads),
               "oneDNN in the order of rlx": run.library("onednn-conv", threads, "plain")}
    form = f"{batch} {CONVOLUTIONS[name]}"
    contenders = {who: (lambda s=s: s and s.convolution(form)) for who, s in servers.items()}
    times = turns.alternate(run.gate, contenders, 5, threads > 1)
    yield from turns.against(f"convolution {name}, batch {batch}, {threads_text(threads)}", times, "rlx",
                             {"oneDNN": 1.0, "oneDNN in the order of rlx": 1.0}, "us", 1e6)


def one_row(run, kind, k, n, threads):
    """Four weights take turns, so that they come from memory."""
    times = turns.alternate(run.gate, {
        "rlx": lambda: run.product(threads).product(kind, 1, k, n, 4, 0.3),
        "read": lambda: k * n * BYTES[kind] / 1e9 / machine.probe_values(
            run.root, "read", str(threads))[f"read_524288KiB_{threads}"]}, 5, threads > 1)
    yield from turns.against(f"matmul {kind} 1x{k}x{n} of four, {threads_text(threads)}", times, "rlx", {"read": 0.88},
                             "us", 1e6)


def one_row_in_cache(run, threads):
    servers = {"rlx": run.product(threads), "oneDNN": run.library("onednn", threads),
               "OpenBLAS": run.library("openblas", threads)}
    contenders = {name: (lambda s=s: s and s.product("f32", 1, 384, 1536)) for name, s in servers.items()}
    times = turns.alternate(run.gate, contenders, 7, threads > 1)
    yield from turns.against(f"matmul f32 1x384x1536 in cache, {threads_text(threads)}", times, "rlx",
                             {"oneDNN": 1.0, "OpenBLAS": 1.0}, "us", 1e6)


def levels(run, m, k, n):
    contenders = {level: (lambda s=run.product(1, level): s.product("f32", m, k, n)) for level in ("v3", "v4")}
    times = turns.alternate(run.gate, contenders, 5, False)
    yield from turns.against(f"levels: matmul f32 {m}x{k}x{n}, 1 thread", times, "v3", {"v4": 0.9}, "us", 1e6)


ROWS = 4096  # square, 64 MiB of f32
ELEMENTWISE, OTHERS = 0.88, 0.85  # of the bandwidth
MEMORY = {  # graph of x (and y), moved bytes per byte of x, what it is compared with, bound
    "neg": ("  %0 = neg %x : f32[R,C]\n", 2, "copy", ELEMENTWISE),
    "gelu": ("  %0 = gelu %x : f32[R,C]\n", 2, "copy", ELEMENTWISE),
    "add": ("  %0 = add %x, %y : f32[R,C]\n", 3, "triad", ELEMENTWISE),
    "softmax": ("  %0 = softmax %x : f32[R,C]\n", 2, "copy", OTHERS),
    "layer_norm": ("  %0 = layer_norm %x, %g, %g : f32[R,C]\n", 2, "copy", OTHERS),
    "rms_norm": ("  %0 = rms_norm %x, %g : f32[R,C]\n", 2, "copy", OTHERS),
    "sum of rows": ("  %0 = reduce %x {axes=[1]} : f32[R]\n", 1, "read", OTHERS),
    "sum of columns": ("  %0 = reduce %x {axes=[0]} : f32[C]\n", 1, "read", OTHERS),
}


def memory(run, name, threads):
    """Both store kinds of the probe are measured; the kernel is compared with the kind that it uses, which is the
    streaming one when it is faster than plain stores allow."""
    body, moved, traffic, bound = MEMORY[name]
    inputs = "%x: f32[R,C]" + (", %y: f32[R,C]" if "%y" in body else "") + (", %g: f32[C]" if "%g" in body else "")
    text = f"graph({inputs}) {{\n{body}  return %0\n}}\n".replace("R", str(ROWS)).replace("C", str(ROWS))
    path, size = run.graph(name.replace(" ", "_"), text), moved * ROWS * ROWS * 4

    def of_probe(kind):
        return lambda: size / 1e9 / machine.probe_values(run.root, kind, str(threads))[f"{kind}_524288KiB_{threads}"]
    contenders = {"rlx": lambda: run.seconds(path, threads, 12), traffic: of_probe(traffic)}
    if traffic != "read":
        contenders[f"{traffic}_streaming"] = of_probe(f"{traffic}_streaming")
    times = turns.alternate(run.gate, contenders, 5, threads > 1)
    streams = traffic != "read" and times["rlx"].median < 0.85 * times[traffic].median
    yield from turns.against(f"memory: {name} of {ROWS} square, {threads_text(threads)}", times, "rlx",
                             {f"{traffic}_streaming" if streams else traffic: bound})


ATTENTION = ((1, 12, 128, 64), (1, 12, 512, 64), (1, 32, 2048, 128))


def attention(run, shape, kind, threads):
    batch, heads, tokens, size = shape
    t = f"{kind}[{batch},{heads},{tokens},{size}]"
    path = run.graph(f"attention_{kind}_{tokens}", f"graph(%q: {t}, %k: {t}, %v: {t}) {{\n"
                     f"  %0 = attention %q, %k, %v : {t}\n  return %0\n}}\n")
    runs = cpu_run.runs_for(4 * batch * heads * tokens * tokens * size / threads / 80e9)
    server = run.engine("torch", threads)
    contenders = {"rlx": lambda: run.seconds(path, threads, 10 * runs if tokens < 1000 else runs),
                  "torch": lambda: server and server.engine(attention=shape, type=kind, runs=10 * runs
                                                            if tokens < 1000 else runs)}
    times = turns.alternate(run.gate, contenders, 5 if tokens < 1000 else 3, threads > 1)
    yield from turns.against(f"attention {kind} {shape}, {threads_text(threads)}", times, "rlx",
                             {"torch": 1.3 if kind == "f32" else 1.0}, "us", 1e6)


def held(run):
    """Determinism, batch invariance, and all levels against their definitions."""
    count, good, _ = runtime.tests(run.root, "rlx_tests_models", "*Compiled.*SameBits*")
    yield "held: same bits for any threads, runs, and batch (tests)", count, 2, good and count >= 2
    count, good, _ = runtime.tests(run.root, "rlx_tests_runtime", "Ops/Compiled.*")
    yield "held: ops at every level against their reference", count, 83, good and count >= 83


def functions(run):
    """Lines of bench/math.cpp, `NAME VALUE`; a value beside SLEEF's has a name that ends in `_times_sleef`."""
    if not (run.root / "bench/math.cpp").exists():
        yield "functions: bench/math.cpp", "missing", "-", False
        return
    problem = build.release(run.root, "rlx_bench_math")
    if problem:
        raise SystemExit(problem)
    program = run.root / "build/release/bench/rlx_bench_math"
    one = run.gate.run(lambda: subprocess.run(["taskset", "-c", "0", program], capture_output=True, text=True,
                                              check=True).stdout)
    for line in one.value.splitlines():
        words = line.rsplit(maxsplit=1)
        if len(words) == 2 and words[0].endswith("_times_sleef"):
            yield f"functions: {words[0]}", float(words[1]), 1.0, one.quiet and float(words[1]) >= 1.0


def parts():
    """Names of parts, and the function from Run to figures of each."""
    for threads in (1, 2):
        for kind in PEAK:
            for m, k, n in [*((s, s, s) for s in SQUARES), (8, 384, 1536), (128, 384, 1536)]:
                yield f"matmul {kind} {m}x{k}x{n}, {threads_text(threads)}", \
                    lambda run, a=(kind, m, k, n, threads): products(run, *a)
        for kind in ("f32", "bf16"):
            for k, n in ((2048, 5632), (4096, 4096)):
                yield f"matmul {kind} 1x{k}x{n} of four, {threads_text(threads)}", \
                    lambda run, a=(kind, k, n, threads): one_row(run, *a)
        for name in CONVOLUTIONS:
            for batch in (1, 8):
                yield f"convolution {name}, batch {batch}, {threads_text(threads)}", \
                    lambda run, a=(name, batch, threads): convolution(run, *a)
        yield f"matmul f32 1x384x1536 in cache, {threads_text(threads)}", \
            lambda run, t=threads: one_row_in_cache(run, t)
        for name in MEMORY:
            yield f"memory: {name}, {threads_text(threads)}", lambda run, a=(name, threads): memory(run, *a)
        for kind in ("f32", "bf16"):
            for shape in ATTENTION:
                yield f"attention {kind} {shape}, {threads_text(threads)}", \
                    lambda run, a=(shape, kind, threads): attention(run, *a)
    for m, k, n in ((512, 512, 512), (1024, 1024, 1024), (128, 384, 1536)):
        yield f"levels: matmul f32 {m}x{k}x{n}", lambda run, a=(m, k, n): levels(run, *a)
    yield "functions", functions
    yield "held", held
