"""Models that the peers run beside ours; each is made once, in the folder of the peers.

Usage: models.py bert-base                 prints the path of an ONNX file: the shape of BERT-base, random weights
       models.py int8 MODEL.onnx           prints the path of the same model with ONNX Runtime's dynamic int8
       models.py openvino-int8 MODEL.onnx  prints the path of the same model, quantised by OpenVINO's nncf (.xml)
"""
import hashlib
import os
import pathlib
import sys
import warnings


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = pathlib.Path(cache) / "rlx" / "peers" / "models"
    path.mkdir(parents=True, exist_ok=True)
    return path


def derived(model, suffix):
    stat = pathlib.Path(model).stat()
    key = hashlib.sha256(f"{pathlib.Path(model).resolve()} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:12]
    return folder() / f"{key}{suffix}"


def bert_base():
    """12 layers of 768 with 12 heads, 30,522 words; weights from a fixed seed."""
    path = folder() / "bert-base-random" / "model.onnx"
    if not path.is_file():
        import torch
        import transformers
        torch.manual_seed(1)
        model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False).eval()
        model.config._attn_implementation = "eager"  # the form that exporters write

        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask, token_type_ids):
                return self.model(input_ids=input_ids, attention_mask=attention_mask,
                                  token_type_ids=token_type_ids).last_hidden_state

        names = ["input_ids", "attention_mask", "token_type_ids"]
        ones = torch.ones(2, 8, dtype=torch.int64)
        axes = {name: {0: "batch", 1: "sequence"} for name in [*names, "last_hidden_state"]}
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name("partial.onnx")
        torch.onnx.export(Encoder(), (ones, ones, 0 * ones), str(partial), input_names=names,
                          output_names=["last_hidden_state"], dynamo=False, dynamic_axes=axes, opset_version=17)
        partial.replace(path)
    return path


def dynamic_int8(model):
    path = derived(model, "-int8.onnx")
    if not path.is_file():
        from onnxruntime.quantization import QuantType, quantize_dynamic
        partial = path.with_name("partial-int8.onnx")
        quantize_dynamic(model, partial, weight_type=QuantType.QInt8, per_channel=True)
        partial.replace(path)
    return path


def openvino_int8(model):
    path = derived(model, "-openvino-int8.xml")
    if not path.is_file():
        import nncf
        import numpy
        import openvino
        random = numpy.random.default_rng(0)
        samples = [{"input_ids": random.integers(1000, 20000, (1, 128)),
                    "attention_mask": numpy.ones((1, 128), numpy.int64),
                    "token_type_ids": numpy.zeros((1, 128), numpy.int64)} for _ in range(8)]
        quantised = nncf.quantize(openvino.Core().read_model(model), nncf.Dataset(samples),
                                  model_type=nncf.ModelType.TRANSFORMER, subset_size=len(samples))
        openvino.save_model(quantised, str(path))
    return path


def main():
    warnings.simplefilter("ignore")
    makers = {"bert-base": bert_base, "int8": dynamic_int8, "openvino-int8": openvino_int8}
    if len(sys.argv) < 2 or sys.argv[1] not in makers:
        print(__doc__, file=sys.stderr)
        return 2
    out = os.dup(1)
    os.dup2(2, 1)  # what the packages print is no result
    path = makers[sys.argv[1]](*sys.argv[2:])
    os.write(out, f"{path}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
