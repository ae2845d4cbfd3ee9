"""Small decoders of every architecture with random weights, and what transformers says of them."""
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

VOCAB, TOKENS = 61, 24
SMALL = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None)


def rope(kind, theta=1000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def kinds(*layers):
    return ["sliding_attention" if local else "full_attention" for local in layers]


LONG = dict(short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 2.5, 7.0])
# By name: model class, what differs from SMALL, and whether llama.cpp's converter and format can say it.
CASES = {
    "llama": ("LlamaForCausalLM", dict(rope_parameters=rope("default")), True),
    "llama_tied_bias": ("LlamaForCausalLM", dict(rope_parameters=rope("default"), tie_word_embeddings=True,
                                                 attention_bias=True, mlp_bias=True, head_dim=8), True),
    "llama3": ("LlamaForCausalLM", dict(rope_parameters=rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32),
        head_dim=16), True),
    "llama_linear": ("LlamaForCausalLM", dict(rope_parameters=rope("linear", factor=4.0)), True),
    "llama_ntk": ("LlamaForCausalLM", dict(rope_parameters=rope("dynamic", factor=4.0), max_position_embeddings=16),
                  False),
    "llama_yarn": ("LlamaForCausalLM", dict(rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=16), head_dim=16), True),
    "mistral": ("MistralForCausalLM", dict(rope_parameters=rope("default"), sliding_window=5), False),
    "qwen2": ("Qwen2ForCausalLM", dict(rope_parameters=rope("default"), tie_word_embeddings=True), True),
    "qwen2_window": ("Qwen2ForCausalLM", dict(rope_parameters=rope("default"), use_sliding_window=True,
                                              sliding_window=6, max_window_layers=1), False),
    "qwen2_yarn": ("Qwen2ForCausalLM", dict(rope_parameters=rope(
        "yarn", factor=4.0, original_max_position_embeddings=16)), True),
    "qwen3": ("Qwen3ForCausalLM", dict(rope_parameters=rope("default"), head_dim=8), True),
    "gemma2": ("Gemma2ForCausalLM", dict(rope_parameters=rope("default", 10000.0), head_dim=8, sliding_window=7,
                                         query_pre_attn_scalar=8, attn_logit_softcapping=2.0,
                                         final_logit_softcapping=5.0), True),
    "gemma3": ("Gemma3ForCausalLM", dict(rope_parameters={
        "full_attention": rope("linear", 20000.0, factor=4.0), "sliding_attention": rope("default", 10000.0)},
        num_hidden_layers=7, head_dim=8, sliding_window=6, query_pre_attn_scalar=8, intermediate_size=12), True),
    "phi3": ("Phi3ForCausalLM", dict(rope_parameters=rope("default", partial_rotary_factor=0.5), head_dim=8,
                                     hidden_size=32, sliding_window=9, original_max_position_embeddings=64), True),
    "phi3_long": ("Phi3ForCausalLM", dict(rope_parameters=rope("longrope", **LONG), sliding_window=None,
                                          original_max_position_embeddings=16), True),
    "phi3_short": ("Phi3ForCausalLM", dict(rope_parameters=rope("longrope", **LONG), sliding_window=None,
                                           original_max_position_embeddings=32), True),
    "granite": ("GraniteForCausalLM", dict(rope_parameters=rope("default"), embedding_multiplier=12.0,
                                           logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.3,
                                           tie_word_embeddings=True), True),
    "olmo2": ("Olmo2ForCausalLM", dict(rope_parameters=rope("default")), True),
    "gpt2": ("GPT2LMHeadModel", dict(n_positions=64, n_ctx=64, n_embd=24, n_layer=2, n_head=4, n_inner=None), True),
    "mixtral": ("MixtralForCausalLM", dict(rope_parameters=rope("default"), num_local_experts=4,
                                           num_experts_per_tok=2, sliding_window=None), True),
    "qwen3moe": ("Qwen3MoeForCausalLM", dict(rope_parameters=rope("default"), head_dim=8, num_experts=6,
                                             num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True,
                                             decoder_sparse_step=1), True),
    "qwen3moe_plain": ("Qwen3MoeForCausalLM", dict(rope_parameters=rope("default"), head_dim=8, num_experts=5,
                                                   num_experts_per_tok=3, moe_intermediate_size=12,
                                                   norm_topk_prob=False, decoder_sparse_step=1), False),
}


