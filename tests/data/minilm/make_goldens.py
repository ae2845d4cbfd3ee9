#!/usr/bin/env python3
"""Makes texts.json, ids.json and embeddings.npy: what the reference says of all-MiniLM-L6-v2. README.md tells the terms.

Usage: make_goldens.py MODEL_FOLDER     (needs PyPI's tokenizers, transformers, torch, numpy; writes beside this file)

The ids are those of the Hugging Face tokenizer, cut at the sentence-transformers configuration's max_seq_length (which
wins over the tokenizer file's own truncation), or at 512 where a text says so. The embedding is mean pooling over all
tokens and division by the L2 norm, as modules.json says, of BERT run by PyTorch in float64 on the same weights.
"""
import json
import pathlib
import sys

import numpy
import tokenizers
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples"

WORDS = """stream granite harvest copper lantern violet engine meadow signal orbit quartz ferry ledger timber
whistle canyon marble pepper harbour saddle needle comet willow anchor thunder velvet mirror basket ember glacier""".split()


def sentence(count, step):
    """A text of `count` words, different for each step."""
    return " ".join(WORDS[(i * step + i // 7) % len(WORDS)] for i in range(count))


SHORT = [
    "",
    "a",
    "Hello, world!",
    "The cat sat on the mat.",
    "A cat was sitting on a rug.",
    "Interest rates rose by 0.25% to 5.5% last Tuesday, the bank said.",
    "The quick brown fox jumps over the lazy dog; THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG.",
    "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }  // dot product",
    "e-mail: someone@example.org, phone +44 20 7946 0000, path /usr/lib/x86_64",
    "It's 5 o'clock -- don't \"forget\" the rock'n'roll (really)!?",
    "na\u00efve caf\u00e9, \u00fcber, \u00c5ngstr\u00f6m, fa\u00e7ade, \u0141\u00f3d\u017a, \u010cesk\u00e9 Bud\u011bjovice",
    "nai\u0308ve cafe\u0301, u\u0308ber, A\u030angstro\u0308m",
    "Stra\u00dfe \u1e9e \ufb01nal o\ufb03ce \u0133 \u01c6",
    "\u0130stanbul'da \u0131l\u0131k bir \u0131\u015f\u0131k, DI\u015eARI",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0441\u0442\u043e\u043b\u0438\u0446\u0430 \u0420\u043e\u0441\u0441\u0438\u0438. \u0419\u043e\u0433\u0443\u0440\u0442 \u0438 \u0451\u043b\u043a\u0430.",
    "\u0397 \u0391\u03b8\u03ae\u03bd\u03b1 \u03b5\u03af\u03bd\u03b1\u03b9 \u03b7 \u03c0\u03c1\u03c9\u03c4\u03b5\u03cd\u03bf\u03c5\u03c3\u03b1. \u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03bb\u03cc\u03b3\u03bf\u03c2",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0661\u0662\u0663",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd, \u05de\u05d4 \u05e0\u05e9\u05de\u05e2?",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e, \u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e\u0964",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e19\u0e49\u0e33",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u6211\u4eec\u5728\u5317\u4eac\u5b66\u4e60\u673a\u5668\u7ffb\u8bd1\u3002",
    "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059\u3002\u30ab\u30bf\u30ab\u30ca\u3068\u3072\u3089\u304c\u306a\u3001\u30ac\u30ae\u30b0\uff61",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4, \ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4.",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \u2764\ufe0f thumbs \U0001f44d\U0001f3fd",
    "\U00020000\U0002a6d6 \U0002a700 \U0002b820 \U00030000 rare ideographs",
    "tab\tnewline\nreturn\rnul\x00bell\x07del\x7fnel\x85end",
    "zero\u200bwidth\u200cjoin\u200der\u2060word\ufeffmark soft\u00adhyphen",
    "no\u00a0break\u2003em\u3000ideographic\u2028line\u2029paragraph",
    "[CLS] inside [SEP] the [MASK] text [PAD] and [UNK] and [cls] ##ing",
    "private \ue000\uf8ff unassigned \u0378\U000e0fff replacement \ufffd noncharacter \ufffe",
    "x" * 101,
    "x" * 100,
    "unbelievably antidisestablishmentarianism floccinaucinihilipilification",
    "\u2014\u2013\u2026\u201cquoted\u201d \u00abguillemets\u00bb \u00bfqu\u00e9? \u00a1s\u00ed! \u20ac5 \u00a37 \u00a59 \u00b12 \u00d73",
    "\u211d\u2115 \u222b\u2211\u221a \u2264\u2265\u2260 \u2192\u21d2 \u03b1\u03b2\u03b3 x\u00b2 H\u2082O \u00bd \u2167",
    "!!!",
    "   ",
    "...---...---...",
]

# Texts and the most tokens ([CLS] and [SEP] counted) they are evaluated with.
TEXTS = [(text, 256) for text in SHORT]
TEXTS += [(sentence(n, s), 256) for n, s in ((3, 1), (7, 2), (14, 3), (30, 4), (62, 5), (126, 7), (200, 11), (254, 13))]
TEXTS += [(sentence(255, 17), 256), (sentence(2000, 19), 256), ("\u6f22\u5b57" * 300, 256)]
TEXTS += [(sentence(300, 23), 512), (sentence(510, 29), 512), (sentence(3000, 31), 512), ("Short, with room for 512.", 512)]


def main():
    model_folder = pathlib.Path(sys.argv[1])
    limit = json.loads((model_folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    assert limit == 256
    tokenizer = tokenizers.Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    tokenizer.no_padding()
    bert = transformers.BertModel.from_pretrained(model_folder, dtype=torch.float64, attn_implementation="eager",
                                                  add_pooling_layer=False).eval()
    assert all(p.dtype == torch.float64 for p in bert.parameters())

    def embed(text, max_tokens):
        tokenizer.enable_truncation(max_tokens)
        ids = tokenizer.encode(text).ids
        with torch.no_grad():
            hidden = bert(input_ids=torch.tensor([ids])).last_hidden_state[0]
        mean = hidden.mean(dim=0)
        return ids, (mean / mean.norm()).numpy()

    all_ids, rows = zip(*(embed(text, max_tokens) for text, max_tokens in TEXTS))
    entries = [{"text": text, "max_tokens": max_tokens} for text, max_tokens in TEXTS]
    (HERE / "texts.json").write_text("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")
    (HERE / "ids.json").write_text("[\n" + ",\n".join(json.dumps(i, separators=(",", ":")) for i in all_ids) + "\n]\n")
    embeddings = numpy.stack(rows)
    assert embeddings.dtype == numpy.float64 and embeddings.shape == (len(TEXTS), 384)
    numpy.save(HERE / "embeddings.npy", embeddings)
    lines = (EXAMPLES / "sentences.txt").read_text().splitlines()
    numpy.save(EXAMPLES / "sentences.npy", numpy.stack([embed(line, limit)[1] for line in lines]))
    print(len(TEXTS), "texts, token counts", sorted(len(i) for i in all_ids))
    print("tokenizers", tokenizers.__version__, "transformers", transformers.__version__, "torch", torch.__version__,
          "numpy", numpy.__version__)


if __name__ == "__main__":
    main()
