"""Casts to and from small element types and quantisation with them. NumPy's files have no such types: models read and
write their bits through BitCast, or casts that are exact. Answers are those of ml_dtypes, or written out here."""
import ml_dtypes
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 28
EIGHT = {"f8e4m3fn": (T.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn), "f8e5m2": (T.FLOAT8E5M2, ml_dtypes.float8_e5m2),
         "f8e4m3fnuz": (T.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
         "f8e5m2fnuz": (T.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz)}
random = np.random.default_rng(14)


def interesting(kind, largest):
    """Numbers around the ends of a type, ties and neighbours, and what is no number."""
    ends = [largest * f for f in (0.5, 0.96, 1, 1.01, 1.03, 1.035, 1.0357, 1.04, 1.07, 1.13, 1.3, 2, 1e4)]
    near = [464, 464.25, 465, 448, 480, 61440, 61441, 61439, 248, 247.5, 240, 256, 57344, 65504, 1e-3, 2**-9, 2**-10,
            2**-17, 2**-18, 1e-12]
    values = [0.0, *ends, *near, *random.uniform(0, largest, 60), *np.exp2(random.uniform(-20, 17, 60))]
    both = np.array([s * v for v in values for s in (1, -1)] + [np.inf, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        return both.astype(kind)


def model(name, nodes, inputs, outputs, constants=None):
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for k, a in inputs.items()]
    outs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), None)
            for k, a in outputs.items()]
    initial = [numpy_helper.from_array(a, k) for k, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, name, infos, outs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=13,
                             producer_name="rlx")


def to_eight_bits():
    for name, (number, kind) in EIGHT.items():
        largest = float(ml_dtypes.finfo(kind).max)
        for source in (np.float32, np.float16, np.float64):
            x = interesting(source, largest)
            with np.errstate(invalid="ignore"):
                clipped = np.clip(x, -largest, largest).astype(source)
            for saturate, rounded in ((1, clipped.astype(kind)), (0, x.astype(kind))):
                nodes = [helper.make_node("Cast", ["x"], ["c"], to=number, saturate=saturate),
                         helper.make_node("BitCast", ["c"], ["y"], to=T.UINT8)]
                y = rounded.view(np.uint8).copy()
                # The sign of NaN is free, but where there is only one.
                keep = ~np.isnan(x)
                case = f"{name}_{np.dtype(source).name}_{saturate}"
                yield case, nodes, {"x": x[keep]}, {"y": y[keep]}
        whole = np.array([0, 1, -1, 17, 448, 464, 465, 500, 60000, 61440, 70000, -70000], np.int32)
        rounded = whole.astype(np.float64).astype(kind)
        nodes = [helper.make_node("Cast", ["x"], ["c"], to=number, saturate=0),
                 helper.make_node("BitCast", ["c"], ["y"], to=T.UINT8)]
        yield f"{name}_int32_0", nodes, {"x": whole}, {"y": rounded.view(np.uint8).copy()}


def from_eight_bits():
    codes = np.arange(256, dtype=np.uint8)
    for name, (number, kind) in {**EIGHT, "f8e8m0": (T.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu)}.items():
        nodes = [helper.make_node("BitCast", ["x"], ["c"], to=number),
                 helper.make_node("Cast", ["c"], ["y"], to=T.FLOAT)]
        yield f"from_{name}", nodes, {"x": codes}, {"y": codes.view(kind).astype(np.float32)}


def powers_of_two():
    x = np.array([0.3, 0.5, 0.51, 0.74, 0.75, 0.76, 1, 1.49, 1.5, 3, 2**-127, 2**-126 * 1.2, 2**126 * 1.3, 2**127,
                  2**127 * 1.9], np.float32)
    outside = np.array([2**-128, 0, 2**127 * 1.2, np.inf, np.nan], np.float32)
    exponents = np.log2(x.astype(np.float64))
    up = np.minimum(np.ceil(exponents), 127) + 127
    down = np.floor(exponents) + 127
    nearest = np.where(x.astype(np.float64) >= 0.75 * np.exp2(np.ceil(exponents)), np.ceil(exponents),
                       np.floor(exponents))
    nearest = np.minimum(np.where(np.ceil(exponents) == exponents, exponents, nearest), 127) + 127

    def nodes(saturate, mode):
        return [helper.make_node("Cast", ["x"], ["c"], to=T.FLOAT8E8M0, saturate=saturate, round_mode=mode),
                helper.make_node("BitCast", ["c"], ["y"], to=T.UINT8)]

    for mode, codes in (("up", up), ("down", down), ("nearest", nearest)):
        yield f"e8m0_{mode}", nodes(1, mode), {"x": x}, {"y": codes.astype(np.uint8)}
        none = x > 2.0**127
        yield f"e8m0_{mode}_unsaturated", nodes(0, mode), {"x": x}, {"y": np.where(none, 255, codes).astype(np.uint8)}
    yield "e8m0_ends", nodes(1, "up"), {"x": outside}, {"y": np.array([0, 0, 254, 254, 255], np.uint8)}
    yield "e8m0_ends_unsaturated", nodes(0, "up"), {"x": outside}, {"y": np.full(5, 255, np.uint8)}


