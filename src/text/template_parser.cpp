// Jinja's grammar, by recursive descent with a bound on depth.
#include "text/template_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "core/error.h"
#include "text/template_lexer.h"

namespace rlx::chat {

namespace {

class Parser {
 public:
  Parser(std::string_view source, std::string_view name, const TemplateLimits& limits)
      : name_(name), limits_(limits), tokens_(template_tokens(source, name)) {}

  Tree operator()() {
    tree_.body = statements({});
    return std::move(tree_);
  }

 private:
  using Nodes = std::vector<const Node*>;

  // Counts how deep the grammar is nested.
  struct Level {
    explicit Level(Parser& p) : parser(p) {
      if (++parser.level_ > parser.limits_.depth)
        parser.problem(fmt::format("nested deeper than {}, the most that is supported", parser.limits_.depth));
    }
    ~Level() { --parser.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& parser;
  };

  [[noreturn]] void problem(const std::string& what) const { fail("{}: line {}: {}", name_, here().line, what); }

  const Token& here() const { return tokens_[at_]; }
  bool is(TokenType type, std::string_view text) const { return here().type == type && here().text == text; }
  bool is_sign(std::string_view text) const { return is(TokenType::sign, text); }
  bool is_word(std::string_view text) const { return is(TokenType::name, text); }
  bool accept_sign(std::string_view text) { return is_sign(text) && ++at_ > 0; }
  bool accept_word(std::string_view text) { return is_word(text) && ++at_ > 0; }
  std::string found() const {
    switch (here().type) {
      case TokenType::end:
        return "the end of the template";
      case TokenType::text:
        return "text";
      case TokenType::output_end:
        return "}}";
      case TokenType::block_end:
        return "%}";
      default:
        return fmt::format("\"{}\"", here().text.substr(0, 60));
    }
  }
  void expect_sign(std::string_view text) {
    if (!accept_sign(text)) problem(fmt::format("expected \"{}\", found {}", text, found()));
  }
  void expect(TokenType type, std::string_view what) {
    if (here().type != type) problem(fmt::format("expected {}, found {}", what, found()));
    ++at_;
  }
  std::string expect_name() {
    if (here().type != TokenType::name) problem(fmt::format("expected a name, found {}", found()));
    return tokens_[at_++].text;
  }

  Node& add(NodeType type, std::string text = "", Nodes children = {}) {
    constexpr std::size_t most_nodes = 200'000;
    if (tree_.nodes.size() >= most_nodes) problem(fmt::format("more than {} parts", most_nodes));
    Node& n = tree_.nodes.emplace_back();
    n.type = type;
    n.line = here().line;
    n.text = std::move(text);
    n.children = std::move(children);
    return n;
  }
  // Notes the depth of a finished node; chains such as a + b + c are deep without nesting in the text.
  const Node* finish(Node& n) {
    const auto deepen = [&](const Node* child) {
      if (child != nullptr) n.depth = std::max(n.depth, child->depth + 1);
    };
    for (const Nodes* list : {&n.children, &n.targets, &n.body, &n.other})
      std::for_each(list->begin(), list->end(), deepen);
    for (const auto& [name, child] : n.named) deepen(child);
    if (n.depth > limits_.depth)
      problem(fmt::format("an expression of more than {} links, the most that is supported", limits_.depth));
    return &n;
  }
  const Node* made(NodeType type, std::string text, Nodes children) {
    return finish(add(type, std::move(text), std::move(children)));
  }

  // Statements up to a block that starts with one of `ends`, whose name is left to be read.
  Nodes statements(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Nodes out;
    while (true) {
      const Token& t = here();
      if (t.type == TokenType::text) {
        ++at_;
        out.push_back(made(NodeType::text, t.text, {}));
      } else if (t.type == TokenType::output_begin) {
        ++at_;
        const Node* value = tuple_or_one(true);
        expect(TokenType::output_end, "}}");
        out.push_back(made(NodeType::output, "", {value}));
      } else if (t.type == TokenType::block_begin) {
        ++at_;
        if (here().type == TokenType::name && std::find(ends.begin(), ends.end(), here().text) != ends.end())
          return out;
        if (const Node* n = statement()) out.push_back(n);
      } else {
        if (ends.size() > 0) problem(fmt::format("a block does not end, expected {{% {} %}}", *(ends.end() - 1)));
        return out;
      }
    }
  }
  void end_block() { expect(TokenType::block_end, "%}"); }
  void end_of(std::string_view word) {
    if (!accept_word(word)) problem(fmt::format("expected {}, found {}", word, found()));
    end_block();
  }

