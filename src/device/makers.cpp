// Which step makers a backend has for an op.
#include "device/makers.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rlx {

MakerTable::MakerTable(std::span<const MakerFolder> folders) {
  for (const MakerFolder folder : folders) {
    for (const MakerRow& row : folder()) makers_[row.op].emplace_back(row.make);
  }
}

void MakerTable::add(const OpDef* op, BoundMaker make) {
  ensure(op && make, "a row of makers names an op and a function");
  std::vector<BoundMaker>& list = makers_[op];
  list.insert(list.begin(), std::move(make));
}

std::span<const BoundMaker> MakerTable::find(const OpDef* op) const {
  const auto it = makers_.find(op);
  return it == makers_.end() ? std::span<const BoundMaker>() : it->second;
}

std::optional<Step> MakerTable::make(const StepArgs& args) const {
  std::vector<std::string> reasons;
  std::string reason;
  StepArgs one = args;
  one.why = &reason;
  for (const BoundMaker& maker : find(args.node.op)) {
    reason.clear();
    if (std::optional<Step> step = maker(one)) {
      step->declined = std::move(reasons);
      return step;
    }
    if (!reason.empty()) reasons.push_back(reason);
  }
  if (args.why) *args.why = fmt::format("{}", fmt::join(reasons, "\n"));
  return std::nullopt;
}

}  // namespace rlx
