"""The kinds of tokenizers that are compared: how each is built, and what its reference answers."""
import json
import pathlib
import re

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import llm_tokenizers
from tokenizer_texts import corpus, hard_texts

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (
    CONTRACTIONS +
     r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*%s"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?") + r"|\p{N}{1,3}" + TAIL
TEKKEN = CASED % ("", "") + r"|\p{N}" + TAIL
DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-z"
    r"\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af}"
    r"\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}"
    r"\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}"
    r"\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}"
    r"\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}"
    r"\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}"
    r"\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}"
    r"\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}"
    r"\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}"
    r"\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}"
    r"\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}"
    r"\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}"
    r"\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}"
    r"\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+")
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
SEED_CODER = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+")
EXAONE_MOE = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
              r"|\s*[\r\n]|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
YOUTU = r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
EAST = r"[一-龥ࠀ-一가-퟿]+"


def cut(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


def byte_level(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def digits(individual=True):
    return pre_tokenizers.Digits(individual_digits=individual)


# What `tokenizer.ggml.pre` names, by the stages that the models' own tokenizer.json files have: name, stages, whether a
# piece that is a token is not cut.
BYTE_LEVEL = {
    "gpt-2": ([byte_level(True)], False),
    "smollm": ([digits(), byte_level(True)], False),
    "llama-bpe": (cut(LLAMA3) + [byte_level()], True),
    "dbrx": (cut(LLAMA3) + [byte_level()], False),
    "qwen2": (cut(QWEN2) + [byte_level()], False),
    "qwen35": (cut(QWEN35) + [byte_level()], False),
    "gpt-4o": (cut(GPT4O) + [byte_level()], False),
    "tekken": (cut(TEKKEN) + [byte_level()], True),
    "deepseek-llm": (cut(r"[\r\n]", DEEPSEEK_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", EAST) +
                     [digits(), byte_level()], False),
    "deepseek-coder": (cut(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EAST) + [digits(), byte_level()], False),
    "deepseek-v3": (cut(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3) + [byte_level()], False),
    "falcon": (cut(r"[\p{P}\$\+<=>\^~\|`]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                   r"[0-9][0-9][0-9]") + [byte_level()], False),
    "bloom": (cut(BLOOM) + [byte_level()], False),
    "viking": (cut(BLOOM, r"\p{N}") + [byte_level()], False),
    "youtu": (cut(YOUTU, CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?") + r"|\p{N}" + TAIL) + [byte_level()], True),
    "chameleon": (cut(r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )") +
                  [digits()] + cut(r"[\p{P}!-/:-@\[-`{-~]") + [byte_level(True)], False),
    "tiny_aya": (cut(r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O) + [byte_level()], False),
    "superbpe": (cut(r"\p{N}+", r"(?=(\d{3})+(?!\d))") + [byte_level()], False),
    "bailingmoe": (cut(BAILING) + [byte_level()], False),
    "seed-coder": (cut(SEED_CODER) + [byte_level()], False),
    "exaone-moe": (cut(EXAONE_MOE) + [byte_level()], False),
    "minicpm5": (cut(r"\p{N}{1,3}", QWEN2.replace(r"|\p{N}|", r"|\p{N}+|")) + [byte_level()], True),
    "default": (cut(r"[\p{P}\$\+<=>\^~\|]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                    r"\p{N}+", r"[0-9][0-9][0-9]") + [byte_level()], False),
}

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>"]
USER = ["<tool>", "    "]


def text_of(text):
    """What a reference that takes str sees of bytes."""
    return text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text


def case(text, ids, decoded=None, **options):
    out = {"hex": text.hex()} if isinstance(text, bytes) else {"text": text}
    out.update(options)
    out["ids"] = list(ids)
    if decoded is not None:
        out["decoded"] = decoded
    return out


def train_byte_level(root, stages, size, ignore_merges):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence(stages)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(corpus(root), trainer)
    tok.add_tokens([AddedToken(t, normalized=False) for t in USER])
    return tok


def vocabulary_of(tok, pre):
    """The members of VocabularyData for a byte-level tokenizer of the reference."""
    spec = json.loads(tok.to_str())
    vocab = tok.get_vocab(with_added_tokens=True)
    tokens = [None] * len(vocab)
    for token, number in vocab.items():
        tokens[number] = token
    kinds = [1] * len(tokens)
    for added in spec["added_tokens"]:
        kinds[added["id"]] = 3 if added["special"] else 4
    merges = [" ".join(m) if isinstance(m, list) else m for m in spec["model"]["merges"]]
    return {"model": "gpt2", "pre": pre, "tokens": tokens, "token_types": kinds, "merges": merges,
            "bos": vocab["<s>"], "eos": vocab["</s>"], "add_bos": False}


def answers(tok, texts):
    """The reference's cases: special tokens found, and every eighth text also with them as text."""
    for i, text in enumerate(texts):
        ids = tok.encode(text_of(text), add_special_tokens=False).ids
        yield case(text, ids, tok.decode(ids), add_special=False)
        if i % 8 == 0 or "<" in text_of(text):
            tok.encode_special_tokens = True
            ids = tok.encode(text_of(text), add_special_tokens=False).ids
            tok.encode_special_tokens = False
            yield case(text, ids, add_special=False, parse_special=False)


def byte_level_kinds(root, golden):
    version = f"tokenizers {tokenizers.__version__}"
    for name, (stages, ignore_merges) in BYTE_LEVEL.items():
        def make(name=name, stages=stages, ignore_merges=ignore_merges):
            tok = train_byte_level(root, stages, 900 if golden else 6000, ignore_merges)
            return {"source": version, "vocabulary": vocabulary_of(tok, name)}, lambda texts: answers(tok, texts)
        yield f"gguf-{name}", make


def json_case_list(tok, texts):
    """Cases of a tokenizer.json: with the ids around the text, without, and with special tokens as text."""
    for i, text in enumerate(texts):
        seen = text_of(text)
        ids = tok.encode(seen).ids
        yield case(text, ids, tok.decode(ids))
        if i % 8 == 0 or "<" in seen or "[" in seen:
            tok.encode_special_tokens = True
            ids = tok.encode(seen, add_special_tokens=False).ids
            tok.encode_special_tokens = False
            yield case(text, ids, add_special=False, parse_special=False)


def sentencepiece_like(model):
    """A tokenizer in the form that converters give to SentencePiece models."""
    tok = Tokenizer(model)
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    return tok


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def train(tok, root, golden, **options):
    """Trains the model of `tok` with the trainer that its type has."""
    size = 900 if golden else 6000
    kind = type(tok.model).__name__
    special = options.pop("special", ["<unk>", "<s>", "</s>"])
    if kind == "BPE":
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **options)
    elif kind == "Unigram":
        trainer = trainers.UnigramTrainer(
    vocab_size=size,
    special_tokens=special,
    unk_token=special[0],
    show_progress=False,
     **options)
    elif kind == "WordPiece":
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False, **options)
    else:
        trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tok.train_from_iterator(corpus(root), trainer)
    return tok


def around(tok, before, after=None):
    vocab = tok.get_vocab(with_added_tokens=True)
    single = f"{before} $A" + (f" {after}" if after else "")
    pairs = [(t, vocab[t]) for t in (before, after) if t]
    tok.post_processor = processors.TemplateProcessing(single=single, pair=single + " $B", special_tokens=pairs)


def json_bpe_bytes(root, golden):
    """Llama 3: byte level, pieces that are tokens stay whole, ids around the text."""
    tok = train_byte_level(root, cut(LLAMA3) + [byte_level()], 900 if golden else 6000, True)
    vocab = tok.get_vocab(with_added_tokens=True)
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", vocab["<s>"])])])
    return tok


def json_bpe_gpt2(root, golden):
    """GPT-2 and RoBERTa: a space before the text, added tokens that strip blanks."""
    tok = train_byte_level(root, [pre_tokenizers.ByteLevel(add_prefix_space=True)], 900 if golden else 6000, False)
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tok.add_tokens([AddedToken("<tool>", rstrip=True, normalized=False), AddedToken("look", single_word=True),
                    AddedToken("Größe", single_word=True, lstrip=True, rstrip=True)])
    vocab = tok.get_vocab(with_added_tokens=True)
    tok.post_processor = processors.RobertaProcessing(("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]))
    return tok


def json_bpe_qwen(root, golden):
    """Qwen 2: NFC first."""
    tok = train_byte_level(root, cut(QWEN2) + [byte_level()], 900 if golden else 6000, False)
    tok.normalizer = normalizers.NFC()
    return tok


def json_bpe_falcon(root, golden):
    """Falcon: stages behind the one that spells bytes."""
    stages = [pre_tokenizers.Punctuation("contiguous"), byte_level(True), digits(False),
              pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]
    return train_byte_level(root, stages, 900 if golden else 6000, False)


def json_bpe_llama(root, golden):
    """Llama 2: characters, merges over the whole text, bytes as fallback."""
    tok = sentencepiece_like(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    train(tok, root, golden, special=["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=400)
    spec = json.loads(tok.to_str())
    spec["added_tokens"] = spec["added_tokens"][:3]
    tok = Tokenizer.from_str(json.dumps(spec))
    around(tok, "<s>")
    return tok


def json_bpe_unk(root, golden):
    """Characters without fallback: unknown ones one by one, a suffix for ends of words."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()])
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    return train(tok, root, golden, end_of_word_suffix="</w>", limit_alphabet=150)


def json_unigram(root, golden):
    """T5 and ALBERT: Metaspace and Unigram."""
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tok.decoder = decoders.Metaspace(prepend_scheme="always")
    train(tok, root, golden)
    around(tok, "<s>", "</s>")
    return tok


def json_unigram_bytes(root, golden):
    """Unigram with bytes as fallback, blanks marked at the first piece only."""
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    train(tok, root, golden, special=["<unk>", "<s>", "</s>", *BYTES])
    spec = json.loads(tok.to_str())
    spec["added_tokens"] = spec["added_tokens"][:3]
    spec["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(spec))


def json_wordpiece(root, golden):
    """BERT."""
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(cleanup=True)
    train(tok, root, golden, special=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=300)
    vocab = tok.get_vocab()
    tok.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    return tok


def json_word_level(root, golden):
    """Whole words between blanks; no decoder."""
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), digits()])
    return train(tok, root, golden)


JSON_KINDS = {"json-bpe-bytes": json_bpe_bytes, "json-bpe-gpt2": json_bpe_gpt2, "json-bpe-qwen": json_bpe_qwen,
              "json-bpe-falcon": json_bpe_falcon, "json-bpe-llama": json_bpe_llama, "json-bpe-unk": json_bpe_unk,
              "json-unigram": json_unigram, "json-unigram-bytes": json_unigram_bytes, "json-wordpiece": json_wordpiece,
              "json-word-level": json_word_level}


def json_kinds(root, golden):
    version = f"tokenizers {tokenizers.__version__}"
    for name, build in JSON_KINDS.items():
        def make(build=build):
            tok = build(root, golden)
            return {"source": version, "tokenizer": json.loads(tok.to_str())}, lambda texts: json_case_list(tok, texts)
        yield name, make


def sentencepiece_kinds(root, golden):
    """Models trained by SentencePiece itself, as the converters to GGUF write them."""
    import io

    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb

    def build(model, **options):
        out = io.BytesIO()
        lines = (line for text in corpus(root) for line in text.splitlines() if line)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=out, vocab_size=1200 if golden else 5000, model_type=model,
            character_coverage=0.98, hard_vocab_limit=False, minloglevel=2, **options)
        sp = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
        proto = pb.ModelProto.FromString(out.getvalue())
        vocabulary = {"model": "llama" if model == "bpe" else "t5", "tokens": [p.piece for p in proto.pieces],
                      "scores": [p.score for p in proto.pieces], "token_types": [p.type for p in proto.pieces],
                      "bos": sp.bos_id(), "eos": sp.eos_id(), "unk": sp.unk_id(), "add_bos": False, "add_eos": False,
                      "add_space_prefix": proto.normalizer_spec.add_dummy_prefix,
                      "remove_extra_whitespaces": proto.normalizer_spec.remove_extra_whitespaces}
        if proto.normalizer_spec.precompiled_charsmap:
            vocabulary["precompiled_charsmap"] = proto.normalizer_spec.precompiled_charsmap.hex()

        def answer(texts):
            for text in texts:
                # Its own rule for bytes that are not UTF-8, and for U+0000, differs: those are left out.
                if isinstance(text, str) and "\0" not in text:
                    yield case(text, sp.encode(text), add_special=False, parse_special=False)
        return {"source": f"sentencepiece {sentencepiece.__version__}", "vocabulary": vocabulary}, answer

    identity = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    yield "gguf-llama", lambda: build("bpe", byte_fallback=True, **identity)
    yield "gguf-llama-unk", lambda: build("bpe", byte_fallback=False, add_dummy_prefix=False, **identity)
    yield "gguf-t5", lambda: build("unigram")
    yield "gguf-t5-bytes", lambda: build("unigram", byte_fallback=True, **identity)


def smollm2(root, golden):
    """The vocabulary of the real model file, beside the reference built from its tokens and merges."""
    path = llm_tokenizers.folder().parent / "smollm2-135m-instruct-q4_1" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if golden or not path.is_file():
        return

    def make():
        import gguf
        fields = gguf.GGUFReader(path).fields

        def strings(key):
            field = fields[f"tokenizer.ggml.{key}"]
            return [bytes(field.parts[i]).decode() for i in field.data]
        tokens, merges = strings("tokens"), strings("merges")
        kinds_of = [int(fields["tokenizer.ggml.token_type"].parts[i][0])
                        for i in fields["tokenizer.ggml.token_type"].data]
        tok = Tokenizer(
    models.BPE(
        vocab={
            t: i for i,
            t in enumerate(tokens)},
            merges=[
                tuple(
                    m.split(
                        " ",
                         1)) for m in merges]))
        tok.pre_tokenizer = pre_tokenizers.Sequence(BYTE_LEVEL["smollm"][0])
        tok.decoder = decoders.ByteLevel()
        tok.add_special_tokens([t for t, k in zip(tokens, kinds_of) if k == 3])
        vocabulary = {"model": "gpt2", "pre": "smollm", "tokens": tokens, "token_types": kinds_of, "merges": merges}
        return {"source": f"tokenizers {tokenizers.__version__}",
            "vocabulary": vocabulary}, lambda texts: answers(tok, texts)
    yield "gguf-smollm2-135m", make


def kinds(root, golden):
    """Pairs of a name and a function that gives the tokenizer's description and, for texts, the cases."""
    yield from byte_level_kinds(root, golden)
    yield from json_kinds(root, golden)
    yield from sentencepiece_kinds(root, golden)
    yield from smollm2(root, golden)


GOLDEN = ("gguf-gpt-2", "gguf-smollm", "gguf-llama-bpe", "gguf-qwen2", "gguf-gpt-4o", "gguf-deepseek-v3", "gguf-llama",
          "gguf-llama-unk", "gguf-t5-bytes", *JSON_KINDS)


def write(root, folder, golden, only):
    folder.mkdir(parents=True, exist_ok=True)
    texts = hard_texts()
    if golden:
        texts = [t for t in texts if len(t) < 120][::12]
    for name, make in kinds(root, golden):
        if not re.search(only, name) or (golden and name not in GOLDEN):
            continue
        head, answer = make()
        head["cases"] = list(answer(texts))
        out = json.dumps(head, ensure_ascii=False, separators=(",", ":")).replace('},{"text"', '},\n{"text"')
        (folder / f"{name}.json").write_text(out + "\n", encoding="utf-8")
        print(f"{name}: {len(head['cases'])} cases, {len(out.encode())} bytes", flush=True)
