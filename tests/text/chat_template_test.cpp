// Chat templates beside what jinja2 makes of them.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"

namespace rlx {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

// Templates that jinja2 renders and this does not, by design: each must be refused, never rendered differently.
const std::set<std::string> refused = {
    R"({{ "%s" % 3 }})",   R"({{ "x".format(1) }})", "{{ s.zfill(3) }}",  "{{ {1:2} }}",
    "{{ s|truncate(3) }}", "{{ s|center(20) }}",     "{{ s|wordcount }}", R"({{ "<b>"|escape }})",
    R"({{ "<b>"|e }})",    "{{ cycler(1) }}",        "{{ d.get }}",       "{{ namespace(a=1) }}",
};

struct Outcome {
  std::string text, error;
};

Outcome render(const std::string& source, const Json& variables, std::int64_t now) {
  try {
    ChatOptions options;
    options.variables = variables.dump();
    options.now = now;
    return {ChatTemplate(source).render_json("[]", options), ""};
  } catch (const Error& e) {
    return {"", e.what()};
  }
}

void check_file(const std::string& name, int at_least) {
  setenv("TZ", "UTC", 1);
  std::ifstream in(RLX_TEST_DATA "/chat/" + name);
  const Json file = Json::parse(in);
  int rendered = 0;
  for (const Json& c : file.at("cases")) {
    const std::string source = file.at("templates").at(c.at("template").get<std::size_t>());
    const Json& variables = file.at("variables").at(c.at("variables").get<std::size_t>());
    const Outcome got = render(source, variables, file.at("now"));
    if (c.contains("fails")) {
      EXPECT_NE(got.error, "") << source << "\ngives \"" << got.text << "\", but jinja2 says " << c.at("fails");
    } else if (refused.contains(source)) {
      EXPECT_NE(got.error, "") << source;
    } else {
      EXPECT_EQ(got.error, "") << source;
      EXPECT_EQ(got.text, c.at("text").get<std::string>()) << source;
      ++rendered;
    }
  }
  EXPECT_GE(rendered, at_least);
}

TEST(ChatTemplate, ModelsAreAsJinja2) { check_file("models.json", 100); }

TEST(ChatTemplate, ConstructsAreAsJinja2) { check_file("constructs.json", 420); }

TEST(ChatTemplate, MessagesAndOptionsAreVariables) {
  const ChatTemplate t(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
      "{% if add_generation_prompt %}>{% endif %}{{ eos_token }}{{ tools }}{{ extra }}");
  const ChatMessage messages[] = {{"system", "be brief"}, {"user", "hi \xff"}};
  ChatOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.variables = R"({"extra": [1, "x"]})";
  EXPECT_EQ(t.render(messages, options), "<s>[system:be brief][user:hi \xEF\xBF\xBD]></s>None[1, 'x']");
  options.add_generation_prompt = false;
  options.tools = R"([{"name": "f"}])";
  EXPECT_EQ(t.render({}, options), "<s></s>[{'name': 'f'}][1, 'x']");
  EXPECT_EQ(
      ChatTemplate(ChatTemplate::chatml()).render(messages),
      "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi \xEF\xBF\xBD<|im_end|>\n<|im_start|>assistant\n");
}

std::string error_of(const std::string& source) { return render(source, Json::object(), 0).error; }

TEST(ChatTemplate, ErrorsNameConstructAndLine) {
  EXPECT_THAT(error_of("a\n{% include 'x' %}"), HasSubstr("line 2: the block {% include %} is not supported"));
  EXPECT_THAT(error_of("a\n\n{{ x | nofilter }}"), HasSubstr("line 3: the filter nofilter is not supported"));
  EXPECT_THAT(error_of("{{ x is strange }}"), HasSubstr("line 1: the test strange is not supported"));
  EXPECT_THAT(error_of("\n{{ user.name }}"), HasSubstr("line 2: user is undefined, its name is asked for"));
  EXPECT_THAT(error_of("{{ raise_exception('no system role') }}"), HasSubstr("the template refuses: no system role"));
  EXPECT_THAT(error_of("{{ 'a'.zfill(3) }}"), HasSubstr("the method zfill of strings is not supported"));
}

TEST(ChatTemplate, HostileTemplatesEndWithAnError) {
  const std::string loop = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
  EXPECT_THAT(error_of(loop), HasSubstr("steps"));
  EXPECT_THAT(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}"
                       "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
              HasSubstr("memory"));
  EXPECT_THAT(error_of("{{ 'x' * 999999999999 }}"), HasSubstr("memory"));
  EXPECT_THAT(
      error_of("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
               "{{ ns.l }}"),
      HasSubstr("deeper"));
  EXPECT_THAT(
      error_of("{% set ns = namespace(l=[1]) %}{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
               "{{ ns.l }}"),
      HasSubstr("bytes"));
  EXPECT_THAT(error_of("{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(50) %}{% set ns.a = [ns.a, ns.a] %}"
                       "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}"),
              HasSubstr("comparison"));
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns.x.x.x | tojson }}"), HasSubstr("namespace"));
  EXPECT_THAT(error_of("{% for i in range(999999999) %}{% endfor %}"), HasSubstr("range"));
  EXPECT_THAT(error_of("{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}"), HasSubstr("writes more than"));
  EXPECT_EQ(error_of(std::string(100'000, '(')), "");
  EXPECT_THAT(error_of("{{ " + std::string(100'000, '(') + std::string(100'000, ')') + " }}"), HasSubstr("deeper"));
  std::string chain = "{{ 1";
  for (int i = 0; i < 100'000; ++i) chain += "+1";
  EXPECT_THAT(error_of(chain + " }}"), HasSubstr("links"));
  std::string ifs;
  for (int i = 0; i < 10'000; ++i) ifs += "{% if x %}";
  EXPECT_THAT(error_of(ifs), HasSubstr("deeper"));
  EXPECT_THAT(error_of(std::string(50 << 20, 'x')), HasSubstr("at most 1048576 are read"));
  EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("{{ 2 ** 200 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("{{ -9223372036854775807 // 0 }}"), HasSubstr("zero"));
}

}  // namespace
}  // namespace rlx
