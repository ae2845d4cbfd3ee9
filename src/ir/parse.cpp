// Reading the text form: a recursive-descent parser over Builder, so that every node is inferred and checked as it is
// read.
#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/checked.h"
#include "core/error.h"
#include "ir/print.h"

namespace rlx {

namespace {

constexpr int deepest_body = 32;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Comments become blanks, so that positions stay what they are.
std::string without_comments(std::string_view text) {
  std::string s(text);
  bool quoted = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '"') quoted = !quoted;
    if (quoted && s[i] == '\\') ++i;
    if (quoted || s[i] != '#') continue;
    // `%3#1` names a result; a comment follows a blank or begins a line.
    if (i > 0 && s[i - 1] != ' ' && s[i - 1] != '\n' && s[i - 1] != '\t') continue;
    while (i < s.size() && s[i] != '\n') s[i++] = ' ';
  }
  return s;
}

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}

  Graph file() {
    need("rlx");
    const Index version = integer();
    require(version == text_version, "text form {} is unknown, this program reads {}", version, text_version);
    Graph g = graph(0);
    skip();
    require(at_ == text_.size(), "text goes on behind the graph: \"{}\"", rest());
    return g;
  }

  std::string place() const {
    const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
    const auto line = std::ranges::count(before, '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    return fmt::format("line {}, column {}", line, before.size() - (newline == before.npos ? 0 : newline + 1) + 1);
  }

 private:
  // A node by name: all results, in order.
  struct Named {
    Id node = 0;
    std::uint32_t results = 0;
  };

  // What one graph or body is read into.
  struct Scope {
    Builder builder;
    std::vector<std::string> symbols;  // declared here; symbols_ has them and those of outer graphs
    std::unordered_map<std::string, Named> values;
    std::vector<Named> numbered;                // %0, %1, … as far as they come in order; values has all other names
    std::unordered_map<std::string, Dim> dims;  // by text: sizes repeat
  };

  Graph graph(int depth) {
    require(depth <= deepest_body, "bodies are nested deeper than {}", deepest_body);
    Scope s;
    need("graph");
    need("(");
    const std::size_t inputs = at_;
    find_symbols(s);
    at_ = inputs;
    while (!take(")")) {
      if (!s.builder.graph().inputs.empty()) need(",");
      need("%");
      const auto [key, name] = label();
      need(":");
      define(s, key, s.builder.input(name, type(s)), 1);
    }
    if (take("dims")) skip_parentheses();
    need("{");
    Graph g = body(s, depth);
    for (const std::string& name : s.symbols) symbols_.erase(name);
    return g;
  }

  Graph body(Scope& s, int depth) {
    std::vector<Check> checks;
    std::size_t end = at_;
    for (;;) {
      skip();
      end = at_;
      if (take("return")) break;
      if (take("check")) {
        checks.push_back(check(s));
      } else if (take("state")) {
        state(s);
      } else {
        node(s, depth);
      }
    }
    Values outputs;
    std::vector<std::string> names;
    if (peek() == '%') {
      do {
        outputs.push_back(value(s));
        names.push_back(peek() == '"' ? quoted() : "");
      } while (take(","));
    }
    need("}");
    if (take("names")) labels(s);
    const At back(*this, end);
    std::unordered_set<std::string> stated;
    for (const Check& c : checks) stated.insert(check_key(c));
    for (const Check& c : s.builder.graph().checks) {
      require(stated.contains(check_key(c)), "the check {} = {} \"{}\" is missing", c.left.text(), c.right.text(),
              c.why);
    }
    for (const Check& c : checks) s.builder.check(c.left, c.right, c.why);
    Graph g = s.builder.finish(outputs, names);
    if (g.checks.size() == checks.size()) g.checks = std::move(checks);
    return g;
  }

  static std::string check_key(const Check& c) { return c.left.text() + "=" + c.right.text() + " " + c.why; }

  // Errors while it lives are those of the thing that begins at `begin`.
  class At {
   public:
    At(Parser& parser, std::size_t begin) : parser_(parser), end_(std::exchange(parser.at_, begin)) {}
    ~At() {
      if (std::uncaught_exceptions() == unwinding_) parser_.at_ = end_;
    }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    Parser& parser_;
    std::size_t end_;
    int unwinding_ = std::uncaught_exceptions();
  };

  // The dims clause follows the inputs that use it; it is read first.
  void find_symbols(Scope& s) {
    int open = 1;
    while (open > 0) {
      require(peek() != '\0', "the list of inputs does not end");
      if (peek() == '"') {
        quoted();
      } else {
        open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        ++at_;
      }
    }
    if (!take("dims")) return;
    need("(");
    do {
      const std::string name = word();
      need(":");
      const Index lo = integer();
      const Index hi = take("..") ? integer() : lo;
      const Dim d = Dim::symbol(name, lo, hi);
      require(symbols_.emplace(name, d).second, "size symbol {} is declared twice", name);
      s.symbols.push_back(name);
    } while (take(","));
    need(")");
  }

  void skip_parentheses() {
    need("(");
    while (!take(")")) ++at_;
  }

  TensorType type(Scope& s) {
    const std::string element = word();
    DType dtype{};
    if (!find_dtype(element, dtype)) dtype = parse_dtype(element);
    const Encoding* encoding = nullptr;
    Index axis = 0;
    if (take(":")) {
      const std::string name = word();
      if (options_.encodings) {
        const auto it = options_.encodings->find(name);
        if (it != options_.encodings->end()) encoding = it->second;
      }
      require(encoding, "unknown encoding \"{}\"", name);
      need("@");
      axis = integer();
    }
    need("[");
    std::vector<Dim> dims;
    while (!take("]")) {
      if (!dims.empty()) need(",");
      require(dims.size() < 64, "a type has more than 64 sizes");
      dims.push_back(dim(s));
    }
    return encoding ? TensorType(dtype, std::move(dims), *encoding, axis) : TensorType(dtype, std::move(dims));
  }

  Dim dim(Scope& s) {
    skip();
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_word(text_[end]) || std::string_view("+-*").find(text_[end]) != std::string_view::npos))
      ++end;
    const bool simple = end < text_.size() && (text_[end] == ',' || text_[end] == ']');
    if (simple) {
      const auto it = s.dims.find(std::string(text_.substr(at_, end - at_)));
      if (it != s.dims.end()) {
        at_ = end;
        return it->second;
      }
    }
    const std::size_t begin = at_;
    Dim d = parse_dim(text_, at_, symbols_);
    if (simple && at_ == end) s.dims.emplace(text_.substr(begin, end - begin), d);
    return d;
  }

  void node(Scope& s, int depth) {
    skip();
    const std::size_t begin = at_;
    need("%");
    const std::string key = label().first;
    require(!find(s, key), "%{} is defined twice", key);
    need("=");
    const std::string name = word();
    const OpDef* op = options_.ops->find(name);
    require(op != nullptr, "unknown op \"{}\"", name);
    Values operands;
    if (peek() == '%') {
      do operands.push_back(value(s));
      while (take(","));
    }
    Attrs attrs = op->default_attrs();
    if (take("{")) {
      static const NamedTensors none;
      AttrReader reader(text_, at_, symbols_, options_.data ? *options_.data : none);
      attrs = op->parse(reader);
    }
    const Index instance = take("!") ? integer() : 0;
    require(instance >= 0 && instance <= UINT32_MAX, "instance {} is out of range", instance);
    need(":");
    std::vector<TensorType> types;
    if (is_word(peek())) {
      do types.push_back(type(s));
      while (take(","));
    }
    std::vector<GraphPtr> bodies;
    if (take("=")) {
      do bodies.push_back(std::make_shared<Graph>(graph(depth + 1)));
      while (take(","));
    }
    const At back(*this, begin);
    const Values made =
        s.builder.emit(*op, std::move(attrs), operands, std::move(bodies), static_cast<std::uint32_t>(instance));
    require(made.size() == types.size(), "%{} states {} results, {} are inferred", key, types.size(), made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      require(made[i].type() == types[i], "%{} states {}, inferred is {}", key, types[i].text(), made[i].type().text());
    }
    define(s, key, made[0], made.size());
  }

  // The number that `key` is when printed without leading zeros, else none.
  static std::optional<std::size_t> number(const std::string& key) {
    if (key.size() > 9 || (key[0] == '0' && key.size() > 1)) return {};
    std::size_t n = 0;
    for (const char c : key) {
      if (c < '0' || c > '9') return {};
      n = n * 10 + static_cast<std::size_t>(c - '0');
    }
    return n;
  }
  static const Named* find(const Scope& s, const std::string& key) {
    if (const auto n = number(key); n && *n < s.numbered.size()) return &s.numbered[*n];
    const auto it = s.values.find(key);
    return it == s.values.end() ? nullptr : &it->second;
  }
  static void define(Scope& s, const std::string& key, Value first, std::size_t results) {
    const Named named{first.at.node, static_cast<std::uint32_t>(results)};
    if (number(key) == s.numbered.size()) {
      s.numbered.push_back(named);
    } else {
      s.values.insert_or_assign(key, named);
    }
  }

  Value value(Scope& s) {
    need("%");
    const std::string key = label().first;
    const Named* named = find(s, key);
    require(named, "unknown value %{}", key);
    Index result = 0;
    const bool numbered = at_ < text_.size() && text_[at_] == '#';
    if (numbered) {
      ++at_;
      result = integer();
    }
    const auto count = static_cast<Index>(named->results);
    require(0 <= result && result < count, "%{}#{} is out of range: the node has {} results", key, result, count);
    require(numbered || count == 1, "%{} has {} results: write %{}#0", key, count, key);
    return {&s.builder, {named->node, static_cast<std::uint32_t>(result)}};
  }

  Check check(Scope& s) {
    const Dim left = dim(s);
    need("=");
    const Dim right = dim(s);
    const std::string why = quoted();
    require(equal(left, right) != Tri::no, "{}: {} is not {}", why, left.text(), right.text());
    return {left, right, why};
  }

  void state(Scope& s) {
    const std::string name = peek() == '"' ? quoted() : word();
    need(":");
    const Value input = value(s);
    need("->");
    s.builder.state(name, input, value(s));
  }

  void labels(Scope& s) {
    need("(");
    do {
      const Value v = value(s);
      need(":");
      s.builder.label(v, quoted());
    } while (take(","));
    need(")");
  }

  // A name behind `%`: its key in the table (quoted and bare names never meet) and itself.
  std::pair<std::string, std::string> label() {
    if (at_ < text_.size() && text_[at_] == '"') {
      std::string name = quoted();
      const bool bare =
          !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.' && std::ranges::all_of(name, is_word);
      return {bare ? name : quote(name), name};
    }
    std::string name = word();
    return {name, name};
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string rest() const { return std::string(text_.substr(at_, 16)); }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    const std::size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end]) && is_word(token[0]) && token != "..")
      return false;
    at_ = end;
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) fail("expected \"{}\" before \"{}\"", token, rest());
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    require(at_ > begin, "expected a name before \"{}\"", rest());
    return std::string(text_.substr(begin, at_ - begin));
  }
  Index integer() {
    skip();
    Index value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    require(error != std::errc::result_out_of_range, "integer \"{}\" is out of range", text_.substr(at_, 24));
    require(error == std::errc(), "expected an integer before \"{}\"", rest());
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  std::string quoted() {
    static const NamedDims no_dims;
    static const NamedTensors no_data;
    return AttrReader(text_, at_, no_dims, no_data).quoted();
  }

  std::string_view text_;
  const ParseOptions& options_;
  NamedDims symbols_;
  std::size_t at_ = 0;
};

}  // namespace

Graph parse(std::string_view text, const ParseOptions& options) {
  ParseOptions full = options;
  std::optional<OpRegistry> ops;
  if (!full.ops) full.ops = &ops.emplace();
  const std::string clean = without_comments(text);
  Parser parser(clean, full);
  try {
    return parser.file();
  } catch (const Error& e) {
    fail("{}: {}", parser.place(), e.what());
  }
}

}  // namespace rlx
