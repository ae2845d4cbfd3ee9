"""Small models with control flow, sequences and recurrent operators, with the answers of ONNX Runtime."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper, parser

random = np.random.default_rng(31)


def f(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def answers(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


CONDITION = "less = Less(total, limit)"
TEXTS = {
    # Both branches read values from outside, one of them in a loop of its own.
    "if_data": ("float[N,3] x, float limit", "float[N,3] y", """
        total = ReduceSum<keepdims=0>(x)
        less = Less(total, limit)
        y = If(less)<then_branch = then () => (float[N,3] a) { a = Add(x, limit) },
                     else_branch = other () => (float[N,3] b) { p = Mul(x, total) b = Neg(p) }>"""),
    "if_nested": ("float[N,3] x, float limit", "float[N,3] y", """
        total = ReduceSum<keepdims=0>(x)
        less = Less(total, limit)
        y = If(less)<then_branch = then () => (float[N,3] a) {
              zero = Constant<value = float {0.0}>()
              below = Less(total, zero)
              a = If(below)<then_branch = t2 () => (float[N,3] a1) { a1 = Exp(x) },
                            else_branch = e2 () => (float[N,3] a2) { a2 = Sub(x, limit) }> },
            else_branch = other () => (float[N,3] b) { b = Abs(x) }>"""),
    # Trips are a number, the condition stays; a value from outside, a value carried, slices stacked.
    "loop_for": ("float[3] x, float[3] k", "float[3] y, float[4,3] z", """
        n = Constant<value = int64 {4}>()
        y, z = Loop(n, , x)<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] u) {
            d = Identity(c)  f = Cast<to=1>(i)  p = Mul(s, k)  t = Add(p, f)  u = Sub(t, s) }>"""),
    "loop_while": ("float[3] x, float limit", "float[3] y", """
        total = ReduceSum<keepdims=0>(x)
        less = Less(total, limit)
        y = Loop( , less, x)<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            t = Add(s, s)  q = ReduceSum<keepdims=0>(t)  d = Less(q, limit) }>"""),
    "loop_limited": ("float[3] x, float limit, int64 n", "float[3] y", """
        total = ReduceSum<keepdims=0>(x)
        less = Less(total, limit)
        y = Loop(n, less, x)<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            t = Add(s, s)  q = ReduceSum<keepdims=0>(t)  d = Less(q, limit) }>"""),
    "loop_over_length": ("float[N,3] x", "float[3] y, float[N] z", """
        shape = Shape(x)
        first = Constant<value = int64 {0}>()
        n = Gather(shape, first)
        start = Constant<value = float[3] {0.5, 1.5, -1.0}>()
        y, z = Loop(n, , start)<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t, float u) {
            d = Identity(c)  row = Gather<axis=0>(x, i)  p = Add(s, row)  t = Tanh(p)
            u = ReduceMax<keepdims=0>(t) }>"""),
    "loop_grows": ("float[2] x", "float[16] y", """
        n = Constant<value = int64 {3}>()
        y = Loop(n, , x)<body = b (int64 i, bool c, s) => (bool d, t) {
            d = Identity(c)  t = Concat<axis=0>(s, s) }>"""),
    "loop_none": ("float[2] x", "float[2] y", """
        n = Constant<value = int64 {0}>()
        y = Loop(n, , x)<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity(c)  t = Exp(s) }>"""),
    "loop_in_loop": ("float[2,3] x", "float[2,3] y, float[3,2,2,3] z", """
        n = Constant<value = int64 {3}>()
        m = Constant<value = int64 {2}>()
        y, z = Loop(n, , x)<body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t, float[2,2,3] u) {
            d = Identity(c)  f = Cast<to=1>(i)
            t, u = Loop(m, , s)<body = b2 (int64 j, bool c2, float[2,3] s2) => (bool d2, float[2,3] t2, float[2,3] u2) {
                d2 = Identity(c2)  p = Mul(s2, x)  t2 = Add(p, f)  u2 = Neg(t2) }> }>"""),
    "scan_plain": ("float[2] s, float[N,2] x", "float[2] y, float[N,2] z", """
        y, z = Scan<num_scan_inputs=1, body = b (float[2] a, float[2] v) => (float[2] c, float[2] w) {
            c = Add(a, v)  w = Mul(c, v) }>(s, x)"""),
    "scan_axes": ("float[2] s, float[2,N] x, float[N,2] k", "float[2] y, float[2,N] z, float[N,2] q", """
        y, z, q = Scan<num_scan_inputs=2, scan_input_axes=[1,0], scan_output_axes=[-1,0],
            scan_input_directions=[1,0], scan_output_directions=[0,1],
            body = b (float[2] a, float[2] v, float[2] u) => (float[2] c, float[2] w, float[2] r) {
                c = Sub(u, a)  w = Mul(c, v)  r = Add(a, v) }>(s, x, k)"""),
    "sequence_parts": ("float[6,2] x", "float[4,2] y, float[2,3,2] z, int64 n", """
        two = Constant<value = int64 {2}>()
        parts = SplitToSequence<axis=0>(x, two)
        n = SequenceLength(parts)
        last = Constant<value = int64 {-1}>()
        fewer = SequenceErase(parts, last)
        y = ConcatFromSequence<axis=0>(fewer)
        halves = Constant<value = int64[2] {3, 3}>()
        more = SplitToSequence<axis=0>(x, halves)
        z = ConcatFromSequence<axis=0, new_axis=1>(more)"""),
    "sequence_in_loop": ("float[2] x", "float[6] y", """
        n = Constant<value = int64 {3}>()
        none = SequenceEmpty()
        all = Loop(n, , none)<body = b (int64 i, bool c, seq(float) s) => (bool d, seq(float) t) {
            d = Identity(c)  f = Cast<to=1>(i)  v = Add(x, f)  t = SequenceInsert(s, v) }>
        y = ConcatFromSequence<axis=0>(all)"""),
}

INPUTS = {"x": lambda dims: f(*dims), "k": lambda dims: f(*dims), "s": lambda dims: f(*dims)}
VALUES = {
    "if_data": [{"limit": 100.0}, {"limit": -100.0}],
    "if_nested": [{"limit": 100.0}, {"limit": -100.0}],
    "loop_while": [{"limit": 50.0}, {"limit": -50.0}],
    "loop_limited": [{"limit": 50.0, "n": 2}, {"limit": 50.0, "n": 99}, {"limit": 50.0, "n": 0}],
}


def text_cases():
    for name, (inputs, outputs, body) in TEXTS.items():
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m ({inputs}) => ({outputs}) {{{body}}}')
        for node in model.graph.node:
            # The parser leaves out the empty type that a body's value of unknown shape needs.
            del node.metadata_props[:]
        for k, values in enumerate(VALUES.get(name, [{}])):
            given = {}
            for info in model.graph.input:
                dims = [d.dim_value or 5 for d in info.type.tensor_type.shape.dim]
                kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
                if info.name in values:
                    given[info.name] = np.array(values[info.name], kind)
                else:
                    given[info.name] = np.abs(f(*dims)) if name.startswith("loop_") else f(*dims)
            yield (f"{name}_{k}" if name in VALUES else name), model, given, answers(model, given)


def recurrent(name, op, directions, steps, batch, size, hidden, given=(), lengths=None, **attributes):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    arrays = {"W": f(directions, gates * hidden, size), "R": f(directions, gates * hidden, hidden),
              "B": f(directions, 2 * gates * hidden), "P": f(directions, 3 * hidden)}
    inputs = {"X": f(steps, batch, size), "L": None if lengths is None else np.array(lengths, np.int32),
              "H": f(directions, batch, hidden), "C": f(directions, batch, hidden)}
    given = set(given) | ({"L"} if lengths else set())
    operands = ["X", "W", "R"] + [n if n in given else "" for n in ("B", "L", "H", "C", "P")]
    while not operands[-1]:
        operands.pop()
    inputs = {n: a for n, a in inputs.items() if n in operands}
    dims = {"X": ["T", "B", size], "L": ["B"], "H": [directions, "B", hidden], "C": [directions, "B", hidden]}
    outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
    node = helper.make_node(op, operands, outputs, hidden_size=hidden, **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], name, [info(n, T.INT32 if n == "L" else T.FLOAT, dims[n]) for n in inputs],
        [info(n, T.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in arrays.items() if n in operands])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8, producer_name="rlx")
    return name, model, inputs, answers(model, inputs)


def recurrent_cases():
    yield recurrent("rnn", "RNN", 1, 4, 2, 3, 5, "B")
    yield recurrent("rnn_reverse", "RNN", 1, 4, 2, 3, 5, "BH", direction="reverse", activations=["Relu"])
    yield recurrent("rnn_both", "RNN", 2, 4, 3, 3, 2, "BH", [4, 1, 2], direction="bidirectional", clip=0.5,
                    activations=["HardSigmoid", "Affine"], activation_alpha=[0.3, 0.7], activation_beta=[0.4, 0.1])
    yield recurrent("rnn_both_2", "RNN", 2, 3, 1, 3, 2, "B", direction="bidirectional",
                    activations=["ScaledTanh", "LeakyRelu"], activation_alpha=[0.3, 0.7], activation_beta=[0.4])
    yield recurrent("rnn_both_3", "RNN", 2, 3, 1, 3, 2, "B", direction="bidirectional",
                    activations=["Elu", "ThresholdedRelu"], activation_alpha=[0.8, 0.2])
    yield recurrent("rnn_both_4", "RNN", 2, 3, 1, 3, 2, "", direction="bidirectional",
                    activations=["Softsign", "Softplus"])
    yield recurrent("gru", "GRU", 1, 4, 2, 3, 5, "B")
    yield recurrent("gru_one_step", "GRU", 1, 1, 1, 3, 5, "")
    yield recurrent("gru_linear", "GRU", 1, 4, 2, 3, 5, "BH", linear_before_reset=1)
    yield recurrent("gru_linear_bare", "GRU", 1, 4, 2, 3, 5, "", linear_before_reset=1)
    yield recurrent("gru_both", "GRU", 2, 4, 3, 3, 2, "BH", [3, 4, 1], direction="bidirectional",
                    linear_before_reset=1)
    yield recurrent("gru_reverse", "GRU", 1, 4, 3, 3, 2, "BH", [2, 4, 1], direction="reverse", clip=0.4)
    yield recurrent("lstm", "LSTM", 1, 4, 2, 3, 5, "B")
    yield recurrent("lstm_one_step", "LSTM", 1, 1, 1, 3, 5, "BHC")
    yield recurrent("lstm_states", "LSTM", 1, 4, 2, 3, 5, "BHCP")
    yield recurrent("lstm_coupled", "LSTM", 1, 4, 2, 3, 5, "BHC", input_forget=1)
    yield recurrent("lstm_reverse", "LSTM", 1, 4, 3, 3, 2, "BHC", [1, 4, 3], direction="reverse")
    yield recurrent("lstm_both", "LSTM", 2, 4, 3, 3, 2, "BHCP", [4, 2, 1], direction="bidirectional")
    yield recurrent("lstm_clip", "LSTM", 2, 4, 3, 3, 2, "BHC", direction="bidirectional", clip=0.3,
                    activations=["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Tanh"])


def all_cases():
    yield from text_cases()
    yield from recurrent_cases()