  const Node* statement() {
    const std::string word = expect_name();
    if (word == "if") return branch();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "filter") return filter_block();
    if (word == "generation") {  // marks what an assistant says; changes nothing in the text
      end_block();
      Node& n = add(NodeType::block);
      n.body = statements({"endgeneration"});
      end_of("endgeneration");
      return finish(n);
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) problem(fmt::format("{} outside of a loop", word));
      end_block();
      return made(word == "break" ? NodeType::stop : NodeType::next, "", {});
    }
    problem(
        fmt::format("the block {{% {} %}} is not supported, expected if, for, set, macro, filter, generation, break "
                    "or continue",
                    word));
  }

  const Node* branch() {
    const Level level(*this);
    Node& n = add(NodeType::branch);
    n.children = {tuple_or_one(true)};
    end_block();
    n.body = statements({"elif", "else", "endif"});
    if (accept_word("elif")) {
      n.other = {branch()};
      return finish(n);
    }
    if (accept_word("else")) {
      end_block();
      n.other = statements({"endif"});
    }
    end_of("endif");
    return finish(n);
  }

  const Node* loop() {
    Node& n = add(NodeType::loop);
    n.targets = {target_list()};
    if (n.targets[0]->type == NodeType::name && n.targets[0]->text == "loop")
      problem("a loop cannot name its value loop");
    if (!accept_word("in")) problem(fmt::format("expected \"in\", found {}", found()));
    n.children = {tuple_or_one(false), nullptr};
    if (accept_word("if")) n.children[1] = expression();
    if (is_word("recursive")) problem("a recursive loop is not supported");
    end_block();
    ++loops_;
    n.body = statements({"else", "endfor"});
    --loops_;
    if (accept_word("else")) {
      end_block();
      n.other = statements({"endfor"});
    }
    end_of("endfor");
    return finish(n);
  }

  // a, or a, b, or (a, b)
  const Node* target_list() {
    const Level level(*this);
    Node& n = add(NodeType::tuple);
    bool several = false;
    do {
      if (is_word("in") || is_sign("=")) break;
      if (accept_sign("(")) {
        n.children.push_back(target_list());
        expect_sign(")");
      } else {
        n.children.push_back(made(NodeType::name, expect_name(), {}));
      }
    } while (accept_sign(",") && (several = true));
    if (n.children.size() == 1 && !several) return n.children[0];
    return finish(n);
  }

  const Node* assignment() {
    Node& n = add(NodeType::assign);
    const bool attribute =
        here().type == TokenType::name && tokens_[at_ + 1].type == TokenType::sign && tokens_[at_ + 1].text == ".";
    if (attribute) {
      const Node* object = made(NodeType::name, expect_name(), {});
      expect_sign(".");
      n.targets = {made(NodeType::attribute, expect_name(), {object})};
    } else {
      n.targets = {target_list()};
    }
    if (accept_sign("=")) {
      n.children = {tuple_or_one(true)};
      end_block();
      return finish(n);
    }
    if (is_sign("|")) n.children = {filters(nullptr)};
    end_block();
    n.body = statements({"endset"});
    end_of("endset");
    n.scoped = true;
    return finish(n);
  }

  const Node* macro() {
    Node& n = add(NodeType::macro, expect_name());
    expect_sign("(");
    while (!accept_sign(")")) {
      if (!n.named.empty()) expect_sign(",");
      if (accept_sign(")")) break;
      std::string parameter = expect_name();
      const Node* fallback = accept_sign("=") ? expression() : nullptr;
      if (fallback == nullptr && !n.named.empty() && n.named.back().second != nullptr)
        problem("a parameter without default follows one with a default");
      n.named.emplace_back(std::move(parameter), fallback);
    }
    end_block();
    const int loops = std::exchange(loops_, 0);
    n.body = statements({"endmacro"});
    loops_ = loops;
    end_of("endmacro");
    return finish(n);
  }

  const Node* filter_block() {
    Node& n = add(NodeType::block);
    --at_;  // the chain starts with a name, as behind |
    tokens_[at_] = {TokenType::sign, "|", here().line};
    n.children = {filters(nullptr)};
    end_block();
    n.body = statements({"endfilter"});
    end_of("endfilter");
    n.scoped = true;
    return finish(n);
  }

