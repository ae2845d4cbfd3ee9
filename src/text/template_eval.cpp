// The evaluation of templates: values on an arena, scopes in a chain, every node a counted step.
#include "text/template_eval.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "core/error.h"
#include "text/template_calls.h"
#include "text/unicode.h"

namespace rlx::chat {

/// Variables; a name that is not here is looked for in the parent.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;

  Value* find(std::string_view name) {
    for (auto& [known, value] : variables) {
      if (known == name) return &value;
    }
    return nullptr;
  }
};

namespace {

enum class Flow : std::uint8_t { go_on, stop, next };

class Evaluator : public Interpreter {
 public:
  Evaluator(std::string_view name, Arena& arena, std::int64_t now) : name_(name), arena_(arena), now_(now) {}

  std::string render(const Tree& tree, const Dict& variables) {
    Scope& globals = new_scope(nullptr);
    for (const auto& [key, value] : variables.items) globals.variables.emplace_back(*key, value);
    try {
      run(tree.body, new_scope(&globals));
    } catch (const Error& e) {
      fail("{}: line {}: {}", name_, line_, e.what());
    }
    return std::move(text_);
  }

  Arena& arena() override { return arena_; }
  std::int64_t now() const override { return now_; }

  Value apply_filter(std::string_view name, Arguments& args) override {
    const Native native = find_filter(name);
    require(native != nullptr, "the filter {} is not supported, expected one of {}", name, filter_names());
    return call_native(native, args);
  }
  bool apply_test(std::string_view name, Arguments& args) override {
    const Native native = find_test(name);
    require(native != nullptr, "the test {} is not supported, expected one of {}", name, test_names());
    return truth(call_native(native, args));
  }

 private:
  using Nodes = std::vector<const Node*>;

  struct Level {
    explicit Level(Evaluator& e) : evaluator(e) {
      constexpr int most = 400;
      require(++evaluator.level_ <= most, "calls and expressions nested deeper than {}", most);
    }
    ~Level() { --evaluator.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Evaluator& evaluator;
  };

  Value call_native(Native native, Arguments& args) {
    arena_.work(args.self);
    return native(args);
  }

  Scope& new_scope(Scope* parent) {
    arena_.charge(sizeof(Scope) / 8);  // most go when the loop goes on
    return scopes_.emplace_back(Scope{parent, {}});
  }
  void set(Scope& scope, std::string_view name, Value value) {
    if (Value* known = scope.find(name)) {
      *known = value;
      return;
    }
    arena_.charge(2 * sizeof(Value));
    scope.variables.emplace_back(name, value);
  }

  void put(std::string_view text) {
    const std::size_t most = arena_.limits().output_bytes;
    require(text.size() <= most - std::min(most, text_.size()), "the template writes more than {} bytes", most);
    text_ += text;
  }

  Flow run(const Nodes& nodes, Scope& scope) {
    for (const Node* n : nodes) {
      const Flow flow = run(*n, scope);
      if (flow != Flow::go_on) return flow;
    }
    return Flow::go_on;
  }

  Flow run(const Node& n, Scope& scope) {
    const Level level(*this);
    arena_.step();
    line_ = n.line;
    switch (n.type) {
      case NodeType::text:
        put(n.text);
        return Flow::go_on;
      case NodeType::output: {
        const Value v = eval(n.children[0], scope);
        put(v.is(Kind::string) ? v.text() : std::string_view(to_text(v, arena_.limits().output_bytes)));
        return Flow::go_on;
      }
      case NodeType::branch:
        return run(truth(eval(n.children[0], scope)) ? n.body : n.other, scope);
      case NodeType::loop:
        return loop(n, scope);
      case NodeType::assign:
        assign(n.targets[0], n.scoped ? captured(n, scope) : eval(n.children[0], scope), scope);
        return Flow::go_on;
      case NodeType::macro:
        ++macros_;
        set(scope, n.text, callable({.name = n.text, .macro = &n, .scope = &scope}));
        return Flow::go_on;
      case NodeType::stop:
        return Flow::stop;
      case NodeType::next:
        return Flow::next;
      case NodeType::block:
        if (n.children.empty()) return run(n.body, new_scope(&scope));
        put(to_text(captured(n, scope), arena_.limits().output_bytes));
        return Flow::go_on;
      default:
        ensure(false, "a statement of a template");
        return Flow::go_on;
    }
  }

