// Tensors of an ONNX model as host tensors: elements in the file are used in place, external files are mapped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/tensor.h"
#include "io/onnx/model.h"

namespace rlx::onnx {

/// The element type of rlx for one of the format, if there is one.
std::optional<DType> dtype_of(std::int32_t type);

/// Makes tensors of one model. Raw elements and packed lists of 32- and 64-bit floats share the bytes of their file
/// when they are aligned to their size, and are copied once otherwise; elements written as varints are converted, in
/// all of the model at most as many bytes as the model file has and 64 MB.
class TensorLoader {
 public:
  /// External data lies in the folder of `model.file.name`; a model read from bytes (`has_folder` false) has none.
  TensorLoader(const ModelProto& model, FileMode mode, bool has_folder);

  /// Throws Error that names the tensor: for element types that rlx lacks, extents that are negative or overflow, a
  /// number of elements or bytes that does not fit them, elements given twice, segments, and external data that is not
  /// a regular file of the model's folder or not inside of that file.
  /// A tensor that is asked for again is the same one.
  const Tensor& load(const TensorProto& tensor);
  /// How many tensors were copied because of their alignment.
  Index copies() const { return copies_; }

 private:
  Tensor read(const TensorProto& t);
  Tensor in_place(const TensorProto& t, const TensorType& type, Bytes bytes);
  Tensor external(const TensorProto& t, const TensorType& type, Index bytes);
  Tensor typed(const TensorProto& t, const TensorType& type, Index count);
  const Bytes& open(const TensorProto& t);

  const ModelProto* model_;
  FileMode mode_;
  bool has_folder_;
  Index convertible_;  // bytes that may still be made from varints
  Index copies_ = 0;
  std::map<std::string, Bytes, std::less<>> files_;
  std::unordered_map<const TensorProto*, Tensor> loaded_;
};

}  // namespace rlx::onnx
