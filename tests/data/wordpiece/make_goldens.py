#!/usr/bin/env python3
"""Makes the WordPiece goldens of this folder: hard strings, small tokenizers, and the ids the reference gives.

Usage: make_goldens.py MODEL_FOLDER     (MODEL_FOLDER holds all-MiniLM-L6-v2; needs PyPI's tokenizers; fixed seed)
"""
import collections
import json
import pathlib
import random
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Name: flags of the normaliser (clean_text, handle_chinese_chars, strip_accents, lowercase).
VARIANTS = {
    "uncased": (True, True, None, True),
    "uncased_keep": (True, True, False, True),
    "cased": (True, True, None, False),
    "cased_strip": (True, True, True, False),
    "no_chinese": (True, False, None, True),
    "no_clean": (False, True, None, True),
}

# Characters that trip tokenizers: each stands alone, inside a word, doubled, and in random mixes.
HARD = list(
    "\u0130\u0131\u00df\u1e9e\u03a3\u03c2\ufb00\ufb03\u01c4\u01c5\u00ad\u200b\u200c\u200d\u2060\ufeff\u00a0\u3000\u2003\u1680"
    "\u2028\u2029\u0085\u000b\u000c\t\n\r\x00\x01\x1b\x7f\ufffd\ufffe\ue000\uf8ff\u0378\u0301\u0308\u0327\u0345\u05b8\u064e"
    "\u093c\u094d\u0e31\u0e33\u302e\u3099\u20dd\u0488\u1734\u0890\u08e2\u0c3c\u0d3b\u1ac0\u1df9\u0904\u09dc\u1e69\u1e0b\u0323\u0344"
    "\u212b\u2126\u212a\uac00\ud7a3\u1100\u1161\u11a8\u3042\u30ac\uff76\uff9e\u3400\u4dbf\u4e00\u9fff\uf900\ufa0e\u3007\u2f00\u31c0"
    "\U00020000\U0002a6df\U0002a700\U0002b820\U0002ceb0\U0002f800\U00030000\U0001d165\U0001d16d\U0001d15f\U00011938\U0001f600"
    "\U0001f3fd\U000e0020\U000e0fff\U000f0000\U0010ffff\u00b2\u00bd\u2160\u24d0\u1c89\ua7cb\ua7d2\U00010d50\U00016ea0\U00010400"
    "\u0660\u0967\u2e52\u2e5d\u166d\u061d\u0ad0\u00a7\u00b7\u055a\u2010\u2014\u201c\u203f\u2045\u3001\u300c\uff01\uff3f$+<=>^`|~"
    "\u20ac\u2200\u2190\u2500\u1f88\u1fb3\u1fbe\u0390\u03b0\u0958\ufb1d\ufb4e\u0f77\u1d5e\u1b44\u1b06\u110ab"
)
WORDS = ("the stream engine unaffable running caf\u00e9 na\u00efve \u00fcber Stra\u00dfe \u0130stanbul \u0391\u03a3 \u03c3\u03b1\u03c2 \u041c\u043e\u0441\u043a\u0432\u0430 "
         "\u0439\u043e\u0433\u0443\u0440\u0442 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u4f60\u597d \u6771\u4eac \u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 "
         "Hello WORLD iPhone x2 3.14 don't e-mail a_b C++ ##ing ## #").split() + ["  run", "stream engine", "a\u3000runn\u00a0 b", "C+ C+", "\u00fcb \u00dcB"]


