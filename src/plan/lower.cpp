// From graph to program: slots for values, views, steps, copies, outputs and states.
#include <algorithm>
#include <map>

#include "core/error.h"
#include "device/view.h"
#include "ir/control.h"
#include "ir/outline.h"
#include "ops/constant/constant.h"
#include "plan/memory.h"
#include "plan/program.h"

namespace rlx {

namespace {

constexpr BufferId unplaced = own_scratch;

class Lowering {
 public:
  Lowering(GraphPtr graph, const MakerTable& makers, const CopyMaker& copy)
      : g_(*graph), makers_(makers), copy_(copy), live_(live_nodes(g_)) {
    p_.graph = std::move(graph);
    slots_.resize(g_.nodes.size());
  }

  Program run() {
    inputs();
    keep_old_states();
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (live_[i] && !is_input(g_.nodes[i])) node(i);
    }
    if (!missing_.empty()) {
      std::string text;
      for (const std::string& m : missing_) text += "\n  " + m;
      fail("{} node{} cannot run on this device:{}", missing_.size(), missing_.size() == 1 ? "" : "s", text);
    }
    index_uses();
    keep_old_views();
    states();
    outputs();
    sizes(g_, "");
    p_.checks = g_.checks;
    return std::move(p_);
  }

 private:
  BufferId buffer(BufferKind kind, std::size_t number, Dim bytes, Operand value) {
    p_.buffers.push_back({kind, number, std::move(bytes), value});
    p_.shares.push_back(static_cast<BufferId>(p_.buffers.size() - 1));
    return p_.shares.back();
  }

  // A dense slot over a whole new buffer.
  Slot fresh(BufferKind kind, std::size_t number, Operand value) {
    const TensorType& t = g_.type(value);
    require(t.plane_count() == 1, "{} has the encoded type {} of {} planes, which only constants may have",
            describe(g_, value.node), t.text(), t.plane_count());
    const bool caller = kind == BufferKind::input || kind == BufferKind::output || kind == BufferKind::state;
    require(!t.encoding || !caller, "{} has the encoded type {}, expected a dense {}", describe(g_, value.node),
            t.text(),
            kind == BufferKind::input    ? "input"
            : kind == BufferKind::output ? "output"
                                         : "state");
    return {buffer(kind, number, t.plane_bytes(0), value), t};
  }

  void inputs() {
    std::map<Id, std::size_t> state_of;
    for (std::size_t i = 0; i < g_.states.size(); ++i) state_of.emplace(g_.states[i].input.node, i);
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const auto state = state_of.find(g_.inputs[i]);
      const bool is_state = state != state_of.end();
      const Slot s =
          fresh(is_state ? BufferKind::state : BufferKind::input, is_state ? state->second : i, {g_.inputs[i], 0});
      slots_[g_.inputs[i]] = {s};
      p_.inputs.push_back(s.buffer);
    }
  }

  void push(Step step, Id node) {
    for (Use& u : step.uses) {
      if (u.buffer == own_scratch) u.buffer = buffer(BufferKind::arena, 0, u.bytes, {node, 0});
    }
    p_.steps.push_back(std::move(step));
    p_.nodes.push_back(node);
  }

  // A dense copy of a slot in a new buffer.
  Slot copied(const Slot& from, BufferKind kind, std::size_t number, Operand value) {
    Slot to = fresh(kind, number, value);
    push(copy_(from, to), value.node);
    return to;
  }

