"""Independent models, in NumPy, of the formats whose planes lie apart: what the planes of a tensor decode to.

A model takes rows, columns and the planes as arrays of bytes, in the order of the format.
"""
import re

import numpy

f32 = numpy.float32


def floats(plane):
    return plane.view("<f4")


def small_float(code, exponent_bits, mantissa_bits, bias, special):
    """Value of a code by the text of the OCP documents."""
    mantissa = code & (1 << mantissa_bits) - 1
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    sign = -1.0 if code >> mantissa_bits + exponent_bits & 1 else 1.0
    top = (1 << exponent_bits) - 1
    if special == "ieee" and exponent == top:
        return sign * float("inf") if mantissa == 0 else float("nan")
    if special == "nan" and exponent == top and mantissa == (1 << mantissa_bits) - 1:
        return float("nan")
    if exponent == 0:
        return sign * mantissa / (1 << mantissa_bits) * 2.0 ** (1 - bias)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


E4M3 = numpy.array([small_float(c, 4, 3, 7, "nan") for c in range(256)], f32)
E5M2 = numpy.array([small_float(c, 5, 2, 15, "ieee") for c in range(256)], f32)
E2M1 = numpy.array([small_float(c, 2, 1, 1, "none") for c in range(16)], f32)
E8M0 = numpy.array([2.0 ** (c - 127) for c in range(255)] + [float("nan")], f32)


def bit_fields(plane, bits):
    """All codes of `bits` bits, from the lowest bit of the first byte on."""
    stream = numpy.unpackbits(plane, bitorder="little").reshape(-1, bits)
    return (stream << numpy.arange(bits, dtype=numpy.uint8)).sum(axis=1).astype(numpy.int64)


def affine(kind, bits, group):
    def model(rows, columns, planes):
        codes = bit_fields(planes[0], bits).reshape(rows, columns)
        if kind.startswith("int"):
            codes = numpy.where(codes >= 1 << bits - 1, codes - (1 << bits), codes)
        which = numpy.arange(columns) // group
        if kind == "gptq":
            which = planes[3].view("<i4")
        numbers = [floats(p).reshape(rows, -1)[:, which] for p in planes[1:3]]
        codes = codes.astype(f32)
        if kind == "int":
            return numbers[0] * codes
        if kind == "mlx":
            return numbers[0] * codes + numbers[1]
        return (codes - numbers[1]) * numbers[0]
    return model


def by_bytes(values, group):
    def model(rows, columns, planes):
        scale = floats(planes[1]).reshape((1, 1) if group is None else (-1, 1))
        return scale * values[planes[0].reshape(-1, group or columns)]
    return model


def microscaled(values, bits, scales, block, with_global):
    def model(rows, columns, planes):
        codes = planes[0] if bits == 8 else bit_fields(planes[0], 4)
        steps = scales[planes[1]]
        if with_global:
            steps = numpy.where(numpy.isnan(steps), f32(0), steps)
        out = values[codes].reshape(-1, block) * steps[:, None]
        return out * floats(planes[2])[0] if with_global else out
    return model


def residual(block):
    def model(rows, columns, planes):
        parts = [E2M1[bit_fields(p, 4)].reshape(-1, block) * floats(s)[:, None] for p, s in zip(planes[:2], planes[2:])]
        return parts[0] + parts[1]
    return model


def codebook(width):
    def model(rows, columns, planes):
        return floats(planes[1]).reshape(256, width)[planes[0]]
    return model


def model_of(name):
    """The model of a format, or None for a format of one plane."""
    if found := re.fullmatch(r"(mlx|zero|int|int_zero|gptq)_b(\d)_g(\d+)", name):
        return affine(found[1], int(found[2]), int(found[3]))
    if found := re.fullmatch(r"f8(e4m3|e5m2)_(g\d+|tensor)", name):
        group = None if found[2] == "tensor" else int(found[2][1:])
        return by_bytes({"e4m3": E4M3, "e5m2": E5M2}[found[1]], group)
    if found := re.fullmatch(r"fp4x2_g(\d+)", name):
        return residual(int(found[1]))
    if found := re.fullmatch(r"codebook_e(\d)", name):
        return codebook(int(found[1]))
    return {"mxfp4_linear": microscaled(E2M1, 4, E8M0, 32, False),
            "mxfp8_linear": microscaled(E4M3, 8, E8M0, 32, False),
            "nvfp4_linear": microscaled(E2M1, 4, E4M3, 16, True)}.get(name)


def planes_of(layout, rows, columns, block, random_bytes):
    """Planes to test with; tests/codecs makes the same. `layout` has name, bytes and kind of each plane."""
    planes = []
    for seed, (name, size, per) in enumerate(layout):
        count = size * {"block": rows * columns // block, "axis": columns, "tensor": 1}[per]
        if name == "groups":  # 7 c + 3, within the groups
            plane = ((7 * numpy.arange(columns) + 3) % (columns // block)).astype("<i4").view(numpy.uint8)
        elif name.startswith(("codes", "indices")):
            plane = random_bytes(count, 11 + seed)
        else:  # f32: multiples of 1/256
            plane = (random_bytes(count // 2, 11 + seed).view("<i2").astype(f32) / f32(256)).view(numpy.uint8)
        planes.append(plane)
    return planes


def all_layouts(lines):
    """From what `rlx_bench_codecs list` prints: name, block, planes, whether it encodes."""
    for line in lines:
        words = line.split()
        planes = [tuple(word.split(":")) for word in words[2:] if ":" in word]
        yield words[0], int(words[1]), [(n.replace("_", " "), int(b), p) for n, b, p in planes], words[-1] == "e"