def hard_strings():
    rng = random.Random(20240229)
    out = ["", " ", "  \t\n ", "a", "A", "##", "##a", "a##b", "[CLS]", "[cls]", "[CLS", "CLS]", "[CLS][SEP]", "x[MASK]y", " [PAD] ",
           "[UNK][UNK]", "[ CLS ]", "[[CLS]]", "[CLS]\u0301", "\\ud800\\udc00 \\u0000", "x" * 99, "x" * 100, "x" * 101, "\u00e9" * 100,
           "e\u0301" * 60, "\u0301" * 150 + "a", "a" + "\u0301\u0323" * 150, "\u4e00" * 120, "a." * 120, "!" * 50]
    out += HARD + [f"ab{c}cd" for c in HARD] + [c + c for c in HARD]
    out += [chr(c) for c in range(0x21, 0x7F) if not chr(c).isalnum()]
    for word in WORDS:
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            out.append(unicodedata.normalize(form, word))
        out += [word.upper(), word.lower(), word.title(), word + word]
    for _ in range(150):
        out.append("".join(rng.choice(HARD if rng.random() < 0.4 else WORDS) + rng.choice(["", "", " ", ",", "-"])
                           for _ in range(rng.randint(2, 9))))
    for _ in range(60):  # any code points, mostly unassigned or private
        out.append("".join(chr(c) for c in (rng.randrange(0x110000) for _ in range(8)) if not 0xD800 <= c < 0xE000))
    for _ in range(60):  # marks and letters in any order
        out.append("".join(rng.choice("aEo\u0391\u0439\u0301\u0323\u0308\u0345\u302e\U0001d165\u1b44\u0334\u093c") for _ in range(12)))
    for token in SPECIAL:
        out += [f"a {token} b", f"a{token}b", token.lower(), f"{token}{token}", f"{token[:-1]} ]", f"\u0301{token}", f"{token}ing"]
    entries = [{"text": t} for t in dict.fromkeys(out)]
    for raw in (b"\xff", b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80\x80", b"\xed\xa0\x80",
                b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"ab\x80cd",
                b"\xf0\x80\x80\x41", b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", b"\xfe\xff word", b"x\xc2 y"):
        entries.append({"bytes": raw.hex()})
    # Long texts are written as a unit and a count.
    entries += [{"text": "x", "times": 100_000}, {"text": "\u0301", "times": 50_000}, {"text": "stream, ", "times": 12_500},
                {"text": "\u6f22", "times": 3_000}, {"text": " ", "times": 100_000}, {"text": "a\u0323\u0301", "times": 20_000}]
    return entries


def whole(entry):
    """The entry's text; bytes that are not UTF-8 are replaced as Python does."""
    if "bytes" in entry:
        return bytes.fromhex(entry["bytes"]).decode("utf-8", "replace")
    return entry["text"] * entry.get("times", 1)


def normalizer(flags):
    clean, chinese, strip, lower = flags
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": strip,
            "lowercase": lower}


def small_vocab(texts):
    """A few hundred pieces: the commonest characters and pairs of all words under every normaliser."""
    heads, tails = collections.Counter(), collections.Counter()
    split = pre_tokenizers.BertPreTokenizer()
    for clean, chinese, strip, lower in VARIANTS.values():
        n = normalizers.BertNormalizer(clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower)
        for text in texts:
            for word, _ in split.pre_tokenize_str(n.normalize_str(text)[:400]):
                for size in (1, 2, 3):
                    heads[word[:size]] += 1
                    tails.update(word[i:i + size] for i in range(1, len(word) - size + 1))
    order = lambda counts: [p for p, _ in sorted(counts.items(), key=lambda e: (-e[1], e[0]))]
    pieces = SPECIAL + ["stream", "engine", "##ing", "##able", "##sten", "caf\u00e9"]
    pieces += order(heads)[:700] + ["##" + p for p in order(tails)[:500]]
    return {piece: i for i, piece in enumerate(p for p in dict.fromkeys(pieces) if not any(c in "\r\n" for c in p))}


def added_token(content, id, **flags):
    every = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return {"id": id, "content": content, **(every | flags)}


def file_of(vocab, flags):
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    special = {t: {"id": t, "ids": [vocab[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]")}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added_token(t, vocab[t]) for t in SPECIAL],
            "normalizer": normalizer(flags), "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": template, "pair": template + [
                {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}], "special_tokens": special},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocab}}