def narrow():
    """Integers of 4 and 2 bits have the low bits of the integer part; 4-bit floats are rounded."""
    x = np.array([-9.9, -8, -3.5, -2, -1, -0.5, 0, 0.9, 1, 2, 3, 7, 8, 15, 16, 17, 100], np.float32)
    whole = np.trunc(x).astype(np.int64)
    for name, number, width, signed in (("int4", T.INT4, 4, True), ("uint4", T.UINT4, 4, False),
                                        ("int2", T.INT2, 2, True), ("uint2", T.UINT2, 2, False)):
        codes = whole & ((1 << width) - 1)
        want = np.where(signed & (codes >= 1 << (width - 1)), codes - (1 << width), codes).astype(np.int32)
        for source, kind in (("float", np.float32), ("int64", np.int64)):
            nodes = [helper.make_node("Cast", ["x"], ["c"], to=number),
                     helper.make_node("Cast", ["c"], ["y"], to=T.INT32)]
            yield f"{name}_{source}", nodes, {"x": x if kind is np.float32 else whole}, {"y": want}
    z = np.array([0, -0.0, 0.2, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, 6, 7, 1e9, np.inf, -np.inf, -2.6],
                 np.float32)
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=T.FLOAT4E2M1),
             helper.make_node("Cast", ["c"], ["y"], to=T.FLOAT)]
    yield "f4e2m1", nodes, {"x": z}, {"y": z.astype(ml_dtypes.float4_e2m1fn).astype(np.float32)}


def quantised():
    x = random.uniform(-9, 9, (4, 6)).astype(np.float32)
    x[0, 0], x[1, 1] = 1e6, -1e6
    kinds = {**{n: number for n, (number, _) in EIGHT.items()}, "f4e2m1": T.FLOAT4E2M1, "int4": T.INT4,
             "uint4": T.UINT4, "int2": T.INT2, "uint2": T.UINT2}
    scales = {"one": np.float32(0.7), "axis": random.uniform(0.1, 2, 6).astype(np.float32),
              "blocks": random.uniform(0.1, 2, (4, 3)).astype(np.float32)}
    for name, number in kinds.items():
        for form, scale in scales.items():
            extra = {"axis": 1, "block_size": 2} if form == "blocks" else {"axis": 1}
            nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=number, **extra),
                     helper.make_node("Cast", ["q"], ["y"], to=T.FLOAT),
                     helper.make_node("DequantizeLinear", ["q", "s"], ["z"], **extra)]
            yield f"quantize_{name}_{form}", nodes, {"x": x}, None, {"s": scale}
    for kind in (np.float16, np.float32):
        # The quotient is rounded to the precision asked for before it is rounded to an integer.
        y = np.arange(1, 400, dtype=np.float32) / 7
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "zero"], ["y"],
                                  precision=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))]
        quotient = (y.astype(kind) / np.float32(0.13).astype(kind)).astype(np.float64)
        want = np.clip(np.rint(quotient) + 3, -32768, 32767).astype(np.int16)
        yield (f"quantize_precision_{np.dtype(kind).name}", nodes, {"x": y}, {"y": want},
               {"s": np.float32(0.13), "zero": np.int16(3)})


def all_cases():
    for group in (to_eight_bits, from_eight_bits, powers_of_two, narrow, quantised):
        for name, nodes, inputs, outputs, *rest in group():
            constants = rest[0] if rest else None
            if outputs is None:
                kinds = {"y": np.zeros(0, np.float32), "z": np.zeros(0, np.float32)}
                reference = ReferenceEvaluator(model(name, nodes, inputs, kinds, constants))
                outputs = dict(zip(kinds, reference.run(None, inputs)))
            yield name, model(name, nodes, inputs, outputs, constants), inputs, outputs
