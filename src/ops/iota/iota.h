// iota: coordinates.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct IotaAttrs {
  DType dtype = DType::i64;
  std::vector<Dim> dims;
  Index axis = 0;
  static void fields(auto& a, auto&& f) {
    f("dtype", a.dtype);
    f("dims", a.dims);
    f("axis", a.axis);
  }
};
extern const Op<IotaAttrs> iota_op;

/// The coordinate along `axis` of every element.
Value iota(Builder& builder, DType dtype, std::vector<Dim> dims, Index axis = 0);

}  // namespace rlx