  // What the body writes, through the filters.
  Value captured(const Node& n, Scope& scope) {
    const Value text = arena_.string(capture(n.body, new_scope(&scope)));
    return n.children.empty() ? text : filtered(n.children[0], scope, &text);
  }
  std::string capture(const Nodes& body, Scope& scope) {
    std::string outer = std::exchange(text_, "");
    run(body, scope);
    arena_.charge(text_.size());
    std::swap(outer, text_);
    return outer;
  }

  void assign(const Node* target, const Value& value, Scope& scope) {
    if (target->type == NodeType::name) return set(scope, target->text, value);
    if (target->type == NodeType::attribute) {
      const Value object = eval(target->children[0], scope);
      require(object.is(Kind::dict) && object.dict->is_namespace, "an attribute of {} is set, expected a namespace",
              kind_name(object));
      arena_.set(*object.dict, &target->text, value);
      return;
    }
    const std::vector<Value> parts = elements(arena_, value);
    require(parts.size() == target->children.size(), "{} values for {} names", parts.size(), target->children.size());
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target->children[i], parts[i], scope);
  }

  Flow loop(const Node& n, Scope& scope) {
    std::vector<Value> items = elements(arena_, eval(n.children[0], scope));
    if (n.children[1] != nullptr) {
      std::vector<Value> kept;
      for (const Value& item : items) {
        Scope& inner = new_scope(&scope);
        assign(n.targets[0], item, inner);
        if (truth(eval(n.children[1], inner))) kept.push_back(item);
      }
      items = std::move(kept);
    }
    const Value state = arena_.dict();
    for (std::size_t i = 0; i < items.size(); ++i) {
      arena_.step();
      const std::size_t scopes = scopes_.size(), macros = macros_;
      Scope& inner = new_scope(&scope);
      set_loop(*state.dict, items, i);
      set(inner, "loop", state);
      assign(n.targets[0], items[i], inner);
      const Flow flow = run(n.body, inner);
      if (macros == macros_) scopes_.resize(scopes);  // only macros refer to scopes
      if (flow == Flow::stop) break;
    }
    return items.empty() ? run(n.other, scope) : Flow::go_on;
  }

  void set_loop(Dict& state, const std::vector<Value>& items, std::size_t at) {
    static const std::string names[] = {"index",  "index0", "revindex", "revindex0", "first",   "last",
                                        "length", "depth",  "depth0",   "previtem",  "nextitem"};
    const auto i = static_cast<std::int64_t>(at), size = static_cast<std::int64_t>(items.size());
    const Value values[] = {Value::of(i + 1),
                            Value::of(i),
                            Value::of(size - i),
                            Value::of(size - i - 1),
                            Value::of(i == 0),
                            Value::of(i + 1 == size),
                            Value::of(size),
                            Value::of(std::int64_t{1}),
                            Value::of(std::int64_t{0}),
                            at == 0 ? Value{} : items[at - 1],
                            at + 1 == items.size() ? Value{} : items[at + 1]};
    state.items.resize(std::size(names));
    for (std::size_t k = 0; k < std::size(names); ++k) state.items[k] = {&names[k], values[k]};
  }

  Value callable(Callable c) {
    arena_.charge(sizeof(Callable));
    return Value::of(&callables_.emplace_back(c));
  }

  Value eval(const Node* n, Scope& scope) {
    const Level level(*this);
    arena_.step();
    line_ = n->line;
    switch (n->type) {
      case NodeType::constant:
        return n->value;
      case NodeType::name:
        return look_up(n->text, scope);
      case NodeType::list:
      case NodeType::tuple: {
        std::vector<Value> items;
        for (const Node* child : n->children) items.push_back(eval(child, scope));
        return arena_.list(std::move(items), n->type == NodeType::tuple);
      }
      case NodeType::dict:
        return make_dict(*n, scope);
      case NodeType::attribute:
        return attribute(*n, scope);
      case NodeType::subscript:
        return subscript(*n, scope);
      case NodeType::slice:
        return slice(*n, scope);
      case NodeType::call:
        return call(*n, scope);
      case NodeType::filter:
        return filtered(n, scope, nullptr);
      case NodeType::test:
        return test(*n, scope);
      case NodeType::unary:
      case NodeType::binary:
      case NodeType::comparison:
      case NodeType::concat:
        return operation(*n, scope);
      case NodeType::both: {
        const Value left = eval(n->children[0], scope);
        return truth(left) ? eval(n->children[1], scope) : left;
      }
      case NodeType::either: {
        const Value left = eval(n->children[0], scope);
        return truth(left) ? left : eval(n->children[1], scope);
      }
      case NodeType::negation:
        return Value::of(!truth(eval(n->children[0], scope)));
      case NodeType::conditional:
        if (truth(eval(n->children[1], scope))) return eval(n->children[0], scope);
        return n->children[2] == nullptr ? Value{} : eval(n->children[2], scope);
      default:
        ensure(false, "an expression of a template");
        return {};
    }
  }

