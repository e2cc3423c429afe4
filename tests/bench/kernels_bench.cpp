// Kernels alone, one thread, at the sizes of a small model: counters give GF/s or GB/s.
#include <benchmark/benchmark.h>

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

/// Arguments: m, n, k, transpose_a, transpose_b.
static auto BenchMatmul(benchmark::State& state) -> void {
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const bool transpose_a = state.range(3) != 0;
  const bool transpose_b = state.range(4) != 0;
  KernelFixture fixture;
  Time(state, fixture.BindWithScratch(op::Matmul{.a = Random(fixture, transpose_a ? Dims{k, m} : Dims{m, k}, 1),
                                                 .b = Random(fixture, transpose_b ? Dims{n, k} : Dims{k, n}, 2),
                                                 .out = fixture.Add(DType::F32, {m, n}),
                                                 .out_onto = {},
                                                 .transpose_a = transpose_a,
                                                 .transpose_b = transpose_b}));
  CountFlops(state, 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(BenchMatmul)
    ->Args({1024, 128, 128, 0, 1})
    ->Args({1024, 256, 256, 0, 1})
    ->Args({1024, 256, 256, 0, 0})
    ->Args({256, 256, 1024, 1, 0})
    ->Args({1024, 1024, 1024, 0, 1});

/// Arguments: sequence, batch, heads, kv heads, head_dim.
static auto BenchAttention(benchmark::State& state, bool backward) -> void {
  const int64_t sequence = state.range(0);
  const int64_t batch = state.range(1);
  const int64_t heads = state.range(2);
  const int64_t kv_heads = state.range(3);
  const int64_t head_dim = state.range(4);
  const Dims q_dims{sequence, batch, heads * head_dim};
  const Dims k_dims{sequence, batch, kv_heads * head_dim};
  KernelFixture fixture;
  const op::Attention forward{.q = Random(fixture, q_dims, 1),
                              .k = Random(fixture, k_dims, 2),
                              .v = Random(fixture, k_dims, 3),
                              .y = fixture.Add(DType::F32, q_dims),
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
  Time(state, fixture.BindWithScratch(op::AttentionBackward{.dy = Random(fixture, q_dims, 4),
                                                            .q = forward.q,
                                                            .k = forward.k,
                                                            .v = forward.v,
                                                            .y = forward.y,
                                                            .lse = forward.lse,
                                                            .dq = fixture.Add(DType::F32, q_dims),
                                                            .dk = fixture.Add(DType::F32, k_dims),
                                                            .dv = fixture.Add(DType::F32, k_dims),
                                                            .scratch = {},
                                                            .head_dim = head_dim}));
  CountFlops(state, 5 * causal_product);
}
BENCHMARK_CAPTURE(BenchAttention, Forward, false)
    ->Args({256, 4, 8, 4, 32})
    ->Args({256, 8, 4, 2, 32})
    ->Args({1024, 1, 8, 2, 128})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BenchAttention, Backward, true)
    ->Args({256, 4, 8, 4, 32})
    ->Args({256, 8, 4, 2, 32})
    ->Args({1024, 1, 8, 2, 128})
    ->Unit(benchmark::kMicrosecond);

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

}  // namespace shardc
