// Hostile ONNX files in bulk: each is read as a plain walker of the wire format reads it and becomes a graph that
// verifies, or is refused by an Error, within two seconds and a bound on memory, in a child process.
#include <gtest/gtest.h>

#include "core/error.h"
#include "io/bounded.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "ir/verify.h"

namespace rlx::test {
namespace {

constexpr Index mebi = Index{1} << 20;

// --- a plain walker ---

struct Part {
  int field = 0, wire = 0;
  std::uint64_t value = 0;
  std::string bytes;
  std::vector<Part> parts;  // of bytes that read as a message
  bool is_message = false;
};

bool read_number(const std::string& s, std::size_t& at, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at < s.size(); shift += 7) {
    const auto b = static_cast<unsigned char>(s[at++]);
    value |= std::uint64_t{b & 0x7fu} << shift;
    if (b < 0x80) return true;
  }
  return false;
}

bool read_parts(const std::string& s, std::vector<Part>& out, int depth) {
  for (std::size_t at = 0; at < s.size();) {
    Part p;
    std::uint64_t key = 0, size = 0;
    if (!read_number(s, at, key) || key >> 3 == 0 || (depth > 0 && key >> 3 > 1000)) return false;
    p.field = static_cast<int>(key >> 3);
    p.wire = static_cast<int>(key & 7);
    if (p.wire == 0) {
      if (!read_number(s, at, p.value)) return false;
    } else if (p.wire == 1 || p.wire == 5 || p.wire == 2) {
      size = p.wire == 1 ? 8 : 4;
      if (p.wire == 2 && !read_number(s, at, size)) return false;
      if (size > s.size() - at) return false;
      p.bytes = s.substr(at, size);
      at += size;
      p.is_message = p.wire == 2 && depth > 0 && p.bytes.size() > 1 && read_parts(p.bytes, p.parts, depth - 1);
      if (!p.is_message) p.parts.clear();
    } else {
      return false;
    }
    out.push_back(std::move(p));
  }
  return true;
}

std::string written(const std::vector<Part>& parts) {
  std::string s;
  for (const Part& p : parts) {
    if (p.wire == 0) {
      s += number_field(p.field, p.value);
    } else if (p.wire == 2) {
      s += bytes_field(p.field, p.is_message ? written(p.parts) : p.bytes);
    } else {
      s += varint(static_cast<std::uint64_t>(p.field << 3 | p.wire)) + p.bytes;
    }
  }
  return s;
}

/// The bytes of all fields `field` of a message.
std::vector<std::string> fields(const std::string& message, int field) {
  std::vector<Part> parts;
  std::vector<std::string> found;
  if (!read_parts(message, parts, 0)) return {"?"};
  for (const Part& p : parts) {
    if (p.field == field) found.push_back(p.bytes);
  }
  return found;
}

std::string first(const std::vector<std::string>& list) { return list.empty() ? "" : list[0]; }

std::string compare(const onnx::ModelProto& m, const std::string& file) {
  const std::string graph = first(fields(file, 7));
  const auto nodes = fields(graph, 1), tensors = fields(graph, 5), inputs = fields(graph, 11);
  if (nodes.size() != m.graph.nodes.size()) return "number of nodes";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const onnx::NodeProto& n = m.graph.nodes[i];
    if (n.op != first(fields(nodes[i], 4)) || n.name != first(fields(nodes[i], 3))) return "operator of a node";
    const auto in = fields(nodes[i], 1), out = fields(nodes[i], 2);
    if (!std::equal(in.begin(), in.end(), n.inputs.begin(), n.inputs.end())) return "inputs of a node";
    if (!std::equal(out.begin(), out.end(), n.outputs.begin(), n.outputs.end())) return "outputs of a node";
    if (fields(nodes[i], 5).size() != n.attributes.size()) return "attributes of a node";
  }
  if (tensors.size() != m.graph.initializers.size() || inputs.size() != m.graph.inputs.size()) return "graph";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const onnx::TensorProto& t = m.graph.initializers[i];
    if (t.name != first(fields(tensors[i], 8)) || t.raw != first(fields(tensors[i], 9))) return "an initializer";
  }
  return "";
}

std::string check(const std::string& file) {
  try {
    const Bytes bytes = bytes_of(file);
    std::string wrong = compare(*onnx::read_model(bytes, "mutant"), file);
    if (!wrong.empty()) return wrong;
    verify(import_onnx(bytes, "mutant"));
    return "";
  } catch (const Error& e) {
    const std::string_view text = e.what();
    return text.find("mutant") != text.npos && text.size() < 20000 ? "" : "the message is: " + std::string(text);
  }
}

