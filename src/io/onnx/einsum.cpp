// Einsum: operands are joined from left to right by matrix products, sums taken as soon as nothing reads an axis.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

// Letters are labels; the axes of an ellipsis have the labels 0, 1, … counted from the last.
using Labels = std::vector<int>;

struct Term {
  Value x;
  Labels labels;
};

bool holds(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

Index place(const Labels& labels, int label) { return std::ranges::find(labels, label) - labels.begin(); }

// Labels of one term, of `rank` axes; the ellipsis stands for as many as are left.
Labels labels_of(std::string_view text, Index rank, Index& wide) {
  Labels labels;
  const std::size_t dots = text.find("...");
  const auto letters = static_cast<Index>(text.size()) - (dots == std::string_view::npos ? 0 : 3);
  const Index hidden = dots == std::string_view::npos ? 0 : rank - letters;
  require(hidden >= 0 && letters + hidden == rank, "term {} does not fit rank {}", in_quotes(text), rank);
  wide = std::max(wide, hidden);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (Index k = hidden; k-- > 0;) labels.push_back(static_cast<int>(k));
      i += 2;
      continue;
    }
    const char c = text[i];
    require((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "term {} has the character {}", in_quotes(text),
            in_quotes(text.substr(i, 1)));
    labels.push_back(c);
  }
  return labels;
}

// A label that a term has twice names its diagonal: what stands beside it is not summed.
void take_diagonals(Term& t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    for (std::size_t k = t.labels.size(); k-- > i + 1;) {
      if (t.labels[k] != t.labels[i]) continue;
      const auto a = static_cast<Index>(i), b = static_cast<Index>(k);
      t.x.builder->check(t.x.dim(a), t.x.dim(b), "axes of a diagonal");
      std::vector<Dim> rows(t.labels.size(), Dim(1)), columns = rows;
      rows[i] = t.x.dim(a);
      columns[k] = t.x.dim(b);
      const Value on = equal(iota(*t.x.builder, DType::i64, rows, a), iota(*t.x.builder, DType::i64, columns, b));
      t.x = sum(select(on, t.x, like(t.x, 0)), {b});
      t.labels.erase(t.labels.begin() + b);
    }
  }
}

// Sums over the axes that nothing else reads.
void sum_unread(Term& t, const std::set<int>& read) {
  std::vector<Index> axes;
  Labels rest;
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    if (read.contains(t.labels[i])) {
      rest.push_back(t.labels[i]);
    } else {
      axes.push_back(static_cast<Index>(i));
    }
  }
  if (!axes.empty()) t.x = sum(t.x, axes);
  t.labels = rest;
}

// The axes of `t` in the order of these groups, each group one axis.
Value grouped(const Term& t, std::initializer_list<const Labels*> groups) {
  std::vector<Index> order;
  std::vector<Dim> dims;
  for (const Labels* group : groups) {
    Dim joined = 1;
    for (const int label : *group) {
      order.push_back(place(t.labels, label));
      joined = joined * t.x.dim(order.back());
    }
    dims.push_back(joined);
  }
  return reshape(transpose(t.x, order), dims);
}

// An axis of size 1 that stretches to the other's is dropped: it multiplies all of it.
void drop_stretched(Term& t, const Term& other) {
  for (std::size_t i = t.labels.size(); i-- > 0;) {
    const auto axis = static_cast<Index>(i);
    if (t.x.dim(axis) != Dim(1) || !holds(other.labels, t.labels[i])) continue;
    if (other.x.dim(place(other.labels, t.labels[i])) == Dim(1)) continue;
    t.x = squeeze(t.x, {axis});
    t.labels.erase(t.labels.begin() + axis);
  }
}

Term joined(Term a, Term b, const std::set<int>& read) {
  drop_stretched(a, b);
  drop_stretched(b, a);
  std::set<int> left = read, right = read;
  left.insert(b.labels.begin(), b.labels.end());
  right.insert(a.labels.begin(), a.labels.end());
  sum_unread(a, left);
  sum_unread(b, right);
  Labels batch, rows, inner, columns;
  std::vector<Dim> dims;
  for (const int label : a.labels) {
    (!holds(b.labels, label) ? rows : read.contains(label) ? batch : inner).push_back(label);
    if (!holds(b.labels, label)) continue;
    a.x.builder->check(a.x.dim(place(a.labels, label)), b.x.dim(place(b.labels, label)), "axes of one label");
  }
  for (const int label : b.labels) {
    if (!holds(a.labels, label)) columns.push_back(label);
  }
  const Value y = matmul(grouped(a, {&batch, &rows, &inner}), grouped(b, {&batch, &inner, &columns}));
  Labels labels;
  for (const auto& [group, term] : {std::pair(&batch, &a), std::pair(&rows, &a), std::pair(&columns, &b)}) {
    for (const int label : *group) {
      labels.push_back(label);
      dims.push_back(term->x.dim(place(term->labels, label)));
    }
  }
  return {reshape(y, dims), labels};
}

std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Without an arrow: the axes of the ellipsis, then the labels that occur once, in their order.
Labels implied_result(const std::vector<Labels>& terms, Index wide) {
  std::map<int, int> count;
  for (const Labels& t : terms) {
    for (const int label : t) ++count[label];
  }
  Labels result;
  for (Index k = wide; k-- > 0;) result.push_back(static_cast<int>(k));
  for (const auto& [label, times] : count) {
    if (label >= 'A' && times == 1) result.push_back(label);
  }
  return result;
}

Values einsum(NodeArgs& n) {
  const Values all = n.all();
  std::string text = n.string("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> names = parts_of(text.substr(0, arrow), ',');
  require(names.size() == all.size(), "the equation has {} terms for {} operands", names.size(), all.size());
  Index wide = 0;
  std::vector<Labels> labels;
  for (std::size_t i = 0; i < all.size(); ++i) labels.push_back(labels_of(names[i], all[i].rank(), wide));
  Labels result;
  if (arrow == std::string::npos) {
    result = implied_result(labels, wide);
  } else {
    const std::string to = text.substr(arrow + 2);
    const bool dots = to.find("...") != std::string::npos;
    result = labels_of(to, static_cast<Index>(to.size()) + (dots ? wide - 3 : 0), wide);
  }
  std::vector<Term> terms;
  for (std::size_t i = 0; i < all.size(); ++i) {
    terms.push_back({all[i], labels[i]});
    take_diagonals(terms.back());
  }
  Term done = terms[0];
  for (std::size_t i = 1; i <= terms.size(); ++i) {
    std::set<int> read(result.begin(), result.end());
    for (std::size_t k = i + 1; k < terms.size(); ++k) read.insert(terms[k].labels.begin(), terms[k].labels.end());
    if (i == terms.size()) {
      sum_unread(done, read);
    } else {
      done = joined(std::move(done), terms[i], read);
    }
  }
  std::vector<Index> order;
  for (const int label : result) {
    require(holds(done.labels, label) && std::ranges::count(result, label) == 1,
            "the result has a label that no term has, or twice");
    order.push_back(place(done.labels, label));
  }
  return {transpose(done.x, order)};
}

}  // namespace

OperatorRows einsum_rows() {
  static constexpr OperatorRow rows[] = {{"Einsum", 12, einsum}};
  return rows;
}

}  // namespace rlx::onnx
