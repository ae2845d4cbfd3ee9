"""Writes the reference files of this folder with NumPy and the safetensors package. See README.md."""

import ctypes
import io
import json
import random
import struct
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors

here = Path(__file__).parent


# --- safetensors: every element type that the package writes; byte i of tensor k is 37 i + 11 k + 5 (bool: its lowest bit)

TYPES = [("bool", 8), ("uint8", 8), ("int8", 8), ("float8_e5m2", 8), ("float8_e4m3fn", 8), ("float8_e8m0fnu", 8),
         ("float8_e4m3fnuz", 8), ("float8_e5m2fnuz", 8), ("float4_e2m1fn_x2", 4), ("int16", 16), ("uint16", 16),
         ("float16", 16), ("bfloat16", 16), ("int32", 32), ("uint32", 32), ("float32", 32), ("complex64", 64),
         ("float64", 64), ("int64", 64), ("uint64", 64)]


def spec(name, shape, data, keep):
    buffer = ctypes.create_string_buffer(data, len(data))
    keep.append(buffer)
    return safetensors.TensorSpec(dtype=name, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(data))


def write_safetensors():
    keep, tensors = [], {}
    for k, (name, bits) in enumerate(TYPES):
        data = bytes((37 * i + 11 * k + 5) % 256 & (1 if name == "bool" else 255) for i in range(6 * bits // 8))
        # A packed pair of float4 counts as one element for the writer.
        tensors[name] = spec(name, [1, 3] if bits == 4 else [2, 3], data, keep)
    tensors["empty"] = spec("float32", [0, 7], b"", keep)
    tensors["scalar"] = spec("float64", [], struct.pack("<d", 2.5), keep)
    tensors["größe \"q\"\n"] = spec("int16", [1], b"\x34\x12", keep)
    blob = bytes(safetensors.serialize(tensors, metadata={"format": "pt", "note": "tab\tand \u00fc \U0001f600"}))
    (here / "all_types.safetensors").write_bytes(blob)


# --- verdicts of the reference package on mutants, and of the stricter rules that rlx documents

HEADER = (b'{"__metadata__":{"k":"v"},"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]},'
          b'"b":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}}')
DATA = bytes(range(15))


def pack(header, data=DATA, length=None):
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def reference(blob):
    try:
        safetensors.deserialize(blob)
        return True
    except Exception:
        return False


class Twice(Exception):
    pass


def unique(pairs):
    if len({k for k, _ in pairs}) != len(pairs):
        raise Twice
    return dict(pairs)


def strict(blob):
    """Rules that the format states and the package does not enforce."""
    header = blob[8:8 + struct.unpack("<Q", blob[:8])[0]]
    if header[:1] != b"{":
        return False
    try:
        tree = json.loads(header.decode(), object_pairs_hook=unique)
    except Twice:
        return False
    return all(isinstance(v, dict) and set(v) == {"dtype", "shape", "data_offsets"}
               for k, v in tree.items() if k != "__metadata__")


def designed():
    w = b'"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}'
    t = lambda dtype, shape, begin, end: (b'{"a":{"dtype":"%s","shape":%s,"data_offsets":[%s,%s]}}' %
                                          (dtype, shape, begin, end))
    for n in (0, 1, 2, 7, 8, 100_000_000, 100_000_001, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, len(HEADER) - 1,
              len(HEADER) + 1, len(HEADER) + 15, len(HEADER) + 16):
        yield pack(HEADER, length=n)
    yield from (b"", b"\0", pack(b"", b""), pack(b"{}", b""), pack(b"{}", b"x"), pack(b"{", b""), pack(b"[]", b""))
    yield from (pack(b" {}", b""), pack(b"{} ", b""), pack(b"{}\n\t\r ", b""), pack(b"{}\0", b""), pack(b"{}x", b""),
                pack(b"\xef\xbb\xbf{}", b""), pack(b"{}{}", b""), pack(b"{},", b""), pack(b"null", b""))
    for text in (b"1e999", b"NaN", b"-0", b"-1", b"0.0", b"1.5", b'"0"', b"00", b"+0", b"0x0", b"1e0", b"null", b"true",
                 b"[0]", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
                 b"18446744073709551616", b"99999999999999999999999", b"1", b"2"):
        yield pack(t(b"U8", b"[0]", text, b"0"), b"")
        yield pack(t(b"U8", b"[1]", b"0", text), b"x")
        yield pack(t(b"U8", b"[" + text + b"]", b"0", b"1"), b"x")
        yield pack(t(b"U8", text, b"0", b"1"), b"x")
    for shape in (b"[4294967296,4294967296]", b"[0,4294967296,4294967296]", b"[4294967296,4294967296,0]",
                  b"[9223372036854775807,2]", b"[4611686018427387904,4]", b"[1,1,1,1,1,1,1,1]", b"[]", b"[1,]", b"[,1]",
                  b"{}", b"[[1]]", b"[1 ]", b"[ 1,1\n]"):
        yield pack(t(b"U8", shape, b"0", b"1"), b"x")
        yield pack(t(b"F64", shape, b"0", b"8"), b"x" * 8)
        yield pack(t(b"U8", shape, b"0", b"0"), b"")
    for dtype in ("BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 "
                  "U64 F4 F6_E2M3 F6_E3M2 f32 F128 I4 U4 C128 FLOAT").split() + ["", " F32", "F32 "]:
        for count, size in ((2, 1), (1, 1), (4, 2), (4, 3), (1, 2), (1, 4), (1, 8), (3, 2)):
            yield pack(t(dtype.encode(), b"[%d]" % count, b"0", b"%d" % size), b"x" * size)
    two = lambda a, b, n: pack(b'{"a":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]},'
                               b'"b":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}}' %
                               (a[1] - a[0], *a, b[1] - b[0], *b), b"x" * n)
    yield from (two((0, 2), (2, 4), 4), two((2, 4), (0, 2), 4), two((0, 2), (1, 3), 3), two((0, 2), (3, 4), 4),
                two((0, 2), (2, 4), 5), two((0, 2), (2, 4), 3), two((0, 2), (0, 2), 2), two((1, 2), (2, 3), 3),
                two((0, 0), (0, 2), 2), two((0, 2), (2, 2), 2), two((0, 2), (1, 1), 2), two((0, 2), (0, 0), 2))
    yield from (pack(b"{" + w + b"," + w + b"}", DATA[:12]), pack(b"{" + w + b',"\\u0077":' + w[4:] + b"}", DATA[:12]))
    field = lambda text: pack(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]' + text + b"}}", b"x")
    yield from (field(b',"x":1'), field(b',"x":[[[]]]'), field(b',"dtype":"U8"'), field(b',"shape":[1]'),
                field(b',"data_offsets":[0,1]'), field(b","), field(b',"x"'), field(b',"DTYPE":"U8"'))
    yield from (pack(b'{"a":["U8",[1],[0,1]]}', b"x"), pack(b'{"a":{"dtype":"U8","shape":[1]}}', b"x"),
                pack(b'{"a":{"shape":[1],"data_offsets":[0,1]}}', b"x"), pack(b'{"a":{"dtype":"U8","data_offsets":[0,1]}}', b"x"),
                pack(b'{"a":{}}', b""), pack(b'{"a":null}', b""), pack(b'{"a":1}', b""), pack(b'{"a":[]}', b""),
                pack(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}', b"x"),
                pack(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}', b"x"),
                pack(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[]}}', b"x"),
                pack(b'{"a":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"}}', b"x"),
                pack(b'{"a":{"\\u0064type":"\\u00558","sh\\u0061pe":[1],"data_offsets":[0,1]}}', b"x"),
                pack(b"{'a':{}}", b""), pack(b"{a:{}}", b""), pack(b'{"a"}', b""), pack(b'{"a" : 1}', b""))
    meta = lambda text: pack(b'{"__metadata__":' + text + b"}", b"")
    yield from (meta(b"{}"), meta(b"null"), meta(b"[]"), meta(b'"x"'), meta(b'{"a":1}'), meta(b'{"a":null}'),
                meta(b'{"a":["b"]}'), meta(b'{"a":{"b":"c"}}'), meta(b'{"a":"b","a":"c"}'), meta(b'{"":""}'),
                meta(b'{"a":"\\ud83d\\ude00"}'), meta(b'{"a":"\\ud83d"}'), meta(b'{"a":"\\ude00\\ud83d"}'),
                meta(b'{"a":"\\ud83dx"}'), meta(b'{"a":"\\ud83d\\u0041"}'), meta(b'{"a":"\\x41"}'), meta(b'{"a":"\\u12"}'),
                meta(b'{"a":"\\u12g4"}'), meta(b'{"a":"\t"}'), meta(b'{"a":"\x7f"}'), meta(b'{"a":"\xc3\xbc"}'),
                meta(b'{"a":"\xc3"}'), meta(b'{"a":"\xc0\x80"}'), meta(b'{"a":"\xed\xa0\x80"}'), meta(b'{"a":"\xf4\x90\x80\x80"}'),
                meta(b'{"a":"\xf0\x9f\x98\x80"}'), meta(b'{"a":"\xff"}'), meta(b'{"a":"\\u0000"}'), meta(b'{"a":"\0"}'),
                meta(b'{"a":"\\/\\b\\f\\n\\r\\t\\"\\\\"}'), meta(b'{"a":"b",}'), meta(b'{,"a":"b"}'), meta(b'{"a":"b"'),
                meta(b'{}') + b"x", meta(b'{},"__metadata__":{}'))


def mutated(rng):
    base = pack(HEADER)
    for cut in range(len(base)):
        yield base[:cut]
    for _ in range(500):
        b = bytearray(base)
        for _ in range(rng.choice((1, 1, 1, 2))):
            i = rng.randrange(len(b))
            b[i] = rng.choice((b[i] ^ (1 << rng.randrange(8)), rng.randrange(256), ord(rng.choice('0123456789"{}[]:, '))))
        yield bytes(b)
    for _ in range(200):  # an edit of the text with the length kept right
        h = bytearray(HEADER)
        i, j = sorted((rng.randrange(len(h) + 1), rng.randrange(len(h) + 1)))
        kind = rng.randrange(3)
        if kind == 0:
            del h[i:min(j, i + 4)]
        elif kind == 1:
            h[i:i] = rng.choice((b" ", b"\n", b"0", b"1", b",", b'"', b"[", b"{", b"}", b"-", b"."))
        else:
            h[j:j] = h[i:min(j, i + 60)]
        yield pack(bytes(h))


def write_verdicts():
    lines = ["# reference verdict, rlx verdict (a: accept, r: reject), file in hexadecimal; or: length of a truncated BASE",
             "base a a " + pack(HEADER).hex()]
    seen = set()
    base = pack(HEADER)
    for blob in list(designed()) + list(mutated(random.Random(14))):
        if blob in seen:
            continue
        seen.add(blob)
        theirs = reference(blob)
        ours = theirs and strict(blob)
        # Only what lies between the common start and the common end with BASE is written.
        start = next((i for i, (x, y) in enumerate(zip(blob, base)) if x != y), min(len(blob), len(base)))
        limit = min(len(blob), len(base)) - start
        end = next((i for i in range(limit) if blob[-1 - i] != base[-1 - i]), limit)
        lines.append(f"{start} {end} {'ra'[theirs]} {'ra'[ours]} {blob[start:len(blob) - end].hex() or '-'}")
    lines[0] = ("# BASE in hexadecimal; then a line for each mutant: bytes shared with BASE at the start and at the end, "
                "verdict of the reference, verdict of rlx (a: accept, r: reject), bytes in between ('-': none)")
    lines[1] = pack(HEADER).hex()
    (here / "safetensors_verdicts.txt").write_text("\n".join(lines) + "\n")


# --- NumPy: element i of an array of shape (2, 3, 4), counted in C order, is a function of i that the test repeats

def array(descr):
    i = np.arange(24)
    kind = np.dtype(descr).kind
    values = {"b": i % 3 == 1, "i": i * 5 - 60, "u": i * 10, "f": i * 0.5 - 3, "c": (i * 0.5 - 3) + 1j * (24 - i)}[kind]
    return values.astype(descr).reshape(2, 3, 4)


def arrays():
    all = {}
    for order in "<>":
        for code in "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8".split():
            for layout in "CF":
                name = f"{'little' if order == '<' else 'big'}_{code}_{layout}"
                all[name] = np.array(array(order + code), order=layout)
    all["empty"] = np.zeros((0, 5), np.float32)
    all["scalar"] = np.float64(2.5)
    all["line"] = np.arange(5, dtype=np.int16)
    return all


def write_numpy():
    all = arrays()
    np.savez(here / "stored.npz", **all)
    np.savez_compressed(here / "deflated.npz", **all)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(here / f"v{version[0]}.npy", "wb") as f:
            np.lib.format.write_array(f, array("<f4"), version=version)
    np.save(here / "fortran.npy", np.asfortranarray(array(">i4")))
    for name, value in {"complex128": np.zeros(2, np.complex128), "longdouble": np.zeros(2, np.longdouble),
                        "string": np.array(["ab"]), "bytes": np.array([b"ab"]), "object": np.array([{}], object),
                        "date": np.zeros(2, "M8[s]"), "record": np.zeros(2, [("a", "<i4")]),
                        "bfloat16": np.zeros(2, ml_dtypes.bfloat16), "float8": np.zeros(2, ml_dtypes.float8_e4m3fn)}.items():
        np.save(here / f"refused_{name}.npy", value)


class Pipe(io.RawIOBase):
    """A stream that cannot seek: zipfile then writes data descriptors."""

    def __init__(self):
        super().__init__()
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, b):
        self.data += bytes(b)
        return len(b)


def write_archives():
    pipe = Pipe()
    np.savez_compressed(pipe, a=array("<f4"), b=array("<i8"))
    (here / "streamed.npz").write_bytes(bytes(pipe.data))
    limits = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = 10, 0
    with zipfile.ZipFile(here / "zip64.npz", "w") as z:
        for name in ("a", "b"):
            buffer = io.BytesIO()
            np.save(buffer, array("<f4" if name == "a" else "<i8"))
            z.writestr(zipfile.ZipInfo(name + ".npy"), buffer.getvalue())
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limits


if __name__ == "__main__":
    write_safetensors()
    write_verdicts()
    write_numpy()
    write_archives()
    print("python", sys.version.split()[0], "numpy", np.__version__, "safetensors", safetensors.__version__, "ml_dtypes",
          ml_dtypes.__version__)
