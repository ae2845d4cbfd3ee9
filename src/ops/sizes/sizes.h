// sizes: symbolic sizes as an integer vector.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct SizesAttrs {
  std::vector<Dim> dims;
  static void fields(auto& a, auto&& f) { f("dims", a.dims); }
};
extern const Op<SizesAttrs> sizes_op;

/// The values of `dims` as i64[n].
Value sizes(Builder& builder, std::vector<Dim> dims);
/// The shape of `x` as i64[rank].
Value shape_of(Value x);

}  // namespace rlx
