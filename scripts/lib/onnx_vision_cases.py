"""The published node tests of the package onnx for convolutions, pools and images, as small models with answers."""
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

OPERATORS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool",
             "GlobalLpPool", "MaxUnpool", "Col2Im", "InstanceNormalization", "GroupNormalization", "LRN",
             "DepthToSpace", "SpaceToDepth", "Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign",
             "BatchNormalization")
# Operands that must be known when a model is imported become constants of it.
KNOWN = {"Col2Im": (1, 2), "MaxUnpool": (2,), "Resize": (1, 2, 3), "Upsample": (1,), "AffineGrid": (1,)}


def all_cases():
    for test in sorted(collect_testcases(None), key=lambda t: t.name):
        # Functions of the model are the expanded form of an operator: a test of others.
        if test.model is None or len(test.model.graph.node) != 1 or test.model.functions:
            continue
        operator = test.model.graph.node[0].op_type
        if operator in OPERATORS and test.model.graph.node[0].domain == "":
            yield from converted(test, operator)


def converted(test, operator):
    inputs, outputs = test.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    node = model.graph.node[0]
    known = {node.input[i] for i in KNOWN.get(operator, ()) if i < len(node.input) and node.input[i]}
    given = {}
    for info, value in zip(test.model.graph.input, inputs):
        array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
        if info.name in known:
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
            model.graph.input.remove(next(i for i in model.graph.input if i.name == info.name))
        else:
            given[info.name] = array
    answers = {}
    for info, value in zip(test.model.graph.output, outputs):
        answers[info.name] = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    if sum(a.nbytes for a in [*given.values(), *answers.values()]) <= 60_000:  # others are the same at a greater size
        yield test.name.removeprefix("test_"), model, given, answers
