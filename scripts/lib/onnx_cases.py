"""The models of scripts/make_onnx_cases."""
import warnings

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper


# --- exported models ---

def slim(model):
    """Without what exporters write for people: it makes most of a small file."""
    def clear(thing, *fields):
        for field in fields:
            thing.ClearField(field)

    graph = model.graph
    clear(model, "metadata_props", "doc_string")
    clear(graph, "metadata_props", "doc_string", "value_info")
    for node in graph.node:
        clear(node, "metadata_props", "doc_string")
    for value in [*graph.input, *graph.output]:
        clear(value, "metadata_props", "doc_string")
    for tensor in graph.initializer:
        clear(tensor, "metadata_props", "doc_string")
    return model


def encoders():
    """(name, module, input names, kinds of export) of small random models of the library transformers."""
    import torch
    import transformers as t

    class Encoder(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids=None):
            more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            return self.model(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state

    torch.manual_seed(1)
    sizes = dict(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
                 max_position_embeddings=20)
    bert = t.BertModel(t.BertConfig(**sizes))
    distil = t.DistilBertModel(t.DistilBertConfig(vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=16,
                                                  max_position_embeddings=20))
    sizes["num_hidden_layers"] = 1
    roberta = t.RobertaModel(t.RobertaConfig(**sizes))
    mpnet = t.MPNetModel(t.MPNetConfig(**sizes))
    two = ["input_ids", "attention_mask"]
    for module in (bert, distil, roberta, mpnet):
        # Random weights of the usual size give nearly the same row for every token.
        with torch.no_grad():
            for p in module.parameters():
                p.add_(torch.randn_like(p) * 0.3)
    return [("bert", Encoder(bert), [*two, "token_type_ids"], ("legacy", "dynamo")),
            ("distilbert", Encoder(distil), two, ("legacy",)),
            ("roberta", Encoder(roberta), two, ("dynamo",)),
            ("mpnet", Encoder(mpnet), two, ("legacy",))]


def classic():
    """An encoder layer as frameworks wrote it for years: the mask becomes a large negative bias."""
    import torch
    from torch import nn

    class Classic(nn.Module):
        def __init__(self, size=8, heads=2, vocabulary=20):
            super().__init__()
            self.heads = heads
            self.words = nn.Embedding(vocabulary, size)
            self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
            self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
            self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)

        def split(self, x):
            return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

        def forward(self, input_ids, attention_mask):
            x = self.words(input_ids)
            bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(torch.float32).min
            q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
            scores = torch.matmul(q, k.transpose(-1, -2)) / (q.size(-1) ** 0.5) + bias
            mixed = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
            x = self.first(x + self.o(mixed.view(x.size(0), x.size(1), -1)))
            x = self.second(x + self.down(torch.nn.functional.gelu(self.up(x))))
            weight = attention_mask.unsqueeze(-1).to(x.dtype)
            pooled = (x * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(pooled, p=2, dim=1)

    torch.manual_seed(2)
    return Classic()


def perceptron():
    import torch
    from torch import nn

    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 8),
                          nn.LeakyReLU(0.1), nn.Linear(8, 4), nn.Softmax(dim=-1))
    with torch.no_grad():
        model[1].running_mean.normal_()
        model[1].running_var.uniform_(0.5, 2)
    return model


