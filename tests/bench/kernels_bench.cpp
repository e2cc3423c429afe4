// Kernels alone, one thread, at the sizes of a small model: counters give GF/s or GB/s.
#include <benchmark/benchmark.h>

#include "tests/bench/library_gemm.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

static auto Time(benchmark::State& state, const Kernel& kernel) -> void {
  for (auto _ : state) {
    if (!kernel(Moment{}).ok()) {
      state.SkipWithError("the kernel failed");
      return;
    }
  }
}

/// Arithmetic operations of one run, for a rate in units of 1e9 a second.
static auto CountFlops(benchmark::State& state, double flops) -> void {
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}
static auto CountBytes(benchmark::State& state, int64_t bytes) -> void {
  state.SetBytesProcessed(state.iterations() * bytes);
}

static auto Random(KernelFixture& fixture, const Dims& shape, uint64_t seed) -> ValueId {
  return fixture.F32(shape, RandomNumbers(NumElements(shape), seed));
}

enum class Product { Ours, OursIntoF32, Library };

/// The operands of one product, on one thread: dtype, m, n, k, and which operands are transposed.
static auto BenchMatmul(benchmark::State& state, DType dtype, Product product) -> void {
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const bool transpose_a = state.range(3) != 0;
  const bool transpose_b = state.range(4) != 0;
  KernelFixture fixture;
  const auto operand = [&](int64_t rows, int64_t columns, uint64_t seed) {
    return fixture.Floats(dtype, {rows, columns}, RandomNumbers(dtype, rows * columns, seed));
  };
  const op::Matmul body{.a = transpose_a ? operand(k, m, 1) : operand(m, k, 1),
                        .b = transpose_b ? operand(n, k, 2) : operand(k, n, 2),
                        .out = fixture.Add(product == Product::OursIntoF32 ? DType::F32 : dtype, {m, n}),
                        .out_onto = {},
                        .scratch = {},
                        .transpose_a = transpose_a,
                        .transpose_b = transpose_b};
  if (product == Product::Library) {
    const auto at = [&](ValueId value) { return fixture.ViewOf(value).base; };
    for ([[maybe_unused]] auto _ : state) {
      LibraryGemm(dtype, m, n, k, transpose_a, transpose_b, at(body.a), at(body.b), at(body.out));
    }
  } else {
    Time(state, fixture.BindWithScratch(body));
  }
  CountFlops(state, 2.0 * static_cast<double>(m * n * k));
}

