"""The published node tests of the package onnx for attention and its relatives, optimisers and what else has no family,
as small models with answers; bf16 stands between casts, since NumPy's files have no such type."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

OPERATORS = ("Attention", "FlexAttention", "LinearAttention", "RotaryEmbedding", "SwiGLU", "Swish", "Adagrad", "Adam",
             "Momentum", "Det", "MeanVarianceNormalization", "TensorScatter", "Binarizer", "ArrayFeatureExtractor",
             "TreeEnsemble",
             "TfIdfVectorizer")
FOREIGN = (T.BFLOAT16, T.STRING)
# Variants that add size and nothing else.
LEFT_OUT = ("diff_head", "_double", "_bias_4d_mask", "_bias_3d_mask", "mask4d", "attention_3d_with_past", "_scaled",
            "_gqa_softcap", "attention_3d_gqa_with")


def all_cases():
    for test in sorted(collect_testcases(None), key=lambda t: t.name):
        if test.model is None or test.model.functions or test.name.endswith("_expanded"):
            continue
        if any(part in test.name for part in LEFT_OUT):
            continue
        if len(test.model.graph.node) != 1 or test.model.graph.node[0].op_type not in OPERATORS:
            continue
        infos = [*test.model.graph.input, *test.model.graph.output]
        if any(i.type.tensor_type.elem_type in FOREIGN for i in infos):
            continue
        inputs, outputs = test.data_sets[0]
        yield (test.name.removeprefix("test_"), slim(test.model), named(test.model.graph.input, inputs),
               named(test.model.graph.output, outputs))
    yield from rounded()


def named(infos, values):
    arrays = (numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v) for v in values)
    return {i.name: a for i, a in zip(infos, arrays)}


def slim(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.ClearField("doc_string")
    copy.producer_name = "rlx"
    return copy


# Every operator of the definition rounds, and so does every addition of a softmax along a short axis.
def rounded():
    random = np.random.default_rng(3)
    for name, shapes, attributes in (
            ("bf16", [(2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8)], {}),
            ("bf16_causal", [(2, 4, 5, 8), (2, 2, 5, 8), (2, 2, 5, 6)], {"is_causal": 1}),
            ("bf16_packed", [(2, 4, 24), (2, 6, 24), (2, 6, 24)],
             {"q_num_heads": 3, "kv_num_heads": 3})):
        keys = ("q", "k", "v")
        nodes = [helper.make_node("Cast", [n], [n + "_"], to=T.BFLOAT16) for n in keys]
        nodes += [helper.make_node("Attention", [n + "_" for n in keys], ["y_"], **attributes),
                  helper.make_node("Cast", ["y_"], ["y"], to=T.FLOAT)]
        infos = [helper.make_tensor_value_info(n, T.FLOAT, s) for n, s in zip(keys, shapes)]
        graph = helper.make_graph(nodes, name, infos, [helper.make_tensor_value_info("y", T.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10,
                                  producer_name="rlx")
        inputs = {n: random.uniform(-1, 1, s).astype(np.float32) for n, s in zip(keys, shapes)}
        answer = ReferenceEvaluator(model).run(None, inputs)[0]
        yield f"attention_{name}", model, inputs, {"y": answer}