def export(model, arguments, names, output, path, kind, opset=None):
    import torch

    axes = {0: "batch"} if arguments[0].dim() == 2 and arguments[0].is_floating_point() else {0: "batch", 1: "sequence"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "legacy":
            out_axes = axes if output == "last_hidden_state" else {0: "batch"}
            torch.onnx.export(model, arguments, str(path), input_names=names, output_names=[output], dynamo=False,
                              dynamic_axes={n: axes for n in names} | {output: out_axes}, opset_version=opset)
        else:
            dims = {a: torch.export.Dim(n, max=20) if n == "sequence" else torch.export.Dim(n)
                    for a, n in axes.items()}
            torch.onnx.export(model, arguments, str(path), input_names=names, output_names=[output], dynamo=True,
                              dynamic_shapes=tuple(dims for _ in names), external_data=False, opset_version=opset,
                              verbose=False)


def write_exports(folder, scratch):
    import torch

    torch.manual_seed(0)
    ids = torch.randint(3, 20, (3, 7))
    mask = torch.ones(3, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    mask[2, 1:] = 0
    types = torch.zeros(3, 7, dtype=torch.int64)
    types[:, 3:] = 1
    features = torch.randn(5, 6)
    plans = []
    for name, module, names, kinds in encoders():
        arguments = (ids, mask, types)[:len(names)]
        plans += [(f"{name}_{kind}", module, arguments, names, "last_hidden_state", kind, None) for kind in kinds]
    plans += [(f"classic_{opset}", classic(), (ids, mask), ["input_ids", "attention_mask"], "sentence", "legacy", opset)
              for opset in (11, 17)]
    plans += [("perceptron_legacy", perceptron(), (features,), ["x"], "y", "legacy", 9),
              ("perceptron_dynamo", perceptron(), (features,), ["x"], "y", "dynamo", None)]
    for name, module, arguments, names, output, kind, opset in plans:
        module.eval()
        path = scratch / f"{name}.onnx"
        export(module, arguments, names, output, path, kind, opset)
        onnx.save(slim(onnx.load(path)), folder / f"{name}.onnx")
        with torch.no_grad():
            exact = module.double()(*[a.double() if a.is_floating_point() else a for a in arguments])
        module.float()
        answers = {f"in/{n}": a.numpy() for n, a in zip(names, arguments)}
        np.savez_compressed(folder / f"{name}.npz", **answers, **{f"out/{output}": exact.numpy()})
    write_external(folder)


def write_external(folder):
    """The perceptron again, its weights in a second file."""
    model = onnx.load(folder / "perceptron_legacy.onnx")
    onnx.save_model(model, str(folder / "external.onnx"), save_as_external_data=True, all_tensors_to_one_file=True,
                    location="external.data", size_threshold=0, convert_attribute=False)


# --- small models ---

def write_operators(path, cases):
    arrays = {}
    for name, model, inputs, outputs in cases.all_cases():
        assert f"{name}/model" not in arrays, name
        arrays[f"{name}/model"] = np.frombuffer(model.SerializeToString(), dtype=np.uint8)
        for n, a in inputs.items():
            arrays[f"{name}/in/{n}"] = a
        for n, a in outputs.items():
            arrays[f"{name}/out/{n}"] = a
    np.savez_compressed(path, **arrays)


# --- one model with everything that the format has ---

def write_everything(path):
    def tensor(name, kind, values, shape=None):
        return helper.make_tensor(name, kind, [len(values)] if shape is None else shape, values)

    initial = [
        tensor("f32", T.FLOAT, [1.5, -2, 3e38]), tensor("f64", T.DOUBLE, [1e300, -0.0]),
        tensor("i8", T.INT8, [-128, 127]), tensor("u8", T.UINT8, [0, 255]), tensor("i16", T.INT16, [-32768, 5]),
        tensor("u16", T.UINT16, [65535]), tensor("i32", T.INT32, [-2147483648, 7]),
        tensor("u32", T.UINT32, [2**32 - 1]),
        tensor("i64", T.INT64, [-2**63, 2**63 - 1]), tensor("u64", T.UINT64, [2**64 - 1]),
        tensor("bool", T.BOOL, [True, False]), tensor("f16", T.FLOAT16, [1.5, -0.25]),
        tensor("bf16", T.BFLOAT16, [1.5, -2]), tensor("c64", T.COMPLEX64, [1 + 2j, -3j]),
        tensor("i4", T.INT4, [-8, 7, 3]), tensor("u4", T.UINT4, [15, 1]), tensor("empty", T.FLOAT, [], shape=[0, 4]),
        tensor("scalar", T.FLOAT, [2.5], shape=[]),
        numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "raw"),
        numpy_helper.from_array(np.array([True, False]), "raw_bool"),
        helper.make_tensor("text", T.STRING, [2], [b"a", b"\xff\x00"]),
    ]
    outside = T(name="outside", data_type=T.FLOAT, dims=[2], data_location=T.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", "4096"), ("length", "8"), ("checksum", "0")):
        outside.external_data.add(key=key, value=value)
    info = helper.make_tensor_value_info
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["b"], name="in the branch")], "branch", [],
                               [info("b", T.FLOAT, [1])], [tensor("k", T.FLOAT, [1])])
    inner = helper.make_graph([helper.make_node("If", ["c"], ["d"], then_branch=branch, else_branch=branch)], "outer",
                              [], [info("d", T.FLOAT, None)])
    node = helper.make_node("Kinds", ["x", "", "y"], ["out", ""], name="node \N{GREEK SMALL LETTER ALPHA}",
                            domain="test.domain", real=0.1, integer=-5, string=b"bytes\xff", reals=[1.0, -0.5, 3e38],
                            integers=[0, -1, 2**62], strings=[b"", b"b"], graph=inner, tensor=initial[0],
                            tensors=initial[:2], graphs=[branch, inner])
    node.attribute.append(onnx.AttributeProto(name="made", type=onnx.AttributeProto.INT, ref_attr_name="given"))
    node.attribute.append(onnx.AttributeProto(name="type", type=onnx.AttributeProto.TYPE_PROTO,
                                              tp=helper.make_tensor_type_proto(T.FLOAT, ["A", 2])))
    dense = helper.make_tensor("sparse", T.FLOAT, [1], [2.0])
    sparse = helper.make_sparse_tensor(dense, helper.make_tensor("at", T.INT64, [1], [3]), [5])
    node.attribute.append(onnx.AttributeProto(name="thin", type=onnx.AttributeProto.SPARSE_TENSOR,
                                              sparse_tensor=sparse))
    node.overload = "variant"
    sequence = helper.make_tensor_sequence_value_info("s", T.FLOAT, ["A"])
    optional = helper.make_value_info("o", helper.make_optional_type_proto(sequence.type))
    mapped = helper.make_value_info("m", onnx.TypeProto())
    mapped.type.map_type.key_type = T.INT64
    mapped.type.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(T.FLOAT, [2]))
    x = info("x", T.FLOAT, ["batch", None, 3])
    graph = helper.make_graph([node], "everything", [x, info("y", T.INT64, []), sequence, optional, mapped],
                              [info("out", T.FLOAT, ["batch", "2*n"]), onnx.ValueInfoProto(name="bare")],
                              [*initial, outside], value_info=[info("v", T.BFLOAT16, [4])],
                              sparse_initializer=[sparse])
    function = helper.make_function("test.domain", "Kinds", ["p", "q", "r"], ["t"],
                                    [helper.make_node("Add", ["p", "r"], ["t"])], [helper.make_opsetid("", 18)],
                                    attributes=["real"], attribute_protos=[helper.make_attribute("given", 7)])
    model = helper.make_model(graph, producer_name="rlx", producer_version="1", domain="domain", model_version=-3,
                              opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("test.domain", 2)],
                              functions=[function], ir_version=10)
    helper.set_model_props(model, {"key": "value", "other": ""})
    path.write_bytes(model.SerializeToString())


