// JSON documents: what is read, what is refused and with which words, bounds on time and memory, damaged texts.
#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "memory.h"
#include "mutate.h"

namespace rlx {
namespace {

using ::testing::HasSubstr;

std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string parse_message(std::string_view text, const JsonLimits& limits = {}) {
  return message([&] { JsonDocument::parse(text, "f.json", limits); });
}

TEST(Json, ReadsEveryKind) {
  const auto doc =
      JsonDocument::parse(R"( {"a":[1,-2,3.5,1e2,"x\u00e9\n\ud83d\ude00",true,false,null,{}],"":{"b":[]}} )");
  const JsonValue a = doc.at("a");
  EXPECT_EQ(a.size(), 9);
  EXPECT_EQ(a.at(0).as_index(), 1);
  EXPECT_EQ(a.at(1).as_index(), -2);
  EXPECT_EQ(a.at(2).as_double(), 3.5);
  EXPECT_EQ(a.at(3).kind(), JsonKind::real);
  EXPECT_EQ(a.at(3).as_double(), 100.0);
  EXPECT_EQ(a.at(0).as_double(), 1.0);
  EXPECT_EQ(a.at(4).as_string(), "x\xc3\xa9\n\xf0\x9f\x98\x80");
  EXPECT_TRUE(a.at(5).as_bool());
  EXPECT_FALSE(a.at(6).as_bool());
  EXPECT_TRUE(a.at(7).is_null());
  EXPECT_EQ(a.at(8).size(), 0);
  EXPECT_EQ(doc.at("").at("b").size(), 0);
  std::string keys;
  for (const JsonMember& m : doc.root().members()) keys += std::string(m.key) + ";";
  EXPECT_EQ(keys, "a;;");
  EXPECT_EQ(JsonDocument::parse("9223372036854775807").root().as_index(), INT64_MAX);
  EXPECT_EQ(JsonDocument::parse("-9223372036854775808").root().as_index(), INT64_MIN);
  EXPECT_EQ(JsonDocument::parse("9223372036854775808").root().kind(), JsonKind::real);
}

TEST(Json, ValuesOutliveMovesOfTheDocument) {
  auto doc = JsonDocument::parse(R"({"a":"text"})");
  const JsonValue a = doc.at("a");
  const JsonDocument moved = std::move(doc);
  EXPECT_EQ(a.as_string(), "text");
  EXPECT_EQ(moved.at("a").as_string(), "text");
}

TEST(Json, Defaults) {
  const auto doc = JsonDocument::parse(R"({"b":true,"i":3,"d":0.5,"s":"x","n":null})");
  const JsonValue r = doc.root();
  EXPECT_TRUE(r.get_or("b", false));
  EXPECT_FALSE(r.get_or("missing", false));
  EXPECT_EQ(r.get_or("i", Index{7}), 3);
  EXPECT_EQ(r.get_or("missing", Index{7}), 7);
  EXPECT_EQ(r.get_or("d", 1.0), 0.5);
  EXPECT_EQ(r.get_or("s", "y"), "x");
  EXPECT_EQ(r.get_or("missing", "y"), "y");
  EXPECT_THROW(r.get_or("n", "y"), Error);
  EXPECT_THROW(r.get_or("s", Index{1}), Error);
}

TEST(Json, AccessErrorsNameThePathTheValueAndWhatWasExpected) {
  const auto doc = JsonDocument::parse(R"({"a":{"x":[0,{"id":"q\"\n"},[1,[2]]]},"z":null})", "f.json");
  const JsonValue x = doc.at("a").at("x");
  EXPECT_EQ(message([&] { x.at(1).at("id").as_index(); }), R"(f.json: a.x[1].id is "q\"\u000a", expected an integer)");
  EXPECT_EQ(message([&] { x.at(2).at(1).as_string(); }), "f.json: a.x[2][1] is array of 1, expected a string");
  EXPECT_EQ(message([&] { x.at(0).as_bool(); }), "f.json: a.x[0] is 0, expected true or false");
  EXPECT_EQ(message([&] { x.at(0).as_index(1, 5); }), "f.json: a.x[0] is 0, expected an integer from 1 to 5");
  EXPECT_EQ(message([&] { doc.at("z").at("k"); }), "f.json: z is null, expected an object");
  EXPECT_EQ(message([&] { doc.at("y"); }), "f.json: the document has no member \"y\"");
  EXPECT_EQ(message([&] { doc.at("a").at("y"); }), "f.json: a has no member \"y\"");
  EXPECT_EQ(message([&] { x.at(3); }), "f.json: element 3 is out of range for a.x, an array of 3");
  EXPECT_EQ(message([&] { x.at(-1); }), "f.json: element -1 is out of range for a.x, an array of 3");
}

TEST(Json, LongStringsInMessagesAreCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xe2\x82\xac";  // 3 bytes each, so 40 bytes cut one
  const auto doc = JsonDocument::parse("\"" + text + "\"");
  EXPECT_EQ(doc.root().describe(), "\"" + text.substr(0, 39) + "…\"");
}

TEST(Json, SyntaxErrorsNameTheByteAndWhatWasExpected) {
  EXPECT_THAT(parse_message(""), HasSubstr("f.json: byte 0: unexpected end of input"));
  EXPECT_THAT(parse_message("[1,"), HasSubstr("byte 3: unexpected end of input"));
  EXPECT_THAT(parse_message("{\"a\" 1}"), AllOf(HasSubstr("byte 5"), HasSubstr("expected ':'")));
  EXPECT_THAT(parse_message("[1 2]"), AllOf(HasSubstr("byte 3"), HasSubstr("expected ']'")));
  EXPECT_THAT(parse_message("{} x"), HasSubstr("byte 3"));
  EXPECT_THAT(parse_message("[1e999]"), HasSubstr("1e999"));
  EXPECT_THAT(parse_message("\"\\ud800\""), HasSubstr("surrogate"));
  EXPECT_THAT(parse_message("{\"k\":1,\"k\":2}"), HasSubstr("an object holds \"k\" twice"));
  for (const char* bad :
       {"[1,]", "{,}", "[NaN]", "[Infinity]", "[01]", "[+1]", "[.5]", "[1.]", "'a'", "// c\n1", "\"\t\"", "nul",
        "\xef\xbb\xbf{", "\"\xff\"", "\"\xed\xa0\x80\"", "[\"\\x\"]", "{1:2}", "]", "\"abc"}) {
    EXPECT_THAT(parse_message(bad), HasSubstr("f.json: ")) << bad;
  }
}

TEST(Json, Limits) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_message(nested(64)), "no error");
  EXPECT_EQ(parse_message(nested(65)), "f.json: byte 64: nesting deeper than 64, the most that is read");
  EXPECT_THAT(parse_message("[1,2,3]", {.nodes = 3}), HasSubstr("more than 3 values"));
  EXPECT_EQ(parse_message("[1,2,3]", {.nodes = 4}), "no error");
  EXPECT_EQ(parse_message("[1]", {.bytes = 2}), "f.json: 3 bytes, at most 2 are read");
  EXPECT_THAT(parse_message("[\"abcdef\"]", {.token_bytes = 7}), HasSubstr("byte 1: a token of 8 bytes"));
  EXPECT_THAT(parse_message("[1234567890]", {.token_bytes = 9}), HasSubstr("byte 1: a token of 10 bytes"));
}

