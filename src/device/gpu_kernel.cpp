// Rendering GPU kernels, and the table of targets.
#include "device/gpu_kernel.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/error.h"

namespace rlx {

namespace {

constexpr std::string_view cuda_prelude =
    R"(typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32;
#define FUNCTION static __device__ __forceinline__
#define sync() __syncthreads()
#define f32_bits(x) ((u32)__float_as_uint(x))
#define bits_f32(x) __uint_as_float(x)
)";

constexpr std::string_view cuda_f64 = R"(typedef double f64;
#define f64_bits(x) ((u64)__double_as_longlong(x))
#define bits_f64(x) __longlong_as_double((i64)(x))
)";

constexpr std::string_view opencl_prelude = R"(#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
#define FUNCTION static inline
#define sync() barrier(CLK_LOCAL_MEM_FENCE)
#define f32_bits(x) as_uint(x)
#define bits_f32(x) as_float(x)
)";

constexpr std::string_view opencl_f64 = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define f64_bits(x) as_ulong(x)
#define bits_f64(x) as_double(x)
)";

constexpr std::string_view metal_prelude = R"(#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
#define FUNCTION static inline
#define sync() threadgroup_barrier(mem_flags::mem_threadgroup)
#define f32_bits(x) as_type<uint>(x)
#define bits_f32(x) as_type<float>(x)
)";

constexpr std::string_view cuda_ids =
    "  const i64 group_x = blockIdx.x; const i32 local_x = threadIdx.x, size_x = blockDim.x;\n";

constexpr std::string_view metal_missing[] = {"expm1", "log1p", "erf", "erfc"};

// Words of the languages that a name in a kernel may not be.
constexpr std::string_view reserved[] = {
    "half",    "half2",   "float2",   "float4", "double",   "local",       "global", "constant", "device",   "thread",
    "kernel",  "private", "shared",   "grid",   "block",    "threadgroup", "sync",   "image",    "sampler",  "event",
    "generic", "vertex",  "fragment", "auto",   "register", "template",    "class",  "new",      "operator", "this",
    "group_x", "local_x", "size_x",   "bool",   "uint",     "ulong",       "ushort", "uchar"};

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Calls f for every identifier of a text.
template <class F>
void each_word(std::string_view text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    if (!word_character(text[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < text.size() && word_character(text[i])) ++i;
    if (!std::isdigit(static_cast<unsigned char>(text[begin]))) f(text.substr(begin, i - begin));
  }
}

const GpuFunction* find_function(std::string_view name) {
  const auto all = gpu_functions();
  const auto it = std::ranges::find(all, name, &GpuFunction::name);
  return it == all.end() ? nullptr : &*it;
}

// Adds what `text` uses, before those that use it.
void add_functions(std::string_view text, std::vector<const GpuFunction*>& used) {
  each_word(text, [&](std::string_view word) {
    const GpuFunction* f = find_function(word);
    if (!f || std::ranges::find(used, f) != used.end()) return;
    const std::size_t brace = f->text.find('{');  // its own name stands before
    add_functions(std::string_view(f->text).substr(brace), used);
    used.push_back(f);
  });
}

bool mentions(std::string_view text, std::string_view wanted) {
  bool found = false;
  each_word(text, [&](std::string_view word) { found |= word == wanted; });
  return found;
}

void check_names(const GpuKernel& k) {
  std::set<std::string_view> seen;
  const auto check = [&](std::string_view name) {
    require(std::ranges::find(reserved, name) == std::end(reserved), "kernel {}: {} is a word of a GPU language",
            k.name, name);
    require(seen.insert(name).second, "kernel {}: the name {} is used twice", k.name, name);
  };
  check(k.name);
  for (const GpuParam& p : k.params) check(p.name);
  for (const GpuShared& s : k.shared) check(s.name);
}

std::string signature(const GpuKernel& k, const GpuTarget& t) {
  std::string out;
  int slot = 0;
  const auto argument = [&](const std::string& text) {
    out += (slot > 0 ? ", " : "") + text;
    if (t.numbered) out += fmt::format(" [[buffer({})]]", slot);
    ++slot;
  };
  for (const GpuParam& p : k.params) {
    const std::string_view constness = p.kind == GpuParam::Kind::in ? "const " : "";
    if (p.kind == GpuParam::Kind::size) {
      argument(fmt::format("{}i64{}{}", t.size_open, t.size_close, p.name));
    } else if (t.offsets) {
      argument(fmt::format("{}{}u8* {}_base", t.buffer, constness, p.name));
      argument(fmt::format("{}i64{}{}_offset", t.size_open, t.size_close, p.name));
    } else {
      argument(fmt::format("{}{}{}* {}", t.buffer, constness, p.type, p.name));
    }
  }
  return out + std::string(t.more_params);
}

std::string pointers(const GpuKernel& k, const GpuTarget& t) {
  std::string out;
  for (const GpuParam& p : k.params) {
    if (!t.offsets || p.kind == GpuParam::Kind::size) continue;
    const std::string type = fmt::format("{}{}{}*", t.buffer, p.kind == GpuParam::Kind::in ? "const " : "", p.type);
    out += fmt::format("  {} {} = ({})({}_base + {}_offset);\n", type, p.name, type, p.name, p.name);
  }
  return out;
}

}  // namespace

