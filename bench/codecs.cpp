// Codecs for other programs: standard input to standard output.
//   rlx_bench_codecs decode NAME ROWS COLUMNS   planes, one after the other, to f32
//   rlx_bench_codecs encode NAME ROWS COLUMNS   f32 to planes
//   rlx_bench_codecs weigh NAME ROWS COLUMNS    COLUMNS f32 of importance, then f32, to planes
//   rlx_bench_codecs list                       names, elements of a block, planes (name, bytes, kind), e when it
//   encodes rlx_bench_codecs speed                      million elements a second, decoded and encoded, one thread
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/codec.h"
#include "core/error.h"

namespace {

using namespace rlx;

Bytes read(Index size) {
  Bytes bytes = Bytes::allocate(size);
  const std::size_t got = std::fread(const_cast<std::byte*>(bytes.data.data()), 1, bytes.data.size(), stdin);
  require(got == bytes.data.size(), "standard input has {} bytes, expected {}", got, size);
  return bytes;
}

void write(std::span<const std::byte> bytes) {
  const std::size_t put = std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  require(put == bytes.size(), "standard output took {} bytes of {}", put, bytes.size());
}

void convert(std::string_view what, const Codec& codec, Index rows, Index columns) {
  const TensorType dense(DType::f32, {rows, columns}), coded(DType::f32, dense.dims, *codec.encoding, -1);
  if (what == "decode") {
    std::vector<Bytes> planes;
    for (std::size_t i = 0; i < coded.plane_count(); ++i) planes.push_back(read(coded.plane_bytes(i).constant()));
    return write(decode(Tensor(coded, std::move(planes))).bytes());
  }
  std::vector<Bytes> weights;
  if (what == "weigh") weights.push_back(read(4 * columns));
  const Tensor x(dense, {read(4 * rows * columns)});
  const Tensor importance = weights.empty() ? Tensor() : Tensor({DType::f32, {columns}}, std::move(weights));
  const Tensor y = encode(x, codec, what == "weigh" ? &importance : nullptr);
  for (std::size_t i = 0; i < coded.plane_count(); ++i) write(y.bytes(i));
}

template <class F>
double million_a_second(Index elements, F run) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<double>(elements) / best * 1e-6;
}

void speed(const Codec& codec) {
  const Index rows = 64, columns = 1536;
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * static_cast<double>(i * i % 10007));
  const Tensor x = Tensor::of<double>(DType::f32, {rows, columns}, values);
  const TensorType type(DType::f32, x.type().dims, *codec.encoding, -1);
  std::vector<Bytes> planes;
  for (std::size_t i = 0; i < type.plane_count(); ++i)
    planes.push_back(Bytes::allocate(type.plane_bytes(i).constant()));
  Tensor coded(type, std::move(planes));
  if (codec.encode) coded = encode(x, codec);
  const double decoded = million_a_second(x.count(), [&] { decode(coded); });
  const double encoded = codec.encode ? million_a_second(x.count(), [&] { encode(x, codec); }) : 0;
  fmt::print("{:<12} {:8.0f} {:8.1f}\n", codec.encoding->name, decoded, encoded);
}

void list(const Codec& codec) {
  fmt::print("{} {}", codec.encoding->name, codec.encoding->block);
  for (const Plane& plane : codec.encoding->planes) {
    std::string name(plane.name);
    std::ranges::replace(name, ' ', '_');
    constexpr const char* kinds[] = {"block", "axis", "tensor"};
    fmt::print(" {}:{}:{}", name, plane.bytes, kinds[static_cast<int>(plane.per)]);
  }
  fmt::print("{}\n", codec.encode ? " e" : "");
}

int run(std::span<char*> arguments) {
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "";
  if (what == "list" || what == "speed") {
    for (const Codec* codec : all_codecs()) (what == "list" ? list : speed)(*codec);
    return 0;
  }
  require(arguments.size() == 5, "expected list, speed, or decode, encode or weigh with NAME ROWS COLUMNS");
  const Codec* codec = find_codec(arguments[2]);
  require(codec != nullptr, "no format is called {}", arguments[2]);
  convert(what, *codec, std::stoll(arguments[3]), std::stoll(arguments[4]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "rlx_bench_codecs: {}\n", error.what());
    return 1;
  }
}
