"""Small models of operators of the domain com.microsoft, with the answers of ONNX Runtime."""
import numpy as np
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

random = np.random.default_rng(12)
DOMAIN = "com.microsoft"


def f(*shape, low=-1.0, high=1.0):
    return random.uniform(low, high, shape).astype(np.float32)


def codes(kind, *shape):
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape).astype(kind)


class Case:
    """One node; `inputs` whose sizes are named after their extent, or, in `known`, numbers; `constants` by name. None
    in `operands` stands for one that is left out."""

    def __init__(self, name, op, operands, outputs, known=(), constants=(), attributes=None):
        self.name = name
        names, infos, initial, self.inputs = [], [], [], {}
        for key, array in operands.items():
            if array is None:
                names.append("")
                continue
            names.append(key)
            array = np.asarray(array)
            if key in constants:
                initial.append(numpy_helper.from_array(array, key))
                continue
            fixed = key in known
            dims = [n if fixed or n < 2 or i >= array.ndim - 1 else f"d{n}" for i, n in enumerate(array.shape)]
            infos.append(helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
            self.inputs[key] = array
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(op, names, list(outputs), domain=DOMAIN, **(attributes or {}))
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]

        def build(kinds):
            outs = [helper.make_tensor_value_info(o, kinds.get(o, T.FLOAT), None) for o in outputs if o]
            graph = helper.make_graph([node], name, infos, outs, initial)
            return helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="rlx")

        def answers(model):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            return [o.type for o in session.get_outputs()], session.run(None, self.inputs)

        kinds = {}
        bare = build({})
        for o in bare.graph.output:
            o.ClearField("type")
        _, values = answers(bare)
        present = [o for o in outputs if o]
        self.outputs = dict(zip(present, values))
        kinds = {o: helper.np_dtype_to_tensor_dtype(a.dtype) for o, a in self.outputs.items()}
        self.model = build(kinds)


def multi_head():
    b, s, t, h, d = 2, 3, 5, 4, 8
    q, k, v = f(b, s, h * d), f(b, t, h * d), f(b, t, h * d)
    bias = f(3 * h * d)
    op, heads = "MultiHeadAttention", {"num_heads": h}
    yield Case("mha", op, {"q": q, "k": k, "v": v}, ["y"], attributes=heads)
    yield Case("mha_bias", op, {"q": q, "k": k, "v": v, "b": bias}, ["y"], known=("b",), attributes=heads)
    yield Case("mha_scale", op, {"q": q, "k": k, "v": v}, ["y"], attributes={**heads, "scale": 0.2})
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    yield Case("mha_mask", op, {"q": q, "k": k, "v": v, "b": None, "m": mask}, ["y"], known=("m",), attributes=heads)
    yield Case("mha_lengths", op, {"q": q, "k": k, "v": v, "b": None, "m": np.array([2, 5], np.int32)}, ["y"],
               known=("m", "q", "k", "v"), attributes=heads)
    mask = random.integers(0, 2, (b, s, t)).astype(np.int32)
    mask[:, :, 0] = 1
    yield Case("mha_mask_3d", op, {"q": q, "k": k, "v": v, "b": None, "m": mask}, ["y"], known=("m",),
               attributes=heads)
    yield Case("mha_attention_bias", op, {"q": q, "k": k, "v": v, "b": None, "m": None, "a": f(1, h, s, t)}, ["y"],
               known=("a", "q", "k", "v"), attributes=heads)
    past = {"pk": f(b, h, 2, d), "pv": f(b, h, 2, d)}
    fresh = {"q": f(b, t, h * d), "k": k, "v": v}
    yield Case("mha_past", op, {**fresh, "b": None, "m": None, "a": None, **past}, ["y", "pk2", "pv2"],
               known=("pk", "pv"), attributes=heads)
    yield Case("mha_causal", op, fresh, ["y"], attributes={**heads, "unidirectional": 1})
    yield Case("mha_causal_past", op, {**fresh, "b": None, "m": None, "a": None, **past}, ["y", "pk2", "pv2"],
               known=("pk", "pv"), attributes={**heads, "unidirectional": 1})
    yield Case("mha_keys_of_a_cache", op, {"q": q, "k": f(b, h, t, d), "v": f(b, h, t, d)}, ["y"],
               known=("q", "k", "v"), attributes=heads)


