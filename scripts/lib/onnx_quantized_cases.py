"""Small models of quantised operators, with the answers of the reference evaluator of the package onnx."""
import numpy as np

from onnx_operator_cases import node, single, Case

random = np.random.default_rng(8)


def f(*shape, low=-3.0, high=3.0):
    return random.uniform(low, high, shape).astype(np.float32)


def codes(kind, *shape):
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape).astype(kind)


def conversions():
    ties = np.array([[0.5, 1.5, 2.5], [-0.5, -1.5, -2.5], [1e6, -1e6, 127.5]], dtype=np.float32)
    for kind in (np.int8, np.uint8, np.int16, np.uint16):
        name, opset = np.dtype(kind).name, 21
        zero = np.array(3, dtype=kind)
        yield single(f"quantize_{name}", "QuantizeLinear", {"x": ties}, {"s": np.float32(1), "z": zero}, opset=opset)
        scales, zeros = f(3, low=0.01, high=0.5), codes(kind, 3)
        x = f(2, 3, 4, low=-9, high=9)
        yield single(f"quantize_axis_{name}", "QuantizeLinear", {"x": x}, {"s": scales, "z": zeros}, opset=opset)
        yield single(f"dequantize_axis_{name}", "DequantizeLinear", {"x": codes(kind, 2, 3, 4)},
                     {"s": scales, "z": zeros}, opset=opset)
        yield single(f"quantize_blocks_{name}", "QuantizeLinear", {"x": f(2, 6, low=-9, high=9)},
                     {"s": f(2, 3, low=0.01, high=0.5), "z": codes(kind, 2, 3)}, opset=opset, axis=1, block_size=2)
        yield single(f"dequantize_blocks_{name}", "DequantizeLinear", {"x": codes(kind, 6, 2)},
                     {"s": f(3, 2, low=0.01, high=0.5), "z": codes(kind, 3, 2)}, opset=opset, axis=0, block_size=2)
    yield single("quantize_default", "QuantizeLinear", {"x": ties}, {"s": np.float32(0.5)}, opset=21)
    yield single("quantize_output_dtype", "QuantizeLinear", {"x": ties}, {"s": np.float32(0.5)}, opset=21,
                 output_dtype=3)
    yield single("quantize_last", "QuantizeLinear", {"x": f(2, 3)}, {"s": f(3, low=0.1), "z": codes(np.int8, 3)},
                 opset=13, axis=-1)
    yield single("dequantize_i32", "DequantizeLinear", {"x": codes(np.int32, 5) // 1000}, {"s": np.float32(0.25)},
                 opset=21)
    yield single("dequantize_vector", "DequantizeLinear", {"x": codes(np.int8, 5)},
                 {"s": np.array([0.25], dtype=np.float32)}, opset=21)
    for name, x in (("dynamic", f(3, 4)), ("dynamic_positive", f(3, 4, low=1, high=2)),
                    ("dynamic_negative", f(3, 4, low=-2, high=-1))):
        yield single(name, "DynamicQuantizeLinear", {"x": x}, opset=21, outputs=("y", "s", "z"))


def products():
    for a in (np.int8, np.uint8):
        for b in (np.int8, np.uint8):
            name = f"{np.dtype(a).name}_{np.dtype(b).name}"
            yield single(f"matmul_{name}", "MatMulInteger", {"a": codes(a, 3, 7)}, {"b": codes(b, 7, 5)}, opset=21)
            yield single(f"matmul_zeros_{name}", "MatMulInteger", {"a": codes(a, 2, 3, 7)},
                         {"b": codes(b, 7, 5), "za": codes(a, 1)[0], "zb": codes(b, 1)[0]}, opset=21)
            yield single(f"matmul_column_zeros_{name}", "MatMulInteger", {"a": codes(a, 3, 7), "b": codes(b, 7, 5)},
                         {"za": codes(a, 1)[0], "zb": codes(b, 5)}, opset=21)
            scales = {"sa": np.float32(0.02), "za": codes(a, 1)[0]}
            rest = {"b": codes(b, 7, 5), "sb": np.float32(0.03), "zb": codes(b, 1)[0], "sy": np.float32(3.1),
                    "zy": codes(a, 1)[0]}
            yield single(f"qlinear_{name}", "QLinearMatMul", {"a": codes(a, 3, 7)}, {**scales, **rest}, opset=21)
    # A product between conversions, as exporters of quantised models write it.
    w = codes(np.int8, 7, 5)
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["q"]), node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
             node("DequantizeLinear", ["w", "sw"], ["v"], axis=1), node("MatMul", ["d", "v"], ["m"]),
             node("QuantizeLinear", ["m", "sy", "zy"], ["y"])]
    yield Case("conversions_around_a_product", nodes, {"x": f(3, 7)}, ["y"],
               {"sx": np.float32(0.03), "zx": np.uint8(120), "w": w, "sw": f(5, low=0.01, high=0.02),
                "sy": np.float32(0.07), "zy": np.uint8(131)}, 21)


def all_cases():
    for group in (conversions, products):
        for case in group():
            yield case.name, case.model, case.inputs, case.outputs