def added_variant(vocab):
    """Other names for everything, and added tokens with every flag."""
    rename = lambda p: "<unk>" if p == "[UNK]" else "@@" + p[2:] if p.startswith("##") else p
    renamed = {}
    for piece, i in vocab.items():
        renamed.setdefault(rename(piece), i)
    renamed = {piece: i for i, piece in enumerate(renamed)}
    out = file_of(renamed | {"[UNK]": 0}, VARIANTS["uncased"])
    out["model"]["vocab"] = renamed
    tokens = [("[CLS]", {}), ("[SEP]", {}), ("[MASK]", dict(lstrip=True)), ("<unk>", {}),
              ("stream", dict(single_word=True, special=False)), ("Stra\u00dfe", dict(normalized=True, special=False)),
              ("ru", dict(rstrip=True, special=False)), ("runn", dict(lstrip=True, rstrip=True, special=False)),
              ("\u00fcB", dict(normalized=True, single_word=True, special=False)),
              ("in", dict(lstrip=True, normalized=True, special=False)), ("C+", dict(single_word=True, special=False))]
    fresh = [content for content, _ in tokens if content not in renamed]
    id_of = renamed | {content: len(renamed) + i for i, content in enumerate(fresh)}
    assert len(fresh) >= 4
    out["added_tokens"] = [added_token(content, id_of[content], **flags) for content, flags in tokens]
    out["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", renamed["[SEP]"]], "cls": ["[CLS]", renamed["[CLS]"]]}
    out["decoder"] = None
    out["model"] |= {"unk_token": "<unk>", "continuing_subword_prefix": "@@", "max_input_chars_per_word": 20}
    return out


def ids_of(tokenizer, entries):
    """The ids of each entry, as `[ids]`; ids that repeat many times as `[head, unit, times, tail]`."""
    out = []
    for entry in entries:
        ids = tokenizer.encode(whole(entry)).ids
        times, best = entry.get("times", 1), [ids]
        for unit in range(1, 6) if len(ids) > 2000 else ():
            body = ids[1:-1]
            if len(body) % unit == 0 and body == body[:unit] * (len(body) // unit):
                best = [ids[:1], body[:unit], len(body) // unit, ids[-1:]]
                break
        assert len(best) > 1 or len(ids) < 2000, (entry, times, len(ids))
        out.append(best)
    return out


def dump(name, value):
    (HERE / name).write_text("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in value) + "\n]\n")


def code_point_digests():
    """FNV-1a of what normalising makes of every code point, among combining characters, per 1,024 code points."""
    out = []
    for flags in ((True, True, True, True), (True, False, False, True), (False, False, True, False)):
        clean, chinese, strip, lower = flags
        n = normalizers.BertNormalizer(clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower)
        split = pre_tokenizers.BertPreTokenizer()
        row = []
        for block in range(0, 0x110000, 1024):
            digest = 0xCBF29CE484222325
            for c in range(block, block + 1024):
                if 0xD800 <= c < 0xE000:
                    continue
                words = [w for w, _ in split.pre_tokenize_str(n.normalize_str(f"a\U0001d16d{chr(c)}\u1b44b"))]
                for byte in ("\n".join(words) + "\n\n").encode():
                    digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
            row.append(f"{digest:016x}")
        out.append({"clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": strip, "lowercase": lower, "digests": row})
    return out


def main():
    entries = hard_strings()
    dump("strings.json", entries)
    vocab = small_vocab([whole(e) for e in entries])
    files = {name: file_of(vocab, flags) for name, flags in VARIANTS.items()} | {"added": added_variant(vocab)}
    (HERE / "vocab.txt").write_text("".join(piece + "\n" for piece in vocab))
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (HERE / f"tokenizer_{name}.json").write_text(text)
        dump(f"ids_{name}.json", ids_of(tokenizers.Tokenizer.from_str(text), entries))
    model = tokenizers.Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / "tokenizer.json"))
    model.no_padding()
    model.no_truncation()
    dump("ids_minilm.json", ids_of(model, entries))
    dump("code_points.json", code_point_digests())
    print(len(entries), "strings,", len(vocab), "pieces, tokenizers", tokenizers.__version__)


if __name__ == "__main__":
    main()
