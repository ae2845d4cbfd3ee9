"""Whole ONNX models beside ONNX Runtime: answers on real or realistic input, and time."""
import json
import pathlib
import subprocess
import sys

import cpu_run
import onnx_nodes
import turns

ERROR, FASTER = 1e-4, 1.0

# Model: its folder of scripts/fetch_models and file. What it is given is made by feed() below.
MODELS = {
    "silero-vad": ("silero-vad", "silero_vad.onnx"),
    "rapidocr detection": ("rapidocr", "ch_PP-OCRv4_det_infer.onnx"),
    "rapidocr recognition": ("rapidocr", "ch_PP-OCRv4_rec_infer.onnx"),
    "rapidocr direction": ("rapidocr", "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "nudenet": ("nudenet", "320n.onnx"),
    "speechmos dnsmos": ("speechmos", "dnsmos_models/sig_bak_ovr.onnx"),
    "speechmos dnsmos p808": ("speechmos", "dnsmos_models/model_v8.onnx"),
    "speechmos aecmos": ("speechmos", "aecmos_models/Run_1663915512_Stage_0.onnx"),
    "speechmos plcmos": ("speechmos", "plcmos_models/plcmos_v2.onnx"),
    "paraphrase-MiniLM": ("paraphrase-MiniLM-L3-v2-onnx", "paraphrase-MiniLM-L3-v2.onnx"),
}


def feed(name):
    """Inputs of a model by name. Runs where NumPy is."""
    import numpy
    import onnx_inputs as made
    mean, deviation = (numpy.array(v, numpy.float32).reshape(1, 3, 1, 1)
                       for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    ids = numpy.random.default_rng(0).integers(1000, 20000, (2, 32))
    return {
        "silero-vad": lambda: {"input": made.voice(8576)[None, 8000:], "sr": numpy.array(made.RATE),
                               "state": numpy.zeros((2, 1, 128), numpy.float32)},
        "rapidocr detection": lambda: {"x": (made.page(320, 320, 3, 4)[None] - mean) / deviation},
        "rapidocr recognition": lambda: {"x": (made.page(48, 320, 4)[None] - 0.5) / 0.5},
        "rapidocr direction": lambda: {"x": (made.page(48, 192, 2)[None] - 0.5) / 0.5},
        "nudenet": lambda: {"images": made.shapes(320, 320)[None]},
        "speechmos dnsmos": lambda: {"input_1": made.voice(144160)[None]},
        "speechmos dnsmos p808": lambda: {"input_1": made.spectrum(900, 120)[None]},
        "speechmos aecmos": lambda: {"input": numpy.stack([made.spectrum(200, 160)] * 3)[None],
                                     "h0": numpy.zeros((4, 1, 64), numpy.float32)},
        "speechmos plcmos": lambda: {"degraded_audio": made.spectrum(200, 257)[None, None],
                                     "rater_embed": numpy.ones((1, 64), numpy.float32) / 8},
        "paraphrase-MiniLM": lambda: {"input_ids": ids, "attention_mask": numpy.ones_like(ids)},
    }[name]()


def path_of(name):
    folder, file = MODELS[name]
    return onnx_nodes.folder().parent / folder / file


def prepare(name, folder):
    """Writes the inputs of a model as NAME.npy and what ONNX Runtime gives for them as want.npz; prints the names."""
    import numpy
    import onnxruntime
    inputs = feed(name)
    for key, value in inputs.items():
        numpy.save(pathlib.Path(folder) / f"{key}.npy", value)
    session = onnxruntime.InferenceSession(path_of(name), providers=["CPUExecutionProvider"])
    numpy.savez(pathlib.Path(folder) / "want.npz",
                **{o.name: v for o, v in zip(session.get_outputs(), session.run(None, inputs))})
    print(json.dumps(list(inputs)))


def compare(folder):
    """Prints the largest |a - b| / max |b| of all outputs."""
    import numpy
    want, got = (numpy.load(pathlib.Path(folder) / f"{which}.npz") for which in ("want", "got"))
    worst = 0.0
    for at, (output, b) in enumerate(want.items()):
        a = got[output if output in got else got.files[at]]
        if a.shape != b.shape:
            worst = float("inf")
        elif b.size:
            largest = max(float(numpy.abs(b.astype(numpy.float64)).max()), 1e-30)
            error = float(numpy.abs(a.astype(numpy.float64) - b).max()) / largest
            worst = max(worst, error) if error == error else float("inf")
    print(worst)


class Model:
    def __init__(self, run, name, folder):
        self.run, self.name, self.folder, self.path = run, name, folder / name.replace(" ", "-"), path_of(name)
        self.folder.mkdir()

    def python(self, *arguments):
        """Runs this file where the packages of the peers are; its output, or nothing and the reason."""
        done = subprocess.run([self.run.peers() or sys.executable, __file__, *map(str, arguments)], capture_output=True,
                              text=True, check=False)
        return (done.stdout.strip(), "") if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1:])

    def figures(self):
        label = f"model {self.name}"
        if not self.path.is_file():
            yield f"{label} (scripts/fetch_models {MODELS[self.name][0]})", "missing", ERROR, False
            return
        names, why = self.python("prepare", self.name, self.folder)
        if names is None:
            yield f"{label}: ONNX Runtime", f"missing: {why}", "-", False
            return
        given = [word for key in json.loads(names) for word in ("--input", f"{key}={self.folder / key}.npy")]
        done = subprocess.run([self.run.rlx, "run", self.path, *given, "--npz", self.folder / "got.npz"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"{label}: {done.stderr.strip().splitlines()[0][:120] if done.stderr else 'failed'}", "no answer", \
                ERROR, False
            return
        error = float(self.python("compare", self.folder)[0])
        yield f"{label}: largest error beside ONNX Runtime", error, ERROR, error <= ERROR
        for threads in (1, 2):
            yield from self.times(label, given, threads)

    def times(self, label, given, threads):
        server = self.run.engine("onnxruntime", threads)
        ask = {"model": str(self.path), "feed": str(self.folder), "runs": 1}
        first = server and server.engine(**ask)
        ask["runs"] = cpu_run.runs_for(first or 0.1)
        contenders = {"rlx": lambda: self.run.seconds(self.path, threads, ask["runs"], extra=given),
                      "onnxruntime": lambda: server and server.engine(**ask)}
        times = turns.alternate(self.run.gate, contenders, 3, threads > 1)
        yield from turns.against(f"{label}, {threads} thread{'s' if threads > 1 else ''}", times, "rlx",
                                 {"onnxruntime": FASTER})


def figures(root, chosen):
    """Figures of the models whose names `chosen` takes."""
    run = cpu_run.Run(root)
    try:
        for name in filter(chosen, MODELS):
            yield from Model(run, name, pathlib.Path(run.folder.name)).figures()
    finally:
        run.close()


if __name__ == "__main__":
    {"prepare": prepare, "compare": compare}[sys.argv[1]](*sys.argv[2:])
