// The number type Text, and the scalar ops by the text they become.
#include "ops/scalar/scalar_text.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "ops/cast/cast.h"
#include "ops/scalar/rows.h"

namespace rlx {

std::span<const OpDef* const> scalar_ops();

std::string TextWriter::let(DType type, std::string_view expression) {
  std::string name = fmt::format("t{}", next_++);
  text_ += fmt::format("  const {} {} = {};\n", type == DType::boolean ? "bool" : rlx::name(type), name, expression);
  return name;
}

static Text let(const Text& like, DType type, std::string_view expression) {
  return {like.writer, type, like.writer->let(type, expression)};
}
static Text let(const Text& like, std::string_view expression) { return let(like, like.type, expression); }

static DType unsigned_of(DType type) { return bits(type) == 64 ? DType::u64 : DType::u32; }

// Integers wrap: they are computed unsigned.
static Text arithmetic(const Text& a, char sign, const Text& b) {
  if (is_float(a.type)) return let(a, fmt::format("{} {} {}", a.name, sign, b.name));
  const std::string_view u = name(unsigned_of(a.type));
  return let(a, fmt::format("({})(({}){} {} ({}){})", name(a.type), u, a.name, sign, u, b.name));
}

static Text call(std::string_view function, const Text& a) { return let(a, fmt::format("{}({})", function, a.name)); }
static Text call(std::string_view function, const Text& a, const Text& b) {
  return let(a, fmt::format("{}({}, {})", function, a.name, b.name));
}
// A function of gpu_functions(), which are named by type.
static Text own(std::string_view function, const Text& a) {
  return call(fmt::format("{}_{}", function, name(a.type)), a);
}

// What rows.h asks of a number. Static, not in an unnamed namespace, where argument-dependent lookup would miss them.
static Text operator+(const Text& a, const Text& b) { return arithmetic(a, '+', b); }
static Text operator-(const Text& a, const Text& b) { return arithmetic(a, '-', b); }
static Text operator*(const Text& a, const Text& b) { return arithmetic(a, '*', b); }
static Text operator/(const Text& a, const Text& b) { return let(a, fmt::format("{} / {}", a.name, b.name)); }
static Text operator-(const Text& a) {
  if (is_float(a.type)) return let(a, "-" + a.name);
  const std::string_view u = name(unsigned_of(a.type));
  return let(a, fmt::format("({})(({})0 - ({}){})", name(a.type), u, u, a.name));
}
static Text like(const Text& a, double number) { return {a.writer, a.type, gpu_number(a.type, number)}; }
static Text less(const Text& a, const Text& b) {
  return let(a, DType::boolean, fmt::format("{} < {}", a.name, b.name));
}
static Text equal(const Text& a, const Text& b) {
  return let(a, DType::boolean, fmt::format("{} == {}", a.name, b.name));
}
static Text select(const Text& c, const Text& a, const Text& b) {
  return let(a, fmt::format("{} ? {} : {}", c.name, a.name, b.name));
}

#define RLX_CALL(function, text) \
  static Text function(const Text& a) { return call(text, a); }
RLX_CALL(exp, "exp")
RLX_CALL(expm1, "expm1")
RLX_CALL(log, "log")
RLX_CALL(log1p, "log1p")
RLX_CALL(sqrt, "sqrt")
RLX_CALL(sin, "sin")
RLX_CALL(cos, "cos")
RLX_CALL(tan, "tan")
RLX_CALL(atan, "atan")
RLX_CALL(tanh, "tanh")
RLX_CALL(erf, "erf")
RLX_CALL(erfc, "erfc")
RLX_CALL(round, "rint")
RLX_CALL(floor, "floor")
RLX_CALL(ceil, "ceil")
RLX_CALL(trunc, "trunc")
#undef RLX_CALL
static Text sigmoid(const Text& a) { return own("sigmoid", a); }
static Text softplus(const Text& a) { return own("softplus", a); }

static Text abs(const Text& a) {
  if (is_float(a.type)) return call("fabs", a);
  if (is_unsigned_integer(a.type)) return a;
  return select(less(a, like(a, 0)), -a, a);
}
static Text sign(const Text& a) {
  if (is_float(a.type)) return own("sign", a);
  const Text zero = like(a, 0), below = is_unsigned_integer(a.type) ? zero : like(a, -1);
  return select(less(zero, a), like(a, 1), select(less(a, zero), below, zero));
}
static Text maximum(const Text& a, const Text& b) {
  if (is_float(a.type)) return call(fmt::format("maximum_{}", name(a.type)), a, b);
  return select(less(a, b), b, a);
}
static Text minimum(const Text& a, const Text& b) {
  if (is_float(a.type)) return call(fmt::format("minimum_{}", name(a.type)), a, b);
  return select(less(b, a), b, a);
}

// Rounds an f32 to a small float type, and says so in no other way: the value stays f32.
static Text rounded(const Text& a, DType type) {
  if (gpu_value(type) == type) return a;
  return let(a, fmt::format("{}_value({}_code({}))", name(type), name(type), a.name));
}

// Float to integer: toward zero, saturating, NaN gives 0.
static Text to_integer(const Text& a, DType to) {
  const int width = is_signed_integer(to) ? bits(to) - 1 : bits(to);
  const double above = std::ldexp(1.0, width), least = is_signed_integer(to) ? -above : 0;
  const std::int64_t most =
      bits(to) == 64 && !is_signed_integer(to) ? -1 : static_cast<std::int64_t>((std::uint64_t{1} << (width & 63)) - 1);
  const std::int64_t lowest = is_signed_integer(to) ? static_cast<std::int64_t>(~std::uint64_t{0} << width) : 0;
  return let(a, to,
             fmt::format("{0} != {0} ? {1} : {0} >= {2} ? {3} : {0} <= {4} ? {5} : ({6}){0}", a.name,
                         gpu_number(to, std::int64_t{0}), gpu_number(a.type, above), gpu_number(to, most),
                         gpu_number(a.type, least), gpu_number(to, lowest), name(to)));
}

Text cast_text(const Text& a, DType from, DType to) {
  const DType wide = gpu_value(to);
  if (from == to) return a;
  if (to == DType::boolean) {
    return let(a, to, fmt::format("{} != {}", a.name, gpu_number(a.type, std::int64_t{0})));
  }
  if (is_integer(to)) {
    return is_float(a.type) ? to_integer(a, to) : let(a, to, fmt::format("({}){}", name(to), a.name));
  }
  if (wide == to) return let(a, to, fmt::format("({}){}", name(to), a.name));
  // Two roundings are one when the first keeps what it cuts off.
  Text f = a;
  if (a.type == DType::f64) {
    f = let(a, DType::f32, fmt::format("odd_f64({})", a.name));
  } else if (is_integer(a.type) && bits(a.type) >= 32) {
    const bool plus = is_unsigned_integer(a.type);
    f = let(a, DType::f32, fmt::format("odd_{0}(({0}){1})", plus ? "u64" : "i64", a.name));
  } else if (a.type != DType::f32) {
    f = let(a, DType::f32, fmt::format("(f32){}", a.name));
  }
  return rounded(f, to);
}

namespace {

using Apply = std::function<Text(std::span<const Text>, DType type)>;

template <class Row>
Text row(std::span<const Text> x, DType) {
  return Row::value(x[0]);
}

Text divide(std::span<const Text> x, DType type) {
  if (is_float(type)) return x[0] / x[1];
  if (is_unsigned_integer(type)) return x[0] / x[1];
  const Text minus = -x[0];  // the least integer wraps
  return let(x[0], fmt::format("{} == {} ? {} : {} / {}", x[1].name, gpu_number(type, std::int64_t{-1}), minus.name,
                               x[0].name, x[1].name));
}

Text remainder(std::span<const Text> x, DType type) {
  if (is_float(type)) return call("fmod", x[0], x[1]);
  const Text r = is_signed_integer(type)
                     ? let(x[0], fmt::format("{} == {} ? {} : {} % {}", x[1].name, gpu_number(type, std::int64_t{-1}),
                                             gpu_number(type, std::int64_t{0}), x[0].name, x[1].name))
                     : let(x[0], fmt::format("{} % {}", x[0].name, x[1].name));
  return r;
}

Text shift(std::span<const Text> x, DType type, bool left) {
  const std::string amount = fmt::format("({} & {})", x[1].name, bits(type) - 1);
  if (!left) return let(x[0], fmt::format("({})({} >> {})", name(type), x[0].name, amount));
  return let(x[0], fmt::format("({})(({}){} << {})", name(type), name(unsigned_of(type)), x[0].name, amount));
}

Apply infix(std::string_view sign) {
  return [sign](std::span<const Text> x, DType type) {
    const std::string text = fmt::format("{} {} {}", x[0].name, sign, x[1].name);
    return let(x[0], type == DType::boolean ? text : fmt::format("({})({})", name(type), text));
  };
}
Apply comparison(std::string_view sign) {
  return [sign](std::span<const Text> x, DType) {
    return let(x[0], DType::boolean, fmt::format("{} {} {}", x[0].name, sign, x[1].name));
  };
}

struct NamedApply {
  std::string_view name;
  Apply apply;
};

std::vector<NamedApply> named_texts() {
  using In = std::span<const Text>;
  return {
#define RLX_TEXT_UNARY(Type, function) {base::Type::name, row<base::Type>},
      RLX_UNARY_ROWS(RLX_TEXT_UNARY)
#undef RLX_TEXT_UNARY
          {"add", [](In x, DType) { return x[0] + x[1]; }},
      {"sub", [](In x, DType) { return x[0] - x[1]; }},
      {"mul", [](In x, DType) { return x[0] * x[1]; }},
      {"div", divide},
      {"maximum", [](In x, DType) { return maximum(x[0], x[1]); }},
      {"minimum", [](In x, DType) { return minimum(x[0], x[1]); }},
      {"pow", [](In x, DType) { return call("pow", x[0], x[1]); }},
      {"fmod", remainder},
      {"atan2", [](In x, DType) { return call("atan2", x[0], x[1]); }},
      {"bitwise_and", infix("&")},
      {"bitwise_or", infix("|")},
      {"bitwise_xor", infix("^")},
      {"shift_left", [](In x, DType type) { return shift(x, type, true); }},
      {"shift_right", [](In x, DType type) { return shift(x, type, false); }},
      {"equal", comparison("==")},
      {"not_equal", comparison("!=")},
      {"less", comparison("<")},
      {"less_equal", comparison("<=")},
      {"greater", comparison(">")},
      {"greater_equal", comparison(">=")},
      {"bitwise_not",
       [](In x, DType type) {
         return let(x[0], type == DType::boolean ? "!" + x[0].name : fmt::format("({})(~{})", name(type), x[0].name));
       }},
      {"select", [](In x, DType) { return select(x[0], x[1], x[2]); }},
  };
}

// The text of each scalar op of rlx; an op of the same name that is none of these has no text.
const Apply* find_text(const OpDef* op) {
  static const auto table = [] {
    std::unordered_map<const OpDef*, Apply> all;
    for (const NamedApply& t : named_texts()) {
      const auto ops = scalar_ops();
      const auto it = std::ranges::find(ops, t.name, &OpDef::name);
      ensure(it != ops.end(), "every text belongs to a scalar op");
      all.emplace(*it, t.apply);
    }
    return all;
  }();
  const auto it = table.find(op);
  return it == table.end() ? nullptr : &it->second;
}

// Division by 0 must be an Error: the divisor has to be a constant without zeros.
bool may_divide_by_zero(const OpDef& op, DType type, std::span<const Tensor* const> constants) {
  if (!is_integer(type)) return false;
  if (op.name() == "pow") return true;
  if (op.name() != "div" && op.name() != "fmod") return false;
  const Tensor* divisor = constants.size() > 1 ? constants[1] : nullptr;
  return !divisor || std::ranges::any_of(load<std::int64_t>(*divisor), [](std::int64_t v) { return v == 0; });
}

}  // namespace

std::optional<Text> scalar_text(const Node& node, std::span<const DType> in, DType out, std::span<const Text> operands,
                                std::span<const Tensor* const> constants, std::string& why) {
  if (node.op == &cast_op) return cast_text(operands[0], in[0], out);
  const Apply* apply = find_text(node.op);
  if (!apply) {
    why = fmt::format("op {} has no GPU text", node.op->name());
    return std::nullopt;
  }
  if (may_divide_by_zero(*node.op, out, constants)) {
    why = fmt::format("{} of integers may have to fail for 0, which GPU kernels cannot", node.op->name());
    return std::nullopt;
  }
  return rounded((*apply)(operands, out), out);
}

}  // namespace rlx