// Every text either fails or is read within 2 s and twice its size plus 64 MB.
TEST(BulkJson, HostileTextsKeepTimeAndMemoryBounds) {
  constexpr std::size_t size = std::size_t{100} << 20;
  const auto repeat = [](std::string_view unit, std::size_t bytes) {
    std::string text;
    text.reserve(bytes + unit.size());
    while (text.size() < bytes) text += unit;
    return text;
  };
  std::string names = "{";
  for (int i = 0; i < 1'240'000; ++i) names += "\"" + std::string(40, 'k') + std::to_string(i) + "\":0,";
  names += "\"end\":0}";
  std::string strings = "[";
  for (int i = 0; i < 2'400'000; ++i) strings += "\"" + std::string(38, 's') + "\",";
  strings += "0]";
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"open brackets", repeat("[", size)},
      {"open objects", repeat("{\"a\":", size)},
      {"ones", "[" + repeat("1,", size)},
      {"most ones", "[" + repeat("1,", 4'990'000) + "1]"},
      {"empty strings", "[" + repeat("\"\",", size)},
      {"empty objects", "[" + repeat("{},", size)},
      {"same name", "{" + repeat("\"\":0,", 6'000'000) + "\"\":0}"},
      {"names", names},
      {"strings", strings},
      {"one string", "\"" + repeat("s", size) + "\""},
      {"longest strings", "[" + repeat("\"" + std::string((2 << 20) - 2, 's') + "\",", size) + "0]"},
      {"one number", repeat("1", size)},
      {"quote", "\"" + repeat("\\\"", size)},
      {"escapes", "[" + repeat("\"" + repeat("\\u00e9", 1 << 20) + "\",", size) + "0]"},
      {"spaces", repeat(" ", size)},
      {"NULs", std::string(size, '\0')},
      {"letters", repeat("abc", size)},
  };
  for (const auto& [what, text] : texts) {
    double seconds = 0;
    const auto peak = test::peak_growth([&, &text = text] {
      seconds = test::processor_seconds([&] {
        try {
          JsonDocument::parse(text);
        } catch (const Error& e) {
          EXPECT_STRNE(e.what(), "");
        }
      });
    });
    if (!peak) continue;
    EXPECT_LE(*peak, static_cast<std::int64_t>(2 * text.size() + (std::size_t{64} << 20))) << what;
    EXPECT_LE(seconds, 2.0) << what;
    std::printf("  %-16s %5.1f MB: %.2f s, %.1f MB\n", what.c_str(), static_cast<double>(text.size()) / 1048576,
                seconds, static_cast<double>(*peak) / 1048576);
  }
}

// The same values as nlohmann's own document; it keeps the last of two equal names, which we refuse.
void expect_same(const JsonValue& ours, const nlohmann::json& theirs) {
  switch (ours.kind()) {
    case JsonKind::null:
      EXPECT_TRUE(theirs.is_null());
      break;
    case JsonKind::boolean:
      EXPECT_EQ(theirs, ours.as_bool());
      break;
    case JsonKind::integer:
      EXPECT_TRUE(theirs.is_number_integer() && theirs == ours.as_index());
      break;
    case JsonKind::real:
      EXPECT_TRUE(theirs.is_number() && theirs == ours.as_double());
      break;
    case JsonKind::string:
      EXPECT_EQ(theirs, std::string(ours.as_string()));
      break;
    case JsonKind::array: {
      ASSERT_TRUE(theirs.is_array() && std::cmp_equal(theirs.size(), ours.size()));
      std::size_t i = 0;
      for (const JsonValue& v : ours.elements()) expect_same(v, theirs[i++]);
      break;
    }
    case JsonKind::object:
      ASSERT_TRUE(theirs.is_object() && std::cmp_equal(theirs.size(), ours.size()));
      for (const JsonMember& m : ours.members()) expect_same(m.value, theirs.at(std::string(m.key)));
      break;
  }
}

TEST(Json, MutantsGiveTheSameValuesOrAnError) {
  const std::string original = R"({
  "architectures": ["BertModel"], "hidden_size": 384, "eps": 1e-12, "dropout": 0.1, "use_cache": true, "extra": null,
  "id2label": {"0": "a", "1": "b\u00e9\ud83d\ude00"}, "nested": [[1, 2], [3, [4, {"k": -5}]]], "text": "naïve \" \\ \n"
})";
  test::Mutator mutate(1);
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutate(original);
    try {
      const auto doc = JsonDocument::parse(text);
      ++read;
      const auto theirs = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      ASSERT_FALSE(theirs.is_discarded()) << text;
      expect_same(doc.root(), theirs);
      if (HasFailure()) FAIL() << text;
    } catch (const Error& e) {
      ++refused;
      const auto theirs = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      const bool ours_only = std::string(e.what()).find("twice") != std::string::npos;
      ASSERT_TRUE(theirs.is_discarded() || ours_only) << text << "\n" << e.what();
    }
  }
  test::count_mutants(read + refused);
  EXPECT_GT(read, 1'000);
  EXPECT_GT(refused, 2'000);
}

}  // namespace
}  // namespace rlx
