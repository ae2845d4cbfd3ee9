"""Block formats as ggml decodes and encodes them, and as NumPy where ggml has no decoder. Needs scripts/make_ggml."""
import ctypes
import os
import pathlib


def folder():
    """Where scripts/make_ggml puts the library and its Python."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("RLX_MODELS") or os.path.join(cache, "rlx", "models")) / "ggml"


class Traits(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_int64), ("interleave", ctypes.c_int64),
                ("bytes", ctypes.c_size_t), ("quantized", ctypes.c_bool), ("to_float", ctypes.c_void_p),
                ("from_float", ctypes.c_void_p)]


class Ggml:
    """Types by name, in lower case."""

    def __init__(self):
        self.library = ctypes.CDLL(str(folder() / "libggml-base.so"))
        self.library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                                     ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        self.ids = {}
        for number in range(43):
            traits = self.traits(number)
            if traits.quantized:
                self.ids[traits.name.decode().lower()] = number

    def traits(self, number):
        return self.library.ggml_get_type_traits(number).contents

    def sizes(self, name):
        """Elements and bytes of a block."""
        traits = self.traits(self.ids[name])
        return traits.elements, traits.bytes

    def decode(self, name, data):
        """f32 of whole blocks. ggml has no decoder of q8_1 and q8_k."""
        import numpy
        traits = self.traits(self.ids[name])
        blocks = numpy.frombuffer(data, numpy.uint8).reshape(-1, traits.bytes)
        out = numpy.empty((len(blocks), traits.elements), numpy.float32)
        if traits.to_float:
            call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(traits.to_float)
            blocks = numpy.ascontiguousarray(blocks)
            call(blocks.ctypes.data, out.ctypes.data, out.size)
        else:
            # The formats of activations: a scale, codes from byte 4 on.
            scale = blocks[:, :2].copy().view("<f2") if name == "q8_1" else blocks[:, :4].copy().view("<f4")
            codes = blocks[:, 4:4 + traits.elements].view(numpy.int8)
            with numpy.errstate(all="ignore"):
                out[:] = scale.astype(numpy.float32) * codes.astype(numpy.float32)
        if name == "mxfp4":  # ggml reads the scale 255, which is NaN in the OCP document, as 2^128
            out[blocks[:, 0] == 255] = numpy.nan
        return out

    def encode(self, name, rows, importance=None):
        """Bytes of an f32 matrix, or None when ggml has no encoder."""
        import numpy
        elements, size = self.sizes(name)
        rows = numpy.ascontiguousarray(rows, numpy.float32)
        out = numpy.empty(rows.size // elements * size, numpy.uint8)
        weights = None if importance is None else numpy.ascontiguousarray(importance, numpy.float32).ctypes.data
        done = self.library.ggml_quantize_chunk(self.ids[name], rows.ctypes.data, out.ctypes.data, 0, rows.shape[0],
                                                rows.shape[1], weights)
        return out if done == out.size else None


def random_bytes(count, seed):
    """Bytes of the generator splitmix64, little end first; tests/codecs makes the same."""
    import numpy
    step = numpy.uint64(0x9E3779B97F4A7C15)
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + step * numpy.arange(1, count // 8 + 2, dtype=numpy.uint64)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z ^= z >> numpy.uint64(31)
    return z.astype("<u8").view(numpy.uint8)[:count].copy()


def fingerprint(values):
    """A number of 64 bits that depends on every bit of f32 values; all NaN count as one."""
    import numpy
    bits = numpy.where(numpy.isnan(values), numpy.uint32(0x7FC00000), values.view(numpy.uint32)).astype(numpy.uint64)
    with numpy.errstate(over="ignore"):
        z = (bits + numpy.uint64(1)) * (numpy.arange(bits.size, dtype=numpy.uint64) * numpy.uint64(2) +
                                        numpy.uint64(0x9E3779B97F4A7C15))
        z = (z ^ (z >> numpy.uint64(29))) * numpy.uint64(0xBF58476D1CE4E5B9)
    return int(numpy.bitwise_xor.reduce(z))
