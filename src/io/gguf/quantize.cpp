// Quantising tensors row by row, on all threads.
#include "io/gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "codecs/codec.h"
#include "core/quote.h"

namespace rlx {

namespace {

/// Rows of a tensor to and from f32, a few at a time.
struct Rows {
  const GgufTensorType* type;
  const Codec* codec = nullptr;
  Index columns, bytes;

  Rows(const GgufTensorType& t, Index n) : type(&t), columns(n), bytes(n / t.block * t.bytes) {
    if (!t.dtype) codec = find_codec(t.codec);
  }

  void decode(const std::byte* from, Index rows, float* to) const {
    if (codec != nullptr) {
      codec->decode({.planes = {&from, 1}, .rows = rows, .columns = columns}, to);
      return;
    }
    const Index n = rows * columns;
    if (*type->dtype == DType::f32) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
      return;
    }
    for (Index i = 0; i < n; ++i) {
      std::uint64_t code = 0;
      std::memcpy(&code, from + i * type->bytes, static_cast<std::size_t>(type->bytes));
      to[i] = static_cast<float>(decode_float(*type->dtype, code));
    }
  }

  void encode(const float* from, Index rows, const float* importance, std::byte* to) const {
    if (codec != nullptr) {
      codec->encode(from, rows, columns, importance, std::span<std::byte* const>(&to, 1));
      return;
    }
    for (Index i = 0; i < rows * columns; ++i) {
      const std::uint64_t code = encode_float(*type->dtype, static_cast<double>(from[i]));
      std::memcpy(to + i * type->bytes, &code, static_cast<std::size_t>(type->bytes));
    }
  }
};

/// Sums of a piece of a tensor.
struct Sums {
  double difference = 0, value = 0;
};

/// Encodes `tensor` into `out`; the result is the error.
double convert(const Tensor& tensor, const GgufTensorType& from, const GgufTensorType& to,
               const std::vector<float>* weights, std::span<std::byte> out, Executor& executor) {
  const Index columns = tensor.shape().back(), rows = tensor.count() / columns;
  const Rows source(from, columns), target(to, columns);
  // Pieces do not depend on the threads; with importance a piece belongs to one matrix of a stack.
  const Index matrix = weights != nullptr ? rows / (static_cast<Index>(weights->size()) / columns) : rows;
  const Index step = std::clamp<Index>((Index{1} << 16) / columns, 1, matrix);
  const Index steps = (matrix + step - 1) / step, pieces = steps * (rows / matrix);
  std::vector<Sums> sums(static_cast<std::size_t>(pieces));
  executor.run(pieces, 1, [&](Index begin, Index end) {
    std::vector<float> x(static_cast<std::size_t>(step * columns)), y(x.size());
    for (Index p = begin; p < end; ++p) {
      const Index number = p / steps, first = number * matrix + p % steps * step;
      const Index n = std::min(step, (number + 1) * matrix - first);
      source.decode(tensor.bytes().data() + first * source.bytes, n, x.data());
      std::byte* const place = out.data() + first * target.bytes;
      target.encode(x.data(), n, weights != nullptr ? weights->data() + number * columns : nullptr, place);
      target.decode(place, n, y.data());
      Sums& s = sums[static_cast<std::size_t>(p)];
      for (std::size_t i = 0; i < static_cast<std::size_t>(n * columns); ++i) {
        const double a = static_cast<double>(x[i]), d = static_cast<double>(y[i]) - a;
        s.difference += d * d;
        s.value += a * a;
      }
    }
  });
  Sums total;
  for (const Sums& s : sums) {
    total.difference += s.difference;
    total.value += s.value;
  }
  return total.value > 0 ? std::sqrt(total.difference / total.value) : 0;
}

bool is_norm(std::string_view name) { return name.find("norm") != std::string_view::npos; }

/// The type that a tensor is going to have.
const GgufTensorType& target_type(const QuantizeInput& input, const std::string& name, const TensorType& type,
                                  const QuantizeOptions& options) {
  const GgufTensorType& now = gguf_type_of(type);
  const bool kept = std::ranges::any_of(options.keep, [&](const std::string& p) { return matches_pattern(name, p); });
  if (kept || (!type.encoding && !is_float(type.dtype))) return now;
  std::vector<Index> shape;
  for (const Dim& d : type.dims) shape.push_back(d.constant());
  if (gguf_quantizes(name, shape)) {
    GgufMixFacts facts = input.facts;
    facts.importance = options.importance != nullptr;
    return gguf_mix_type(*options.mix, name, shape, facts);
  }
  const bool half = !type.encoding && bits(type.dtype) == 16;
  return half && (shape.size() == 1 || is_norm(name)) ? *find_gguf_type("F32") : now;
}

void check_encoder(const GgufTensorType& from, const GgufTensorType& to, std::string_view name) {
  if (&from == &to) return;
  require(from.dtype || find_codec(from.codec) != nullptr, "tensor {}: rlx has no codec for type {}", quote(name),
          from.name);
  const Codec* codec = to.dtype ? nullptr : find_codec(to.codec);
  require(to.dtype || (codec != nullptr && codec->encode != nullptr), "tensor {}: rlx has no encoder for type {}",
          quote(name), to.name);
}

const std::vector<float>* weights_of(const QuantizeOptions& options, const GgufPlan& plan) {
  if (options.importance == nullptr || plan.type->dtype) return nullptr;
  const auto it = options.importance->find(plan.name);
  if (it == options.importance->end()) return nullptr;
  const Index columns = plan.shape.back(), matrices = plan.shape.size() > 2 ? plan.shape.front() : 1;
  const auto n = static_cast<Index>(it->second.size());
  require(n == columns || n == columns * matrices,
          "the importance of tensor {} has {} numbers, its shape {} needs {} or {}", quote(plan.name), n,
          text(plan.shape), columns, columns * matrices);
  return &it->second;
}

}  // namespace

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0, star = std::string_view::npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

