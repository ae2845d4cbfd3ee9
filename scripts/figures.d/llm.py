"""Language models. `--only RE` measures the parts whose names match: types (every block format bit for bit against ggml)."""
import codecs_beside_ggml


def figures(root, only=None):
    yield from codecs_beside_ggml.figures(root, only)
