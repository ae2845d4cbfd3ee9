"""Hard texts for tokenizers, the same on every machine: scripts, emoji, marks, blanks, numbers, code, look-alikes."""
import random

WORDS = """
hello Hello HELLO world don't I'm we'll they've you'd it's isn't O'Brien rock'n'roll 'tis DON'T I'M WE'LL You'Re x'S
straße Größe naïve café résumé Ångström Œuvre ﬁnal ﬀ ĳ ǅ ǆ ſtill İstanbul ıspanak ŉ ʼn Ω Ω K K Å Å
Привет мир НАУКА ёлка Ёлка Їжак ђак ქართული ენა Ქართული Հայերեն աշխարհ Ελληνικά ΚΌΣΜΟΣ ς σ Σ
שלום עולם שָׁלוֹם مرحبا بالعالم مَرْحَبًا ٱلسَّلَامُ فارسی می‌خواهم اردو ܫܠܡܐ ދިވެހި ߒߞߏ
नमस्ते दुनिया क्ष्म वाङ्मय বাংলা ভাষা ਪੰਜਾਬੀ ગુજરાતી ଓଡ଼ିଆ தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ไทย ภาษาไทย ลาว
བོད་སྐད မြန်မာ ភាសាខ្មែរ አማርኛ ᏣᎳᎩ ᓀᐦᐃᔭᐍᐏᐣ ᚠᚢᚦ ᠮᠣᠩᠭᠣᠯ 한국어 안녕하세요 한글 ㅎㅎ
你好世界 漢字かな交じり文 カタカナ ひらがな ｶﾀｶﾅ 東京都 𠮷野家 𪚥 㐂 〆切 々 ㍻ ㈱ ① Ⅷ ⅷ ½ ¼ ² ³ ⁴ ₂ ٣٤٥ ४५६ ๑๒๓ 〇 一二三 ൰ 𝟘𝟙𝟚 𝐇𝐞𝐥𝐥𝐨 𝓦
0 1 7 12 99 123 1234 12345 123456 1234567 12345678901234567890 3.14159 1,234,567.89 1e10 -0.5e-3 0x1F 0b101 007 1st 2nd
$100 €50 £3.50 50% 10°C #1 @user user@example.com https://example.com/path?q=1&r=%20#frag C++ C# F# node.js .NET
a_b __init__ CamelCase camelCase snake_case kebab-case SCREAMING_CASE x86_64 utf-8 i18n l10n
-- --- ... … “quoted” ‘single’ «guillemets» „low“ — – ‐ · • ★ ☃ ♥ ♥️ © ® ™ § ¶ † ‡ ∑ ∫ √ ∞ ≠ ≤ → ⇒
░ █ ▁ ▁▁ _ ~ ` ^ | \\ / ( ) [ ] { } < > = + * & ! ? ; : ' "
""".split()

