// Functions of the common GPU subset, and how elements of each type are loaded and stored.
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "device/gpu_kernel.h"

namespace rlx {

namespace {

struct Text {
  std::string_view name, text;
};

// R stands for f32 or f64.
constexpr Text real_functions[] = {
    {"sigmoid", "FUNCTION R sigmoid_R(R x) { const R e = exp(-fabs(x)); return (x < (R)0 ? e : (R)1) / ((R)1 + e); }"},
    {"softplus", "FUNCTION R softplus_R(R x) { return (x != x ? x : x < (R)0 ? (R)0 : x) + log1p(exp(-fabs(x))); }"},
    {"maximum", "FUNCTION R maximum_R(R a, R b) { return a != a ? a : b != b ? b : a < b ? b : a; }"},
    {"minimum", "FUNCTION R minimum_R(R a, R b) { return a != a ? a : b != b ? b : b < a ? b : a; }"},
    {"sign", "FUNCTION R sign_R(R x) { return x > (R)0 ? (R)1 : x < (R)0 ? (R)-1 : x; }"},
};

// The codes of f16 and bf16, rounded to nearest even; and of the 8-bit floats.
constexpr Text code_functions[] = {
    {"f16_value", R"(FUNCTION f32 f16_value(u16 code) {
  const u32 sign = ((u32)code & 0x8000u) << 16, rest = (u32)code & 0x7fffu;
  const f32 tiny = (f32)rest * 5.9604644775390625e-8f;
  const u32 finite = rest < 0x400u ? f32_bits(tiny) : (rest << 13) + 0x38000000u;
  const u32 bits = rest >= 0x7c00u ? (rest << 13) | 0x7f800000u : finite;
  return bits_f32(bits | sign);
})"},
    {"f16_code", R"(FUNCTION u16 f16_code(f32 x) {
  const u32 bits = f32_bits(x), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (u16)(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (rest < 0x38800000u) return (u16)(sign | (u32)rint(bits_f32(rest) * 16777216.0f));
  return (u16)(sign | ((rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13));
})"},
    {"bf16_value", "FUNCTION f32 bf16_value(u16 code) { return bits_f32((u32)code << 16); }"},
    {"bf16_code", R"(FUNCTION u16 bf16_code(f32 x) {
  const u32 bits = f32_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16 & 0x8000u) | 0x7fc0u);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
})"},
    {"small_value", R"(FUNCTION f32 small_value(u32 code, i32 fraction_bits, i32 bias) {
  const u32 fraction = code & ((1u << fraction_bits) - 1u), sign = (code & 0x80u) << 24;
  const i32 exponent = (i32)((code & 0x7fu) >> fraction_bits);
  const u32 whole = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
  return bits_f32(f32_bits(ldexp((f32)whole, (exponent == 0 ? 1 : exponent) - bias - fraction_bits)) | sign);
})"},
    {"small_code", R"(FUNCTION u8 small_code(f32 x, i32 fraction_bits, i32 bias, u32 largest) {
  const u32 bits = f32_bits(x), rest = bits & 0x7fffffffu, sign = (bits >> 24) & 0x80u;
  i32 exponent = (i32)(rest >> 23) - 127;
  if (exponent > 30) return (u8)(sign | largest);
  if (exponent < 1 - bias) exponent = 1 - bias;
  const u32 rounded = (u32)rint(ldexp(bits_f32(rest), fraction_bits - exponent));
  if (rounded < (1u << fraction_bits)) return (u8)(sign | rounded);
  const u32 code = ((u32)(exponent + bias - 1) << fraction_bits) + rounded;
  return (u8)(sign | (code > largest ? largest : code));
})"},
    {"f8e4m3_value", R"(FUNCTION f32 f8e4m3_value(u8 code) {
  return (code & 0x7f) == 0x7f ? bits_f32(0x7fc00000u) : small_value(code, 3, 7);
})"},
    {"f8e4m3_code", R"(FUNCTION u8 f8e4m3_code(f32 x) {
  return x != x ? (u8)((f32_bits(x) >> 24 & 0x80u) | 0x7fu) : small_code(x, 3, 7, 0x7eu);
})"},
    {"f8e5m2_value", R"(FUNCTION f32 f8e5m2_value(u8 code) {
  const u32 rest = code & 0x7fu, sign = (u32)(code & 0x80u) << 24;
  if (rest >= 0x7cu) return bits_f32((rest > 0x7cu ? 0x7fc00000u : 0x7f800000u) | sign);
  return small_value(code, 2, 15);
})"},
    {"f8e5m2_code", R"(FUNCTION u8 f8e5m2_code(f32 x) {
  return x != x ? (u8)((f32_bits(x) >> 24 & 0x80u) | 0x7eu) : small_code(x, 2, 15, 0x7bu);
})"},
    {"f8e4m3fnuz_value", R"(FUNCTION f32 f8e4m3fnuz_value(u8 code) {
  return code == 0x80 ? bits_f32(0x7fc00000u) : small_value(code, 3, 8);
})"},
    {"f8e4m3fnuz_code", R"(FUNCTION u8 f8e4m3fnuz_code(f32 x) {
  const u8 code = x != x ? (u8)0 : small_code(x, 3, 8, 0x7fu);
  return x != x ? (u8)0x80u : code == 0x80 ? (u8)0 : code;
})"},
    {"f8e5m2fnuz_value", R"(FUNCTION f32 f8e5m2fnuz_value(u8 code) {
  return code == 0x80 ? bits_f32(0x7fc00000u) : small_value(code, 2, 16);
})"},
    {"f8e5m2fnuz_code", R"(FUNCTION u8 f8e5m2fnuz_code(f32 x) {
  const u8 code = x != x ? (u8)0 : small_code(x, 2, 16, 0x7fu);
  return x != x ? (u8)0x80u : code == 0x80 ? (u8)0 : code;
})"},
    {"e8m0_value", R"(FUNCTION f32 e8m0_value(u8 code) {
  return bits_f32(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : (u32)code << 23);
})"},
    {"e8m0_code", R"(FUNCTION u8 e8m0_code(f32 x) {
  const u32 bits = f32_bits(x);
  if (x != x) return 255;
  if ((bits & 0x80000000u) != 0u || bits <= 0x00400000u) return 0;
  if (bits > 0x7f000000u) return 254;
  return (u8)((bits >> 23) + ((bits & 0x7fffffu) != 0u ? 1u : 0u));
})"},
    // To f32 such that a second rounding to fewer bits is right: what is cut off stays as an odd last bit.
    {"odd_f64", R"(FUNCTION f32 odd_f64(f64 x) {
  const f32 near = (f32)x;
  const u32 bits = f32_bits(near), sign = bits & 0x80000000u, rest = bits & 0x7fffffffu;
  if (near != near || (f64)near == x) return near;
  const u32 below = fabs((f64)near) > fabs(x) ? rest - 1u : rest;
  return bits_f32(sign | below | 1u);
})"},
    {"odd_u64", R"(FUNCTION f32 odd_u64(u64 x) {
  i32 shift = 0;
  while ((x >> shift) >= 16777216u) ++shift;
  const u64 kept = x >> shift;
  return ldexp((f32)(kept | ((kept << shift) != x ? 1u : 0u)), shift);
})"},
    {"odd_i64", R"(FUNCTION f32 odd_i64(i64 x) {
  const f32 size = odd_u64(x < 0 ? (u64)0 - (u64)x : (u64)x);
  return x < 0 ? -size : size;
})"},
};