def packed():
    b, s, h, d, n = 2, 3, 2, 4, 6
    x, w, bias = f(b, s, n), f(n, 3 * h * d), f(3 * h * d)
    op, heads = "Attention", {"num_heads": h}
    known, constants = ("b",), ("w", "b")
    yield Case("attention", op, {"x": x, "w": w, "b": bias}, ["y"], constants=constants, attributes=heads)
    for name, mask in (("mask", np.array([[1, 1, 0], [1, 1, 1]], np.int32)), ("lengths", np.array([2, 3], np.int32)),
                       ("starts", np.array([3, 2, 1, 0], np.int32)),
                       ("mask_3d", np.array([[[1, 0, 0], [1, 1, 0], [1, 0, 1]]] * 2, np.int32))):
        yield Case(f"attention_{name}", op, {"x": x, "w": w, "b": bias, "m": mask}, ["y"], known=("m", "x"),
                   constants=constants, attributes=heads)
    yield Case("attention_causal", op, {"x": x, "w": w, "b": bias}, ["y"], constants=constants,
               attributes={**heads, "unidirectional": 1})
    yield Case("attention_past", op, {"x": x, "w": w, "b": bias, "m": None, "p": f(2, b, h, 4, d)}, ["y", "present"],
               known=("p", "x"), constants=constants, attributes={**heads, "unidirectional": 1})
    yield Case("attention_bias", op, {"x": x, "w": w, "b": bias, "m": None, "p": None, "a": f(b, h, s, s)}, ["y"],
               known=("a", "x"), constants=constants, attributes=heads)
    yield Case("attention_sizes", op, {"x": x, "w": f(n, 2 * h * d + h * 3), "b": f(2 * h * d + h * 3)}, ["y"],
               constants=constants, attributes={**heads, "qkv_hidden_sizes": [h * d, h * d, h * 3]})
    yield Case("qattention", "QAttention", {"x": codes(np.uint8, b, s, n), "w": codes(np.int8, n, 3 * h * d), "b": bias,
                                            "sx": np.float32(0.01), "sw": np.float32(0.02), "m": None,
                                            "zx": np.uint8(120), "zw": np.int8(3)}, ["y"],
               constants=("w", "b", "sx", "sw", "zx", "zw"), attributes=heads)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    yield Case("qattention_columns", "QAttention",
               {"x": codes(np.uint8, b, s, n), "w": codes(np.int8, n, 3 * h * d), "b": bias, "sx": np.float32(0.01),
                "sw": f(3 * h * d, low=0.01, high=0.02), "m": mask, "zx": np.uint8(120),
                "zw": np.zeros(3 * h * d, np.int8)}, ["y"], known=("m", "x"),
               constants=("w", "b", "sx", "sw", "zx", "zw"), attributes=heads)


