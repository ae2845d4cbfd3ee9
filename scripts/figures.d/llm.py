"""Language models. `--only RE` measures the parts whose names match: types (every block format bit for bit against
ggml), encoders (their squared error beside ggml's), formats (those of several planes against models of their texts),
tokenizers (ids of thousands of hard texts beside the reference libraries), logits (beside transformers), and the speed
of decode and prefill beside llama.cpp, alone and beside a busy process (contention).
"""
import re

import codecs_beside_ggml
import llm_logits
import llm_speed
import llm_tokenizers


def figures(root, only=None):
    yield from codecs_beside_ggml.figures(root, only)
    if re.search(only or "", "tokenizers"):
        yield from llm_tokenizers.figures(root)
    if re.search(only or "", "logits"):
        yield from llm_logits.figures(root, only)
    yield from llm_speed.figures(root, only)
