// A GPU kernel, written once: its signature as data, its body as text in a C subset that all targets understand. A
// target (CUDA, OpenCL C, Metal, HIP) is a row of a table; render() joins the two.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace rlx {

/// One argument. `type` is a name of the common subset (see GpuKernel).
struct GpuParam {
  enum class Kind : std::uint8_t {
    in,    // elements that are read
    out,   // elements that are written, or read and written
    size,  // an i64
  };
  Kind kind = Kind::in;
  std::string name;
  std::string type;
};

/// An array that the work items of a group share; `count` is a constant.
struct GpuShared {
  std::string name, type;
  Index count = 1;
};

/// A kernel. What the body may use, beside C without pointers of its own:
/// - the types f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 and bool;
/// - its parameters and shared arrays by name, `x[i]`;
/// - group_x (i64, number of the group), local_x and size_x (i32, number of the item in the group, items of a group);
/// - sync(): all items of the group wait for each other and see each other's shared arrays;
/// - f32_bits, bits_f32, f64_bits, bits_f64: the bits of a number, and back;
/// - exp expm1 log log1p sqrt sin cos tan atan atan2 tanh erf erfc pow fmod floor ceil trunc rint fabs ldexp, on f32
/// and
///   f64;
/// - the functions of gpu_functions(), which are added to the text when they are used.
/// Products and sums are never contracted to fma.
struct GpuKernel {
  std::string name;
  std::vector<GpuParam> params;
  std::vector<GpuShared> shared;
  std::string body;
};

/// All that differs between the languages.
struct GpuTarget {
  std::string_view name;
  std::string_view prelude;                // types and macros of the common subset
  std::string_view prelude_f64;            // the same for f64; empty: the language has none
  std::string_view entry;                  // before the kernel's name
  std::string_view buffer;                 // before the element type of a buffer
  std::string_view shared;                 // before a shared array
  std::string_view size_open, size_close;  // around the type of a size
  std::string_view more_params;
  std::string_view ids;                       // declares group_x, local_x, size_x
  bool numbered = false;                      // arguments carry their number
  bool offsets = false;                       // a buffer is a handle and an offset in bytes: NAME_base, NAME_offset
  std::span<const std::string_view> missing;  // functions that the language lacks
};

extern const GpuTarget cuda_target, opencl_target, metal_target, hip_target;
std::span<const GpuTarget* const> gpu_targets();

/// The text of a kernel for a target. Throws Error when the target lacks f64 or a function that the kernel uses, and
/// when a name is a word of one of the languages or is used twice.
std::string render(const GpuKernel& kernel, const GpuTarget& target);
/// Several kernels with different names as one text, which compiles faster than one text each.
std::string render(std::span<const GpuKernel> kernels, const GpuTarget& target);

/// Whether the text of a kernel mentions f64.
bool uses_f64(const GpuKernel& kernel);

/// A function of the common subset, by name.
struct GpuFunction {
  std::string name, text;
};
/// Numbers that no language has: activations, and the codes of small floats (f16_value, f16_code, ...).
std::span<const GpuFunction> gpu_functions();

/// Type of a stored element in kernel text; floats of less than 32 bits are stored as their codes. Throws Error for
/// elements of less than a byte and for complex ones.
std::string_view gpu_storage(DType type);
/// Type of an element once it is loaded: small floats are f32, bool is bool.
DType gpu_value(DType type);
/// Whether elements of this type are loaded and stored by kernels.
bool gpu_loads(DType type);
/// Text of the value of a stored element, and of the stored form of a value.
std::string gpu_load(DType type, const std::string& element);
std::string gpu_store(DType type, const std::string& value);
/// Text of a number of a value type (f32, f64, integers, bool), exact.
std::string gpu_number(DType value_type, double number);
std::string gpu_number(DType value_type, std::int64_t number);

}  // namespace rlx
