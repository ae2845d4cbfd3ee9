"""Language models. `--only RE` measures the parts whose names match: types (every block format bit for bit against
ggml), encoders (their squared error beside ggml's), formats (those of several planes against models of their texts)."""
import codecs_beside_ggml


def figures(root, only=None):
    yield from codecs_beside_ggml.figures(root, only)
