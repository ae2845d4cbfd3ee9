"""Speed of language models beside llama.cpp: prompts of 512 tokens, and tokens one by one."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import build
import cpu_run
import turns

MODEL = "smollm2-135m-instruct-q4_1"
TYPES = ("q4_0", "q8_0", "q4_k")
PROMPT, ANSWER = 512, 128
# Multiplications of a token of SmolLM2-135M: what its matrices hold, the embedding once, as the head.
OPERATIONS = 2 * 134_515_008


class Speed(cpu_run.Run):
    def __init__(self, root):
        super().__init__(root)
        self.llama = self.peers("--llama")

    def file(self, kind):
        """The model in this type, made from the published file when it is not there."""
        folder = pathlib.Path(os.environ.get("RLX_MODELS") or pathlib.Path(
            os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rlx/models")
        source = next((folder / MODEL).glob("*.gguf"))
        made = folder / "made" / f"smollm2-135m-{kind}.gguf"
        if not made.is_file():
            made.parent.mkdir(exist_ok=True)
            subprocess.run([self.rlx, "quantize", source, made, "--type", kind], check=True, stdout=sys.stderr)
        return made

    def bench(self, command, path, threads, prompt, answer, *options):
        """What a benchmark prints as JSON; nothing when it fails."""
        done = subprocess.run([*pinned(threads), *command, path, "-p", str(prompt), "-n", str(answer), "-r", "3", "-t",
                               str(threads), *options], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def ours(self, path, threads, prompt, answer):
        report = self.bench([self.rlx, "bench-llm"], path, threads, prompt, answer, "--json")
        if report is None:
            raise SystemExit(f"figures: rlx bench-llm {path} failed")
        return report

    def theirs(self, path, threads, prompt, answer):
        """Seconds a token, or nothing."""
        if not self.llama:
            return None
        program = pathlib.Path(self.llama) / "llama-bench"
        report = self.bench([program, "-m"], path, threads, prompt, answer, "-o", "json")
        return report and 1 / report[0]["avg_ts"]


def pinned(threads):
    return ["taskset", "-c", ",".join(str(i) for i in range(threads))]


def compare(run, kind, threads, prompt, answer):
    path = run.file(kind)
    reports = []

    def ours():
        reports.append(run.ours(path, threads, prompt, answer))
        return 1 / reports[-1]["tests"][0]["tokens_per_second"]
    times = turns.alternate(run.gate, {"rlx": ours, "llama.cpp": lambda: run.theirs(path, threads, prompt, answer)}, 5,
                            threads > 1)
    return times, reports


def decode(run, kind, threads):
    times, reports = compare(run, kind, threads, 0, ANSWER)
    name = f"decode {kind}, {threads} thread{'s' if threads > 1 else ''}, weights {reports[-1]['mode']}"
    yield from turns.against(name, times, "rlx", {"llama.cpp": 1.0}, "ms a token", 1e3)
    limit = max(r["tests"][0]["limit"] for r in reports)
    share = 100 / times["rlx"].median / limit
    bound = 88 if threads > 1 else 75
    yield f"{name}: percent of the read bandwidth", share, bound, times["rlx"].enough and share >= bound


def prefill(run, kind, threads):
    times, reports = compare(run, kind, threads, PROMPT, 0)
    name = f"prefill {PROMPT} {kind}, {threads} thread{'s' if threads > 1 else ''}, weights {reports[-1]['mode']}"
    yield from turns.against(name, times, "rlx", {"llama.cpp": 2.2}, "ms a token", 1e3)
    share = 100 * OPERATIONS / times["rlx"].median / 1e9 / run.probe()[0].get(f"peak_int8_{threads}", float("inf"))
    yield f"{name}: percent of the int8 peak", share, 40, times["rlx"].enough and share >= 40


def contention(run, kind):
    """One of our processes spins on one core; nothing is pinned."""
    path = run.file(kind)
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(spinner.pid, {0})

        def rate(threads):
            done = subprocess.run([run.rlx, "bench-llm", path, "-p", "0", "-n", str(ANSWER), "-r", "3", "-t",
                                   str(threads), "--json"], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)["tests"][0]["tokens_per_second"]
        rates = {1: [], 2: []}
        for _ in range(5):
            for threads, seen in rates.items():
                seen.append(rate(threads))
    finally:
        spinner.kill()
        spinner.wait()
    one, two = (sorted(rates[t])[2] for t in (1, 2))
    yield f"contention: decode {kind} beside a spinner, 2 threads times 1 thread", two / one, 0.9, two / one >= 0.9


def prefix(run):
    """The time to the first token behind 2,048 tokens, cold, over that with these tokens in the cache."""
    problem = build.release(run.root, "rlx_tests_generate")
    if problem:
        raise SystemExit(problem)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        subprocess.run([run.root / "build/release/tests/rlx_tests_generate",
                        "--gtest_filter=BulkSmolLm.CachedPrefixesAnswerSooner", f"--gtest_output=xml:{report}"],
                       capture_output=True, check=False)
        found = re.search(r'name="first_token_ratio" value="([\d.]+)"', report.read_text(encoding="utf-8"))
    ratio = float(found[1]) if found else 0.0
    yield "prefix of 2,048 tokens reused: first token, times faster", ratio, 20, ratio >= 20


def parts():
    for kind in TYPES:
        for threads in (1, 2):
            yield f"decode {kind}, {threads}", lambda run, a=(kind, threads): decode(run, *a)
            yield f"prefill {kind}, {threads}", lambda run, a=(kind, threads): prefill(run, *a)
    yield "prefix", prefix
    yield "contention", lambda run: contention(run, "q4_0")


def figures(root, only=None):
    wanted = [measure for name, measure in parts() if re.search(only or "", name)]
    if not wanted:
        return
    run = Speed(root)
    try:
        _, fit = run.probe()
        yield "probe: figures of speed count", "yes" if fit else "no", "yes", fit
        for measure in wanted:
            yield from measure(run)
    finally:
        run.close()
