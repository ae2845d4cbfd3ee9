"""Small models, one operator each, with the answers of the reference evaluator of the package onnx."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSETS = (7, 9, 11, 13, 18, 21, 23)
random = np.random.default_rng(5)


def f(*shape, low=-3.0, high=3.0, kind=np.float32):
    return random.uniform(low, high, shape).astype(kind)


def i(*values, kind=np.int64):
    return np.array(values, dtype=kind)


class Case:
    """A model of nodes; `inputs` are (array, sizes) or arrays, whose sizes are then named."""

    def __init__(self, name, nodes, inputs, outputs, constants=None, opset=13, domain="", answers=None):
        self.name, self.inputs = name, {}
        infos, symbols = [], {}
        for key, value in inputs.items():
            array, dims = value if isinstance(value, tuple) else (value, [None] * np.ndim(value))
            array = np.asarray(array)
            # Equal sizes of one case have one name: what broadcasts is stated as a number.
            dims = [symbols.setdefault(n, f"d{n}") if d is None and n > 1 else n if d is None else d
                    for d, n in zip(dims, array.shape)]
            self.inputs[key] = array
            infos.append(helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
        initial = [numpy_helper.from_array(np.asarray(a), k) for k, a in (constants or {}).items()]
        imports = [helper.make_opsetid("", opset)]
        if domain:
            imports.append(helper.make_opsetid(domain, 1))

        def build(kinds):
            outs = [helper.make_tensor_value_info(o, kinds.get(o, T.FLOAT), None) for o in outputs]
            graph = helper.make_graph(nodes, name, infos, outs, initial)
            return helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="rlx")

        if answers is None:
            answers = ReferenceEvaluator(build({})).run(None, self.inputs)
        self.outputs = {o: np.asarray(a) for o, a in zip(outputs, answers)}
        kinds = {o: helper.np_dtype_to_tensor_dtype(a.dtype) for o, a in self.outputs.items()}
        self.model = build(kinds)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def single(name, op, inputs, constants=None, opset=13, outputs=("y",), order=None, **attributes):
    names = order if order is not None else [*inputs, *(constants or {})]
    return Case(name, [node(op, names, list(outputs), **attributes)], inputs, [o for o in outputs if o], constants,
                opset)


def elementwise():
    x = np.array([-3, -1.5, -0.5, -0.0, 0, 0.5, 1.5, 2.5, 100, -100, np.inf, -np.inf, np.nan], np.float32)
    fine = x[:10]
    positive = f(7, low=0.1)
    for op in ("Abs", "Neg", "Floor", "Ceil", "Sign", "Relu", "Tanh", "Sigmoid"):
        yield single(op.lower(), op, {"x": x})
    for op in ("Round", "Erf", "IsNaN"):
        yield single(op.lower(), op, {"x": x})
    for op in ("Exp", "Sin", "Cos", "Tan", "Atan", "Softsign", "Softplus"):
        yield single(op.lower(), op, {"x": f(7)})
    for op in ("Sqrt", "Log", "Reciprocal"):
        yield single(op.lower(), op, {"x": positive})
    for op in ("HardSwish", "Mish"):
        yield single(op.lower(), op, {"x": fine}, opset=18)
    yield single("gelu", "Gelu", {"x": fine}, opset=20)
    yield single("gelu_tanh", "Gelu", {"x": fine}, opset=20, approximate="tanh")
    yield single("leaky_relu", "LeakyRelu", {"x": fine}, alpha=0.2)
    yield single("elu", "Elu", {"x": fine}, alpha=2.0)
    yield single("elu_1", "Elu", {"x": fine})
    yield single("celu", "Celu", {"x": fine}, alpha=2.0)
    yield single("selu", "Selu", {"x": fine})
    yield single("thresholded_relu", "ThresholdedRelu", {"x": fine}, alpha=0.7)
    yield single("hard_sigmoid", "HardSigmoid", {"x": fine})
    yield single("prelu", "PRelu", {"x": f(2, 3)}, {"slope": f(3)})
    yield single("isinf", "IsInf", {"x": x}, detect_negative=0)
    yield single("isinf_both", "IsInf", {"x": x})
    a, b = f(2, 3, 4), f(3, 1)
    for op in ("Add", "Sub", "Mul", "Div"):
        yield single(op.lower(), op, {"a": a, "b": b})
        yield single(f"{op.lower()}_integers", op, {"a": i(7, -7, 9), "b": i(2, 2, -4)})
    yield single("pow", "Pow", {"a": f(2, 3, low=0.1)}, {"b": np.float32(1.5)})
    yield single("pow_integer_exponent", "Pow", {"a": f(2, 3)}, {"b": np.int64(3)}, opset=15)
    yield single("pow_integer_base", "Pow", {"a": i(2, 3, 4)}, {"b": np.float32(2)}, opset=15)
    yield single("mod", "Mod", {"a": i(7, -7, 7, -7, 6), "b": i(3, 3, -3, -3, 3)})
    yield single("mod_c", "Mod", {"a": f(5), "b": f(5, low=0.5)}, fmod=1)
    for op in ("Max", "Min", "Sum", "Mean"):
        yield single(op.lower(), op, {"a": a, "b": b, "c": f(4)})
        yield single(f"{op.lower()}_one", op, {"a": a})
    m, n = i(1, 2, 3, 2), i(2, 2, 2, -5)
    for op, opset in (("Equal", 13), ("Less", 13), ("Greater", 13), ("LessOrEqual", 16), ("GreaterOrEqual", 16)):
        yield single(op.lower(), op, {"a": m, "b": n}, opset=opset)
        yield single(f"{op.lower()}_reals", op, {"a": x[:12], "b": np.roll(x[:12], 1)}, opset=opset)
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    for op in ("And", "Or", "Xor"):
        yield single(op.lower(), op, {"a": p, "b": q})
    yield single("not", "Not", {"a": p})
    yield single("equal_bools", "Equal", {"a": p, "b": q})
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield single(op.lower(), op, {"a": i(12, 7), "b": i(10, -1)}, opset=18)
    yield single("bitwisenot", "BitwiseNot", {"a": i(12, -7)}, opset=18)
    bits, count = i(1, 255, 7, kind=np.uint8), i(3, 1, 2, kind=np.uint8)
    for way in ("LEFT", "RIGHT"):
        yield single(f"shift_{way.lower()}", "BitShift", {"a": bits, "b": count}, direction=way)
    yield single("clip", "Clip", {"x": fine}, {"low": np.float32(-1), "high": np.float32(2)})
    yield single("clip_high_only", "Clip", {"x": fine}, {"high": np.float32(2)}, order=["x", "", "high"])
    yield single("clip_attributes", "Clip", {"x": fine}, opset=7, min=-1.0, max=2.0)
    yield single("where", "Where", {"c": np.array([[True], [False]]), "a": f(2, 3), "b": f(3)})
    yield single("identity", "Identity", {"x": a})


def casts():
    kinds = [T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT64, T.INT32, T.UINT8, T.INT8, T.BOOL]
    values = np.array([0, 1, 2.75, 100, -0.5], np.float32)
    for kind in kinds:
        name = f"cast_{helper.tensor_dtype_to_string(kind)[12:].lower()}"
        yield single(name, "Cast", {"x": values}, to=kind)
    yield single("cast_from_bool", "Cast", {"x": np.array([True, False])}, to=T.FLOAT)
    yield single("cast_from_integer", "Cast", {"x": i(-3, 0, 70000)}, to=T.INT16)
    yield single("cast_like", "CastLike", {"x": values, "like": i(1, 2)}, opset=15)


def shapes():
    x = f(2, 3, 4)
    yield single("shape", "Shape", {"x": x})
    yield single("shape_part", "Shape", {"x": x}, opset=15, start=1, end=-1)
    yield single("shape_none", "Shape", {"x": x}, opset=15, start=2, end=1)
    yield single("size", "Size", {"x": x})
    for name, target in (("", (6, 4)), ("_infer", (2, -1)), ("_keep", (0, -1, 2)),
                         ("_flat", (-1,)), ("_rank", (1, 2, 12, 1))):
        yield single(f"reshape{name}", "Reshape", {"x": x}, {"s": i(*target)})
    yield single("reshape_zero", "Reshape", {"x": (f(0, 3), [0, 3])}, {"s": i(3, 0)}, opset=14, allowzero=1)
    for axis in (0, 1, 2, 3, -1):
        yield single(f"flatten_{axis}", "Flatten", {"x": x}, axis=axis)
    yield single("transpose", "Transpose", {"x": x})
    yield single("transpose_order", "Transpose", {"x": x}, perm=[1, 2, 0])
    y = f(1, 3, 1, 2)
    yield single("squeeze", "Squeeze", {"x": (y, [1, 3, 1, 2])})
    yield single("squeeze_axes", "Squeeze", {"x": (y, [1, "n", 1, 2])}, {"axes": i(0, -2)})
    yield single("squeeze_attribute", "Squeeze", {"x": (y, [1, "n", 1, 2])}, opset=11, axes=[0])
    yield single("squeeze_symbol", "Squeeze", {"x": (y, ["m", 3, 1, 2])}, {"axes": i(0)})
    yield single("unsqueeze", "Unsqueeze", {"x": x}, {"axes": i(-1, 0)})
    yield single("unsqueeze_attribute", "Unsqueeze", {"x": x}, opset=11, axes=[0, 4])
    yield single("expand", "Expand", {"x": f(3, 1)}, {"s": i(2, 1, 4)})
    yield single("expand_less", "Expand", {"x": f(2, 3)}, {"s": i(3)})
    yield single("tile", "Tile", {"x": f(2, 3)}, {"r": i(2, 3)})
    yield single("tile_none", "Tile", {"x": f(2, 3)}, {"r": i(0, 1)})
    yield single("concat", "Concat", {"a": f(2, 3), "b": f(2, 4)}, axis=-1)
    yield single("range", "Range", {}, {"a": np.int64(3), "b": np.int64(11), "c": np.int64(2)})
    yield single("range_down", "Range", {}, {"a": np.int64(9), "b": np.int64(0), "c": np.int64(-4)})
    yield single("range_none", "Range", {}, {"a": np.int64(9), "b": np.int64(0), "c": np.int64(4)})
    yield single("range_reals", "Range", {}, {"a": np.float32(0.5), "b": np.float32(3), "c": np.float32(0.75)})
    yield single("range_int32", "Range", {}, {"a": np.int32(1), "b": np.int32(4), "c": np.int32(1)})
    yield single("constant_of_shape", "ConstantOfShape", {}, {"s": i(2, 3)},
                 value=helper.make_tensor("v", T.INT32, [1], [7]))
    yield single("constant_of_shape_plain", "ConstantOfShape", {}, {"s": i(2)})
    yield single("eye_like", "EyeLike", {"x": f(3, 4)}, k=1)
    for name, attributes in (("value", {"value": helper.make_tensor("v", T.DOUBLE, [2], [1, 2])}),
                             ("value_int", {"value_int": 5}), ("value_float", {"value_float": 0.1}),
                             ("value_ints", {"value_ints": [1, -2]}), ("value_floats", {"value_floats": [1.5, 2.0]})):
        yield single(f"constant_{name}", "Constant", {}, **attributes)
    # Chains that exporters write: every size follows from the operand.
    last = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0),
            node("Unsqueeze", ["b", "axis"], ["b1"]), node("Concat", ["b1", "rest"], ["t"], axis=0),
            node("Reshape", ["x", "t"], ["y"])]
    numbers = {"zero": np.int64(0), "axis": i(0), "rest": i(-1, 2)}
    yield Case("chain_reshape", last, {"x": (x, ["b", "n", 4])}, ["y"], numbers)
    minus = [node("Shape", ["x"], ["s"]), node("Shape", ["s"], ["r"]), node("ConstantOfShape", ["r"], ["ones"],
             value=helper.make_tensor("v", T.INT64, [1], [1])), node("Mul", ["ones", "minus"], ["all"]),
             node("Concat", ["head", "s"], ["wide"], axis=0), node("Slice", ["wide", "from", "to"], ["part"]),
             node("Equal", ["part", "all"], ["is"]), node("Where", ["is", "ones", "part"], ["shape"]),
             node("Expand", ["x", "shape"], ["y"])]
    yield Case("chain_expand", minus, {"x": (f(1, 3), ["b", "n"])}, ["y"],
               {"minus": np.int64(-1), "head": i(4), "from": i(1), "to": i(3)})
    half = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"], axis=0), node("Div", ["n", "two"], ["h"]),
            node("Unsqueeze", ["h", "axis"], ["h1"]), node("Slice", ["x", "from", "h1", "ax"], ["y"]),
            node("Slice", ["x", "h1", "far", "ax"], ["z"])]
    yield Case("chain_halves", half, {"x": (f(2, 5), ["b", "n"])}, ["y", "z"],
               {"one": np.int64(1), "two": np.int64(2), "axis": i(0), "from": i(0), "ax": i(1), "far": i(2**63 - 1)})


def parts():
    x = f(3, 4, 5)
    yield single("gather", "Gather", {"x": x}, {"at": i(2, 0, -1)})
    yield single("gather_axis", "Gather", {"x": x, "at": np.array([[0, 3], [-2, 1]])}, axis=1)
    yield single("gather_scalar", "Gather", {"x": x}, {"at": np.int64(1)}, axis=2)
    yield single("gather_int32", "Gather", {"x": x}, {"at": i(1, 1, kind=np.int32)})
    yield single("gather_elements", "GatherElements",
                 {"x": f(3, 4), "at": np.array([[0, -1, 2, 1], [2, 1, 0, 0]])}, axis=0)
    yield single("gather_nd", "GatherND", {"x": x, "at": (np.array([[0, 1], [-1, 3], [2, 0]]), ["n", 2])})
    yield single("gather_nd_rows", "GatherND", {"x": x, "at": (np.array([[[0]], [[2]]]), ["n", 1, 1])})
    yield single("gather_nd_elements", "GatherND", {"x": x}, {"at": np.array([[0, 1, 4], [2, 3, 0]])})
    grid = [node("Shape", ["m"], ["s"]), node("Gather", ["s", "zero"], ["b"]), node("Gather", ["s", "one"], ["n"]),
            node("Range", ["zero", "b", "one"], ["rows"]), node("Range", ["zero", "n", "one"], ["columns"]),
            node("Unsqueeze", ["rows", "a123"], ["r4"]), node("Unsqueeze", ["columns", "a012"], ["c4"]),
            node("Max", ["r4", "c4"], ["both"]), node("Shape", ["both"], ["bs"]), node("Expand", ["r4", "bs"], ["re"]),
            node("Expand", ["c4", "bs"], ["ce"]), node("Unsqueeze", ["re", "last"], ["r5"]),
            node("Unsqueeze", ["ce", "last"], ["c5"]), node("Concat", ["r5", "c5"], ["at"], axis=-1),
            node("GatherND", ["m", "at"], ["y"])]
    numbers = {"zero": np.int64(0), "one": np.int64(1), "a123": i(1, 2, 3), "a012": i(0, 1, 2), "last": i(-1)}
    yield Case("gather_nd_grid", grid, {"m": (f(2, 3), ["b", "n"])}, ["y"], numbers)
    flat = [
    node(
        "Shape", ["m"], ["s"]), node(
            "Gather", [
                "s", "zero"], ["b"]), node(
                    "Gather", [
                        "s", "one"], ["n"]), node(
                            "Range", [
                                "zero", "b", "one"], ["rows"]), node(
                                    "Range", [
                                        "zero", "n", "one"], ["columns"]), node(
                                            "Unsqueeze", [
                                                "rows", "a1"], ["r2"]), node(
                                                    "Mul", [
                                                        "r2", "n"], ["r"]), node(
                                                            "Add", [
                                                                "columns", "r"], ["at"]), node(
                                                                    "Reshape", [
                                                                        "m", "all"], ["flat"]), node(
                                                                            "Gather", [
                                                                                "flat", "at"], ["y"])]
    yield Case("gather_grid", flat, {"m": (f(2, 3), ["b", "n"])}, ["y"],
               {"zero": np.int64(0), "one": np.int64(1), "a1": i(1), "all": i(-1)})
    backwards = [*flat[:7], node("Sub", ["n1", "columns"], ["back"]), node("Add", ["back", "r"], ["at"]), *flat[8:]]
    yield Case("gather_reversed_grid", backwards, {"m": (f(2, 3), ["b", 3])}, ["y"],
               {"zero": np.int64(0), "one": np.int64(1), "a1": i(1), "all": i(-1), "n1": np.int64(2)})
    transposed = [*flat[:5], node("Unsqueeze", ["columns", "a1"], ["c2"]), node("Mul", ["rows", "n"], ["r"]),
                  node("Add", ["c2", "r"], ["at"]), *flat[8:]]
    yield Case("gather_transposed_grid", transposed, {"m": (f(2, 3), ["b", "n"])}, ["y"],
               {"zero": np.int64(0), "one": np.int64(1), "a1": i(1), "all": i(-1)})
    yield single("scatter_elements_add", "ScatterElements", {"x": f(3, 4)},
                 {"at": np.array([[0, 0], [2, 1]]), "u": f(2, 2)}, opset=18, axis=0, reduction="add")
    big = 2**63 - 1
    for name, numbers in (("", {"a": i(1, 0), "b": i(3, 2)}), ("_axes", {"a": i(-3), "b": i(big), "c": i(-1)}),
                          ("_steps", {"a": i(0, 4), "b": i(big, -big - 1), "c": i(1, 2), "d": i(2, -2)}),
                          ("_clamped", {"a": i(-100), "b": i(100), "c": i(1)}),
                           ("_none", {"a": i(3), "b": i(1), "c": i(1)})):
        yield single(f"slice{name}", "Slice", {"x": x}, numbers)
    yield single("slice_attributes", "Slice", {"x": x}, opset=7, starts=[1, -2], ends=[3, big], axes=[0, 2])
    yield single("split_sizes", "Split", {"x": (x, [3, 4, 5])}, {"s": i(1, 3)}, outputs=("p", "q"), axis=1)
    yield single("split_even", "Split", {"x": (x, ["n", 4, 5])}, outputs=("p", "q"), axis=1)
    yield single("split_attribute", "Split", {"x": (x, [3, 4, 5])}, opset=11, outputs=("p", "q"), axis=-1, split=[2, 3])
    yield single("split_number", "Split", {"x": (f(7, 2), ["n", 2])}, opset=18, outputs=("p", "q", "r"), num_outputs=3)
    yield single("pad", "Pad", {"x": f(2, 3)}, {"p": i(0, 1, 2, 3)})
    yield single("pad_value", "Pad", {"x": f(2, 3)}, {"p": i(1, 0, 0, 1), "v": np.float32(1.5)})
    cut = f(4, 3)
    yield Case("pad_negative", [node("Pad", ["x", "p"], ["y"])], {"x": cut}, ["y"], {"p": i(-1, 2, -1, 0)},
               answers=[np.pad(cut[1:3], ((0, 0), (2, 0)))])
    yield single("pad_axes", "Pad", {"x": f(2, 3)}, {"p": i(1, 2), "a": i(-1)}, opset=18, order=["x", "p", "", "a"])
    yield single("pad_attributes", "Pad", {"x": f(2, 3)}, opset=7, pads=[1, 0, 0, 2], value=2.0,
                 mode="constant")
    yield single("topk", "TopK", {"x": f(3, 6)}, {"k": i(2)}, outputs=("v", "at"))
    yield single("topk_smallest", "TopK", {"x": f(5, 3)}, {"k": i(3)}, outputs=("v", "at"), axis=0, largest=0)
    yield single("trilu_upper", "Trilu", {"x": f(2, 3, 4)}, opset=14)
    yield single("trilu_lower", "Trilu", {"x": f(3, 4)}, {"k": np.int64(-1)}, opset=14, upper=0)
    yield single("trilu_run", "Trilu", {"x": f(3, 4), "k": np.array(1)}, opset=14)
    yield single("one_hot", "OneHot", {"x": i(0, 2, -1, 9)}, {"d": np.int64(3), "v": np.array([-1, 5], np.float32)})
    yield single("one_hot_axis", "OneHot", {"x": i(0, 2)}, {"d": np.int64(4), "v": np.array([0, 1], np.int64)}, axis=0)


def reductions():
    x = f(2, 3, 4)
    for op, since in (("ReduceSum", 13), ("ReduceMean", 18), ("ReduceMax", 18), ("ReduceMin", 18), ("ReduceProd", 18),
                      ("ReduceL1", 18), ("ReduceL2", 18), ("ReduceSumSquare", 18), ("ReduceLogSumExp", 18)):
        yield single(f"{op.lower()}_operand", op, {"x": x}, {"axes": i(-1, 0)}, opset=18, keepdims=0)
        yield single(f"{op.lower()}_attribute", op, {"x": x}, opset=11, axes=[1])
        yield single(f"{op.lower()}_all", op, {"x": x}, opset=since)
    yield single("reduce_log_sum", "ReduceLogSum", {"x": f(2, 3, low=0.1)}, opset=11, axes=[1], keepdims=0)
    yield single("reduce_noop", "ReduceSum", {"x": x}, {"axes": i()}, opset=18, noop_with_empty_axes=1)
    yield single("reduce_max_bool", "ReduceMax", {"x": x > 0}, {"axes": i(1)}, opset=20)
    tied = np.array([[1, 3, 3], [2, 2, 0]], np.float32)
    for op in ("ArgMax", "ArgMin"):
        yield single(f"{op.lower()}", op, {"x": tied}, axis=1)
        yield single(f"{op.lower()}_last", op, {"x": tied}, axis=-1, keepdims=0, select_last_index=1)
    yield single("cumsum", "CumSum", {"x": f(3, 4)}, {"axis": np.int64(1)})
    yield single("cumsum_reverse", "CumSum", {"x": f(3, 4)}, {"axis": np.int64(0)}, exclusive=1, reverse=1)
    yield single("lp_normalization", "LpNormalization", {"x": f(3, 4)}, axis=1, p=2)
    # The evaluator forgets the absolute values.
    yield Case("lp_normalization_1", [node("LpNormalization", ["x"], ["y"], axis=1, p=1)], {"x": x}, ["y"],
               answers=[x / np.abs(x).sum(1, keepdims=True)])
    yield single("softmax", "Softmax", {"x": x})
    yield single("softmax_axis", "Softmax", {"x": x}, axis=1)
    yield single("log_softmax", "LogSoftmax", {"x": x}, axis=0)
    # Before version 13 the axes from `axis` on count as one; the evaluator knows only the newer meaning.
    flat = np.exp(x - x.max((1, 2), keepdims=True))
    yield Case("softmax_joined", [node("Softmax", ["x"], ["y"], axis=1)], {"x": x}, ["y"], opset=11,
               answers=[flat / flat.sum((1, 2), keepdims=True)])


def products():
    yield single("matmul", "MatMul", {"a": f(2, 3, 4), "b": f(4, 5)})
    yield single("matmul_batches", "MatMul", {"a": (f(2, 1, 3, 4), ["b", 1, "m", 4]), "b": f(5, 4, 3)})
    yield single("matmul_vector", "MatMul", {"a": f(2, 3, 4), "b": f(4)})
    yield single("matmul_vectors", "MatMul", {"a": f(4), "b": f(4)})
    yield single("gemm", "Gemm", {"a": f(2, 3), "b": f(3, 4), "c": f(4)})
    yield single("gemm_all", "Gemm", {"a": f(3, 2), "b": f(4, 3), "c": f(2, 1)},
                 transA=1, transB=1, alpha=0.5, beta=2.0)
    yield single("gemm_two", "Gemm", {"a": f(2, 3), "b": f(3, 4)})
    x, gamma, beta = f(2, 3, 4), f(4), f(4)
    yield single("layer_norm", "LayerNormalization", {"x": (x, ["b", "n", 4])}, {"g": gamma, "s": beta}, opset=17)
    yield single("layer_norm_plain", "LayerNormalization", {"x": (x, ["b", "n", 4])}, {"g": gamma},
                 opset=17, epsilon=0.1)
    yield single("layer_norm_axis", "LayerNormalization", {"x": (x, ["b", 3, 4])}, {"g": f(3, 4), "s": f(3, 4)},
                 opset=17,
                 axis=1, outputs=("y", "mean", "inverse"))
    batch = {"scale": f(3), "bias": f(3), "mean": f(3), "var": f(3, low=0.5)}
    yield single("batch_norm", "BatchNormalization", {"x": (f(2, 3, 4), ["b", 3, "n"])}, batch, opset=15)
    yield single("dropout", "Dropout", {"x": x}, {"r": np.float32(0.5), "t": np.array(False)})
    yield single("dropout_mask", "Dropout", {"x": x}, outputs=("y", "mask"))
    yield single("rms_norm", "RMSNormalization", {"x": (x, ["b", "n", 4])}, {"g": gamma}, opset=23)


def attentions():
    q, k, v = f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4)
    four = ["b", 2, None, 4]
    inputs = {"q": (q, four), "k": (k, four), "v": (v, four)}
    yield single("attention", "Attention", inputs, opset=23)
    yield single("attention_causal", "Attention", inputs, opset=23, is_causal=1, scale=0.3)
    yield single("attention_bias", "Attention", inputs, {"m": f(3, 5)}, opset=23)
    mask = np.array([[True, False, True, True, False], [True] * 5, [False, True, False, False, False]])
    yield single("attention_mask", "Attention", inputs, {"m": mask}, opset=23)
    packed = {"q": (f(2, 3, 8), ["b", "n", 8]), "k": (f(2, 5, 4), ["b", "m", 4]), "v": (f(2, 5, 4), ["b", "m", 4])}
    yield single("attention_packed", "Attention", packed, opset=23, q_num_heads=4, kv_num_heads=2)
    turn = {"cos": f(6, 2), "sin": f(6, 2)}
    at = np.array([[0, 1, 2], [3, 4, 5]])
    yield single("rotary", "RotaryEmbedding", {"x": (f(2, 2, 3, 4), four)}, turn | {"at": at}, opset=23)
    yield single("rotary_packed", "RotaryEmbedding", {"x": (f(2, 3, 8), ["b", "n", 8])}, turn | {"at": at}, opset=23,
                 num_heads=2, interleaved=1)


def structures():
    """What graphs do around operators."""
    x = f(2, 3)
    both = [node("Add", ["x", "x"], ["y"])]
    case = Case("initial_as_input", [node("Add", ["x", "w"], ["y"])], {"x": x}, ["y"], {"w": f(3)})
    case.model.graph.input.append(helper.make_tensor_value_info("w", T.FLOAT, [3]))
    case.model.ir_version = 3
    yield case
    case = Case("output_is_input", both, {"x": x}, ["y"])
    case.model.graph.output.append(helper.make_tensor_value_info("x", T.FLOAT, None))
    case.outputs["x"] = x
    yield case
    case = Case("output_is_initial", both, {"x": x}, ["y"], {"w": f(3)})
    case.model.graph.output.append(helper.make_tensor_value_info("w", T.FLOAT, [3]))
    case.outputs["w"] = numpy_helper.to_array(case.model.graph.initializer[0])
    yield case
    yield Case("one_value_two_names", [node("Neg", ["x"], ["y"]), node("Neg", ["x"], ["z"])], {"x": x}, ["y", "z"])
    yield Case("unused_input", [node("Neg", ["x"], ["y"])], {"x": x, "spare": f(4)}, ["y"])
    inner = helper.make_graph([node("Mul", ["x", "k"], ["m"])], "then", [], [
                              helper.make_tensor_value_info("m", T.FLOAT, None)],
                              [numpy_helper.from_array(np.float32(3), "k")])
    other = helper.make_graph([node("Identity", ["x"], ["n"])], "else", [], [
                              helper.make_tensor_value_info("n", T.FLOAT, None)])
    rank = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n1"]), node("Equal", ["n1", "three"], ["c"]),
            node("If", ["c"], ["y"], then_branch=inner, else_branch=other)]
    yield Case("branch", rank, {"x": (x, ["b", 3])}, ["y"], {"one": np.int64(1), "three": np.int64(3)})
    yield Case("other_branch", rank, {"x": (x, ["b", 3])}, ["y"], {"one": np.int64(1), "three": np.int64(4)})
    case = Case("function", [node("Neg", ["x"], ["y"])], {"x": x}, ["y"])
    body = [node("Constant", [], ["c"]), node("Mul", ["p", "c"], ["q"]), node("Selu", ["q"], ["r"])]
    body[0].attribute.append(
    onnx.AttributeProto(
        name="value_float",
        type=onnx.AttributeProto.FLOAT,
         ref_attr_name="factor"))
    case.model.functions.append(
    helper.make_function(
        "ours", "Scale", ["p"], ["r"], body, [
            helper.make_opsetid(
                "", 13)], attributes=[], attribute_protos=[
                    helper.make_attribute(
                        "factor", 2.0)]))
    del case.model.graph.node[:]
    case.model.graph.node.extend([helper.make_node("Scale", ["x"], ["t"], domain="ours", factor=0.5),
                                  helper.make_node("Scale", ["t"], ["y"], domain="ours")])
    case.model.opset_import.append(helper.make_opsetid("ours", 1))
    case.model.ir_version = 10
    selu = lambda a: np.where(a > 0, 1, np.float32(1.67326319)) * \
                              np.float32(1.05070102) * np.where(a > 0, a, np.expm1(a))
    case.outputs["y"] = selu(selu(x * np.float32(0.5)) * 2).astype(np.float32)
    yield case


def microsoft():
    from math import erf

    x, b = f(2, 3, 4), f(4)
    exact = lambda a: (a * 0.5 * (1 + np.vectorize(erf)(a / np.sqrt(2.0)))).astype(np.float32)
    fast = lambda a: (0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))).astype(np.float32)

    def case(name, op, inputs, answers, outputs=("y",), constants=None, order=None, **attributes):
        names = order or [*inputs, *(constants or {})]
        return Case(name, [node(op, names, list(outputs), domain="com.microsoft", **attributes)], inputs,
                    [o for o in outputs if o], constants, 17, "com.microsoft", answers)

    yield case("ms_gelu", "Gelu", {"x": x}, [exact(x)])
    yield case("ms_bias_gelu", "BiasGelu", {"x": x}, [exact(x + b)], constants={"b": b})
    yield case("ms_fast_gelu", "FastGelu", {"x": x}, [fast(x + b)], constants={"b": b})
    yield case("ms_quick_gelu", "QuickGelu", {"x": x}, [(x / (1 + np.exp(-1.702 * x))).astype(np.float32)])
    skip, gamma, beta = f(2, 3, 4), f(4), f(4)
    total = x + skip + b
    normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5) * gamma + beta
    fixed = lambda a: (a, ["b", "n", 4])
    yield case("ms_skip_layer_norm", "SkipLayerNormalization", {"x": fixed(x), "s": fixed(skip)}, [normal, total],
               ("y", "", "", "sum"), {"g": gamma, "be": beta, "bias": b}, epsilon=1e-5)
    summed = x + skip
    scaled = summed / np.sqrt((summed**2).mean(-1, keepdims=True) + 1e-5) * gamma
    yield case("ms_skip_rms_norm", "SkipSimplifiedLayerNormalization", {"x": fixed(x), "s": fixed(skip)}, [scaled],
               constants={"g": gamma}, epsilon=1e-5)
    m, n = f(2, 4, 3), f(2, 5, 4)
    yield case("ms_fused_matmul", "FusedMatMul", {"a": m, "b": n},
               [(np.swapaxes(m, -1, -2) @ np.swapaxes(n, -1, -2) * 0.5).astype(np.float32)],
                alpha=0.5, transA=1, transB=1)


def all_cases():
    for group in (elementwise, casts, shapes, parts, reductions, products, attentions, structures, microsoft):
        for case in group():
            outputs = {k: widened(a) for k, a in case.outputs.items()}
            yield case.name, case.model, case.inputs, outputs


def widened(array):
    """Element types that NumPy's files have no name for as f32, which holds all their values."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
