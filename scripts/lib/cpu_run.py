"""What the parts of the topic `cpu` share: programs of ours and of peers, the gate, and the values of the probe."""
import json
import os
import pathlib
import subprocess
import tempfile

import build
import machine
import turns

PATIENCE = 180.0  # seconds that one whole run may wait for a quiet machine


class Run:
    """Starts programs when they are first asked for."""

    def __init__(self, root):
        problem = build.release(root, "rlx_program", "rlx_bench_product", "rlx_bench_conv", "rlx_bench_probe")
        if problem:
            raise SystemExit(problem)
        self.root = root
        self.gate = machine.Gate(root, PATIENCE)
        self.servers = {}
        self.values = None
        self.folder = tempfile.TemporaryDirectory()
        self.rlx = root / "build/release/rlx"

    def close(self):
        for server in self.servers.values():
            server.close()
        self.folder.cleanup()

    def server(self, *key, command, threads, environment=None):
        if key not in self.servers:
            self.servers[key] = turns.Server(command, threads, environment)
            self.gate.pids = tuple(s.pid for s in self.servers.values())
        return self.servers[key]

    def peers(self, *arguments):
        """What bench/peers prints, or nothing when the peers cannot be had."""
        done = subprocess.run([self.root / "bench/peers", *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def engine(self, name, threads):
        """A server of bench/peer/engines.py, or nothing."""
        python = self.peers()
        command = [python, self.root / "bench/peer/engines.py", name, threads]
        return python and self.server(name, threads, command=command, threads=threads)

    def product(self, threads, level=None):
        """The server of our products."""
        command = [self.root / "build/release/bench/rlx_bench_product", threads, *([level] if level else [])]
        return self.server("product", threads, level, command=command, threads=threads)

    def convolution(self, threads):
        """The server of our convolutions."""
        command = [self.root / "build/release/bench/rlx_bench_conv", threads]
        return self.server("conv", threads, command=command, threads=threads)

    def library(self, name, threads, *options):
        """A server of oneDNN or OpenBLAS, or nothing."""
        program = self.peers(f"--{name}")
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
        options = [threads] if name == "openblas" else options
        return program and self.server(name, threads, *options, command=[program, *options], threads=threads,
                                       environment=environment)

    def probe(self):
        """Values of the probe, taken once, and whether figures of this run count."""
        if self.values is None:
            values, quiet = machine.probe(self.root)
            self.values = values, quiet and machine.is_fit(values, machine.ceilings(self.root))
        return self.values

    def bench(self, model, threads, runs, sizes=None, precision="f32", pinned=True, extra=()):
        """Report of `rlx bench` as a dictionary; nothing when the program has no such precision. `extra`: options."""
        dims = [word for name, size in (sizes or {}).items() for word in ("--dim", f"{name}={size}")]
        pin = ["taskset", "-c", ",".join(str(i) for i in range(threads))] if pinned else []
        how = [] if precision == "f32" else ["--bf16"] if precision == "bf16" else ["--precision", precision]
        done = subprocess.run([*pin, self.rlx, "bench", model, *dims, "--threads", str(threads), "--runs", str(runs),
                               "--json", *how, *extra], capture_output=True, text=True, check=False)
        if done.returncode == 2 and precision != "f32":
            return None
        if done.returncode != 0:
            raise SystemExit(f"figures: rlx bench {model}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def seconds(self, *arguments, **options):
        report = self.bench(*arguments, **options)
        return None if report is None else report["median_ms"] / 1e3

    def graph(self, name, text):
        """A file with a graph in text form."""
        path = pathlib.Path(self.folder.name) / f"{name}.rlx"
        path.write_text("rlx 1\n" + text, encoding="utf-8")
        return path


def runs_for(seconds):
    """How many runs of this length make a repetition that the gate can judge."""
    return max(1, min(60, round(0.4 / seconds)))