EMOJI = ["😀", "😂🤣", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "🇩", "1️⃣", "#️⃣", "❤️", "❤", "☺️",
    "🫠", "🫱🏻‍🫲🏿", "🧑🏿‍🚀", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🦄🌈✨", "⌚️", "🀄", "‼️", "🅰️", "🪿", "🫨", "👁️‍🗨️", "🤷🏻‍♂️"]

BLANKS = [
    " ",
    "  ",
    "   ",
    "     ",
    "\t",
    "\t\t",
    " \t",
    "\n",
    "\n\n",
    "\n\n\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    " \n",
    "\n ",
    " \n ",
    "\n    ",
    "\n\t\t",
    "    \n",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u2028",
    "\u2029",
    "\u0085",
    "\u180e",
    "\u200b",
    "\u202f",
    "\u1680",
    "\u205f",
    "\ufeff",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1f",
    "  \u00a0 ",
    "\u3000\u3000",
     " \u200b "]

MARKS = [
    "e\u0301",
    "e\u0301\u0327",
    "e\u0327\u0301",
    "a\u030a",
    "o\u0308\u0304",
    "n\u0303",
    "\u0301",
    "\u0301\u0301",
    " \u0301",
    "q\u0307\u0323",
    "q\u0323\u0307",
    "Z\u0351\u034b\u030d\u0363\u0358a\u0335l\u0321\u0353g\u0334o",
    "\u1100\u1161\u11a8",
    "가\u11a8",
    "\u0915\u093c",
    "\u0958",
    "\u212b",
    "\ufb1d",
    "\u05d9\u05b4",
    "\u2126",
    "\u1e9b\u0323",
    "\ufb01",
    "\uff21\uff22",
    "\u0344",
    "\u0f73",
    "\u0f75",
    "\ufdfa",
    "\u01c4",
    "\u3392",
    "\u2460",
    "\u00bd",
    "\u2167",
    "x\u20e3",
    "\u0e33",
    "\u0eb3",
    "\U0001d15e",
    "\U0002f800",
    "\u0340",
    "\u1f71",
    "\u0390",
     "\u03b9\u0308\u0301"]

CONTROLS = [
    "\x00",
    "\x01",
    "\x07",
    "\x08",
    "\x1b[31mred\x1b[0m",
    "\x7f",
    "\x80",
    "\x9f",
    "\u00ad",
    "\u200c",
    "\u200d",
    "\u200e",
    "\u202e",
    "\u2060",
    "\u2066",
    "\ufff9",
    "\ufffc",
    "\ufffd",
    "\ufffe",
    "\uffff",
    "\U0001fffe",
    "\U0010ffff",
    "\ue000",
    "\U000f0000",
    "\U000e0001",
    "\U000e0061",
    "\u0378",
    "\U0001f8ff",
     "\u2065"]

CODE = [
    "for (int i = 0; i < n; ++i) {\n    sum += a[i];\n}\n",
    "def f(x):\n    return x**2  # square\n\n\n",
    "if(a&&b||!c){return;}",
    "<div class=\"x\">&nbsp;&#x41;</div>\n",
    "SELECT * FROM t WHERE a='b' -- comment",
    "\tif err != nil {\n\t\treturn err\n\t}\n",
    "let s: Vec<u8> = vec![1, 2, 3];",
    "#include <stdio.h>\r\n\r\nint main(void)\r\n{\r\n}\r\n",
    "a=b=c==d===e",
    "x->y::z.w?.v??u",
    "```python\nprint(\"hi\")\n```",
    "{\"key\": [1, 2.5, null, true, \"\\u00e9\"]}",
    "\\frac{1}{2} \\alpha_{i}^{2}",
    "$x_1 + y^{10}$",
    "/*****************/",
    "//////////",
    "==========",
    "--------\n========\n",
    "<!-- x -->",
    "@decorator(a=1)\n@b\n",
    "1+1=2;2*3=6",
    "path/to/file.txt:12:34: error",
    "C:\\Users\\me\\",
    "https://a.b/c//d/\n/\n//x",
    "!!!???...,,,",
    "'''doc'''",
     "\"\"\"\n\"\"\""]

SPECIALS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|im_start|>user\nHi<|im_end|>\n",
    "<|endoftext|",
    "|endoftext|>",
    "< |im_end|>",
    "<|im_end|><|im_end|>",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "[INST]",
    "[/INST]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[UNK]",
    "<|eot_id|>",
    "<|begin_of_text|>",
    "<0x0A>",
    "<0xFF>",
    "<<SYS>>",
    "##ing",
    "Ġhello",
    "Ċ",
    "▁the",
    "</w>",
    "x<|im_end|>y",
    " <|im_end|> ",
    "<|im_END|>",
    "<tool>",
    "<tool> ",
    "  <tool>",
     "a<tool>b"]