def group_query():
    h, g, d = 4, 2, 16
    op = "GroupQueryAttention"
    angles = f(16, d // 2, low=-3, high=3)
    tables = {"cos": np.cos(angles), "sin": np.sin(angles)}

    def case(name, b, s, p, ends, total, rotary=False, packed_query=False, bias=None, **attributes):
        fresh = {"q": f(b, s, (h + 2 * g) * d), "k": None, "v": None} if packed_query else \
            {"q": f(b, s, h * d), "k": f(b, s, g * d), "v": f(b, s, g * d)}
        past = {"pk": f(b, g, p, d), "pv": f(b, g, p, d)}
        rest = {"ends": np.array(ends, np.int32), "total": np.array(total, np.int32), **(tables if rotary else {})}
        if bias is not None:
            rest.update({key: table if rotary else None for key, table in tables.items()})
            rest.update({"ids": None, "a": bias})
        attributes = {"num_heads": h, "kv_num_heads": g, **attributes, **({"do_rotary": 1} if rotary else {})}
        return Case(name, op, {**fresh, **past, **rest}, ["y", "k2", "v2"], known=("q", "k", "v", "pk", "pv", "ends"),
                    constants=("total", "cos", "sin"), attributes=attributes)

    yield case("gqa_first", 2, 4, 0, [3, 3], 4)
    yield case("gqa_step", 2, 1, 5, [5, 5], 6)
    yield case("gqa_step_rotary", 2, 1, 5, [5, 5], 6, rotary=True)
    yield case("gqa_first_rotary", 1, 4, 0, [3], 4, rotary=True)
    yield case("gqa_interleaved", 1, 4, 0, [3], 4, rotary=True, rotary_interleaved=1)
    yield case("gqa_packed", 1, 4, 0, [3], 4, rotary=True, packed_query=True)
    yield case("gqa_window", 1, 6, 0, [5], 6, local_window_size=3)
    yield case("gqa_window_step", 1, 1, 5, [5], 6, local_window_size=3)
    yield case("gqa_softcap", 1, 4, 0, [3], 4, softcap=0.5)
    yield case("gqa_scale", 1, 4, 0, [3], 4, scale=0.1)
    yield case("gqa_chunk", 1, 3, 4, [6], 7, rotary=True)
    yield case("gqa_uneven_steps", 2, 1, 5, [3, 5], 6, rotary=True)
    yield case("gqa_bias", 1, 4, 0, [3], 4, bias=f(1, h, 4, 4))


def rotary():
    op, d = "RotaryEmbedding", 8
    angles = f(16, d // 2, low=-3, high=3)
    cos, sin = np.cos(angles), np.sin(angles)
    ids = np.array([[0, 1, 2], [5, 3, 9]], np.int64)
    common = {"ids": ids, "cos": cos, "sin": sin}
    yield Case("rotary", op, {"x": f(2, 3, 4 * d), **common}, ["y"], known=("cos", "sin"))
    yield Case("rotary_interleaved", op, {"x": f(2, 3, 4 * d), **common}, ["y"], known=("cos", "sin"),
               attributes={"interleaved": 1})
    yield Case("rotary_4d", op, {"x": f(2, 4, 3, d), **common}, ["y"], known=("cos", "sin", "x"))
    yield Case("rotary_offset", op, {"x": f(2, 3, 4 * d), "ids": np.array([4], np.int64), "cos": cos, "sin": sin},
               ["y"], known=("cos", "sin", "x"))
    yield Case("rotary_partial", op, {"x": f(2, 3, 4 * 12), **common}, ["y"], known=("cos", "sin", "x"),
               attributes={"num_heads": 4, "rotary_embedding_dim": d})


def norms():
    x = f(2, 3, 8)
    gamma, beta, bias = f(8), f(8), f(8)
    constants = ("gamma", "beta", "bias")
    yield Case("skip_norm", "SkipLayerNormalization", {"x": x, "s": f(2, 3, 8), "gamma": gamma, "beta": beta,
                                                      "bias": bias}, ["y", "", "", "sum"], constants=constants)
    yield Case("skip_norm_shared", "SkipLayerNormalization", {"x": x, "s": f(1, 3, 8), "gamma": gamma}, ["y"],
               constants=constants, known=("x", "s"))
    yield Case("skip_rms", "SkipSimplifiedLayerNormalization", {"x": x, "s": f(2, 3, 8), "gamma": gamma},
               ["y", "", "", "sum"], constants=constants)
    ids = np.array([[1, 2, 3], [4, 0, 1]], np.int32)
    tables = {"w": f(5, 8), "p": f(4, 8), "t": f(2, 8), "gamma": gamma, "beta": beta}
    mask = np.array([[1, 1, 1], [1, 0, 0]], np.int32)
    yield Case("embed_norm", "EmbedLayerNormalization",
               {"ids": ids, "seg": np.array([[0, 0, 1], [0, 1, 1]], np.int32), **tables, "m": mask},
               ["y", "count", "sum"], constants=tuple(tables), known=("ids", "seg", "m"))
    yield Case("embed_norm_places", "EmbedLayerNormalization",
               {"ids": ids, "seg": None, "w": tables["w"], "p": tables["p"], "t": None, "gamma": gamma, "beta": beta,
                "m": None, "places": np.array([[0, 1, 2], [3, 2, 1]], np.int32)}, ["y", "count"],
               constants=tuple(tables), known=("ids", "places"))


def quantised():
    x, y = codes(np.uint8, 2, 3, 4), codes(np.uint8, 2, 3, 4)

    def number(key, array, scale, zero):
        return {key: array, f"s{key}": np.float32(scale), f"z{key}": array.dtype.type(zero)}

    def given(scale, zero, kind=np.uint8):
        return {"sy": np.float32(scale), "zy": kind(zero)}

    scales = ("sa", "za", "sb", "zb", "sy", "zy", "sx", "zx")
    for op in ("QLinearAdd", "QLinearMul"):
        yield Case(op, op, {**number("a", x, 0.02, 120), **number("b", y, 0.03, 130), **given(0.047, 127)}, ["y"],
                   constants=scales)
        yield Case(f"{op}_i8", op, {**number("a", codes(np.int8, 2, 3), 0.02, 5),
                                    **number("b", codes(np.int8, 3), 0.03, -3), **given(0.047, 2, np.int8)}, ["y"],
                   constants=scales)
    yield Case("QLinearSigmoid", "QLinearSigmoid", {**number("x", x, 0.04, 120), **given(1 / 256, 0)}, ["y"],
               constants=scales)
    yield Case("QLinearLeakyRelu", "QLinearLeakyRelu", {**number("x", x, 0.04, 120), **given(0.031, 20)}, ["y"],
               constants=scales, attributes={"alpha": 0.1})
    yield Case("QLinearGlobalAveragePool", "QLinearGlobalAveragePool",
               {**number("x", codes(np.uint8, 2, 3, 4, 5), 0.04, 120), **given(0.013, 120)}, ["y"], constants=scales)
    yield Case("QLinearSoftmax", "QLinearSoftmax", {**number("x", x, 0.04, 120), **given(1 / 256, 0)}, ["y"],
               constants=scales, attributes={"axis": -1, "opset": 13})
    yield Case("QLinearConcat", "QLinearConcat",
               {**given(0.05, 127), "a": x, "sa": np.float32(0.04), "za": np.uint8(110), "b": y,
                "sb": np.float32(0.031), "zb": np.uint8(140)}, ["y"], constants=scales, attributes={"axis": 1})
    yield Case("QLinearWhere", "QLinearWhere",
               {"c": random.integers(0, 2, (2, 3, 4)).astype(bool), **number("a", x, 0.02, 120),
                **number("b", y, 0.03, 130), **given(0.04, 127)}, ["y"], constants=scales)
    a, w = codes(np.uint8, 3, 7), codes(np.int8, 7, 5)
    columns = ("sb", "zb", "bias", "sa", "za", "c", "sy", "zy", "b")
    yield Case("MatMulIntegerToFloat", "MatMulIntegerToFloat",
               {"a": a, "b": w, "sa": np.float32(0.02), "sb": f(5, low=0.01, high=0.03), "za": np.uint8(128),
                "zb": codes(np.int8, 5), "bias": f(5)}, ["y"], constants=columns)
    yield Case("DynamicQuantizeMatMul", "DynamicQuantizeMatMul",
               {"a": f(3, 7, low=-2, high=3), "b": w, "sb": f(5, low=0.01, high=0.03), "zb": codes(np.int8, 5),
                "bias": f(5)}, ["y"], constants=columns)
    yield Case("QGemm", "QGemm",
               {"a": codes(np.uint8, 7, 3), "sa": np.float32(0.02), "za": np.uint8(128), "b": codes(np.int8, 5, 7),
                "sb": f(5, low=0.01, high=0.03), "zb": np.zeros(5, np.int8), "c": codes(np.int32, 5) // 10**7,
                "sy": np.float32(0.2), "zy": np.uint8(120)}, ["y"], constants=columns,
               attributes={"transA": 1, "transB": 1, "alpha": 0.5})
    yield Case("QGemm_float", "QGemm",
               {"a": a, "sa": np.float32(0.02), "za": np.uint8(128), "b": w, "sb": np.float32(0.03),
                "zb": np.int8(1)}, ["y"], constants=columns)


def n_bits():
    for bits in (4, 8):
        for inner, block in ((32, 16), (40, 16), (64, 32)):
            blocks = -(-inner // block)
            b = codes(np.uint8, 6, blocks, block * bits // 8)
            packed_zero = codes(np.uint8, 6, -(-blocks * bits // 8))
            attributes = {"K": inner, "N": 6, "bits": bits, "block_size": block}
            operands = {"a": f(2, 3, inner), "b": b, "s": f(6, blocks, low=0.01, high=0.05)}
            constants = ("b", "s", "z", "bias")
            name = f"n_bits_{bits}_{inner}_{block}"
            yield Case(name, "MatMulNBits", operands, ["y"], constants=constants, attributes=attributes)
            yield Case(f"{name}_zero", "MatMulNBits", {**operands, "z": packed_zero}, ["y"], constants=constants,
                       attributes=attributes)
    yield Case("n_bits_bias", "MatMulNBits",
               {"a": f(3, 32), "b": codes(np.uint8, 5, 2, 8), "s": f(5, 2, low=0.01, high=0.05), "z": None, "g": None,
                "bias": f(5)}, ["y"], constants=("b", "s", "bias"),
               attributes={"K": 32, "N": 5, "bits": 4, "block_size": 16})


def simple():
    x = f(2, 3, low=-4, high=4)
    yield Case("gelu", "Gelu", {"x": x}, ["y"])
    yield Case("bias_gelu", "BiasGelu", {"x": x, "b": f(3)}, ["y"], constants=("b",))
    yield Case("fast_gelu", "FastGelu", {"x": x, "b": f(3)}, ["y"], constants=("b",))
    yield Case("quick_gelu", "QuickGelu", {"x": x}, ["y"], attributes={"alpha": 1.5})
    yield Case("fused_matmul", "FusedMatMul", {"a": f(2, 4, 3), "b": f(2, 5, 4)}, ["y"], known=("a", "b"),
               attributes={"transA": 1, "transB": 1, "alpha": 0.5})


def all_cases():
    for group in (simple, norms, rotary, multi_head, packed, group_query, quantised, n_bits):
        for case in group():
            yield case.name, case.model, case.inputs, case.outputs