  // An expression, or several with commas: a tuple. Without conditions, "if" is left to be read.
  const Node* tuple_or_one(bool with_condition) {
    const Level level(*this);
    const auto one = [&] { return with_condition ? expression() : either(); };
    const bool empty = is_sign(")");
    if (empty) return made(NodeType::tuple, "", {});
    const Node* first = one();
    if (!is_sign(",")) return first;
    Node& n = add(NodeType::tuple, "", {first});
    while (accept_sign(",")) {
      if (here().type == TokenType::output_end || here().type == TokenType::block_end || is_sign(")")) break;
      n.children.push_back(one());
    }
    return finish(n);
  }

  const Node* expression() {
    const Level level(*this);
    const Node* value = either();
    while (accept_word("if")) {
      const Node* condition = either();
      const Node* other = accept_word("else") ? expression() : nullptr;
      value = made(NodeType::conditional, "", {value, condition, other});
    }
    return value;
  }

  const Node* either() {
    const Node* left = both();
    while (accept_word("or")) left = made(NodeType::either, "", {left, both()});
    return left;
  }
  const Node* both() {
    const Node* left = negation();
    while (accept_word("and")) left = made(NodeType::both, "", {left, negation()});
    return left;
  }
  const Node* negation() {
    const Level level(*this);
    if (accept_word("not")) return made(NodeType::negation, "", {negation()});
    return comparison();
  }

  const Node* comparison() {
    const Node* first = sum();
    Node* n = nullptr;
    while (true) {
      std::string op;
      for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (op.empty() && accept_sign(sign)) op = sign;
      }
      if (op.empty() && accept_word("in")) op = "in";
      if (op.empty() && is_word("not") && tokens_[at_ + 1].type == TokenType::name && tokens_[at_ + 1].text == "in") {
        at_ += 2;
        op = "not in";
      }
      if (op.empty()) return n == nullptr ? first : finish(*n);
      if (n == nullptr) n = &add(NodeType::comparison, "", {first});
      n->operators.push_back(op);
      n->children.push_back(sum());
    }
  }

  const Node* sum() {
    const Node* left = concat();
    while (is_sign("+") || is_sign("-")) {
      std::string op = tokens_[at_++].text;
      left = made(NodeType::binary, std::move(op), {left, concat()});
    }
    return left;
  }

  const Node* concat() {
    const Node* first = product();
    if (!is_sign("~")) return first;
    Node& n = add(NodeType::concat, "", {first});
    while (accept_sign("~")) n.children.push_back(product());
    return finish(n);
  }

  const Node* product() {
    const Node* left = power();
    while (is_sign("*") || is_sign("/") || is_sign("//") || is_sign("%")) {
      std::string op = tokens_[at_++].text;
      left = made(NodeType::binary, std::move(op), {left, power()});
    }
    return left;
  }

  const Node* power() {
    const Node* left = unary(true);
    while (accept_sign("**")) left = made(NodeType::binary, "**", {left, unary(true)});
    return left;
  }

  const Node* unary(bool with_filters) {
    const Level level(*this);
    const Node* value = nullptr;
    if (accept_sign("-")) {
      value = made(NodeType::unary, "-", {unary(false)});
    } else if (accept_sign("+")) {
      value = made(NodeType::unary, "+", {unary(false)});
    } else {
      value = primary();
    }
    value = postfix(value);
    return with_filters ? filters(value) : value;
  }

