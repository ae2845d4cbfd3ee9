"""Peers as a process that stays alive and measures on request, so that they can take turns with ours.

Usage: engines.py ENGINE THREADS, ENGINE one of onnxruntime, openvino, openvino-bf16, torch, torch-bf16

Reads one JSON object a line and answers each with one: {"encoder": MODEL, "batch": B, "tokens": S, "runs": N} and
{"attention": [B, H, S, D], "type": "f32", "runs": N} give {"median_ms", "min_ms"}; a failure gives {"error"}.
{"model": MODEL, "feed": FOLDER, "runs": N} runs any model on the inputs NAME.npy of a folder.
"""
import json
import os
import pathlib
import sys
import time

import numpy


def feed_of(batch, tokens):
    random = numpy.random.default_rng(0)
    shape = (batch, tokens)
    return {"input_ids": random.integers(1000, 20000, shape), "attention_mask": numpy.ones(shape, numpy.int64),
            "token_type_ids": numpy.zeros(shape, numpy.int64)}


def onnxruntime_encoder(model, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def openvino_encoder(model, threads, precision):
    import openvino
    from openvino import properties
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        properties.inference_num_threads(): threads,
        properties.hint.performance_mode(): properties.hint.PerformanceMode.LATENCY,
        properties.hint.inference_precision(): precision})
    request = compiled.create_infer_request()
    return lambda feed: request.infer(feed, share_inputs=True, share_outputs=True)


def torch_encoder(model, threads, bf16):
    """The model of transformers: the folder beside an export, or BERT-base with random weights."""
    import torch
    import transformers
    torch.set_num_threads(threads)
    folder = pathlib.Path(model).parent
    source = folder.with_name(folder.name.removesuffix("-onnx"))
    if (source / "config.json").is_file():
        module = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    else:
        torch.manual_seed(1)
        module = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)
    module = module.eval().to(torch.bfloat16 if bf16 else torch.float32)

    def run(feed):
        with torch.inference_mode():
            return module(**{name: torch.from_numpy(value) for name, value in feed.items()}).last_hidden_state
    return run


def torch_attention(shape, kind, threads):
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
    q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))

    def run():
        with torch.inference_mode():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return run


ENCODERS = {
    "onnxruntime": onnxruntime_encoder,
    "openvino": lambda model, threads: openvino_encoder(model, threads, "f32"),
    "openvino-bf16": lambda model, threads: openvino_encoder(model, threads, "bf16"),
    "torch": lambda model, threads: torch_encoder(model, threads, False),
    "torch-bf16": lambda model, threads: torch_encoder(model, threads, True),
}


def measure(work, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    return {"median_ms": times[len(times) // 2], "min_ms": times[0]}


def main():
    engine, threads = sys.argv[1], int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the packages print is no answer
    kept, warm = {}, set()
    for line in sys.stdin:
        try:
            ask = json.loads(line)
            if "encoder" in ask:
                if ask["encoder"] not in kept:
                    kept[ask["encoder"]] = ENCODERS[engine](ask["encoder"], threads)
                run, feed = kept[ask["encoder"]], feed_of(ask["batch"], ask["tokens"])
                key, work = (ask["encoder"], ask["batch"], ask["tokens"]), lambda: run(feed)
            elif "model" in ask:
                if ask["model"] not in kept:
                    kept[ask["model"]] = ENCODERS[engine](ask["model"], threads)
                run = kept[ask["model"]]
                feed = {path.stem: numpy.load(path) for path in pathlib.Path(ask["feed"]).glob("*.npy")}
                key, work = (ask["model"],), lambda: run(feed)
            else:
                key = (*ask["attention"], ask["type"])
                if key not in kept:
                    kept[key] = torch_attention(ask["attention"], ask["type"], threads)
                work = kept[key]
            if key not in warm:
                work()
            work()
            warm.add(key)
            answer = measure(work, ask["runs"])
        except Exception as error:  # the other side decides what a failure means
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