// HIP takes CUDA's words.
static GpuTarget cuda_like(const char* name) {
  return {.name = name,
          .prelude = cuda_prelude,
          .prelude_f64 = cuda_f64,
          .entry = "extern \"C\" __global__ void",
          .buffer = "",
          .shared = "__shared__ ",
          .size_open = "const ",
          .size_close = " ",
          .more_params = "",
          .ids = cuda_ids,
          .missing = {}};
}

const GpuTarget cuda_target = cuda_like("cuda");
const GpuTarget hip_target = cuda_like("hip");

const GpuTarget opencl_target{
    .name = "opencl",
    .prelude = opencl_prelude,
    .prelude_f64 = opencl_f64,
    .entry = "__kernel void",
    .buffer = "__global ",
    .shared = "__local ",
    .size_open = "const ",
    .size_close = " ",
    .more_params = "",
    .ids =
        "  const i64 group_x = (i64)get_group_id(0); const i32 local_x = (i32)get_local_id(0), size_x = "
        "(i32)get_local_size(0);\n",
    .offsets = true,
    .missing = {}};

const GpuTarget metal_target{
    .name = "metal",
    .prelude = metal_prelude,
    .prelude_f64 = "",
    .entry = "kernel void",
    .buffer = "device ",
    .shared = "threadgroup ",
    .size_open = "constant ",
    .size_close = "& ",
    .more_params =
        ", uint3 group_id [[threadgroup_position_in_grid]], uint3 local_id "
        "[[thread_position_in_threadgroup]], uint3 local_size [[threads_per_threadgroup]]",
    .ids = "  const i64 group_x = group_id.x; const i32 local_x = local_id.x, size_x = local_size.x;\n",
    .numbered = true,
    .missing = metal_missing};

std::span<const GpuTarget* const> gpu_targets() {
  static constexpr const GpuTarget* all[] = {&cuda_target, &opencl_target, &metal_target, &hip_target};
  return all;
}

bool uses_f64(const GpuKernel& kernel) {
  const auto in_text = [](std::string_view text) {
    return mentions(text, "f64") || mentions(text, "f64_bits") || mentions(text, "bits_f64");
  };
  if (in_text(kernel.body)) return true;
  std::vector<const GpuFunction*> used;
  add_functions(kernel.body, used);
  const auto is_f64 = [](const auto& x) { return x.type == "f64"; };
  return std::ranges::any_of(used, [&](const GpuFunction* f) { return in_text(f->text); }) ||
         std::ranges::any_of(kernel.params, is_f64) || std::ranges::any_of(kernel.shared, is_f64);
}

std::string render(const GpuKernel& kernel, const GpuTarget& target) { return render(std::span(&kernel, 1), target); }

std::string render(std::span<const GpuKernel> kernels, const GpuTarget& target) {
  std::vector<const GpuFunction*> used;
  std::set<std::string_view> names;
  bool f64 = false;
  for (const GpuKernel& k : kernels) {
    check_names(k);
    require(names.insert(k.name).second, "two kernels have the name {}", k.name);
    add_functions(k.body, used);
    f64 |= uses_f64(k);
    require(!uses_f64(k) || !target.prelude_f64.empty(), "kernel {}: {} has no f64", k.name, target.name);
  }
  std::string out(target.prelude);
  if (f64) out += target.prelude_f64;
  std::string text;
  for (const GpuFunction* f : used) text += f->text + "\n";
  for (const GpuKernel& k : kernels) {
    text += fmt::format("{} {}({}) {{\n", target.entry, k.name, signature(k, target));
    text += target.ids;
    text += pointers(k, target);
    for (const GpuShared& s : k.shared) text += fmt::format("  {}{} {}[{}];\n", target.shared, s.type, s.name, s.count);
    text += k.body + "}\n";
  }
  for (const std::string_view m : target.missing) {
    require(!mentions(text, m), "kernel {}: {} has no function {}", kernels[0].name, target.name, m);
  }
  return out + text;
}

}  // namespace rlx
