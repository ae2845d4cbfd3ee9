// NumPy files: single arrays (npy) and archives of arrays (npz), read from the mapping and written.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "io/zip.h"

namespace rlx {

inline constexpr Index npy_max_header = 10'000;  // bytes, as in NumPy
inline constexpr Index npy_max_rank = 64;

/// What the header of an array says.
struct NpyHeader {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran = false;  // the first index runs fastest
  std::vector<Index> shape;
  Index begin = 0;  // offset of the elements
  Index bytes = 0;  // how many bytes they take
};

/// Reads the header at the start of `data` (format versions 1, 2 and 3). Throws Error that names `what`, the offset and
/// the value: element types other than bool, 8- to 64-bit integers, f2, f4, f8 and c8 are refused; so is `V2`, the form
/// bfloat16 is stored in, since it says nothing about the meaning of its bits.
NpyHeader parse_npy_header(std::span<const std::byte> data, const std::string& what);

/// The array in the bytes of a file; nothing may follow it. Little-endian arrays in C order are used in place (copied
/// when they are misaligned); others are converted. `name` stands for the path in messages.
Tensor parse_npy(const Bytes& file, const std::string& name);
/// The array in the file `path`.
Tensor read_npy(const std::string& path, FileMode mode = FileMode::map);
/// Writes format version 1; the elements start at a multiple of 64. Throws Error for encoded tensors and for element
/// types that NumPy has no name for: bf16, the 8-bit floats, i4 and u4.
void write_npy(const std::string& path, const Tensor& tensor);

/// An open archive of arrays.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path, FileMode mode = FileMode::map);
  NpzFile(Bytes file, const std::string& name);

  /// Names of the arrays (entries whose name ends in `.npy`, without that), in the order of the archive.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// Size of the array's npy file in bytes: what `at` may take when the entry is deflated.
  Index unpacked_bytes(std::string_view name) const;
  /// The array called `name`. Stored arrays are used in place where alignment and order allow it. A deflated one is
  /// unpacked only if its header asks for exactly the size that the archive states. Throws Error when there is none, or
  /// the CRC differs.
  Tensor at(std::string_view name) const;

 private:
  ZipEntry entry(std::string_view name) const;

  std::string path_;
  ZipReader zip_;
};

/// All arrays of an archive.
std::map<std::string, Tensor> read_npz(const std::string& path, FileMode mode = FileMode::map);
/// Writes an archive that appears under `path` only when it is complete. Throws Error as write_npy does.
void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compress = false);

}  // namespace rlx