INVALID = [
    b"\xff",
    b"\xfe\xff",
    b"\xc0\x80",
    b"\xc3",
    b"\xe2\x82",
    b"a\xe2\x82b",
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80\x80\x80",
    b"ok\xc3\xa9\xff\xc3\xa9",
    b"\xf0\x9f\x98\x80\xf0\x9f",
    b"\xe0\x80\xaf",
    b"\xf8\x88\x80\x80\x80",
    b" \xa0 ",
    b"\xc3\x28",
    b"hello \xe4\xbd\xa0\xe5",
    b"\xef\xbf\xbd\xef\xbf",
    b"\xdf",
     b"\xf1\x80\x80"]


def runs():
    yield from ("a" * n for n in (31, 40, 41, 63, 64, 65, 100, 257, 1000, 5000))
    yield from (" " * n for n in (2, 3, 4, 7, 8, 16, 31, 64, 100, 1000))
    yield from ("\n" * n for n in (2, 5, 17, 100))
    yield from ("ab" * 300, "0" * 200, "1234567890" * 30, "😀" * 100, "漢" * 200, "字漢" * 60, "é" * 100, "e\u0301" * 100,
        "-" * 300,
                "=" * 77, "!" * 99, " a" * 200, "a " * 200, "\t" * 50, "\r\n" * 40, "_" * 128, "'s" * 50, "\u0301" * 60,
                    "ا" * 300,
                "the quick brown fox jumps over the lazy dog " * 60, "Ünïcödé " * 100, "💻‍" * 50,
                "x" * 300 + " " * 300 +
                    "y")


def code_points(rng):
    """Texts from stretches of every block, assigned or not."""
    out = []
    for start in list(range(0x20,
    0x3400,
    0x40)) + list(range(0xA000,
    0xD800,
    0x180)) + list(range(0xF900,
    0x10000,
    0x40)) + list(range(0x10000,
    0x12000,
    0x80)) + list(range(0x16000,
    0x17000,
    0x100)) + list(range(0x1B000,
    0x20000,
    0x100)) + [0x3400,
    0x4DC0,
    0x4E00,
    0x9FF0,
    0x20000,
    0x2A6D0,
    0x2EBE0,
    0x30000,
    0x31340,
    0xE0000,
    0xE0100,
    0x12400,
    0x13000,
     0x14400]:
        picked = [chr(start + rng.randrange(0x40)) for _ in range(12)]
        out.append("".join(picked))
        out.append("a".join(picked[:6]) + " " + " ".join(picked[6:]))
    return out


def mixtures(rng, count):
    kinds = [(WORDS, 10), (BLANKS, 8), (EMOJI, 2), (MARKS, 2), (CONTROLS, 1), (CODE, 1), (SPECIALS, 1)]
    lists = [k for k, _ in kinds]
    weights = [w for _, w in kinds]
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(2, 14)):
            parts.append(rng.choice(rng.choices(lists, weights)[0]))
            if rng.random() < 0.4:
                parts.append(" ")
        yield "".join(parts)


def hard_texts(seed=7):
    """A list of str and bytes (those that are not UTF-8), without repetitions."""
    rng = random.Random(seed)
    out = ["", " ", "a", "A", "1", "\n"]
    out += WORDS + [" " + w for w in WORDS[::3]] + EMOJI + BLANKS + MARKS + CONTROLS + CODE + SPECIALS + INVALID
    out += [a + b for a in ("a", " a", "1", ".") for b in BLANKS] + \
                            [b + a for a in ("a", "1", ".", "\n") for b in BLANKS]
    out += ["x" + a + "y" for a in EMOJI + MARKS + CONTROLS]
    out += list(runs()) + code_points(rng)
    out += list(mixtures(rng, 1100))
    out += [part + rng.choice(INVALID) + rng.choice(WORDS).encode() for part in (w.encode() for w in WORDS[::9])]
    return list(dict.fromkeys(out))


def corpus(root):
    """Texts to train on: prose and code of the repository, and half of the hard texts."""
    files = sorted(root.glob("docs/**/*.md")) + sorted(root.glob("src/core/*.cpp")) + [root / "README.md"]
    out = [f.read_text(encoding="utf-8") for f in files]
    texts = [t for t in hard_texts() if isinstance(t, str) and len(t) < 400]
    return out + texts[::2] * 4
