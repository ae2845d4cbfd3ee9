"""The published node tests of the package onnx for convolutions, pools and images, as small models with answers; and
what they lack: older versions, operators without a test, answered by loops over NumPy arrays or by the reference
evaluator of the package."""
import math

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx_operator_cases import Case as SymbolicCase

OPERATORS = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "CausalConvWithState", "DeformConv", "MaxPool",
             "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "MaxUnpool", "Col2Im",
             "InstanceNormalization", "GroupNormalization", "LRN", "DepthToSpace", "SpaceToDepth", "CenterCropPad",
             "Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign", "BatchNormalization")
# Operands that must be known when a model is imported become constants of it.
KNOWN = {"Col2Im": (1, 2), "MaxUnpool": (2,), "Resize": (1, 2, 3), "Upsample": (1,), "AffineGrid": (1,),
         "CenterCropPad": (1,)}

random = np.random.default_rng(11)


def Case(name, nodes, inputs, outputs, constants=None, opset=13, answers=None):
    """A case of known sizes; `answers` are by the name of a result."""
    fixed = {k: (np.asarray(a), list(np.shape(a))) for k, a in inputs.items()}
    listed = None if answers is None else [answers[o] for o in outputs]
    return SymbolicCase(name, nodes, fixed, outputs, constants, opset, answers=listed)


def f(*shape, low=-3.0, high=3.0, kind=np.float32):
    return random.uniform(low, high, shape).astype(kind)


def all_cases():
    yield from published()
    for case in own_cases():
        yield case.name, case.model, case.inputs, case.outputs


def published():
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


# --- own cases ---

