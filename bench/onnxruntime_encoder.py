"""Times an ONNX encoder in ONNX Runtime; prints one JSON line.

Usage: onnxruntime_encoder.py MODEL.onnx BATCH TOKENS THREADS RUNS
"""
import json
import sys
import time

import numpy
import onnxruntime


def proportional_set_size():
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def main():
    model, (batch, tokens, threads, runs) = sys.argv[1], map(int, sys.argv[2:6])
    random = numpy.random.default_rng(0)
    before = proportional_set_size()
    begin = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - begin
    shape = (batch, tokens)
    feed = {"input_ids": random.integers(1000, 20000, shape), "attention_mask": numpy.ones(shape, numpy.int64),
            "token_type_ids": numpy.zeros(shape, numpy.int64)}
    for _ in range(3):
        session.run(None, feed)
    added = proportional_set_size() - before
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - begin)
    times.sort()
    print(json.dumps({"version": onnxruntime.__version__, "load_ms": load * 1e3, "min_ms": times[0] * 1e3,
                      "median_ms": times[len(times) // 2] * 1e3, "added_bytes": added}))


main()
