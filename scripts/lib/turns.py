"""Engines that take turns: processes that stay alive, and repetitions that alternate and count only when they may."""
import collections
import dataclasses
import json
import statistics
import subprocess
import time

SETTLE = 0.03  # seconds after an answer in which threads of an engine may still spin


class Server:
    """A process that answers every line with a line. Pinned to the first `threads` processors."""

    def __init__(self, command, threads, environment=None):
        processors = ",".join(str(i) for i in range(threads))
        self.process = subprocess.Popen(["taskset", "-c", processors, *map(str, command)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)

    @property
    def pid(self):
        return self.process.pid

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"figures: {' '.join(self.process.args[3:])} ended")
        time.sleep(SETTLE)
        return answer.strip()

    def product(self, kind, m, k, n, rotate=1, seconds=0.22):
        """Median time of a product in seconds; nothing when the engine has none of this kind."""
        answer = self.ask(f"{kind} {m} {k} {n} {rotate} {seconds}")
        return None if answer.startswith("error") else float(answer.split()[0])

    def convolution(self, form, seconds=0.22):
        """Median time of a convolution in seconds; `form` as bench/serve_conv.h has it."""
        answer = self.ask(f"{form} {seconds}")
        return None if answer.startswith("error") else float(answer.split()[0])

    def engine(self, **request):
        """Median time in seconds, of bench/peer/engines.py; nothing when the engine refuses."""
        answer = json.loads(self.ask(json.dumps(request)))
        return None if "error" in answer else answer["median_ms"] / 1e3

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@dataclasses.dataclass
class Times:
    """Repetitions of one contender that count."""
    values: list
    asked: int
    state: str

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def enough(self):
        return len(self.values) >= min(3, self.asked)

    def words(self):
        spread = 100 * (max(self.values) - min(self.values)) / self.median if self.values else 0
        state = f", {self.state} lines" if self.state else ""
        return f"{len(self.values)} of {self.asked} count, spread {spread:.0f} %{state}"


def alternate(gate, contenders, rounds, state):
    """Runs the contenders A B C A B C; `contenders` maps names to functions that give seconds, or nothing when they
    cannot. Figures of two threads (`state`) are compared within the state of the cache lines that was seen most. Gives
    Times by name, without those that cannot; a repetition that did not pass the gate does not count, unless too few
    passed: then all do and `enough` is false."""
    seen = collections.defaultdict(list)
    refused = {name for name, work in contenders.items() if work() is None}  # warms up too
    for _ in range(rounds):
        for name, work in contenders.items():
            if name not in refused:
                seen[name].append(gate.run(work, state))
    states = collections.Counter(r.state for rs in seen.values() for r in rs if r.quiet and r.state != "mixed")
    common = states.most_common(1)[0][0] if states else ""
    result = {}
    for name, repetitions in seen.items():
        good = [r.value for r in repetitions if r.quiet and r.state == common]
        times = Times(good, rounds, common)
        if not times.enough:
            times = Unquiet([r.value for r in repetitions], rounds, "unsteady" if state else "")
        result[name] = times
    return result


class Unquiet(Times):
    """Repetitions on a machine that others used."""
    enough = False

    def words(self):
        return "machine not quiet, " + Times.words(self)


def against(label, times, ours, bounds, unit="ms", scale=1e3):
    """Figures of alternated times: what each took, and how many times faster ours is than each peer. `bounds`: peer to
    the factor that must be reached. A peer that could not run is reported as missing."""
    if ours not in times:
        yield f"{label}: {ours}", "missing", "-", False
        return
    for name, t in times.items():
        yield f"{label}: {name}, {unit} ({t.words()})", t.median * scale, "-", True
    for peer, bound in bounds.items():
        if peer not in times:
            yield f"{label}: {ours} times {peer}", "missing", bound, False
            continue
        ratio = times[peer].median / times[ours].median
        counts = times[ours].enough and times[peer].enough
        yield f"{label}: {ours} times {peer}{'' if counts else ' (machine not quiet)'}", ratio, bound, \
            counts and ratio >= bound
