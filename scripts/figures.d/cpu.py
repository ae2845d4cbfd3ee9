"""The CPU at its limit: encoders, products, attention and what memory bounds, beside peers and the probe's peaks.

Ours and the peers take turns; a repetition counts only on a quiet machine, figures of two threads only within one state
of the cache lines. `--only RE` measures the parts whose names match (MiniLM, BERT-base, matmul, convolution, memory,
attention, contention, levels, functions, accuracy, held).
"""
import itertools
import re

import cpu_kernels
import cpu_models
import cpu_run


def figures(root, only=None):
    run = cpu_run.Run(root)
    try:
        values, fit = run.probe()
        yield f"probe: f32 peak of 1 thread {values['peak_f32_avx512_1']:.0f} G/s, figures of this run count", \
            "yes" if fit else "no", "yes", fit
        for name, measure in itertools.chain(cpu_models.parts(), cpu_kernels.parts()):
            if re.search(only or "", name):
                yield from measure(run)
        yield "gate: repetitions that were done again", run.gate.repeated, "-", True
    finally:
        run.close()