# --- what protobuf reads ---

def quoted(data):
    data = data if isinstance(data, bytes) else data.encode()
    plain = lambda b: 0x20 <= b < 0x7f and b not in b"'\\"
    return "'" + "".join(chr(b) if plain(b) else f"\\x{b:02x}" for b in data) + "'"


def real(value):
    return f"{np.float32(value).view(np.uint32):08x}"


def bits(data):
    """Bytes as hexadecimal digits; many of them as their number and FNV-1a hash."""
    if len(data) <= 16:
        return data.hex()
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{len(data)} bytes {value:016x}"


def tensor_text(t):
    lists = {"float_data": 4, "int32_data": 5, "string_data": 6, "int64_data": 7, "double_data": 10, "uint64_data": 11}
    typed = [str(number) for field, number in lists.items() if len(getattr(t, field))]
    text = f"{quoted(t.name)} type {t.data_type} [{','.join(map(str, t.dims))}]"
    if t.HasField("raw_data"):
        text += f" raw {bits(t.raw_data)}"
    if typed:
        text += f" typed {','.join(typed)}"
    if t.HasField("segment"):
        text += " segment"
    if t.data_location == T.EXTERNAL:
        entries = {e.key: e.value for e in t.external_data}
        text += " external " + " ".join(quoted(entries.get(k, "")) for k in ("location", "offset", "length"))
    elif t.data_type not in (T.STRING, T.UNDEFINED):
        text += f" = {elements(t)}"
    return text