ENCODER = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=32, type_vocab_size=2)
# By name: model class, what differs from ENCODER, and what the publisher's own configuration says instead.
ENCODERS = {
    "bert": ("BertModel", dict(hidden_act="gelu"), None),
    "nomic": ("NomicBertModel", dict(rope_parameters=rope("default")), None),
    "nomic_publisher": ("NomicBertModel", dict(rope_parameters=rope("default")), dict(
        model_type="nomic_bert", architectures=["NomicBertModel"], vocab_size=VOCAB, n_embd=24, n_inner=20, n_layer=2,
        n_head=4, n_positions=8192, max_trained_positions=2048, type_vocab_size=2, layer_norm_epsilon=1e-12,
        rotary_emb_base=1000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None,
        rotary_scaling_factor=None, activation_function="swiglu", causal=False, qkv_proj_bias=False, prenorm=False,
        mlp_fc1_bias=False, mlp_fc2_bias=False, parallel_block=False, use_rms_norm=False)),
}


def scramble(model):
    """Random weights of a size that makes every part count."""
    import torch
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 1.0 if "embed" in key or "wte" in key else 1.5 / weight.shape[-1] ** 0.5)
            elif key.endswith("bias"):
                weight.normal_(0, 0.3)
            else:
                weight.add_(torch.randn_like(weight) * 0.2)


def build(name):
    """The model of a case with weights that make every part count."""
    import torch
    import transformers
    kind, changes, _ = CASES[name]
    torch.manual_seed(sum(name.encode()))
    model_class = getattr(transformers, kind)
    fields = {**SMALL, **changes} if kind != "GPT2LMHeadModel" else {
        "vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": 2, **changes}
    config = model_class.config_class(**fields)
    config._attn_implementation = "eager"
    model = model_class(config).eval().float()
    scramble(model)
    return model


def converter(folder):
    """llama.cpp's converter out of the source package llama-cpp-python."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder,
                    "llama-cpp-python"], check=True)
    with tarfile.open(next(pathlib.Path(folder).glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    root = next(pathlib.Path(folder).glob("llama_cpp_python*/vendor/llama.cpp"))
    sys.path[:0] = [str(root), str(root / "gguf-py")]
    return importlib.import_module("conversion")


def write_encoder(folder, name):
    """The model of an encoder's case, and its states for two texts of which one is padded."""
    import safetensors.torch
    import torch
    import transformers
    kind, changes, publisher = ENCODERS[name]
    torch.manual_seed(sum(name.encode()))
    model_class = getattr(transformers, kind)
    config = model_class.config_class(**{**ENCODER, **changes})
    config._attn_implementation = "eager"
    model = (model_class(config, add_pooling_layer=False)).eval().float()
    scramble(model)
    ids, mask = torch.randint(0, VOCAB, (2, 11)), torch.ones(2, 11)
    mask[1, 7:] = 0
    with torch.no_grad():
        states = model(ids, attention_mask=mask).last_hidden_state
    model.save_pretrained(folder)
    if publisher:
        (folder / "config.json").write_text(json.dumps(publisher, indent=2) + "\n")
    safetensors.torch.save_file({"ids": ids, "mask": mask, "states": states.contiguous()}, folder / "case.safetensors")


def convert(conversion, folder, to):
    """Writes the model in `folder` as GGUF without a tokenizer."""
    import gguf
    base = importlib.import_module("conversion.base")
    config = json.loads((folder / "config.json").read_text())
    # transformers reads fields of its own only, and gives its defaults for the publisher's.
    read = config if "n_inner" in config and config["model_type"] == "nomic_bert" else \
        base.ModelBase.load_hparams(folder, False)
    kind = conversion.get_model_class(config["architectures"][0]) if hasattr(conversion, "get_model_class") \
        else base.ModelBase.from_model_architecture(config["architectures"][0])
    plain = type("Plain", (kind,), {"set_vocab": lambda self: None, "model_arch": kind.model_arch})
    vocabulary = {"type": "WordPiece", "vocab": {str(i): i for i in range(VOCAB)}}
    (folder / "tokenizer.json").write_text(json.dumps({"model": vocabulary, "added_tokens": []}))
    try:
        plain(folder, gguf.LlamaFileType.ALL_F32, to, eager=True, model_name=folder.name, hparams=read).write()
    finally:
        (folder / "tokenizer.json").unlink()


def write_decoder(folder, name):
    import safetensors.torch
    import torch
    model = build(name)
    ids = torch.randint(0, VOCAB, (1, TOKENS))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0]
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    safetensors.torch.save_file({"ids": ids[0].to(torch.int32), "logits": logits.contiguous()},
                                folder / "case.safetensors")


def write(root, names):
    """The cases called `names`, or all, in folders below root/decoders and root/encoders."""
    with tempfile.TemporaryDirectory() as temporary:
        conversion = converter(temporary)
        for name in names or [*CASES, *ENCODERS]:
            folder = root / ("decoders" if name in CASES else "encoders") / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (write_decoder if name in CASES else write_encoder)(folder, name)
            # The converter reads Nomic BERT's own configuration only.
            if CASES[name][2] if name in CASES else name != "nomic":
                convert(conversion, folder, folder / "model.gguf")
            print(name, {path.name: path.stat().st_size for path in folder.iterdir()}, flush=True)
