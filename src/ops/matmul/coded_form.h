// Matrices of codes as kernels read them: which kernel a format has, and the packing of its blocks.
#pragma once

#include <optional>

#include "codecs/codec.h"
#include "codecs/integer_form.h"
#include "device/step.h"
#include "ops/matmul/coded.kernel.h"

namespace rlx {

/// How the kernels read a format.
struct CodedMatrix {
  const IntegerForm* form = nullptr;
  CodedKind kind{};
  /// Bytes of a panel of 64 columns, and units of inner indices in it.
  Index panel_bytes(Index inner) const;
  Index units(Index inner) const { return inner / form->block; }
  const CodedKernel& kernel() const { return coded_kernels().kinds[static_cast<int>(kind)]; }
};

/// Nothing when the format has no integers that a kernel reads.
std::optional<CodedMatrix> coded_matrix(const Encoding& encoding);

/// The packing of a constant [columns, inner] of such a format, or of a bank [matrices, columns, inner].
Packing coded_packing(const CodedMatrix& m, const TensorType& type);

}  // namespace rlx
