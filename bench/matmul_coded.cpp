// Measures products of activations in 8-bit blocks (or in f32: `exact`) by matrices of block formats, on one thread or
// two. Few rows: as bytes read a second, over matrices that do not fit the cache, against the speed of reading memory;
// many rows: as operations a second against the peak of the instruction for bytes. Floors are probed in the same run,
// in turn with the products, and the best of each counts. Prints lines of `matmul-coded FORMAT LEVEL MxKxN MODE threads
// T weights W gbs B read R percent P` or `... gops G peak P percent Q`. Bytes are those of the file's blocks.
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "codecs/codec.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "step_runner.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

struct Size {
  Index m, k, n;
};

// Random blocks; their scales are ordinary numbers.
Tensor weights(const Codec& codec, Index n, Index k, unsigned seed) {
  const Index rows = 8;  // different ones; the others repeat them
  const TensorType few(DType::f32, {rows, k}, *codec.encoding, -1), all(DType::f32, {n, k}, *codec.encoding, -1);
  const Bytes bytes = Bytes::allocate(all.plane_bytes(0).constant());
  auto* to = const_cast<std::byte*>(bytes.data.data());
  const auto row = static_cast<std::size_t>(few.plane_bytes(0).constant() / rows);
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(codec.encoding->block));
  const auto block = static_cast<std::size_t>(codec.encoding->planes[0].bytes);
  for (std::size_t at = 0; at < row * rows; at += block) {
    for (bool tame = false; !tame;) {
      for (std::size_t j = 0; j < block; ++j) to[at + j] = static_cast<std::byte>(random());
      const std::byte* const planes[] = {to + at};
      codec.decode({planes, 1, codec.encoding->block}, values.data());
      tame = std::ranges::all_of(values, [](float v) { return v > -64 && v < 64; });
    }
  }
  for (std::size_t i = rows; i < static_cast<std::size_t>(n); ++i) std::memcpy(to + i * row, to + i % rows * row, row);
  return {all, {bytes}};
}

std::unique_ptr<StepRunner> runner(const Tensor& x, const Tensor& w, const StepRunner* shared) {
  Builder g;
  const Value a = g.input("x", x.type()), b = constant(g, w);
  const RunnerOperand operands[] = {{&x}, {&w, true}};
  return std::make_unique<StepRunner>(g.finish({matmul(a, b, {false, true})}), operands, shared);
}

double wall() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Runs work(thread) on so many threads at once; seconds until the last is done.
template <class F>
double together(int threads, F work) {
  std::atomic<int> ready{0};
  std::vector<double> ends(static_cast<std::size_t>(threads));
  std::vector<std::thread> others;
  double begin = 0;
  const auto body = [&](int t) {
    ++ready;
    while (ready.load() < threads) {
    }
    if (t == 0) begin = wall();
    work(t);
    ends[static_cast<std::size_t>(t)] = wall();
  };
  for (int t = 1; t < threads; ++t) others.emplace_back(body, t);
  body(0);
  for (std::thread& t : others) t.join();
  return *std::ranges::max_element(ends) - begin;
}

// Reads all of some memory.
using Words [[gnu::vector_size(32)]] = long;
volatile long sink;
void read_all(const std::byte* p, std::size_t bytes) {
  Words sums[4]{};
  for (std::size_t i = 0; i + 128 <= bytes; i += 128) {
    for (std::size_t j = 0; j < 4; ++j) {
      Words w;
      std::memcpy(&w, p + i + 32 * j, sizeof w);
      sums[j] += w;
    }
  }
  const Words all = sums[0] + sums[1] + sums[2] + sums[3];
  sink = all[0] + all[1] + all[2] + all[3];
}

