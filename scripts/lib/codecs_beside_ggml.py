"""Runs codec_figures.py with the Python of scripts/make_ggml."""
import json
import subprocess

import build
import ggml_oracle


def figures(root, only):
    oracle = ggml_oracle.folder()
    if not (oracle / "version").is_file():
        yield "codecs (scripts/make_ggml)", "missing", "-", False
        return
    problem = build.release(root, "rlx_bench_codecs")
    if problem:
        raise SystemExit(problem)
    yield f"codecs: {(oracle / 'version').read_text().strip()}", "-", "-", True
    command = [oracle / "venv/bin/python", root / "scripts/lib/codec_figures.py",
               root / "build/release/bench/rlx_bench_codecs", only or ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode != 0:
        yield "codecs: the comparison ended with exit code", process.returncode, 0, False
