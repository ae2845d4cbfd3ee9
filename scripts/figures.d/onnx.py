"""ONNX: how many of the published node tests are passed, and whether any is answered wrongly."""
import onnx_nodes


def figures(root):
    yield from onnx_nodes.figures(root)