void measure(const Codec& codec, Size s, bool in_f32, int threads, int count, double budget) {
  const Tensor dense = random_tensor(DType::f32, {s.m, s.k}, -1, 1, 1);
  const Tensor x = in_f32 ? dense : encode(dense, *find_codec("a8"));
  std::vector<std::unique_ptr<StepRunner>> runners;
  const Tensor w = weights(codec, s.n, s.k, 2);
  for (int i = 0; i < count; ++i) runners.push_back(runner(x, w, runners.empty() ? nullptr : runners[0].get()));
  const double bytes = static_cast<double>(w.bytes().size()) * count;
  const double operations = 2.0 * static_cast<double>(s.m * s.k * s.n) * count;
  constexpr std::size_t probe_bytes = std::size_t{256} << 20;
  const bool reads = s.m <= 8 && count > 1;
  const LargePages memory = large_pages(reads ? probe_bytes : 64);
  if (reads) std::memset(memory.get(), 1, probe_bytes);
  const int rounds = std::max(1, static_cast<int>((reads ? 2e8 / bytes : 2e9 * threads / operations)));
  double best = 1e9, floor = 1e9, spent = 0;
  for (int i = 0; i < 5 || spent < budget; ++i) {
    const double start = wall();
    floor = std::min(floor, together(threads, [&](int t) {
                       if (!reads) return probe(level(), in_f32 ? &MachinePeaks::f32 : &MachinePeaks::i8);
                       const std::size_t part = probe_bytes / static_cast<std::size_t>(threads);
                       read_all(memory.get() + static_cast<std::size_t>(t) * part, part);
                     }));
    best = std::min(best, together(threads, [&](int t) {
                            for (int r = 0; r < rounds; ++r) {
                              for (const auto& one : runners) one->run_part(t, threads);
                            }
                          }) / rounds);
    spent += wall() - start;
  }
  const std::string head = fmt::format("matmul-coded {} {} {}x{}x{} {} threads {} weights {}", codec.encoding->name,
                                       level_name(level()), s.m, s.k, s.n, in_f32 ? "exact" : "blocks", threads, count);
  if (reads) {
    const double rate = bytes / best / 1e9, read = static_cast<double>(probe_bytes) / floor / 1e9;
    fmt::print("{} gbs {:.1f} read {:.1f} percent {:.1f}\n", head, rate, read, 100 * rate / read);
  } else {
    const double rate = operations / best / 1e9;
    const double peak = probe_flops(level(), in_f32 ? &MachinePeaks::f32 : &MachinePeaks::i8) * threads / floor / 1e9;
    fmt::print("{} gops {:.1f} peak {:.1f} percent {:.1f}\n", head, rate, peak, 100 * rate / peak);
  }
  std::fflush(stdout);
}

// So many that they do not fit the cache together.
int beyond_cache(const Codec& codec, Size s) {
  const Index bytes = s.n * s.k / codec.encoding->block * codec.encoding->planes[0].bytes;
  return static_cast<int>(std::max<Index>(2, (Index{192} << 20) / bytes));
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments, arguments + count);
  if (args.size() > 5) {
    fmt::print(stderr, "usage: matmul_coded [FORMAT [LEVEL [SECONDS [THREADS]]]]\n");
    return 2;
  }
  try {
    if (args.size() > 2) force_level(parse_level(args[2].c_str()));
    const double budget = args.size() > 3 ? std::stod(args[3]) : 0.5;
    const int most = args.size() > 4 ? std::stoi(args[4]) : 2;
    constexpr Size shapes[] = {{0, 576, 576}, {0, 576, 1536}, {0, 1536, 576}, {0, 2048, 5632}};
    for (const Codec* codec : all_codecs()) {
      if (!codec->integers || (args.size() > 1 && args[1] != "all" && codec->encoding->name != args[1])) continue;
      for (Size s : shapes) {
        if (s.k % codec->encoding->block != 0) continue;
        for (int threads = 1; threads <= most; ++threads) {
          for (const bool in_f32 : {false, true}) {
            for (const Index m : {1, 8}) {
              s.m = m;
              measure(*codec, s, in_f32, threads, beyond_cache(*codec, s), budget);
            }
            for (const Index m : {128, 512}) {
              s.m = m;
              measure(*codec, s, in_f32, threads, 1, budget);
            }
          }
        }
      }
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "matmul_coded: {}\n", e.what());
    return 1;
  }
  return 0;
}
