"""Writes the reference files of this folder with the gguf package. See README.md."""

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFEndian, GGUFReader, GGUFValueType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.scripts.gguf_convert_endian import byteswap_tensors

here = Path(__file__).parent

# Scalars of every type, arrays of every type, strings, arrays in arrays.
SCALARS = [("u8", 200), ("i8", -100), ("u16", 60000), ("i16", -30000), ("u32", 4000000000), ("i32", -2000000000),
           ("f32", 1.5), ("u64", 2**63 + 5), ("i64", -(2**62)), ("f64", -0.1)]
NAMES = {"u8": "UINT8", "i8": "INT8", "u16": "UINT16", "i16": "INT16", "u32": "UINT32", "i32": "INT32",
         "f32": "FLOAT32", "u64": "UINT64", "i64": "INT64", "f64": "FLOAT64"}
PLAIN = [("f32", np.float32), ("f16", np.float16), ("f64", np.float64), ("i8", np.int8), ("i16", np.int16),
         ("i32", np.int32), ("i64", np.int64)]


def pattern(n, k):
    """Byte i of tensor k is 37 i + 11 k + 5."""
    return ((37 * np.arange(n) + 11 * k + 5) % 256).astype(np.uint8)


def add_metadata(w):
    w.add_name("gr\u00f6\u00dfe \U0001f600")
    for name, value in SCALARS:
        w.add_key_value(f"one.{name}", value, GGUFValueType[NAMES[name]])
        w.add_key_value(f"array.{name}", [value, 0, 1], GGUFValueType.ARRAY, sub_type=GGUFValueType[NAMES[name]])
    w.add_bool("one.boolean", True)
    w.add_array("array.boolean", [True, False, True])
    w.add_array("array.string", ["", "a", "\u00fc\u00f1\u00ef", "x" * 300])
    w.add_array("array.array", [[1, 2], [3], [4, 5, 6]])


def blocks(kind, rows, row_blocks, k, big):
    """Rows of blocks in the byte order of the file."""
    n = GGML_QUANT_SIZES[kind][1]
    data = pattern(rows * row_blocks * n, k).reshape(rows, row_blocks * n).copy()
    if big:
        flat = data.reshape(-1)

        class Holder:
            data = flat

        for at in range(0, flat.size, n):
            byteswap_tensors[kind](Holder, at)
    return data


def add_tensors(w, big, kinds):
    endian = GGUFEndian.BIG if big else GGUFEndian.LITTLE
    k = 0
    for name, dtype in PLAIN:
        data = pattern(2 * 3 * np.dtype(dtype).itemsize, k).view(dtype).reshape(2, 3)
        w.add_tensor(f"plain.{name}", data)
        k += 1
    bf16 = pattern(2 * 3 * 2, k).view(np.uint16).reshape(2, 3)
    w.add_tensor("plain.bf16", (bf16.byteswap() if big else bf16).view(np.uint8), raw_dtype=Type.BF16,
                 tensor_endianess=endian)
    k += 1
    for kind in kinds:
        # Bytes of blocks are in the file's order already.
        w.add_tensor(f"blocks.{kind.name.lower()}", blocks(kind, 3, 2, k, big), raw_dtype=kind, tensor_endianess=endian)
        k += 1
    w.add_tensor("shape", np.arange(24, dtype=np.float32).reshape(2, 3, 4, 1))


def write(name, big=False, kinds=(), alignment=None, **splits):
    w = GGUFWriter(here / name, "test", endianess=GGUFEndian.BIG if big else GGUFEndian.LITTLE, **splits)
    add_metadata(w)
    if alignment:
        w.add_custom_alignment(alignment)
    add_tensors(w, big, kinds)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    # Of Q8_1 the package states 40 bytes a block; ggml's have 36.
    encoded = [t for t in Type if GGML_QUANT_SIZES[t][0] > 1 and t != Type.Q8_1]
    write("little.gguf", kinds=encoded, alignment=64)
    write("big.gguf", big=True, kinds=[t for t in encoded if t in byteswap_tensors])
    write("split.gguf", split_max_tensors=4)
    GGUFReader(here / "little.gguf"), GGUFReader(here / "big.gguf")
    print("python", sys.version.split()[0], "numpy", np.__version__, "gguf", version("gguf"))