  Value look_up(std::string_view name, Scope& scope) {
    for (Scope* s = &scope; s != nullptr; s = s->parent) {
      if (const Value* found = s->find(name)) return *found;
    }
    if (const Native native = find_function(name)) return callable({.name = name, .native = native});
    for (const std::string_view other :
         {"lipsum", "cycler", "joiner", "self", "super", "caller", "varargs", "kwargs"}) {
      require(name != other, "{} is not supported", name);
    }
    return {};
  }

  Value make_dict(const Node& n, Scope& scope) {
    const Value out = arena_.dict();
    for (std::size_t i = 0; i < n.children.size(); i += 2) {
      const Value key = eval(n.children[i], scope);
      require(key.is(Kind::string), "a key of a mapping is {}, expected a string", kind_name(key));
      arena_.set(*out.dict, key.string, eval(n.children[i + 1], scope));
    }
    return out;
  }

  // What is undefined, for messages.
  static std::string spelt(const Node& n) {
    if (n.type == NodeType::name) return n.text;
    if (n.type == NodeType::attribute) return spelt(*n.children[0]) + "." + n.text;
    if (n.type == NodeType::subscript && n.children[1]->value.is(Kind::string))
      return spelt(*n.children[0]) + "['" + n.children[1]->text + "']";
    return "a value";
  }

  Value attribute(const Node& n, Scope& scope) {
    const Value object = eval(n.children[0], scope);
    line_ = n.line;
    require(!object.is(Kind::undefined), "{} is undefined, its {} is asked for", spelt(*n.children[0]), n.text);
    if (const Native native = find_method(object, n.text)) {
      return callable({.name = n.text, .native = native, .self = object});
    }
    Value key = Value::of(Kind::string);
    key.string = &n.text;
    return get_item(arena_, object, key);
  }

  Value subscript(const Node& n, Scope& scope) {
    const Value object = eval(n.children[0], scope), key = eval(n.children[1], scope);
    line_ = n.line;
    require(!object.is(Kind::undefined), "{} is undefined, a part of it is asked for", spelt(*n.children[0]));
    const Value found = get_item(arena_, object, key);
    if (!found.is(Kind::undefined) || !key.is(Kind::string)) return found;
    const Native native = find_method(object, key.text());
    return native == nullptr ? found : callable({.name = key.text(), .native = native, .self = object});
  }

  Value slice(const Node& n, Scope& scope) {
    const Value object = eval(n.children[0], scope);
    Value bounds[3];
    for (std::size_t k = 0; k < 3; ++k) {
      bounds[k] = n.children[k + 1] == nullptr ? Value::none() : eval(n.children[k + 1], scope);
      require(bounds[k].is(Kind::none) || bounds[k].is(Kind::integer), "a bound of a slice is {}, expected an integer",
              kind_name(bounds[k]));
    }
    arena_.work(object);
    if (object.is(Kind::undefined)) fail("{} is undefined, a part of it is asked for", spelt(*n.children[0]));
    require(object.is(Kind::string) || object.is(Kind::list), "{} cannot be cut, expected a string or list",
            kind_name(object));
    const std::vector<std::string_view> chars =
        object.is(Kind::string) ? characters(object.text()) : std::vector<std::string_view>();
    const auto size = static_cast<std::int64_t>(object.is(Kind::string) ? chars.size() : object.list->items.size());
    const std::int64_t step = bounds[2].is(Kind::none) ? 1 : bounds[2].integer;
    require(step != 0 && std::abs(step) <= 1'000'000'000, "the step of a slice is {}, expected another number", step);
    const auto bound = [&](const Value& v, std::int64_t none) {
      if (v.is(Kind::none)) return none;
      const std::int64_t i = v.integer < 0 ? v.integer + size : v.integer;
      return step > 0 ? std::clamp<std::int64_t>(i, 0, size) : std::clamp<std::int64_t>(i, -1, size - 1);
    };
    const std::int64_t begin = bound(bounds[0], step > 0 ? 0 : size - 1), end = bound(bounds[1], step > 0 ? size : -1);
    std::string text;
    std::vector<Value> items;
    for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      if (object.is(Kind::string)) {
        text += chars[static_cast<std::size_t>(i)];
      } else {
        items.push_back(object.list->items[static_cast<std::size_t>(i)]);
      }
    }
    return object.is(Kind::string) ? arena_.string(std::move(text)) : arena_.list(std::move(items), object.list->tuple);
  }

