// The interface of a graph, and binding its symbols.
#include "runtime/interface.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "ir/measure.h"

namespace rlx {

bool knows(const DimSymbols& symbols, const Check& c) {
  DimSymbols used;
  c.left.collect_symbols(used);
  c.right.collect_symbols(used);
  return std::ranges::all_of(used, [&](const auto& s) { return symbols.contains(s.first); });
}

void verify_check(const Check& c, const DimEnv& env) {
  const Index left = c.left.evaluate(env), right = c.right.evaluate(env);
  require(left == right, "{}: {} is {}, {} is {}, they must be equal", c.why, c.left.text(), left, c.right.text(),
          right);
}

Interface::Interface(const Graph& g) : symbols(g.symbols) {
  for (const Measure& m : measures(g)) symbols.erase(m.symbol);
  std::ranges::copy_if(g.checks, std::back_inserter(checks), [&](const Check& c) { return knows(symbols, c); });
  std::unordered_map<Id, std::size_t> position;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    inputs.push_back({g.input_names[i], g.nodes[g.inputs[i]].results[0]});
    position.emplace(g.inputs[i], i);
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    outputs.push_back({i < g.output_names.size() ? g.output_names[i] : "", g.type(g.outputs[i])});
  for (const StatePair& s : g.states) states.push_back({s.name, position.at(s.input.node), g.type(s.input)});
}

namespace {

void bind_input(const std::string& name, const TensorType& type, const TensorType& value, DimEnv& env) {
  const bool same_kind = value.dtype == type.dtype && value.encoding == type.encoding &&
                         (!type.encoding || value.block_axis == type.block_axis);
  require(same_kind && value.rank() == type.rank(), "input {} is {}, expected {}", name, value.text(), type.text());
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const std::string_view symbol = type.dims[i].symbol_name();
    if (symbol.empty()) continue;
    const Bounds b = type.dims[i].bounds();
    const Index size = value.dims[i].constant();
    require(b.lo <= size && size <= b.hi, "input {} is {}: size {} of {} is outside its bounds {}..{}", name,
            value.text(), size, symbol, b.lo, b.hi);
    const auto [it, added] = env.emplace(symbol, size);
    require(added || it->second == size, "input {} is {}: size symbol {} is {} and {}", name, value.text(), symbol,
            it->second, size);
  }
}

}  // namespace

DimEnv bind_dims(const Interface& interface, Types inputs, const DimEnv& dims) {
  require(inputs.size() == interface.inputs.size(), "{} inputs are given, the graph has {}", inputs.size(),
          interface.inputs.size());
  DimEnv env = dims;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    bind_input(interface.inputs[i].name, interface.inputs[i].type, inputs[i], env);
  for (const auto& [name, bounds] : interface.symbols) {
    const auto it = env.find(name);
    require(it != env.end(), "size symbol {} has no value: no input shows it alone", name);
    require(bounds.lo <= it->second && it->second <= bounds.hi, "size symbol {} is {}, outside its bounds {}..{}", name,
            it->second, bounds.lo, bounds.hi);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& t = interface.inputs[i].type;
    for (std::size_t k = 0; k < t.dims.size(); ++k) {
      require(t.dims[k].evaluate(env) == inputs[i].dims[k].constant(), "input {} is {}: size {} is {}, expected {}",
              interface.inputs[i].name, inputs[i].text(), t.dims[k].text(), inputs[i].dims[k].constant(),
              t.dims[k].evaluate(env));
    }
  }
  for (const Check& c : interface.checks) verify_check(c, env);
  return env;
}

}  // namespace rlx
