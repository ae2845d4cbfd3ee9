// UTF-8 and BERT normalisation, over all code points where the reference has a say.
#include "text/bert_text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "models.h"
#include "text/unicode.h"

namespace rlx {
namespace {

std::string code_point(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

TEST(Unicode, EveryCodePointGoesOutAndIn) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    const std::string text = code_point(c);
    std::size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), c);
    ASSERT_EQ(at, text.size());
    ASSERT_EQ(previous_code_point("x" + text, text.size() + 1), c);
    ASSERT_TRUE(is_valid_utf8(text));
  }
}

// Some of each kind, then all strings of two bytes against the table of the Unicode standard.
TEST(Unicode, InvalidBytesAreReplaced) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(replace_invalid_utf8("\xC3"), r);
  EXPECT_EQ(replace_invalid_utf8("\xC3("), r + "(");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), r);  // a cut character counts once
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98z"), r + "z");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
  EXPECT_FALSE(is_valid_utf8("a\x80"));
  EXPECT_TRUE(is_valid_utf8(r));
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b)};
      const bool valid = (a < 0x80 && b < 0x80) || (a >= 0xC2 && a <= 0xDF && b >= 0x80 && b <= 0xBF);
      ASSERT_EQ(is_valid_utf8(text), valid) << a << " " << b;
      ASSERT_TRUE(is_valid_utf8(replace_invalid_utf8(text)));
    }
  }
}

TEST(BertText, Words) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> out;
    BertWords walk(text);
    while (const auto word = walk.next()) out.emplace_back(*word);
    return out;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(words(""), List{});
  EXPECT_EQ(words(" \t\u3000"), List{});
  EXPECT_EQ(words("ab"), List{"ab"});
  EXPECT_EQ(words(" don't--x "), (List{"don", "'", "t", "-", "-", "x"}));
  EXPECT_EQ(words("a\u00A0b\u2014c!"), (List{"a", "b", "\u2014", "c", "!"}));
}

TEST(BertText, Normalisation) {
  EXPECT_EQ(bert_normalize("ÀÉ\tX\r\n\x07y", {}), "ae x  y");
  EXPECT_EQ(bert_normalize("漢字a", {}), " 漢  字 a");
  EXPECT_EQ(bert_normalize("İI ΑΣ", {}), "ii ασ");
  EXPECT_EQ(bert_normalize("İ", {.strip_accents = false}), "i\u0307");
  EXPECT_EQ(bert_normalize("É", {.strip_accents = false, .lowercase = false}), "É");
}

// Every code point among combining characters gives the words that the reference gives.
TEST(BertText, AllCodePointsMatchTheReference) {
  const auto doc = JsonDocument::parse(test::file_text(RLX_TEST_DATA "/wordpiece/code_points.json"));
  int blocks = 0;
  for (const JsonValue& entry : doc.root().elements()) {
    const BertNormalizer options{entry.at("clean_text").as_bool(), entry.at("handle_chinese_chars").as_bool(),
                                 entry.at("strip_accents").as_bool(), entry.at("lowercase").as_bool()};
    char32_t block = 0;
    for (const JsonValue& digest : entry.at("digests").elements()) {
      std::uint64_t hash = 0xCBF29CE484222325u;
      const auto add = [&](std::string_view bytes) {
        for (const char b : bytes) hash = (hash ^ static_cast<unsigned char>(b)) * 0x100000001B3u;
      };
      for (char32_t c = block; c < block + 1024; ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        const std::string normal = bert_normalize("a\U0001D16D" + code_point(c) +
                                                      "\u1B44"
                                                      "b",
                                                  options);
        BertWords words(normal);
        for (bool first = true; const auto word = words.next(); first = false) {
          if (!first) add("\n");
          add(*word);
        }
        add("\n\n");
      }
      EXPECT_EQ(fmt::format("{:016x}", hash), digest.as_string())
          << fmt::format("U+{:04X}", static_cast<unsigned>(block));
      block += 1024;
      ++blocks;
    }
  }
  EXPECT_EQ(blocks, 3 * 1088);
}

}  // namespace
}  // namespace rlx