  Arguments arguments(const Node& n, std::string_view what, Value self, Scope& scope) {
    std::vector<Value> positional;
    std::vector<std::pair<std::string_view, Value>> named;
    for (std::size_t i = 1; i < n.children.size(); ++i) positional.push_back(eval(n.children[i], scope));
    for (const auto& [name, child] : n.named) named.emplace_back(name, eval(child, scope));
    line_ = n.line;
    return {*this, what, self, std::move(positional), std::move(named)};
  }

  Value call(const Node& n, Scope& scope) {
    const Value callee = eval(n.children[0], scope);
    line_ = n.line;
    require(callee.is(Kind::callable), "{} is {}, expected a function", spelt(*n.children[0]), kind_name(callee));
    Arguments args = arguments(n, callee.callable->name, callee.callable->self, scope);
    return callee.callable->native != nullptr ? call_native(callee.callable->native, args)
                                              : call_macro(*callee.callable, args);
  }

  Value call_macro(const Callable& c, Arguments& args) {
    Scope& scope = new_scope(c.scope);
    for (const auto& [name, fallback] : c.macro->named) {
      const std::optional<Value> given = args.take(name);
      set(scope, name, given ? *given : fallback == nullptr ? Value{} : eval(fallback, scope));
    }
    args.done();
    return arena_.string(capture(c.macro->body, scope));
  }

  // `body`: what the innermost filter works on where the chain has no value of its own.
  Value filtered(const Node* n, Scope& scope, const Value* body) {
    if (n == nullptr) return *body;
    if (n->type != NodeType::filter) return eval(n, scope);
    const Level level(*this);
    arena_.step();
    const Value self = filtered(n->children[0], scope, body);
    Arguments args = arguments(*n, n->text, self, scope);
    return apply_filter(n->text, args);
  }

  Value test(const Node& n, Scope& scope) {
    const Value self = eval(n.children[0], scope);
    if (n.text == "filter" || n.text == "test") {
      require(n.children.size() == 2 && self.is(Kind::string), "the test {} takes a name", n.text);
    }
    Arguments args = arguments(n, n.text, self, scope);
    return Value::of(apply_test(n.text, args));
  }

  Value operation(const Node& n, Scope& scope) {
    std::vector<Value> v;
    if (n.type == NodeType::comparison) return comparison(n, scope);
    for (const Node* child : n.children) v.push_back(eval(child, scope));
    line_ = n.line;
    if (n.type == NodeType::concat) {
      std::string text;
      for (const Value& part : v) {
        text += to_text(part, arena_.limits().output_bytes);
        arena_.charge(text.size() / 8);
      }
      return arena_.string(std::move(text));
    }
    for (std::size_t i = 0; i < v.size(); ++i)
      require(!v[i].is(Kind::undefined), "{} is undefined, an operand of {}", spelt(*n.children[i]), n.text);
    if (n.type == NodeType::binary) return binary(n.text, v[0], v[1]);
    require(v[0].is_number(), "{} has no sign", kind_name(v[0]));
    if (v[0].is(Kind::real)) return Value::of(n.text == "-" ? -v[0].real : v[0].real);
    return n.text == "-" ? binary("-", Value::of(std::int64_t{0}), v[0]) : Value::of(v[0].whole());
  }

  Value comparison(const Node& n, Scope& scope) {
    Value left = eval(n.children[0], scope);
    for (std::size_t i = 0; i < n.operators.size(); ++i) {
      const Value right = eval(n.children[i + 1], scope);
      line_ = n.line;
      if (!compares(n.operators[i], left, right)) return Value::of(false);
      left = right;
    }
    return Value::of(true);
  }

