"""Whether the machine may be measured on: the gate for repetitions, the state of its cache lines, and its probe.

A shared machine measures its neighbours: a repetition counts only if, while it ran, all other processes together used
less than 5 % of one processor and less than 5 % of one was stolen. On virtual machines the round trip of a cache line
between two processors has two states, about 55 ns and about 340 ns; figures of two threads compare within one state.
"""
import dataclasses
import json
import os
import pathlib
import resource
import time

import build

SHARE = 0.05        # of one processor, for others and for stolen time
REACHED = 0.95      # of the ceilings
NEAR_NS = 150       # a round trip below is the fast state
TICK = 1 / os.sysconf("SC_CLK_TCK")
LEAST_SECONDS = 20 * TICK  # shorter repetitions are below what the clock of the processors resolves


def processor_times():
    """Seconds that all processors were busy, and were stolen."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _idle, _wait, irq, soft, steal = (int(x) for x in file.readline().split()[1:9])
    return (user + nice + system + irq + soft) * TICK, steal * TICK


def process_seconds(pid):
    """Processor time of a living process; 0 when it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK
    except OSError:
        return 0.0


def own_seconds(pids):
    """Processor time of this process, of children that it has waited for, and of living processes."""
    total = sum(process_seconds(pid) for pid in pids)
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


class Watch:
    """What others used between `with` and its end, as shares of one processor. `pids`: own processes that live on."""

    def __init__(self, pids=()):
        self.pids = tuple(pids)
        self.others = self.steal = self.seconds = 0.0

    def __enter__(self):
        self.begin = time.monotonic(), *processor_times(), own_seconds(self.pids)
        return self

    def __exit__(self, *_):
        start, busy, steal, own = self.begin
        end, (busy_now, steal_now), own_now = time.monotonic(), processor_times(), own_seconds(self.pids)
        self.seconds = max(end - start, 1e-9)
        self.others = max(0.0, (busy_now - busy) - (own_now - own)) / self.seconds
        self.steal = (steal_now - steal) / self.seconds

    @property
    def quiet(self):
        # The clock of the processors counts in ticks: one tick of each is no evidence.
        slack = os.cpu_count() * TICK / self.seconds
        return self.others < SHARE + slack and self.steal < SHARE + slack


def wait_until_quiet(limit):
    """Waits until a fifth of a second passes quietly, at most `limit` seconds. Whether it did."""
    end = time.monotonic() + limit
    while True:
        with Watch() as watch:
            time.sleep(0.2)
        if watch.quiet:
            return True
        if time.monotonic() >= end:
            return False


@dataclasses.dataclass
class Repetition:
    """One measured piece of work: what it gave, whether it counts, and the states of the cache lines around it."""
    value: object
    quiet: bool
    state: str = ""  # "near", "far", "mixed" when it changed meanwhile, or "" when it was not asked for
    others: float = 0.0
    steal: float = 0.0


class Gate:
    """Runs repetitions until they pass; spends at most `patience` seconds on waiting and repeating in all."""

    def __init__(self, root=None, patience=120.0, pids=()):
        self.root, self.patience, self.pids = root, patience, pids
        self.repeated = 0

    def run(self, work, state=False):
        """`work()` as a Repetition. With `state` the round trip of a cache line is probed before and after."""
        while True:
            begin = time.monotonic()
            before = line_state(self.root) if state else ""
            with Watch(self.pids) as watch:
                value = work()
            after = line_state(self.root) if state else ""
            one = Repetition(value, watch.quiet, before if before == after else "mixed", watch.others, watch.steal)
            if one.quiet and one.state != "mixed" or self.patience <= 0:
                return one
            self.repeated += 1
            wait_until_quiet(min(self.patience, 10))
            self.patience -= time.monotonic() - begin


def probe_values(root, *what):
    """Lines of rlx_bench_probe as a dictionary. A name that comes twice keeps the larger value."""
    return {name: max(values) for name, values in build.bench_values(root, "rlx_bench_probe", *what).items()}


def line_state(root):
    """"near" or "far": how long a cache line takes between two processors."""
    return "near" if probe_values(root, "trip")["round_trip_ns"] < NEAR_NS else "far"


def ceilings(root):
    """The entry of ceilings.json for this machine, or nothing."""
    info = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    flags = info.get("flags", "").split()
    for entry in json.loads((root / "scripts/lib/ceilings.json").read_text(encoding="utf-8")):
        match = dict(entry["match"])
        wanted, processors = match.pop("flags"), match.pop("processors")
        if (all(info.get(key) == value for key, value in match.items()) and set(wanted) <= set(flags)
                and processors == len(os.sched_getaffinity(0))):
            return entry
    return None


def probe(root, rounds=3):
    """The best of some rounds of the probe, and whether all of them were quiet."""
    values, quiet = {}, True
    gate = Gate(root, patience=60)
    for _ in range(rounds):
        one = gate.run(lambda: probe_values(root, "all"))
        quiet = quiet and one.quiet
        for name, value in one.value.items():
            best = min if name.endswith("_ns") else max
            values[name] = best(value, values.get(name, value))
    return values, quiet


def is_fit(values, entry):
    """Whether the machine gives what it can: every peak of multiply-add, and reading from memory, at 95 %."""
    rates = entry["rates"] if entry else {}
    return all(values.get(name, 0) >= REACHED * rate for name, rate in rates.items()
               if name.startswith(("peak_", "read_524288KiB")))