  const Node* primary() {
    const Token t = here();
    switch (t.type) {
      case TokenType::name:
        ++at_;
        return word(t.text);
      case TokenType::string: {
        std::string text;
        while (here().type == TokenType::string) text += tokens_[at_++].text;
        return constant_string(std::move(text));
      }
      case TokenType::integer: {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), number);
        if (error != std::errc() || end != t.text.data() + t.text.size())
          problem(fmt::format("the integer {} does not fit 64 bits", t.text.substr(0, 40)));
        ++at_;
        return constant(Value::of(number));
      }
      case TokenType::real:
        ++at_;
        return constant(Value::of(std::strtod(t.text.c_str(), nullptr)));
      default:
        break;
    }
    if (accept_sign("(")) {
      const Node* inside = tuple_or_one(true);
      expect_sign(")");
      return inside;
    }
    if (accept_sign("[")) return items(NodeType::list, "]");
    if (accept_sign("{")) return items(NodeType::dict, "}");
    problem(fmt::format("expected a value, found {}", found()));
  }

  const Node* constant(Value value) {
    Node& n = add(NodeType::constant);
    n.value = value;
    return &n;
  }
  const Node* constant_string(std::string text) {
    Node& n = add(NodeType::constant, std::move(text));
    n.value = Value::of(Kind::string);
    n.value.string = &n.text;
    return &n;
  }

  const Node* word(const std::string& name) {
    if (name == "true" || name == "True") return constant(Value::of(true));
    if (name == "false" || name == "False") return constant(Value::of(false));
    if (name == "none" || name == "None") return constant(Value::none());
    return made(NodeType::name, name, {});
  }

  const Node* items(NodeType type, std::string_view end) {
    const Level level(*this);
    Node& n = add(type);
    while (!accept_sign(end)) {
      if (!n.children.empty()) expect_sign(",");
      if (accept_sign(end)) break;
      n.children.push_back(expression());
      if (type == NodeType::dict) {
        expect_sign(":");
        n.children.push_back(expression());
      }
    }
    return finish(n);
  }

  const Node* postfix(const Node* value) {
    while (true) {
      if (accept_sign(".")) {
        if (here().type == TokenType::integer) {
          value = made(NodeType::subscript, "", {value, primary()});
        } else {
          value = made(NodeType::attribute, expect_name(), {value});
        }
      } else if (accept_sign("[")) {
        value = subscript(value);
      } else if (accept_sign("(")) {
        value = arguments(add(NodeType::call, "", {value}));
      } else {
        return value;
      }
    }
  }

  const Node* subscript(const Node* value) {
    const Level level(*this);
    const Node* parts[3] = {};
    int colons = 0;
    if (!is_sign(":")) parts[0] = expression();
    while (colons < 2 && accept_sign(":")) {
      ++colons;
      if (!is_sign(":") && !is_sign("]")) parts[colons] = expression();
    }
    if (is_sign(",")) problem("a subscript of several values is not supported");
    expect_sign("]");
    if (colons == 0) return made(NodeType::subscript, "", {value, parts[0]});
    return made(NodeType::slice, "", {value, parts[0], parts[1], parts[2]});
  }

  // After the opening bracket.
  const Node* arguments(Node& n) {
    const Level level(*this);
    bool first = true;
    while (!accept_sign(")")) {
      if (!first) expect_sign(",");
      if (accept_sign(")")) break;
      first = false;
      if (is_sign("*") || is_sign("**")) problem("arguments from a list or mapping are not supported");
      const bool named =
          here().type == TokenType::name && tokens_[at_ + 1].type == TokenType::sign && tokens_[at_ + 1].text == "=";
      if (named) {
        std::string name = expect_name();
        expect_sign("=");
        n.named.emplace_back(std::move(name), expression());
      } else {
        if (!n.named.empty()) problem("an argument without name follows one with a name");
        n.children.push_back(expression());
      }
    }
    return finish(n);
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (accept_sign(".")) name += "." + expect_name();
    return name;
  }

  // | filters, is tests, and calls of what they give.
  const Node* filters(const Node* value) {
    while (true) {
      if (accept_sign("|")) {
        Node& n = add(NodeType::filter, dotted_name(), {value});
        value = accept_sign("(") ? arguments(n) : finish(n);
      } else if (value != nullptr && accept_word("is")) {
        value = test(value);
      } else if (value != nullptr && accept_sign("(")) {
        value = arguments(add(NodeType::call, "", {value}));
      } else {
        return value;
      }
    }
  }

  const Node* test(const Node* value) {
    const Level level(*this);
    const bool negated = accept_word("not");
    Node& n = add(NodeType::test, dotted_name(), {value});
    const Node* out = nullptr;
    const TokenType type = here().type;
    const bool word_ends = is_word("else") || is_word("or") || is_word("and") || is_word("if") || is_word("in") ||
                           is_word("not") || is_word("is");
    if (accept_sign("(")) {
      out = arguments(n);
    } else if ((type == TokenType::name && !word_ends) || type == TokenType::string || type == TokenType::integer ||
               type == TokenType::real || is_sign("[") || is_sign("{")) {
      n.children.push_back(postfix(primary()));
      out = finish(n);
    } else {
      out = finish(n);
    }
    return negated ? made(NodeType::negation, "", {out}) : out;
  }

  std::string_view name_;
  TemplateLimits limits_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int level_ = 0, loops_ = 0;
  Tree tree_;
};

}  // namespace

Tree parse_template(std::string_view source, std::string_view name, const TemplateLimits& limits) {
  return Parser(source, name, limits)();
}

}  // namespace rlx::chat
