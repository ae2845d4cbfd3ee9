"""Figures of the codecs, measured by the Python of scripts/make_ggml: lines of JSON with name, value, bound, ok.

Usage: codec_figures.py PROGRAM PATTERN; PROGRAM is the built rlx_bench_codecs.
"""
import json
import re
import subprocess
import sys

import numpy

import ggml_oracle
import plane_models

MEGABYTES = 10
# f16 patterns of interest: zeros, denormals, ones, the largest, infinities, NaN.
HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00,
          0xFE01, 0x7C01, 0x55AA]


def program(arguments, data):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], input=data, stdout=subprocess.PIPE, check=True)
    return done.stdout


def adversarial(size, count):
    """Blocks of one byte value; random blocks with a pattern at every place in turn; blocks of few byte values."""
    blocks = ggml_oracle.random_bytes(size * count, 2).reshape(count, size)
    blocks[:256] = numpy.arange(256, dtype=numpy.uint8)[:, None]
    third = count // 3
    for i in range(third):
        at = i // len(HALVES) % (size - 1)
        blocks[256 + i, at:at + 2] = HALVES[i % len(HALVES)] & 255, HALVES[i % len(HALVES)] >> 8
    few = numpy.array([0, 1, 0x7F, 0x80, 0xFF, 0x7C, 0xFC, 0x3C], numpy.uint8)
    blocks[count - third:] = few[blocks[count - third:] & 7]
    return blocks


def unequal(a, b):
    """How many f32 differ in any bit; NaN equals NaN."""
    return int(numpy.count_nonzero((a.view(numpy.uint32) != b.view(numpy.uint32)) & ~(numpy.isnan(a) & numpy.isnan(b))))


def types(ggml):
    for name in ggml.ids:
        elements, size = ggml.sizes(name)
        count = MEGABYTES * 1024 * 1024 // size
        wrong = compared = 0
        for blocks in (ggml_oracle.random_bytes(size * count, 1).reshape(count, size), adversarial(size, count)):
            ours = numpy.frombuffer(program(["decode", name, count, elements], blocks.tobytes()), numpy.float32)
            theirs = ggml.decode(name, blocks.tobytes()).ravel()
            wrong += unequal(ours, theirs)
            compared += ours.size
        oracle = "ggml" if ggml.traits(ggml.ids[name]).to_float else "NumPy"
        yield f"types {name}: {compared} elements of {2 * MEGABYTES} MB that differ from {oracle}", wrong, 0, wrong == 0


ENCODERS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4",
            "nvfp4"]
ROWS, COLUMNS = 1024, 1024


def samples():
    """Weights as they are in models (normal), and with heavy tails (Student's t with 4 degrees of freedom)."""
    generator = numpy.random.default_rng(3)
    yield "normal", generator.standard_normal((ROWS, COLUMNS)).astype(numpy.float32) * numpy.float32(0.02)
    yield "heavy tails", generator.standard_t(4, (ROWS, COLUMNS)).astype(numpy.float32) * numpy.float32(0.02)


def squared_error(x, y, weights=1.0):
    return float(numpy.mean(weights * (x.astype(numpy.float64) - y.reshape(x.shape)) ** 2))


def encoders(ggml):
    importance = numpy.random.default_rng(4).exponential(1, COLUMNS).astype(numpy.float32)
    for name in ENCODERS:
        for kind, x in samples():
            ours = ggml.decode(name, program(["encode", name, ROWS, COLUMNS], x.tobytes()))
            theirs = ggml.decode(name, ggml.encode(name, x).tobytes())
            ratio = squared_error(x, ours) / squared_error(x, theirs)
            yield f"encoders {name}: squared error / ggml's, {kind}", ratio, 1.01, ratio <= 1.01
        weighed = program(["weigh", name, ROWS, COLUMNS], importance.tobytes() + x.tobytes())
        ours = ggml.decode(name, weighed)
        theirs = ggml.decode(name, ggml.encode(name, x, importance).tobytes())
        ratio = squared_error(x, ours, importance) / squared_error(x, theirs, importance)
        yield f"encoders {name}: the same, weighted by importance", ratio, 1.01, ratio <= 1.01


def formats(ggml):
    """Formats with several planes against models of their specifications; the encoders against their own decoders."""
    for name, block, layout, encodes in plane_models.all_layouts(program(["list"], b"").decode().splitlines()):
        model = plane_models.model_of(name)
        if model is None:
            continue
        rows, columns = 512, max(4 * block, 512)
        planes = plane_models.planes_of(layout, rows, columns, block, ggml_oracle.random_bytes)
        data = b"".join(plane.tobytes() for plane in planes)
        ours = numpy.frombuffer(program(["decode", name, rows, columns], data), numpy.float32)
        with numpy.errstate(all="ignore"):
            theirs = numpy.ascontiguousarray(model(rows, columns, planes), numpy.float32).ravel()
        wrong = unequal(ours, theirs)
        yield f"formats {name}: {ours.size} elements that differ from the model", wrong, 0, wrong == 0
        if not encodes:
            continue
        x = numpy.random.default_rng(5).standard_normal((rows, columns)).astype(numpy.float32)
        stored = numpy.frombuffer(program(["encode", name, rows, columns], x.tobytes()), numpy.uint8)
        ends = numpy.cumsum([plane.size for plane in planes])[:-1]
        planes = [numpy.ascontiguousarray(plane) for plane in numpy.split(stored, ends)]
        error = squared_error(x, model(rows, columns, planes))
        yield f"formats {name}: squared error of normal numbers, encoded", error, "-", True


PARTS = {"types": types, "encoders": encoders, "formats": formats}


def main():
    ggml = ggml_oracle.Ggml()
    for name, measure in PARTS.items():
        if re.search(sys.argv[2], name):
            for figure in measure(ggml):
                print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
