// Imports of files that lie, watched.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "io/bounded.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "ir/verify.h"

namespace rlx::test {

inline Graph import_text(const std::string& bytes) { return import_onnx(bytes_of(bytes), "m"); }

/// Whether the import of `bytes` throws an Error that contains `part`.
inline bool refused(const std::string& bytes, std::string_view part) {
  return refuses([&] { import_text(bytes); }, part);
}

/// Imports in a child with so many mebibytes, three times the file besides, and two seconds: what is wrong, or nothing.
/// An empty `part` wants success.
inline std::string import_bounded(const std::string& bytes, std::string_view part, Index mebibytes) {
  const Index limit = (mebibytes << 20) + 3 * static_cast<Index>(bytes.size());
  return run_bounded(0, 1, limit, [&](Index) -> std::string {
    try {
      verify(import_text(bytes));
      return part.empty() ? "" : "it was accepted";
    } catch (const Error& e) {
      const std::string text = e.what();
      const bool right = !part.empty() && text.find(part) != text.npos && text.size() < 20000;
      return right ? "" : "message: " + text.substr(0, 600);
    }
  });
}

}  // namespace rlx::test
