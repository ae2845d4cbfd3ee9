"""How the work on a graph grows with ten times the nodes: instructions and time of each stage, by bench/linear."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import build

# All passes take longest, and under callgrind fifty times as long.
SHAPES = {"chain": (10_000, 100_000), "wide": (10_000, 100_000), "layers": (4_000, 40_000)}
MOST_INSTRUCTIONS, MOST_TIME = 11, 20


def figures(root):
    problem = build.release(root, "rlx_bench_linear")
    if problem:
        raise SystemExit(problem)
    program = root / "build/release/bench/rlx_bench_linear"
    for shape, sizes in SHAPES.items():
        small, large = (seconds(program, shape, nodes) for nodes in sizes)
        for stage in small:
            ratio = large[stage] / small[stage]
            yield f"linear: {shape} {stage}: time ratio", ratio, MOST_TIME, ratio <= MOST_TIME
        if not shutil.which("valgrind"):
            yield f"linear: {shape}: instructions (valgrind is missing: scripts/setup --ci)", "unknown", \
                MOST_INSTRUCTIONS, False
            continue
        small, large = (instructions(program, shape, nodes) for nodes in sizes)
        for stage in small:
            ratio = large[stage] / small[stage]
            yield f"linear: {shape} {stage}: instruction ratio", ratio, MOST_INSTRUCTIONS, ratio <= MOST_INSTRUCTIONS


def seconds(program, shape, nodes):
    done = subprocess.run([program, shape, str(nodes)], capture_output=True, text=True, check=True)
    stages = dict(line.split() for line in done.stdout.splitlines())
    return {stage: float(value) for stage, value in stages.items() if stage != "nodes"}


def instructions(program, shape, nodes):
    """Of every stage: each has its own callgrind dump, named by its trigger."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, shape,
                        str(nodes)], capture_output=True, check=True)
        counts = {}
        for path in sorted(pathlib.Path(folder).iterdir()):
            text = path.read_text()
            stage = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
            if stage and total:
                counts[stage[1]] = int(total[1])
        if not counts:
            raise SystemExit("figures: no instruction counts: was rlx_bench_linear built without valgrind's headers?")
        return counts
