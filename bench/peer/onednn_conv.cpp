// The convolutions of bench/conv.cpp in oneDNN; see serve_conv.h for what it reads. Operands, weights and results are
// in the layouts that it asks for, and bringing them there is not measured. Threads are those of OpenMP. bench/peers
// builds it. An argument `plain` keeps operands and results in the order of rlx.
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <stdexcept>
#include <unordered_map>

#include "../serve_conv.h"

namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

memory filled(const dnnl::engine& engine, dnnl::stream& stream, const memory::desc& as, Tag plain, unsigned seed) {
  memory from({as.dims(), Type::f32, plain}, engine), to(as, engine);
  long count = 1;
  for (const auto d : as.dims()) count *= d;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> pick(-1, 1);
  auto* values = static_cast<float*>(from.get_data_handle());
  for (long i = 0; i < count; ++i) values[i] = pick(random);
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return to;
}

class Convolution {
 public:
  Convolution(const dnnl::engine& engine, const bench::ConvRequest& r, bool plain) : stream_(engine) {
    const Tag image = plain ? Tag::nchw : Tag::any;
    const memory::desc x({r.n, r.c, r.h, r.w}, Type::f32, image), bias({r.co}, Type::f32, Tag::x);
    const memory::desc y({r.n, r.co, r.out(r.h), r.out(r.w)}, Type::f32, image);
    const bool grouped = r.groups > 1;
    const memory::dims kernel = grouped ? memory::dims{r.groups, r.co / r.groups, r.c / r.groups, r.kernel, r.kernel}
                                        : memory::dims{r.co, r.c, r.kernel, r.kernel};
    const memory::desc w(kernel, Type::f32, Tag::any);
    dnnl::post_ops after;
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                               x, w, bias, y, {r.stride, r.stride}, {r.padding, r.padding},
                                               {r.padding, r.padding});
    const dnnl::convolution_forward::primitive_desc description(what, attributes, engine);
    convolution_ = dnnl::convolution_forward(description);
    arguments_ = {
        {DNNL_ARG_SRC, filled(engine, stream_, description.src_desc(), Tag::nchw, 1)},
        {DNNL_ARG_WEIGHTS, filled(engine, stream_, description.weights_desc(), grouped ? Tag::goihw : Tag::oihw, 2)},
        {DNNL_ARG_BIAS, filled(engine, stream_, description.bias_desc(), Tag::x, 3)},
        {DNNL_ARG_DST, memory(description.dst_desc(), engine)}};
  }
  void run() {
    convolution_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::convolution_forward convolution_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

int main(int count, char** arguments) {
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const bool plain = count > 1 && std::string(arguments[1]) == "plain";
    return bench::serve_conv([&](const bench::ConvRequest& r) {
      const auto made = std::make_shared<Convolution>(engine, r, plain);
      return [made] { made->run(); };
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "onednn_conv: %s\n", e.what());
    return 1;
  }
}
