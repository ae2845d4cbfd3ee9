"""ONNX: how many of the published node tests are passed, and whether any is answered wrongly; whole models beside ONNX
Runtime. `--only RE` measures the parts whose names match: `node tests`, `debian`, `fuzz` (in docs/figures/onnx.json,
or anew for RLX_FUZZ_SECONDS), `random graphs`, and `model NAME`."""
import re

import onnx_fuzz
import onnx_models
import onnx_nodes


def figures(root, only=None):
    if re.search(only or "", "node tests"):
        yield from onnx_nodes.figures(root)
    if re.search(only or "", "debian"):
        yield from onnx_nodes.debian_figures(root)
    if re.search(only or "", "fuzz"):
        yield from onnx_fuzz.fuzz_figures(root)
    if re.search(only or "", "random graphs"):
        yield from onnx_fuzz.random_figures(root)
    yield from onnx_models.figures(root, lambda name: re.search(only or "", f"model {name}"))
