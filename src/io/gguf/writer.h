// Writes GGUF files of version 3: metadata, and tensors one after another as they are made.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/os_posix.h"
#include "io/gguf/gguf.h"

namespace rlx {

/// Metadata to be written: keys in the order in which they were first set.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  /// All keys of a file, but those about its parts (`split.*`).
  explicit GgufMetadata(const GgufFile& file);

  /// Sets a key: bool, an integer type, float, double, text, or a vector of those. A key that is there keeps its place.
  /// Throws Error unless the key is 1 to 65,535 bytes of UTF-8.
  template <class T>
  void set(std::string_view key, const T& value);
  /// Sets a key to a value of a file.
  void set(std::string_view key, const GgufValue& value);
  void erase(std::string_view key);
  bool has(std::string_view key) const;
  Index count() const { return static_cast<Index>(items_.size()); }
  /// `general.alignment`, 32 where it is not set.
  Index alignment() const { return alignment_; }

 private:
  friend class GgufWriter;
  struct Item {
    std::string key, bytes;  // type and value as in the file
  };
  void put(std::string_view key, std::string bytes);

  std::vector<Item> items_;
  Index alignment_ = 32;
};

/// A tensor that is going to be written.
struct GgufPlan {
  std::string name;
  const GgufTensorType* type = nullptr;
  std::vector<Index> shape;
};

/// A model of several files: a new one begins where the next tensor would exceed one of the limits; 0: no limit.
struct GgufSplits {
  Index tensors = 0, bytes = 0;
};
inline constexpr Index gguf_max_written_splits = 500;

/// Writes a model. The files appear under their names when all of them are complete; without `commit` nothing appears.
class GgufWriter {
 public:
  /// Begins `path`, or, when the tensors need several files, `PREFIX-00001-of-00003.gguf` and so on for `PREFIX.gguf`.
  /// Throws Error for tensors, names and counts that the reader would refuse.
  GgufWriter(const std::string& path, const GgufMetadata& metadata, std::vector<GgufPlan> tensors,
             GgufSplits splits = {});

  /// The data of the next tensor, of the size that its type and shape ask for.
  void write(std::span<const std::byte> data);
  void write(const Tensor& tensor) { write(tensor.bytes()); }
  /// After all tensors: makes the files appear.
  void commit();
  /// Paths of the files.
  const std::vector<std::string>& paths() const { return paths_; }
  /// Bytes written so far.
  Index size() const;

 private:
  struct Part {
    std::size_t begin = 0, end = 0;  // tensors
    std::unique_ptr<AtomicFile> file;
  };
  void check() const;
  void divide(GgufSplits splits);
  std::string header(const GgufMetadata& metadata, const Part& part) const;

  std::vector<GgufPlan> tensors_;
  std::vector<Part> parts_;
  std::vector<std::string> paths_;
  Index alignment_;
  std::size_t next_ = 0, part_ = 0;
};

/// Writes tensors that are there already.
void write_gguf(const std::string& path, const GgufMetadata& metadata,
                const std::vector<std::pair<std::string, Tensor>>& tensors, GgufSplits splits = {});

namespace detail {

/// The type of the format for a C++ type.
template <class T>
constexpr GgufType gguf_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return GgufType::boolean;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return GgufType::string;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? GgufType::f32 : GgufType::f64;
  } else {
    static_assert(std::is_integral_v<T>);
    constexpr bool negative = std::is_signed_v<T>;
    return sizeof(T) == 1   ? (negative ? GgufType::i8 : GgufType::u8)
           : sizeof(T) == 2 ? (negative ? GgufType::i16 : GgufType::u16)
           : sizeof(T) == 4 ? (negative ? GgufType::i32 : GgufType::u32)
                            : (negative ? GgufType::i64 : GgufType::u64);
  }
}

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
void append_value(std::string& out, const T& value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    const std::string_view text = value;
    append_number(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  } else {
    append_number(out, value);
  }
}

}  // namespace detail

template <class T>
void GgufMetadata::set(std::string_view key, const T& value) {
  std::string bytes;
  if constexpr (detail::is_vector<T>) {
    using Element = typename T::value_type;
    detail::append_number(bytes, static_cast<std::uint32_t>(GgufType::array));
    detail::append_number(bytes, static_cast<std::uint32_t>(detail::gguf_type<Element>()));
    detail::append_number(bytes, static_cast<std::uint64_t>(value.size()));
    for (const auto& e : value) detail::append_value<Element>(bytes, e);
  } else {
    detail::append_number(bytes, static_cast<std::uint32_t>(detail::gguf_type<T>()));
    detail::append_value<T>(bytes, value);
  }
  put(key, std::move(bytes));
}

}  // namespace rlx