std::string with_type(std::string_view text, std::string_view type) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = [&](std::size_t at) {
      return at < text.size() && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z') ||
                                  (text[at] >= '0' && text[at] <= '9'));
    };
    const bool alone = text[i] == 'R' && !letter(i + 1) && (i == 0 || !letter(i - 1));
    out += alone ? std::string(type) : std::string(1, text[i]);
  }
  return out;
}

std::string digits(double number, int count) {
  std::string s = fmt::format("{:.{}g}", number, count);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

bool small_float(DType t) { return is_float(t) && bits(t) < 32; }

}  // namespace

std::span<const GpuFunction> gpu_functions() {
  static const auto all = [] {
    std::vector<GpuFunction> list;
    for (const Text& f : code_functions) list.push_back({std::string(f.name), std::string(f.text)});
    for (const std::string_view type : {"f32", "f64"}) {
      for (const Text& f : real_functions) {
        list.push_back({fmt::format("{}_{}", f.name, type), with_type(f.text, type)});
      }
    }
    return list;
  }();
  return all;
}

bool gpu_loads(DType type) { return bits(type) >= 8 && !is_complex(type); }

std::string_view gpu_storage(DType type) {
  require(gpu_loads(type), "GPU kernels do not load elements of type {}", name(type));
  if (type == DType::boolean) return "u8";
  if (small_float(type)) return bits(type) == 16 ? "u16" : "u8";
  return name(type);
}

DType gpu_value(DType type) { return small_float(type) ? DType::f32 : type; }

std::string gpu_load(DType type, const std::string& element) {
  if (type == DType::boolean) return element + " != 0";
  return small_float(type) ? fmt::format("{}_value({})", name(type), element) : element;
}

std::string gpu_store(DType type, const std::string& value) {
  if (type == DType::boolean) return value + " ? 1 : 0";
  return small_float(type) ? fmt::format("{}_code({})", name(type), value) : value;
}

std::string gpu_number(DType value_type, double number) {
  if (!is_float(value_type)) return gpu_number(value_type, static_cast<std::int64_t>(number));
  ensure(bits(value_type) >= 32, "a value is f32 or f64");
  const bool single = value_type == DType::f32;
  if (single) number = static_cast<double>(static_cast<float>(number));
  std::string text;
  if (std::isfinite(number)) {
    text = single ? digits(number, 9) + "f" : digits(number, 17);
  } else if (single) {
    text = std::isnan(number) ? "bits_f32(0x7fc00000u)" : "bits_f32(0x7f800000u)";
    if (number < 0) text = "-" + text;
  } else {
    text = fmt::format("(f64){}", gpu_number(DType::f32, number));
  }
  return text[0] == '-' || text[0] == '(' ? "(" + text + ")" : text;
}

std::string gpu_number(DType value_type, std::int64_t number) {
  if (value_type == DType::boolean) return number != 0 ? "true" : "false";
  if (is_unsigned_integer(value_type)) {
    const auto mask = bits(value_type) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(value_type)) - 1;
    return fmt::format("(({}){}u)", name(value_type), static_cast<std::uint64_t>(number) & mask);
  }
  if (number == std::numeric_limits<std::int64_t>::min()) return "((i64)(-9223372036854775807 - 1))";
  return fmt::format("(({})({}))", name(value_type), number);
}

}  // namespace rlx