/// Forward, gradient of x and gradient of W of a linear layer.
static auto Layer(benchmark::internal::Benchmark* bench, int64_t tokens, int64_t in, int64_t out) -> void {
  bench->Args({tokens, out, in, 0, 1})->Args({tokens, in, out, 0, 0})->Args({out, in, tokens, 1, 0});
}
/// The layers of a Llama of 5.2M parameters at 4 x 256 tokens, and of one of 128M at 128 tokens.
static auto Layers(benchmark::internal::Benchmark* bench) -> void {
  Layer(bench, 1024, 256, 256);
  Layer(bench, 1024, 256, 128);
  Layer(bench, 1024, 256, 768);
  Layer(bench, 1024, 768, 256);
  Layer(bench, 1024, 256, 4096);
  Layer(bench, 128, 768, 768);
  Layer(bench, 128, 768, 384);
  Layer(bench, 128, 768, 2304);
  Layer(bench, 128, 2304, 768);
  Layer(bench, 128, 768, 32000);
  bench->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(BenchMatmul, F32, DType::F32, Product::Ours)->Apply(Layers);
BENCHMARK_CAPTURE(BenchMatmul, F32Library, DType::F32, Product::Library)->Apply(Layers);
BENCHMARK_CAPTURE(BenchMatmul, BF16, DType::BF16, Product::Ours)->Apply(Layers);
BENCHMARK_CAPTURE(BenchMatmul, BF16IntoF32, DType::BF16, Product::OursIntoF32)->Apply(Layers);
BENCHMARK_CAPTURE(BenchMatmul, BF16Library, DType::BF16, Product::Library)->Apply(Layers);

/// Arguments: sequence, batch, heads, kv heads, head_dim.
static auto BenchAttention(benchmark::State& state, DType dtype, bool backward) -> void {
  const int64_t sequence = state.range(0);
  const int64_t batch = state.range(1);
  const int64_t heads = state.range(2);
  const int64_t kv_heads = state.range(3);
  const int64_t head_dim = state.range(4);
  const Dims q_dims{sequence, batch, heads * head_dim};
  const Dims k_dims{sequence, batch, kv_heads * head_dim};
  KernelFixture fixture;
  const auto operand = [&](const Dims& dims, uint64_t seed) {
    return fixture.Floats(dtype, dims, RandomNumbers(dtype, NumElements(dims), seed));
  };
  const op::Attention forward{.q = operand(q_dims, 1),
                              .k = operand(k_dims, 2),
                              .v = operand(k_dims, 3),
                              .y = fixture.Add(dtype, q_dims),
                              .lse = fixture.Add(DType::F32, {batch, heads, sequence}),
                              .scratch = {},
                              .head_dim = head_dim};
  const Kernel run_forward = fixture.BindWithScratch(forward);
  const double causal_product = static_cast<double>(sequence * sequence * head_dim * batch * heads);
  if (!backward) {
    Time(state, run_forward);
    CountFlops(state, 2 * causal_product);
    return;
  }
  fixture.Run(forward);
  Time(state, fixture.BindWithScratch(op::AttentionBackward{.dy = operand(q_dims, 4),
                                                            .q = forward.q,
                                                            .k = forward.k,
                                                            .v = forward.v,
                                                            .y = forward.y,
                                                            .lse = forward.lse,
                                                            .dq = fixture.Add(dtype, q_dims),
                                                            .dk = fixture.Add(dtype, k_dims),
                                                            .dv = fixture.Add(dtype, k_dims),
                                                            .scratch = {},
                                                            .head_dim = head_dim}));
  CountFlops(state, 5 * causal_product);
}
static auto AttentionArgs(benchmark::internal::Benchmark* bench) -> void {
  bench->Args({256, 4, 8, 4, 32})->Args({128, 1, 12, 6, 64})->Args({2048, 1, 8, 4, 32})->Args({1024, 1, 8, 2, 128});
  bench->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(BenchAttention, ForwardF32, DType::F32, false)->Apply(AttentionArgs);
BENCHMARK_CAPTURE(BenchAttention, BackwardF32, DType::F32, true)->Apply(AttentionArgs);
BENCHMARK_CAPTURE(BenchAttention, ForwardBF16, DType::BF16, false)->Apply(AttentionArgs);
BENCHMARK_CAPTURE(BenchAttention, BackwardBF16, DType::BF16, true)->Apply(AttentionArgs);

/// Arguments: rows, hidden.
static auto BenchRmsNorm(benchmark::State& state, bool backward) -> void {
  const Dims shape{state.range(0), 1, state.range(1)};
  KernelFixture fixture;
  const op::RmsNorm forward{.x = Random(fixture, shape, 1),
                            .weight = Random(fixture, {state.range(1)}, 2),
                            .y = fixture.Add(DType::F32, shape),
                            .rstd = fixture.Add(DType::F32, {state.range(0), 1}),
                            .eps = 1e-5};
  fixture.Run(forward);
  Time(state, backward
                  ? fixture.BindWithScratch(op::RmsNormBackward{.dy = Random(fixture, shape, 3),
                                                                .x = forward.x,
                                                                .weight = forward.weight,
                                                                .rstd = forward.rstd,
                                                                .dx = fixture.Add(DType::F32, shape),
                                                                .dx_onto = {},
                                                                .dweight = fixture.Add(DType::F32, {state.range(1)}),
                                                                .dweight_onto = {}})
                  : fixture.BindWithScratch(forward));
  CountBytes(state, NumElements(shape) * SizeOf(DType::F32) * (backward ? 3 : 2));
}
BENCHMARK_CAPTURE(BenchRmsNorm, Forward, false)->Args({1024, 256})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BenchRmsNorm, Backward, true)->Args({1024, 256})->Unit(benchmark::kMicrosecond);

/// Argument: elements.
static auto BenchSwiglu(benchmark::State& state) -> void {
  const Dims shape{state.range(0)};
  KernelFixture fixture;
  Time(state,
       fixture.BindWithScratch(op::Swiglu{
           .gate = Random(fixture, shape, 1), .up = Random(fixture, shape, 2), .y = fixture.Add(DType::F32, shape)}));
  CountBytes(state, NumElements(shape) * SizeOf(DType::F32) * 3);
}
BENCHMARK(BenchSwiglu)->Arg(1024 * 704)->Unit(benchmark::kMicrosecond);

/// Arguments: rows, vocabulary.
static auto BenchCrossEntropy(benchmark::State& state) -> void {
  const Dims shape{state.range(0), 1, state.range(1)};
  KernelFixture fixture;
  Time(state, fixture.BindWithScratch(op::CrossEntropy{
                  .logits = Random(fixture, shape, 1),
                  .targets = fixture.I32({state.range(0), 1}, RandomTokens(state.range(0), 2, state.range(1))),
                  .loss = fixture.Add(DType::F64, {1}),
                  .loss_onto = {},
                  .lse = fixture.Add(DType::F32, {state.range(0), 1})}));
  CountBytes(state, NumElements(shape) * SizeOf(DType::F32));
}
BENCHMARK(BenchCrossEntropy)->Args({1024, 2048})->Unit(benchmark::kMicrosecond);

/// Argument: elements.
static auto BenchAdamw(benchmark::State& state) -> void {
  const int64_t elements = state.range(0);
  KernelFixture fixture;
  Plan& plan = fixture.mutable_plan();
  const GroupId group = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
  const ParameterId parameter = plan.parameters.Add({.name = "p", .shape = {elements}, .group = group});
  SubVector whole;
  whole.length = elements;
  whole.segments = {{0, elements, parameter, true}};
  Time(state, fixture.BindWithScratch(
                  op::Adamw{.gradient = Random(fixture, {elements}, 1),
                            .factor = fixture.F64({1}),
                            .parameter = Random(fixture, {elements}, 2),
                            .exp_avg = fixture.F32({elements}, std::vector<double>(static_cast<size_t>(elements))),
                            .exp_avg_sq = fixture.F32({elements}, std::vector<double>(static_cast<size_t>(elements))),
                            .sub_vector = plan.sub_vectors.Add(whole),
                            .lr = fixture.AddScalar(ScalarKind::Schedule, 1e-3),
                            .updates = fixture.AddScalar(ScalarKind::State, 0),
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8}));
  // Reads gradient, parameter and moments; writes all but the gradient.
  CountBytes(state, elements * SizeOf(DType::F32) * 7);
}
BENCHMARK(BenchAdamw)->Arg(1 << 20)->Arg(1 << 24)->Unit(benchmark::kMicrosecond);

/// Argument: elements.
static auto BenchCheckFinite(benchmark::State& state, DType dtype) -> void {
  const int64_t elements = state.range(0);
  KernelFixture fixture;
  Plan& plan = fixture.mutable_plan();
  const ParameterId parameter = plan.parameters.Add({.name = "p", .shape = {elements}, .dtype = dtype});
  SubVector whole;
  whole.length = elements;
  whole.segments = {{0, elements, parameter, true}};
  Time(state, fixture.BindWithScratch(
                  op::CheckFinite{.shard = fixture.Floats(dtype, {elements}, RandomNumbers(dtype, elements, 1)),
                                  .bad = fixture.Add(DType::I64, {1}),
                                  .bad_onto = {},
                                  .sub_vector = plan.sub_vectors.Add(whole),
                                  .role = StateRole::Parameter}));
  CountBytes(state, elements * SizeOf(dtype));
}
BENCHMARK_CAPTURE(BenchCheckFinite, F32, DType::F32)->Arg(1 << 20)->Arg(1 << 26)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BenchCheckFinite, BF16, DType::BF16)->Arg(1 << 20)->Arg(1 << 26)->Unit(benchmark::kMicrosecond);

}  // namespace shardc