  bool compares(std::string_view op, const Value& left, const Value& right) {
    if (op == "==") return equal(left, right);
    if (op == "!=") return !equal(left, right);
    if (op == "in" || op == "not in") {
      arena_.work(right);
      return contains(right, left) == (op == "in");
    }
    const int order = compare(left, right);
    return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
  }

  Value binary(std::string_view op, const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
    if (op == "+" && a.is(Kind::string) && b.is(Kind::string)) {
      arena_.charge(a.text().size() + b.text().size());
      return arena_.string(std::string(a.text()) + std::string(b.text()));
    }
    if (op == "+" && a.is(Kind::list) && b.is(Kind::list) && a.list->tuple == b.list->tuple) {
      std::vector<Value> items = a.list->items;
      items.insert(items.end(), b.list->items.begin(), b.list->items.end());
      return arena_.list(std::move(items), a.list->tuple);
    }
    if (op == "*" && (a.is(Kind::integer) || b.is(Kind::integer))) {
      const Value& what = a.is(Kind::integer) ? b : a;
      if (what.is(Kind::string) || what.is(Kind::list))
        return repeated(what, a.is(Kind::integer) ? a.integer : b.integer);
    }
    fail("{} {} {} is not supported", kind_name(a), op, kind_name(b));
  }

  Value repeated(const Value& what, std::int64_t times) {
    const std::size_t size = what.is(Kind::string) ? what.text().size() : what.list->items.size() * sizeof(Value);
    const auto n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
    require(size == 0 || n <= arena_.limits().memory_bytes / size, "repeating a value {} times takes too much memory",
            times);
    arena_.charge(size * n);
    if (what.is(Kind::string)) {
      std::string out;
      for (std::size_t i = 0; size > 0 && i < n; ++i) out += what.text();
      return arena_.string(std::move(out));
    }
    std::vector<Value> out;
    for (std::size_t i = 0; size > 0 && i < n; ++i)
      out.insert(out.end(), what.list->items.begin(), what.list->items.end());
    return arena_.list(std::move(out), what.list->tuple);
  }

  static Value arithmetic(std::string_view op, const Value& a, const Value& b) {
    if (a.is(Kind::real) || b.is(Kind::real) || op == "/") return real_arithmetic(op, a.number(), b.number());
    const std::int64_t x = a.whole(), y = b.whole();
    std::int64_t out = 0;
    bool overflow = false;
    if (op == "+") {
      overflow = __builtin_add_overflow(x, y, &out);
    } else if (op == "-") {
      overflow = __builtin_sub_overflow(x, y, &out);
    } else if (op == "*") {
      overflow = __builtin_mul_overflow(x, y, &out);
    } else if (op == "**") {
      if (y < 0) return real_arithmetic(op, a.number(), b.number());
      out = 1;
      for (std::int64_t i = 0; i < y && !overflow; ++i) {
        if (x == 0 || x == 1) return Value::of(y == 0 ? std::int64_t{1} : x);
        if (x == -1) return Value::of(std::int64_t{y % 2 == 0 ? 1 : -1});
        overflow = __builtin_mul_overflow(out, x, &out);
      }
    } else {
      require(y != 0, "a division by zero");
      if (y == -1) {
        overflow = op == "//" && __builtin_sub_overflow(std::int64_t{0}, x, &out);
      } else {
        const std::int64_t rest = x % y, shift = rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
        out = op == "//" ? x / y - shift : rest + shift * y;
      }
    }
    require(!overflow, "{} {} {} does not fit 64 bits", x, op, y);
    return Value::of(out);
  }

  static Value real_arithmetic(std::string_view op, double x, double y) {
    if (op == "+") return Value::of(x + y);
    if (op == "-") return Value::of(x - y);
    if (op == "*") return Value::of(x * y);
    if (op == "**") return Value::of(std::pow(x, y));
    require(y != 0, "a division by zero");
    if (op == "/") return Value::of(x / y);
    if (op == "//") return Value::of(std::floor(x / y));
    const double rest = std::fmod(x, y);
    return Value::of(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }

  std::string_view name_;
  Arena& arena_;
  std::int64_t now_;
  std::deque<Scope> scopes_;
  std::deque<Callable> callables_;
  std::size_t macros_ = 0;
  std::string text_;
  int level_ = 0, line_ = 1;
};

}  // namespace

std::string run_template(const Tree& tree, std::string_view name, Arena& arena, const Dict& variables,
                         std::int64_t now) {
  return Evaluator(name, arena, now).render(tree, variables);
}

}  // namespace rlx::chat