def elements(t):
    """The bits of the elements, packed as rlx keeps them."""
    if t.data_type in (T.INT4, T.UINT4):
        a = numpy_helper.to_array(t).astype(np.int64) & 15
        a = np.append(a.ravel(), np.zeros(a.size % 2, np.int64)).reshape(-1, 2)
        return bits((a[:, 0] | a[:, 1] << 4).astype(np.uint8).tobytes())
    return bits(numpy_helper.to_array(t).tobytes())


def value_text(v):
    if not v.HasField("type"):
        return f"{quoted(v.name)}"
    kind = v.type.WhichOneof("value")
    names = {"tensor_type": "tensor", "sequence_type": "sequence", "map_type": "map", "optional_type": "optional",
             "sparse_tensor_type": "sparse tensor"}
    if kind != "tensor_type":
        return f"{quoted(v.name)} {names[kind]}"
    tensor = v.type.tensor_type
    text = f"{quoted(v.name)} tensor type {tensor.elem_type}"
    if not tensor.HasField("shape"):
        return text
    dims = [str(d.dim_value) if d.HasField("dim_value") else quoted(d.dim_param) if d.dim_param else "?"
            for d in tensor.shape.dim]
    return text + f" [{','.join(dims)}]"


def attribute_lines(a, indent):
    A = onnx.AttributeProto
    head = f"{indent}attribute {quoted(a.name)} {a.type}"
    if a.ref_attr_name:
        return [f"{head} refers to {quoted(a.ref_attr_name)}"]
    simple = {A.FLOAT: lambda: real(a.f), A.INT: lambda: str(a.i), A.STRING: lambda: quoted(a.s),
              A.FLOATS: lambda: ",".join(map(real, a.floats)), A.INTS: lambda: ",".join(map(str, a.ints)),
              A.STRINGS: lambda: ",".join(map(quoted, a.strings)), A.TENSOR: lambda: tensor_text(a.t)}
    if a.type in simple:
        return [f"{head} {simple[a.type]()}".rstrip()]
    lines = [head]
    if a.type == A.TENSORS:
        lines += [f"{indent}  {tensor_text(t)}" for t in a.tensors]
    for g in [a.g] if a.type == A.GRAPH else a.graphs if a.type == A.GRAPHS else []:
        lines += graph_lines(g, indent + "  ")
    return lines


def node_lines(n, indent):
    lines = [f"{indent}node {quoted(n.name)} {quoted(n.domain)} {quoted(n.op_type)} {quoted(n.overload)}"
             f" ({','.join(map(quoted, n.input))}) -> ({','.join(map(quoted, n.output))})"]
    for a in n.attribute:
        lines += attribute_lines(a, indent + "  ")
    return lines


def graph_lines(g, indent):
    lines = [f"{indent}graph {quoted(g.name)}"]
    indent += "  "
    lines += [f"{indent}input {value_text(v)}" for v in g.input]
    lines += [f"{indent}output {value_text(v)}" for v in g.output]
    lines += [f"{indent}value {value_text(v)}" for v in g.value_info]
    lines += [f"{indent}initializer {tensor_text(t)}" for t in g.initializer]
    lines += [f"{indent}sparse {quoted(s.values.name)}" for s in g.sparse_initializer]
    for n in g.node:
        lines += node_lines(n, indent)
    return lines


def dump(path):
    m = onnx.load(path, load_external_data=False)
    lines = [f"model {m.ir_version} {m.model_version} {quoted(m.producer_name)} {quoted(m.producer_version)}"
             f" {quoted(m.domain)}"]
    lines += [f"opset {quoted(o.domain)} {o.version}" for o in m.opset_import]
    lines += [f"metadata {quoted(p.key)} {quoted(p.value)}" for p in m.metadata_props]
    lines += graph_lines(m.graph, "")
    for f in m.functions:
        lines.append(f"function {quoted(f.domain)} {quoted(f.name)} {quoted(f.overload)}"
                     f" ({','.join(map(quoted, f.input))}) -> ({','.join(map(quoted, f.output))})"
                     f" attributes {','.join(map(quoted, f.attribute))}")
        lines += [f"  opset {quoted(o.domain)} {o.version}" for o in f.opset_import]
        for a in f.attribute_proto:
            lines += attribute_lines(a, "  ")
        for n in f.node:
            lines += node_lines(n, "  ")
    return "\n".join(lines) + "\n"
