"""Logits of language models against transformers: small models of every architecture, and SmolLM2-135M in f32.

The real model's weights are dequantised by the package gguf and run by transformers in f32 on 512 tokens of text. Needs
PyPI's torch, transformers and gguf (in this Python, or in the one that RLX_TORCH_PYTHON names) and the GGUF file that
scripts/fetch_models gets.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import build

TOKENS = 512
BOUND = 1e-4
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def models():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models"))


def small(root):
    """Relative errors of the small models: {(test, model): error}."""
    problem = build.release(root, "rlx_tests_models")
    if problem:
        raise SystemExit(problem)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "tests.xml"
        subprocess.run([root / "build/release/tests/rlx_tests_models", "--gtest_filter=All/Decoders*:All/Encoders*",
                        f"--gtest_output=xml:{out}"], stdout=subprocess.DEVNULL, check=False)
        errors = {}
        for case in xml.parse(out).iter("testcase"):
            test, _, model = case.get("name").partition("/")
            for found in case.iter("property"):
                if found.get("name") == "error":
                    errors[test, model] = float(found.get("value"))
    return errors


def text_ids(tokenizer, root):
    """The first tokens of the licence, which changes rarely."""
    ids = tokenizer((root / "LICENSE").read_text(encoding="utf-8")).input_ids[:TOKENS]
    assert len(ids) == TOKENS, len(ids)
    return ids


def unpermuted(weight, heads):
    """Rows of queries or keys in the order of HuggingFace: halves of a head instead of neighbours."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def llama_from_gguf(path):
    """A model of transformers with the dequantised weights of a GGUF file of the architecture llama."""
    import gguf
    import torch
    import transformers
    reader = gguf.GGUFReader(path)
    field = {key: f.contents() for key, f in reader.fields.items() if key.startswith("llama.")}
    heads, kv_heads = field["llama.attention.head_count"], field["llama.attention.head_count_kv"]
    weights = {}
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    for tensor in reader.tensors:
        value = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", tensor.name)
        if layer and layer[2] in ("attn_q", "attn_k"):
            value = unpermuted(value, heads if layer[2] == "attn_q" else kv_heads)
        name = (f"model.layers.{layer[1]}.{names[layer[2]]}.weight" if layer else
                {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
                 "output.weight": "lm_head.weight"}[tensor.name])
        weights[name] = torch.from_numpy(value.copy())
    tied = "lm_head.weight" not in weights
    config = transformers.LlamaConfig(
        vocab_size=weights["model.embed_tokens.weight"].shape[0], hidden_size=field["llama.embedding_length"],
        intermediate_size=field["llama.feed_forward_length"], num_hidden_layers=field["llama.block_count"],
        num_attention_heads=heads, num_key_value_heads=kv_heads,
        max_position_embeddings=field["llama.context_length"], tie_word_embeddings=tied,
        rms_norm_eps=field["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": field["llama.rope.freq_base"]})
    config._attn_implementation = "eager"
    model = transformers.LlamaForCausalLM(config).eval().float()
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    return model


def reference(root, path, ids_file, logits_file):
    """Writes the tokens and what transformers says of them. Runs in a Python with torch."""
    import numpy
    import torch
    import transformers
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ids = numpy.array(text_ids(tokenizer, root), dtype=numpy.int32)
    model = llama_from_gguf(path)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids.astype(numpy.int64))[None], use_cache=False).logits[0]
    numpy.save(ids_file, ids)
    numpy.save(logits_file, logits.numpy())


def compare(ours_file, reference_file):
    """Prints what the arrays have in common. Runs in a Python with numpy."""
    import numpy
    a, b = numpy.load(ours_file).astype(numpy.float64), numpy.load(reference_file).astype(numpy.float64)

    def logarithm(x):
        x = x - x.max(-1, keepdims=True)
        return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))
    p, q = logarithm(b), logarithm(a)
    print(json.dumps({"error": float(abs(a - b).max() / abs(b).max()),
                      "kl": float((numpy.exp(p) * (p - q)).sum(-1).mean()),
                      "top1": float((a.argmax(-1) == b.argmax(-1)).mean())}))


def figures(root, only=None):
    """Errors of all small models; then SmolLM2's, where it and torch are here."""
    worst = {}
    for (test, model), error in small(root).items():
        worst[test] = max(worst.get(test, (0, "")), (error, model))
    for test, (error, model) in sorted(worst.items()):
        yield f"logits: small models, {test}, largest error ({model})", error, BOUND, error <= BOUND
    path = next(models().rglob(MODEL), None)
    if path is None:
        yield f"logits: {MODEL} (scripts/fetch_models)", "missing", BOUND, False
        return
    problem = build.release(root, "rlx_bench_logits")
    if problem:
        raise SystemExit(problem)
    python = os.environ.get("RLX_TORCH_PYTHON") or sys.executable
    with tempfile.TemporaryDirectory() as temporary:
        ids, theirs, ours = (pathlib.Path(temporary) / f"{n}.npy" for n in ("ids", "theirs", "ours"))
        done = subprocess.run([python, __file__, "reference", root, path, ids, theirs], capture_output=True, text=True)
        if done.returncode != 0:
            yield "logits: transformers in f32 (RLX_TORCH_PYTHON)", "missing", BOUND, False
            return
        subprocess.run([root / "build/release/bench/rlx_bench_logits", path, ids, ours], check=True)
        found = json.loads(subprocess.run([python, __file__, "compare", ours, theirs], check=True, text=True,
                                          capture_output=True).stdout)
    yield (f"logits: SmolLM2-135M Q4_1, exact, {TOKENS} tokens, largest error", found["error"], BOUND,
           found["error"] <= BOUND)
    yield f"logits: SmolLM2-135M Q4_1, exact, {TOKENS} tokens, KL a token", found["kl"], "-", True


def table(root):
    """Rows of the table of docs/models.md."""
    columns = ("SafetensorsEqualTransformers", "GgufEqualsTransformers", "PagedEqualTransformersInAnyChunks")
    errors = small(root)
    print("| model | safetensors | GGUF | paged |\n|---|---|---|---|")
    for model in sorted({m for _, m in errors}):
        cells = [f"{errors[c, model]:.1e}" if (c, model) in errors else "–" for c in columns]
        print(f"| {model} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1] == "table":
        table(pathlib.Path(sys.argv[2]))
    elif sys.argv[1] == "reference":
        reference(*map(pathlib.Path, sys.argv[2:]))
    else:
        compare(*sys.argv[2:])
