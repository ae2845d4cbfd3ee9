// Names of parameters become names in a file, and parts of stored tensors become parameters.
#include "models/stored_weights.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

namespace {

std::string replaced(std::string_view pattern, std::string_view what, std::string_view with) {
  std::string text(pattern);
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

// `layers.3.experts.5.gate` as a pattern with its numbers.
struct Numbered {
  std::string pattern, layer, expert;
};

Numbered numbered(std::string_view name) {
  Numbered n;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, dot);
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (!n.pattern.empty()) n.pattern += ".";
    if (!digits) {
      n.pattern += part;
    } else if (n.layer.empty()) {
      n.layer = part;
      n.pattern += "{}";
    } else {
      n.expert = part;
      n.pattern += "<>";
    }
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return n;
}

bool is_norm(std::string_view name) { return name.find("norm.") != std::string_view::npos; }

Tensor plus(const Tensor& t, double offset) {
  Tensor sum(t.dtype() == DType::f64 ? DType::f64 : DType::f32, t.shape());
  std::vector<double> values = load<double>(t);
  for (double& v : values) v += offset;
  store(sum, values);
  return sum;
}

Index bytes_of(const TensorType& type, std::size_t plane) { return type.plane_bytes(plane).constant(); }

}  // namespace

Tensor rows_of(const Tensor& t, Index begin, Index count) {
  const Index all = t.shape().empty() ? 0 : t.shape()[0];
  require(begin >= 0 && count >= 0 && begin + count <= all, "rows {} to {} of a tensor {}", begin, begin + count,
          t.type().text());
  if (begin == 0 && count == all) return t;
  const TensorType type = t.type().with(0, count);
  require(!type.encoding || (type.rank() >= 2 && type.block_axis == type.rank() - 1),
          "rows of a tensor {}, whose blocks do not lie in rows", t.type().text());
  require(type.encoding || bits(type.dtype) >= 8, "rows of a tensor {}, whose elements share bytes", t.type().text());
  std::vector<Bytes> planes;
  for (std::size_t p = 0; p < type.plane_count(); ++p) {
    const Index whole = bytes_of(t.type(), p), part = bytes_of(type, p);
    Bytes plane = t.plane(p);
    // A plane that holds something once for the tensor, or once for every column, is every row's.
    if (part != whole) {
      plane.data = plane.data.subspan(static_cast<std::size_t>(whole / all * begin), static_cast<std::size_t>(part));
    }
    planes.push_back(std::move(plane));
  }
  return {type, std::move(planes)};
}

Tensor matrix_of(const Tensor& stack, Index number) {
  const Tensor one = rows_of(stack, number, 1);
  TensorType type = one.type();
  type.dims.erase(type.dims.begin());
  if (type.encoding) --type.block_axis;
  std::vector<Bytes> planes;
  for (std::size_t p = 0; p < type.plane_count(); ++p) planes.push_back(one.plane(p));
  return {type, std::move(planes)};
}

Tensor transposed(const Tensor& t) {
  require(t.rank() == 2 && !t.type().encoding && bits(t.dtype()) >= 8, "a tensor {} cannot be transposed",
          t.type().text());
  const Index rows = t.shape()[0], columns = t.shape()[1];
  Tensor to(t.dtype(), {columns, rows});
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) to.set_code(c * rows + r, t.code(r * columns + c));
  }
  return to;
}

StoredWeights::StoredWeights(const WeightSource& source, std::vector<StoredName> rows, const StoredSizes& sizes,
                             std::string_view first)
    : source_(&source), rows_(std::move(rows)), sizes_(sizes) {
  const std::string wanted = std::string(first) + ".weight";
  if (contains(wanted)) return;
  for (const StoredName& row : rows_) {
    const std::size_t dot = row.stored.find('.');
    if (row.parameter != first || dot == std::string_view::npos) continue;
    removed_ = row.stored.substr(0, dot + 1);
    if (contains(wanted)) return;
  }
  removed_.clear();
}

StoredWeights::Rows StoredWeights::rows_of(std::string_view parameter, Fused fused) const {
  const Index q = sizes_.query, k = sizes_.key, f = sizes_.ffn;
  if (fused == Fused::gate_up) return {parameter.ends_with("gate") ? 0 : f, f, 2 * f};
  if (parameter.ends_with("query")) return {0, q, q + 2 * k};
  return {parameter.ends_with("key") ? q : q + k, k, q + 2 * k};
}

std::optional<StoredWeights::Place> StoredWeights::place(const std::string& pattern, std::string_view suffix,
                                                         const std::string& layer, const std::string& expert) const {
  for (const StoredName& row : rows_) {
    const std::string_view known = row.parameter;
    const bool stack = !expert.empty() && replaced(pattern, "<>.", "") == known;
    if (known != pattern && !stack) continue;
    std::string name = replaced(replaced(row.stored, "{}", layer), "<>", expert) + std::string(suffix);
    if (name.starts_with(removed_)) name.erase(0, removed_.size());
    if (!source_->contains(name)) continue;
    return Place{std::move(name), &row, stack ? std::stoll(expert) : -1};
  }
  return std::nullopt;
}

std::optional<StoredWeights::Place> StoredWeights::find(std::string_view name) const {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const Numbered n = numbered(name.substr(0, dot));
  return place(n.pattern, name.substr(dot), n.layer, n.expert);
}

Tensor StoredWeights::stored(std::string_view name) const {
  used_.insert(std::string(name));
  return source_->at(name);
}

Tensor StoredWeights::at(std::string_view name) const {
  const std::optional<Place> place = find(name);
  require(place.has_value(), "{}: there is no tensor for the parameter {}", description(), name);
  Tensor t = stored(place->stored);
  if (place->row->transposed && t.rank() == 2) t = transposed(t);
  if (place->row->fused != Fused::no) {
    const Rows rows = rows_of(place->row->parameter, place->row->fused);
    require(!t.shape().empty() && t.shape()[0] == rows.all, "{}: tensor {} has shape {}, expected {} rows",
            description(), place->stored, text(t.shape()), rows.all);
    t = rlx::rows_of(t, rows.begin, rows.count);
  }
  if (place->expert >= 0) {
    require(t.rank() == 3 && place->expert < t.shape()[0],
            "{}: tensor {} is {}, expected a stack of more than {} matrices", description(), place->stored,
            t.type().text(), place->expert);
    return matrix_of(t, place->expert);
  }
  return sizes_.norm_offset != 0 && is_norm(name) ? plus(t, sizes_.norm_offset) : t;
}

std::vector<std::string> StoredWeights::unused() const {
  std::vector<std::string> left;
  for (std::string& n : source_->names()) {
    if (!used_.contains(n)) left.push_back(std::move(n));
  }
  std::ranges::sort(left);
  return left;
}

}  // namespace rlx
