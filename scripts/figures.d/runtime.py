"""The planned runtime: is it right, are its bits always the same, is it fast enough, is it light."""
import runtime


def figures(root):
    yield from runtime.right(root)
    yield from runtime.decent(root)
    yield from runtime.matmul(root)
    yield from runtime.light(root)
    yield from runtime.bad_input(root)