def conv(x, w, strides, pads, dilations, groups):
    """Direct sums over two windowed axes, in f64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    high = (x.shape[2] - (w.shape[2] - 1) * dilations[0] - 1) // strides[0] + 1
    wide = (x.shape[3] - (w.shape[3] - 1) * dilations[1] - 1) // strides[1] + 1
    y = np.zeros((x.shape[0], w.shape[0], high, wide))
    inner, each = w.shape[1], w.shape[0] // groups
    for n, o, i, j in np.ndindex(*y.shape):
        g = o // each
        for c, a, b in np.ndindex(*w.shape[1:]):
            y[n, o, i, j] += x[n, g * inner + c, i * strides[0] + a * dilations[0],
                               j * strides[1] + b * dilations[1]] * w[o, c, a, b]
    return y


def conv_transpose(x, w, strides, before, sizes):
    y = np.zeros((x.shape[0], w.shape[1], *sizes))
    for n, c, i, j in np.ndindex(*x.shape):
        for o, a, b in np.ndindex(*w.shape[1:]):
            p, q = i * strides[0] - before[0] + a, j * strides[1] - before[1] + b
            if 0 <= p < sizes[0] and 0 <= q < sizes[1]:
                y[n, o, p, q] += float(x[n, c, i, j]) * float(w[c, o, a, b])
    return y.astype(np.float32)


def upsampled(x, scale, linear):
    """Along the last axis: position i of the result shows i / scale of the operand."""
    out = []
    for i in range(int(x.shape[-1] * scale)):
        at = i / scale
        low = min(int(math.floor(at)), x.shape[-1] - 1)
        high, part = min(low + 1, x.shape[-1] - 1), (at - low if linear else 0)
        out.append(x[..., low] * (1 - part) + x[..., high] * part)
    return np.stack(out, -1).astype(x.dtype)


def max_roi_pool(x, rois, shape, scale):
    def away(v):
        return math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1)

    y = np.zeros((len(rois), x.shape[1], *shape), x.dtype)
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = [away(float(v) * scale) for v in roi[1:]]
        high, wide = max(y2 - y1 + 1, 1) / shape[0], max(x2 - x1 + 1, 1) / shape[1]
        for i, j in np.ndindex(*shape):
            top, bottom = [min(max(v, 0), x.shape[2])
                           for v in (math.floor(i * high) + y1, math.ceil((i + 1) * high) + y1)]
            left, right = [min(max(v, 0), x.shape[3])
                           for v in (math.floor(j * wide) + x1, math.ceil((j + 1) * wide) + x1)]
            if top < bottom and left < right:
                y[r, :, i, j] = x[int(roi[0]), :, top:bottom, left:right].max((1, 2))
    return y


def older_cases():
    x, w = f(1, 2, 3, 3), f(2, 3, 2, 2)
    for opset, mode, before in ((7, "NOTSET", 0), (11, "NOTSET", 1), (11, "SAME_UPPER", 0), (11, "SAME_LOWER", 1)):
        node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=[5, 5], auto_pad=mode)
        yield Case(f"conv_transpose_{opset}_{mode.lower()}_output_shape", [node], {"x": x}, ["y"], {"w": w}, opset,
                   answers={"y": conv_transpose(x, w, (2, 2), (before, before), (5, 5))})
    x = f(1, 2, 3, 4)
    for mode in ("nearest", "linear"):
        y = upsampled(upsampled(x, 2.5, mode == "linear"), 1, False)
        y = np.swapaxes(upsampled(np.swapaxes(y, 2, 3), 2, mode == "linear"), 2, 3)
        scales = np.array([1, 1, 2, 2.5], np.float32)
        old = helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=scales.tolist())
        yield Case(f"upsample_7_{mode}", [old], {"x": x}, ["y"], opset=7, answers={"y": y})
        node = helper.make_node("Upsample", ["x", "s"], ["y"], mode=mode)
        yield Case(f"upsample_9_{mode}", [node], {"x": x}, ["y"], {"s": scales}, 9, answers={"y": y})
        node = helper.make_node("Resize", ["x", "s"], ["y"], mode=mode)
        yield Case(f"resize_10_{mode}", [node], {"x": x}, ["y"], {"s": scales}, 10, answers={"y": y})
    mean, spread = f(2, 3, 4), f(2, 3, 4, low=0.5)
    scale, bias = f(2, 3, 4), f(2, 3, 4)
    y = (x.astype(np.float64) - mean) / np.sqrt(spread.astype(np.float64) + 1e-5) * scale + bias
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], spatial=0)
    yield Case("batchnorm_7_each_element", [node], {"x": x}, ["y"], {"s": scale, "b": bias, "m": mean, "v": spread}, 7,
               answers={"y": y.astype(np.float32)})
    line = f(5)
    one = [np.array([v], np.float32) for v in (2, 3, 0.5, 4)]
    y = (line - 0.5) / np.sqrt(4 + 1e-5) * 2 + 3
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    yield Case("batchnorm_9_one_axis", [node], {"x": line}, ["y"], dict(zip("sbmv", one)), 9,
               answers={"y": y.astype(np.float32)})
    half = f(2, 3, 4, kind=np.float16)
    wide = [f(3, low=0.5) for _ in range(4)]
    s, b, m, v = [a.astype(np.float64)[:, None] for a in wide]
    y = (half.astype(np.float64) - m) / np.sqrt(v + 1e-5) * s + b
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    yield Case("batchnorm_15_half", [node], {"x": half}, ["y"], dict(zip("sbmv", wide)), 15,
               answers={"y": y.astype(np.float16)})
    x = f(2, 4, 3)
    scale, bias = f(2), f(2)
    groups = x.astype(np.float64).reshape(2, 2, 6)
    y = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    y = (y * scale[:, None] + bias[:, None]).reshape(x.shape)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    yield Case("group_normalization_18", [node], {"x": x}, ["y"], {"s": scale, "b": bias}, 18,
               answers={"y": y.astype(np.float32)})


def pool_cases():
    x = f(1, 2, 4, 5)
    y, at = np.zeros((1, 2, 2, 2), np.float32), np.zeros((1, 2, 2, 2), np.int64)
    for c, i, j in np.ndindex(2, 2, 2):
        part = x[0, c, 2 * i:2 * i + 2, 2 * j:2 * j + 3]
        a, b = np.unravel_index(part.argmax(), part.shape)
        y[0, c, i, j] = part[a, b]
        at[0, c, i, j] = c * 20 + (2 * j + b) * 4 + 2 * i + a
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 3], strides=[2, 2], storage_order=1)
    yield Case("maxpool_8_column_major", [node], {"x": x}, ["y", "i"], opset=8, answers={"y": y, "i": at})
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.stack([padded[:, :, i:i + 4, j:j + 5] for i, j in np.ndindex(3, 3)]).sum(0) / 9
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    yield Case("averagepool_7_counted", [node], {"x": x}, ["y"], opset=7, answers={"y": y.astype(np.float32)})
    for p in (1, 3):
        y = (np.stack([np.abs(padded[:, :, i:i + 4, j:j + 5]) for i, j in np.ndindex(3, 3)]) ** p).sum(0) ** (1 / p)
        node = helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], p=p)
        yield Case(f"lppool_11_p{p}", [node], {"x": x}, ["y"], opset=11, answers={"y": y.astype(np.float32)})
        y = (np.abs(x.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
        node = helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)
        yield Case(f"global_lppool_p{p}", [node], {"x": x}, ["y"], opset=7, answers={"y": y.astype(np.float32)})


def conv_cases():
    x, w, b = f(2, 4, 5, 6), f(6, 2, 3, 2), f(6)
    y = conv(x, w, (2, 1), (1, 0, 2, 1), (1, 2), 2) + b[:, None, None]
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[2, 1], pads=[1, 0, 2, 1],
                            dilations=[1, 2], group=2)
    yield Case("conv_7_groups_and_bias", [node], {"x": x}, ["y"], {"w": w, "b": b}, 7,
               answers={"y": y.astype(np.float32)})
    for kind, zeros in ((np.uint8, True), (np.int8, True), (np.uint8, False)):
        low, high = (0, 255) if kind is np.uint8 else (-128, 127)
        x = random.integers(low, high, (1, 4, 4, 4)).astype(kind)
        w = random.integers(low, high, (4, 2, 3, 3)).astype(kind)
        xz, wz = np.array(7, kind), random.integers(0, 9, 4).astype(kind)
        y = conv(x.astype(np.int64) - 7, w.astype(np.int64) - wz.astype(np.int64)[:, None, None, None], (1, 1),
                 (1, 1, 1, 1), (1, 1), 2)
        node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], pads=[1, 1, 1, 1], group=2)
        inputs, constants = {"x": x}, {"w": w, "wz": wz}
        (constants if zeros else inputs)["xz"] = xz
        yield Case(f"convinteger_{np.dtype(kind).name}{'' if zeros else '_zero_of_the_run'}", [node], inputs, ["y"],
                   constants, 10, answers={"y": y.astype(np.int32)})
    x = random.integers(0, 255, (1, 3, 4, 4)).astype(np.uint8)
    w = random.integers(-128, 127, (2, 3, 2, 2)).astype(np.int8)
    ws, b = np.array([0.02, 0.03], np.float32), np.array([900, -700], np.int32)
    sums = conv(x.astype(np.int64) - 100, w, (1, 1), (0, 0, 1, 1), (1, 1), 1) + b[:, None, None]
    y = np.clip(np.rint(sums * (0.05 * ws.astype(np.float64)[:, None, None]) / 1.7) + 120, 0, 255).astype(np.uint8)
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"],
                            pads=[0, 0, 1, 1])
    constants = {"xs": np.float32(0.05), "xz": np.uint8(100), "w": w, "ws": ws, "wz": np.zeros(2, np.int8),
                 "ys": np.float32(1.7), "yz": np.uint8(120), "b": b}
    yield Case("qlinearconv_channels_and_bias", [node], {"x": x}, ["y"], constants, 10, answers={"y": y})
    x, w = f(1, 4, 4, 4), f(4, 2, 2, 2)
    offset, mask, b = f(1, 16, 3, 3, low=-1.5, high=1.5), f(1, 8, 3, 3), f(4)
    node = helper.make_node("DeformConv", ["x", "w", "o", "b", "m"], ["y"], kernel_shape=[2, 2], group=2,
                            offset_group=2)
    yield Case("deform_conv_groups", [node], {"x": x, "o": offset, "m": mask}, ["y"], {"w": w, "b": b}, 19)


def region_cases():
    x = f(2, 3, 6, 7)
    rois = np.array([[0, 0, 5, 4], [1.3, 2.1, 6.2, 5.9], [-3, -2, 2, 1], [3, 3, 3.2, 3.1]], np.float32)
    items = np.array([0, 1, 0, 1], np.int64)
    node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=3, sampling_ratio=2,
                            spatial_scale=0.9)
    yield Case("roialign_10", [node], {"x": x, "r": rois, "i": items}, ["y"], opset=10,
               answers=roi_align(x, rois, items, 2, 0.9, False))
    for mode in ("half_pixel", "output_half_pixel"):
        for kind in ("avg", "max"):
            node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=3, mode=kind,
                                    coordinate_transformation_mode=mode)
            yield Case(f"roialign_adaptive_{mode}_{kind}", [node], {"x": x, "i": items}, ["y"], {"r": rois}, 22)
    rois = np.array([[0, 0, 0, 5, 4], [1, 2, 2, 12, 9], [0, -3, -2, 2, 1], [1, 7, 6, 3, 3]], np.float32)
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[3, 2], spatial_scale=0.7)
    yield Case("maxroipool", [node], {"x": x, "r": rois}, ["y"], opset=22,
               answers={"y": max_roi_pool(x, rois, (3, 2), 0.7)})


def roi_align(x, rois, items, ratio, scale, half):
    """The operator without a shift, as version 10 has it: the evaluator knows the newer default only."""
    node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=3, sampling_ratio=ratio,
                            spatial_scale=scale, coordinate_transformation_mode="half_pixel" if half else
                            "output_half_pixel")
    return Case("", [node], {"x": x, "r": rois, "i": items}, ["y"], opset=22).outputs


def grid_cases():
    x = f(2, 2, 4, 5)
    grid = f(2, 3, 4, 2, low=-3.5, high=3.5)
    for corners in (0, 1):
        for edge in ("zeros", "border", "reflection"):
            for mode in ("linear", "nearest", "cubic"):
                node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=edge,
                                        align_corners=corners)
                yield Case(f"gridsample_20_{mode}_{edge}_{corners}", [node], {"x": x, "g": grid}, ["y"], opset=20)
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode="bicubic", padding_mode="reflection")
    answers = Case("", [helper.make_node("GridSample", ["x", "g"], ["y"], mode="cubic", padding_mode="reflection")],
                   {"x": x, "g": grid}, ["y"], opset=20).outputs
    yield Case("gridsample_16_bicubic_reflection", [node], {"x": x, "g": grid}, ["y"], opset=16, answers=answers)
    whole = random.integers(0, 200, (1, 1, 3, 3)).astype(np.int32)
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode="nearest")
    yield Case("gridsample_16_whole_numbers", [node], {"x": whole, "g": grid[:1]}, ["y"], opset=16)


def own_cases():
    for cases in (older_cases, pool_cases, conv_cases, region_cases, grid_cases):
        yield from cases()