  // An output that is the old value of a state is copied before anything writes the state.
  void keep_old_states() {
    output_slots_.resize(g_.outputs.size());
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) {
      const Operand o = g_.outputs[i];
      if (!is_input(g_.nodes[o.node]) || p_.buffers[slots_[o.node][0].buffer].kind != BufferKind::state) continue;
      output_slots_[i] = copied(slots_[o.node][0], BufferKind::output, i, o);
    }
  }

  const Slot& slot(Operand o) {
    Slot& s = slots_[o.node][o.result];
    if (s.buffer == unplaced) {
      s.buffer = buffer(BufferKind::constant, p_.constants.size(), s.type.plane_bytes(0), o);
      p_.constants.push_back(*s.constant);
    }
    return s;
  }

  void node(Id i) {
    const Node& n = g_.nodes[i];
    if (n.op == &constant_op) {
      Slot s{unplaced, n.results[0]};  // gets a buffer when a step reads it
      s.constant = &n.attrs.as<ConstantAttrs>().data;
      slots_[i] = {s};
      return;
    }
    std::vector<Slot> in;
    for (const Operand o : n.operands) {
      if (slots_[o.node].empty()) return;  // its step is missing already
      in.push_back(slot(o));
    }
    if (is_control(*n.op)) return control(i, std::move(in));
    if (const ViewMaker view = find_view(n.op)) {
      if (std::optional<Slot> s = view({n, in, {}})) {
        slots_[i] = {std::move(*s)};
        return;
      }
    }
    steps(i, std::move(in));
  }

  void steps(Id i, std::vector<Slot> in) {
    const Node& n = g_.nodes[i];
    const std::size_t buffers = p_.buffers.size();
    std::vector<Slot> out;
    for (std::uint32_t r = 0; r < n.results.size(); ++r) out.push_back(fresh(BufferKind::arena, 0, {i, r}));
    std::string why;
    std::optional<Step> step = makers_.make({n, in, out, &why});
    const bool strided = std::ranges::any_of(in, [](const Slot& s) { return !s.dense(); });
    if (!step && strided) {
      std::string strided_why = std::exchange(why, {});
      std::vector<Slot> dense = in;
      for (Slot& s : dense) {
        if (!s.dense()) s = Slot{s.buffer, s.type};  // asked first, copied when that helps
      }
      if (makers_.make({n, dense, out, &why})) {
        p_.remarks.push_back(fmt::format("{}: operands are copied ({})", describe(g_, i), strided_why));
        for (std::size_t k = 0; k < in.size(); ++k) {
          if (!in[k].dense()) in[k] = dense_copy(n.operands[k]);
        }
        step = makers_.make({n, in, out, &why});
        if (step) step->declined.insert(step->declined.begin(), "strided operands: " + strided_why);
      }
    }
    if (!step) {
      p_.buffers.resize(buffers);
      p_.shares.resize(buffers);
      if (strided && view_of_copy(i)) return;
      missing_.push_back(describe(g_, i) + (why.empty() ? ": no kernel" : ": " + why));
      return;
    }
    push(std::move(*step), i);
    slots_[i] = std::move(out);
  }

  void control(Id i, std::vector<Slot> in) {
    const Node& n = g_.nodes[i];
    Control made;
    for (const GraphPtr& body : n.bodies) {
      try {
        made.bodies.push_back(lower(body, makers_, copy_));
        share_in_place(made.bodies.back());
      } catch (const Error& e) {
        missing_.push_back(describe(g_, i) + ": in its body: " + e.what());
        return;
      }
    }
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (!in[k].dense()) in[k] = dense_copy(n.operands[k]);
    }
    std::vector<Slot> out;
    for (std::uint32_t r = 0; r < n.results.size(); ++r) out.push_back(fresh(BufferKind::arena, 0, {i, r}));
    push(control_step(n, in, out, made), i);
    made.step = static_cast<std::uint32_t>(p_.steps.size() - 1);
    made.arena = p_.steps.back().uses[made.arena_use].buffer;
    p_.controls.push_back(std::move(made));
    slots_[i] = std::move(out);
  }

  // Sizes that are not proved to be 0 or more: checked at every binding. Those in fusions too, which all run.
  void sizes(const Graph& g, const std::string& inside) {
    const std::vector<bool> live = live_nodes(g);
    for (Id i = 0; i < g.nodes.size(); ++i) {
      if (!live[i]) continue;
      for (const TensorType& t : g.nodes[i].results) {
        for (const Dim& d : t.dims) {
          const auto same = [&](const auto& other) { return other.first == d; };
          if (d.bounds().lo >= 0 || std::ranges::any_of(p_.sizes, same)) continue;
          p_.sizes.emplace_back(d, inside.empty() ? describe(g, i) : inside);
        }
      }
      if (g.nodes[i].op == &fusion_op()) sizes(*g.nodes[i].bodies[0], describe(g, i));
    }
  }

  // A view rule that declines strided memory may take a dense copy.
  bool view_of_copy(Id i) {
    const Node& n = g_.nodes[i];
    const ViewMaker view = find_view(n.op);
    const Slot& from = slots_[n.operands[0].node][n.operands[0].result];
    const std::vector<Slot> asked{{from.buffer, from.type}};
    if (!view || !view({n, asked, {}})) return false;
    const std::vector<Slot> copy{dense_copy(n.operands[0])};
    slots_[i] = {*view({n, copy, {}})};
    p_.remarks.push_back(fmt::format("{}: the operand is copied", describe(g_, i)));
    return true;
  }

  const Slot& dense_copy(Operand o) {
    const auto it = dense_.find(o);
    if (it != dense_.end()) return it->second;
    return dense_.emplace(o, copied(slot(o), BufferKind::arena, 0, o)).first->second;
  }

  bool whole(const Slot& s) const {
    return s.dense() && s.offset == Dim(0) && p_.buffers[s.buffer].bytes == s.type.plane_bytes(0);
  }

  struct UseAt {
    std::size_t step, use;
  };

  void index_uses() {
    uses_.resize(p_.buffers.size());
    for (std::size_t s = 0; s < p_.steps.size(); ++s) {
      for (std::size_t u = 0; u < p_.steps[s].uses.size(); ++u) uses_[p_.steps[s].uses[u].buffer].push_back({s, u});
    }
  }

  // Outputs inside the memory of an old state are copied before its new value may come; the state is then not made in
  // place, for the copy is a late reader.
  void keep_old_views() {
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) {
      if (output_slots_[i]) continue;
      const Slot& s = slot(g_.outputs[i]);
      if (s.buffer >= uses_.size() || p_.buffers[s.buffer].kind != BufferKind::state) continue;
      const BufferId old = s.buffer;
      output_slots_[i] = copied(s, BufferKind::output, i, g_.outputs[i]);
      uses_[old].push_back({p_.steps.size() - 1, 0});
    }
  }

  // The new value of a state is made in the state's own memory when its step is the last reader of the old value, and
  // reads it in place; else it is copied there when all is done.
  void states() {
    struct Late {
      Slot from, to;
      Id node;
    };
    std::vector<Late> late;
    // A new value that lies in a state is read before any state is written: two may exchange their values. The copies
    // are late readers too.
    for (const StatePair& pair : g_.states) {
      const Slot old = slots_[pair.input.node][0], next = slot(pair.output);
      if (p_.buffers[next.buffer].kind != BufferKind::state || (next.buffer == old.buffer && whole(next))) continue;
      late.push_back({copied(next, pair.output.node), old, pair.output.node});
      if (next.buffer < uses_.size()) uses_[next.buffer].push_back({p_.steps.size() - 1, 0});
    }
    for (const StatePair& pair : g_.states) {
      const Slot old = slots_[pair.input.node][0], next = slot(pair.output);
      if (p_.buffers[next.buffer].kind == BufferKind::state) continue;
      if (whole(next) && p_.buffers[next.buffer].kind == BufferKind::arena && may_replace(next.buffer, old.buffer)) {
        p_.shares[next.buffer] = old.buffer;
        continue;
      }
      late.push_back({next, old, pair.output.node});
    }
    for (const Late& l : late) push(copy_(l.from, l.to), l.node);
  }

  Slot copied(const Slot& from, Id node) {
    Slot to{buffer(BufferKind::arena, 0, from.type.plane_bytes(0), {node, 0}), from.type};
    push(copy_(from, to), node);
    return to;
  }

  bool may_replace(BufferId next, BufferId old) const {
    if (next >= uses_.size() || p_.shares[next] != next || uses_[next].empty()) return false;
    const std::size_t made = uses_[next].front().step;
    return std::ranges::all_of(uses_[old], [&](const UseAt& at) {
      return at.step < made || (at.step == made && in_place(p_.steps[made], at.use, next));
    });
  }

  static bool in_place(const Step& step, std::size_t read, BufferId written) {
    return std::ranges::any_of(
        step.in_place, [&](const InPlace& p) { return p.read == read && step.uses[p.write].buffer == written; });
  }

  // A value that fills its own arena buffer is made in the caller's memory; any other is copied there.
  void outputs() {
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) {
      if (!output_slots_[i]) {
        const Slot& s = slot(g_.outputs[i]);
        require(!s.type.encoding, "output {} is {}, expected a dense tensor: decode it", i, s.type.text());
        Buffer& b = p_.buffers[s.buffer];
        if (b.kind == BufferKind::arena && p_.shares[s.buffer] == s.buffer && whole(s)) {
          b.kind = BufferKind::output;
          b.number = i;
          output_slots_[i] = s;
        } else {
          output_slots_[i] = copied(s, BufferKind::output, i, g_.outputs[i]);
        }
      }
      p_.outputs.push_back(output_slots_[i]->buffer);
    }
  }

  const Graph& g_;
  const MakerTable& makers_;
  const CopyMaker& copy_;
  std::vector<bool> live_;
  Program p_;
  std::vector<std::vector<Slot>> slots_;  // by node and result
  std::map<Operand, Slot> dense_;
  std::vector<std::optional<Slot>> output_slots_;
  std::vector<std::string> missing_;
  std::vector<std::vector<UseAt>> uses_;  // by buffer, in order
};

}  // namespace

Program lower(GraphPtr graph, const MakerTable& makers, const CopyMaker& copy) {
  return Lowering(std::move(graph), makers, copy).run();
}

}  // namespace rlx