/// Small models: multilayer perceptrons, shape arithmetic, functions, branches, every part of the format.
std::vector<std::string> bases() {
  std::vector<std::string> all;
  for (const char* name : {"perceptron_legacy", "perceptron_dynamo", "everything"}) {
    all.push_back(read_text(onnx_file(std::string(name) + ".onnx")));
  }
  const auto data = read_npz(onnx_file("operators.npz"));
  for (const char* name : {"chain_expand", "chain_reshape", "chain_halves", "gather_nd_grid", "gather_grid", "function",
                           "branch", "slice_steps", "split_number", "pad_axes", "attention_mask", "range", "one_hot"}) {
    const Tensor& t = data.at(std::string(name) + "/model");
    all.emplace_back(reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size());
  }
  return all;
}

std::string run(Index count, const std::function<std::string(std::size_t)>& mutant) {
  return run_bounded(0, count, 96 * mebi, [&](Index i) { return check(mutant(static_cast<std::size_t>(i))); });
}

TEST(BulkOnnx, BasesAreReadRightly) {
  for (const std::string& base : bases()) EXPECT_EQ(check(base), "");
}

TEST(BulkOnnx, TruncatedAtEveryByte) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(run(static_cast<Index>(base.size()), [&](std::size_t i) { return base.substr(0, i); }), "");
  }
}

TEST(BulkOnnx, RandomFlips) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(run(1500, [&](std::size_t i) { return flip(base, i); }), "");
  }
}

TEST(BulkOnnx, RandomPieces) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(run(500, [&](std::size_t i) { return splice(base, 0, base.size(), i); }), "");
  }
}

// --- mutants that stay well formed ---

void collect(std::vector<Part>& parts, std::vector<std::pair<std::vector<Part>*, std::size_t>>& all) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.emplace_back(&parts, i);
    collect(parts[i].parts, all);
  }
}

/// Numbers, texts and lists that readers trip over, in place of one field; or a field left out, doubled or moved.
void mutate(std::vector<Part>& model, Random& random) {
  static const std::uint64_t numbers[] = {
      0, 1, 2, 3, ~0ull, 1ull << 31, (1ull << 32) - 1, 1ull << 62, (1ull << 63) - 1, 1ull << 63, 7, 17};
  static const std::string texts[] = {"",       "x",       "y",     "..",      "\xff",   std::string(1, '\0'),
                                      "batch",  "ai.onnx", "Shape", "Reshape", "Gather", "Concat",
                                      "Expand", "Tile",    "Slice", "Where",   "Range",  "Split",
                                      "If"};
  std::vector<std::pair<std::vector<Part>*, std::size_t>> all;
  collect(model, all);
  if (all.empty()) return;
  const auto [list, i] = all[random.below(all.size())];
  Part& p = (*list)[i];
  switch (random.below(6)) {
    case 0:
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(i));
      return;
    case 1:
      list->insert(list->begin() + static_cast<std::ptrdiff_t>(random.below(list->size() + 1)), Part(p));
      return;
    case 2:
      std::swap(p, (*list)[random.below(list->size())]);
      return;
    case 3: {
      const auto [other, k] = all[random.below(all.size())];
      Part copy = (*other)[k];
      if (copy.wire == p.wire) copy.field = p.field;
      (*list)[i] = std::move(copy);
      return;
    }
    default:
      break;
  }
  if (p.wire == 0) {
    p.value = random.below(3) == 0 ? p.value + random.below(3) - 1 : numbers[random.below(std::size(numbers))];
  } else if (p.wire == 2 && !p.is_message) {
    p.bytes = texts[random.below(std::size(texts))];
  } else if (!p.bytes.empty()) {
    p.is_message = false;
    p.bytes = flip(p.bytes, random.next());
    if (p.wire != 2) p.bytes.resize(p.wire == 1 ? 8 : 4);
  }
}

TEST(BulkOnnx, FieldsChanged) {
  for (const std::string& base : bases()) {
    std::vector<Part> parts;
    ASSERT_TRUE(read_parts(base, parts, 8));
    EXPECT_EQ(check(written(parts)), "");
    EXPECT_EQ(run(2500,
                  [&](std::size_t i) {
                    Random random(i + 1);
                    std::vector<Part> mutant = parts;
                    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes) mutate(mutant, random);
                    return written(mutant);
                  }),
              "");
  }
}

}  // namespace
}  // namespace rlx::test
