// Control flow: nodes whose bodies run by a condition, once a trip, or as a named piece. Bodies see nothing of the
// graph around them but size symbols: what they read comes in through operands.
#pragma once

#include <functional>

#include "ir/builder.h"

namespace rlx {

struct ScanAttrs {
  Dim trips = 0;
  Index carried = 0;                    // operands whose value goes from trip to trip
  Index scanned = 0;                    // operands of which each trip reads one slice
  std::vector<Index> backward;          // scanned operands, by number, that are read from the last slice to the first
  std::vector<Index> backward_results;  // stacked results, by number, that are written from the last slice to the first
  static void fields(auto& a, auto&& f) {
    f("trips", a.trips);
    f("carried", a.carried);
    f("scanned", a.scanned);
    f("backward", a.backward);
    f("backward_results", a.backward_results);
  }
};
struct WhileAttrs {
  Index carried = 0;  // operands behind the condition whose value goes from trip to trip
  static void fields(auto& a, auto&& f) { f("carried", a.carried); }
};
struct CallAttrs {
  std::string name;
  static void fields(auto& a, auto&& f) { f("name", a.name); }
};

/// Operands: condition bool[], captures. Bodies: the one for true, the one for false.
const OpDef& if_op();
/// Operands: condition bool[], carried, captures. The body gives the next condition and the carried values.
const OpDef& while_op();
/// Operands: carried, scanned (axis 0 has `trips` slices), captures. The body gives the carried values and one slice of
/// each stacked result.
const OpDef& scan_op();
/// Operands: those of the body.
const OpDef& call_op();

/// Whether the bodies of a node are run by the program around them: if, while, scan.
bool is_control(const OpDef& op);

/// The results of `yes` or of `no`, whose inputs are `captures` and whose results have equal types.
Values if_else(Value condition, std::span<const Value> captures, GraphPtr yes, GraphPtr no);
/// `carried` as it is when the condition is first false. Throws Error when a carried value changes its type.
Values while_loop(Value condition, std::span<const Value> carried, std::span<const Value> captures, GraphPtr body);
/// The carried values after the last trip, then the stacked results, of size `trips` along a new axis 0. With no trip
/// the carried values are the operands. `operands`: carried, scanned, captures.
Values scan(Builder& builder, ScanAttrs attrs, std::span<const Value> operands, GraphPtr body);
/// The results of `body`; `name` is for people.
Values call(Builder& builder, std::string name, std::span<const Value> operands, GraphPtr body);

/// The graph with the bodies of its if, while and scan nodes, and the bodies inside of these, replaced by `change` of
/// them, innermost first. `change` keeps inputs and outputs.
Graph map_bodies(const Graph& g, const std::function<Graph(const Graph&)>& change);

/// Operand types of a body against its inputs, from operand `first` on; for inference.
void check_body(const Graph& body, Types operands, std::size_t first, std::string_view name);

}  // namespace rlx
