// A minimal executor over device memory.
#include "gpu_runner.h"

#include <cstdlib>
#include <filesystem>
#include <unordered_map>

#include "core/child_process.h"
#include "core/error.h"
#include "device/view.h"
#include "ir/op_table.h"
#include "ops/constant/constant.h"
#include "runtime/evaluate.h"

namespace rlx::test {

namespace {

// PoCL keeps compiled kernels in a folder, which has to be ours alone: a kernel that was compiled before would hide a
// text that no longer compiles.
class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rlx-pocl-XXXXXX").string();
    if (!::mkdtemp(name.data())) return;
    path_ = name;
    ::setenv("POCL_CACHE_DIR", path_.c_str(), 1);
  }
  ~CacheFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  std::string path_;
};

struct Opened {
  CacheFolder cache;
  std::shared_ptr<GpuDevice> device;
  std::string why;
  Opened() {
    // A driver that ends its process must not end the tests.
    const ChildResult tried = run_in_child([] {
      open_opencl();
      return std::string();
    });
    if (tried.died.starts_with("signal")) {
      why = "an OpenCL driver ended the process that opened it: " + tried.died;
      return;
    }
    try {
      device = open_opencl();
    } catch (const DeviceError& e) {
      why = e.what();
    }
  }
};

// Memory of the values of one run.
class Buffers {
 public:
  explicit Buffers(Device& device) : device_(device) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (std::byte* b : all_) device_.release(b);
  }
  BufferId add(Index bytes) {
    all_.push_back(device_.allocate(bytes));
    device_.fill(all_.back(), bytes, std::byte{0xA5});
    return static_cast<BufferId>(all_.size() - 1);
  }
  std::byte* operator[](BufferId id) const { return all_.at(id); }

 private:
  Device& device_;
  std::vector<std::byte*> all_;
};

class Run {
 public:
  Run(Device& device, const Graph& g, DimEnv dims) : device_(device), g_(g), dims_(std::move(dims)), buffers_(device) {}

  std::vector<Tensor> outputs(std::span<const Tensor> inputs) {
    slots_.resize(g_.nodes.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) upload(g_.inputs[i], inputs[i]);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      const Node& n = g_.nodes[i];
      if (n.op == &constant_op) {
        upload(i, n.attrs.as<ConstantAttrs>().data);
        slots_[i][0].constant = &n.attrs.as<ConstantAttrs>().data;
      } else if (!is_input(n)) {
        step(n, i);
      }
    }
    std::vector<Tensor> out;
    for (const Operand o : g_.outputs) {
      const Slot& s = slots_[o.node][o.result];
      std::vector<Index> shape;
      for (const Dim& d : s.type.dims) shape.push_back(d.evaluate(dims_));
      Tensor& t = out.emplace_back(s.type.dtype, shape);
      device_.download(t.mutable_bytes(), buffers_[s.buffer]);
    }
    return out;
  }

 private:
  void upload(Id id, const Tensor& t) {
    const auto bytes = t.bytes();
    const BufferId b = buffers_.add(static_cast<Index>(bytes.size()));
    device_.upload(buffers_[b], bytes);
    slots_[id] = {Slot{b, g_.nodes[id].results[0]}};
  }

  void step(const Node& n, Id id) {
    std::vector<Slot> in, out;
    for (const Operand o : n.operands) in.push_back(slots_[o.node][o.result]);
    for (const TensorType& t : n.results) out.push_back({buffers_.add(t.plane_bytes(0).evaluate(dims_)), t});
    std::string why;
    const std::optional<Step> step = device_.makers().make({n, in, out, &why});
    require(step.has_value(), "{} is declined: {}", describe(g_, id), why);
    BoundStep(*step, dims_, [&](BufferId b) { return buffers_[b]; }).run_all();
    slots_[id] = std::move(out);
  }

  Device& device_;
  const Graph& g_;
  DimEnv dims_;
  Buffers buffers_;
  std::vector<std::vector<Slot>> slots_;
};

}  // namespace

static Opened& opened() {
  static Opened once;
  return once;
}

GpuDevice* opencl_device(std::string* why) {
  if (why) *why = opened().why;
  return opened().device.get();
}

std::shared_ptr<GpuDevice> shared_opencl_device() { return opened().device; }

std::vector<Tensor> run_on(Device& device, const Graph& g, std::span<const Tensor> inputs, const DimEnv& dims) {
  return Run(device, g, bind_dims(g, inputs, dims)).outputs(inputs);
}

Recorder::Recorder(DeviceProperties device) : info(std::move(device)) {
  makers = gpu_makers(info, [this](Launch l) {
    kernels.push_back(l.kernel);
    return l.step.run(1, 1, [](const Memory&, const DimValues&, Range) {});
  });
}

bool Recorder::take(const Graph& g, std::string* why) const {
  for (const Node& n : g.nodes) {
    if (is_input(n) || n.op == &constant_op) continue;
    std::vector<Slot> in, out;
    for (const Operand o : n.operands) {
      in.push_back({0, g.type(o)});
      const Node& from = g.nodes[o.node];
      if (from.op == &constant_op) in.back().constant = &from.attrs.as<ConstantAttrs>().data;
    }
    for (const TensorType& t : n.results) out.push_back({1, t});
    if (!makers.make({n, in, out, why})) return false;
  }
  return true;
}

std::vector<const OpDef*> gpu_ops() {
  std::vector<const OpDef*> ops;
  std::set<const OpDef*> seen;
  for (const OpFolder& folder : op_folders()) {
    for (const OpDef* op : folder.ops()) {
      for (const GpuMakerFolder makers : gpu_maker_folders()) {
        for (const GpuMakerRow& row : makers()) {
          if (row.op == op && seen.insert(op).second) ops.push_back(op);
        }
      }
    }
  }
  return ops;
}

}  // namespace rlx::test