QuantizeInput quantize_input(const GgufFile& file) {
  QuantizeInput in{.metadata = GgufMetadata(file), .facts = gguf_mix_facts(file), .tensors = {}, .at = {}};
  for (const GgufEntry& e : file.tensors()) in.tensors.emplace_back(e.name, rlx_type_of(*e.type, e.shape));
  in.at = [file](const std::string& name) { return file.at(name); };
  return in;
}

QuantizeInput quantize_input(const std::shared_ptr<const SafetensorsModel>& model, std::string_view architecture) {
  QuantizeInput in;
  in.metadata.set("general.architecture", architecture);
  in.facts.architecture = architecture;
  Index layers = 0;
  for (const std::string& name : model->names()) {
    const SafetensorsEntry e = model->find(name);
    require(e.dtype.has_value(), "tensor {} has dtype {}, which rlx has no element type for", quote(name), e.format);
    in.tensors.emplace_back(name, TensorType(*e.dtype, std::vector<Dim>(e.shape.begin(), e.shape.end())));
    in.facts.tied = in.facts.tied && name != "lm_head.weight";
    layers = std::max(layers, gguf_layer(name) + 1);
  }
  in.facts.layers = layers;
  in.at = [model](const std::string& name) { return model->at(name); };
  return in;
}

QuantizeReport quantize_gguf(const QuantizeInput& input, const std::string& path, const QuantizeOptions& options,
                             Executor& executor) {
  ensure(options.mix != nullptr, "a mix is chosen");
  std::vector<GgufPlan> plans;
  QuantizeReport report;
  double all = 0, done = 0;
  for (const auto& [name, type] : input.tensors) {
    const GgufTensorType& from = gguf_type_of(type);
    const GgufTensorType& to = target_type(input, name, type, options);
    check_encoder(from, to, name);
    std::vector<Index> shape;
    for (const Dim& d : type.dims) shape.push_back(d.constant());
    plans.push_back({name, &to, std::move(shape)});
    (void)weights_of(options, plans.back());
    all += static_cast<double>(type.count().constant());
  }
  GgufMetadata metadata = input.metadata;
  metadata.set("general.file_type", options.mix->file_type);
  metadata.set("general.quantization_version", std::uint32_t{2});
  GgufWriter writer(path, metadata, plans, options.splits);
  for (const GgufPlan& plan : plans) {
    if (options.progress) options.progress(plan.name, done / all);
    const Tensor tensor = input.at(plan.name);
    QuantizedTensor q{.name = plan.name, .from = tensor.type(), .to = plan.type};
    q.bytes_before = static_cast<Index>(tensor.bytes().size());
    const GgufTensorType& from = gguf_type_of(tensor.type());
    if (&from == plan.type) {
      q.bytes_after = q.bytes_before;
      writer.write(tensor);
    } else {
      q.bytes_after = plan.type->size(plan.shape);
      const Bytes out = Bytes::allocate(q.bytes_after);
      const std::span<std::byte> room(const_cast<std::byte*>(out.data.data()), out.data.size());  // nobody else has it
      q.error = convert(tensor, from, *plan.type, weights_of(options, plan), room, executor);
      writer.write(out.data);
    }
    release_pages(tensor.plane());
    report.tensors.push_back(std::move(q));
    done += static_cast<double>(tensor.count());
  }
  writer.commit();
  if (options.progress) options.progress("", 1);
  report.paths = writer.paths();
  return report;
}

}  // namespace rlx
