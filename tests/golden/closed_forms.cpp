// Whole plans against formulas on paper: parameters, memory, communication and FLOPs of a Llama from its sizes alone.
// Letters: L blocks, H hidden, A heads, K kv heads, D head_dim, F ffn, V vocab, S seq, T tokens of a microbatch on one
// rank, R ranks, N parameters.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/plan_sums.h"

namespace shardc {
namespace {

struct Sizes {
  int64_t L, H, A, K, D, F, V, S, R, micro = 1, accumulate = 1;

  auto T() const -> int64_t { return S * micro; }
  /// Elements of one block's matrices.
  auto block_matrices() const -> int64_t { return H * (A + 2 * K + A) * D + 3 * H * F; }
  auto block() const -> int64_t { return block_matrices() + 2 * H; }
  auto parameters() const -> int64_t { return L * block() + 2 * V * H + H; }
};

constexpr Sizes Small{
    .L = 3, .H = 96, .A = 6, .K = 2, .D = 16, .F = 160, .V = 257, .S = 24, .R = 4, .micro = 2, .accumulate = 3};
constexpr Sizes Quickstart{.L = 4, .H = 128, .A = 4, .K = 2, .D = 32, .F = 384, .V = 256, .S = 256, .R = 2, .micro = 8};
constexpr Sizes Llama8B{.L = 32, .H = 4096, .A = 32, .K = 8, .D = 128, .F = 14336, .V = 128256, .S = 8192, .R = 8};
constexpr Sizes Llama405B{
    .L = 126, .H = 16384, .A = 128, .K = 8, .D = 128, .F = 53248, .V = 128256, .S = 8192, .R = 512};

auto RecipeOf(const Sizes& m) -> std::string {
  return fmt::format(
      "[model]\nfamily = \"llama\"\nlayers = {}\nhidden = {}\nheads = {}\nkv_heads = {}\nhead_dim = {}\nffn = {}\n"
      "vocab = {}\nseq = {}\n[mesh]\ndp = {}\n[[init.rule]]\nmatch = \"*\"\nvalue = 0\n[optimizer]\nlr = 1\n"
      "[data]\ntokens = [\"tokens.bin\"]\n[batch]\nmicro = {}\naccumulate = {}\n[train]\nsteps = 1\n",
      m.L, m.H, m.A, m.K, m.D, m.F, m.V, m.S, m.R, m.micro, m.accumulate);
}

auto PlanOf(const Sizes& m, const std::vector<std::string>& sets = {}) -> Plan {
  auto plan = CompileText("closed_forms.toml", RecipeOf(m), sets);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

/// Elements of the flat vectors of embedding, one block and head, padded; blocks of these sizes have no padding between
/// parameters, as each has a multiple of 128 elements or lies last.
struct Lengths {
  int64_t embed, block, head;

  explicit Lengths(const Sizes& m)
      : embed(Padded(m.V * m.H, m)),
        block(Padded(RoundUp(m.H, 128) * 2 + m.block_matrices(), m)),
        head(Padded(RoundUp(m.H, 128) + m.V * m.H, m)) {}
  static auto Padded(int64_t n, const Sizes& m) -> int64_t { return RoundUp(n, m.R * 128); }
  auto total(const Sizes& m) const -> int64_t { return embed + m.L * block + head; }
};

TEST(ClosedForms, Parameters) {
  EXPECT_EQ(Llama8B.parameters(), 8'030'261'248);
  EXPECT_EQ(Llama405B.parameters(), 405'853'388'800);
  for (const Sizes& m : {Small, Quickstart, Llama8B, Llama405B}) {
    const Report report = Explain(PlanOf(m));
    EXPECT_EQ(report.parameters_total, m.parameters());
    EXPECT_EQ(report.parameters_per_rank, Lengths(m).total(m) / m.R);
  }
}

/// Forward: 2 T for each element of a matrix that the tokens are multiplied with, and 2 S T A D a block for the causal
/// half of both attention products. Backward: twice that. Recomputation of a block: its forward without down_proj,
/// whose result nothing in backward reads.
TEST(ClosedForms, Flops) {
  for (const Sizes& m : {Small, Quickstart, Llama8B, Llama405B}) {
    const int64_t attention = 2 * m.S * m.T() * m.A * m.D;
    const int64_t forward = m.L * (2 * m.T() * m.block_matrices() + attention) + 2 * m.T() * m.V * m.H;
    const Report kept = Explain(PlanOf(m));
    EXPECT_EQ(kept.flops.model.value, 3 * m.accumulate * forward);
    EXPECT_EQ(kept.flops.recompute.value, 0);
    const Report again = Explain(PlanOf(m, {"recompute.policy=full"}));
    EXPECT_EQ(again.flops.model.value, 3 * m.accumulate * forward);
    EXPECT_EQ(again.flops.recompute.value,
              m.accumulate * m.L * (2 * m.T() * (m.block_matrices() - m.F * m.H) + attention));
    // Every second product: k, o and up.
    const Report second = Explain(PlanOf(m, {"recompute.policy=torchtitan-sac"}));
    EXPECT_EQ(second.flops.model.value, 3 * m.accumulate * forward);
    EXPECT_EQ(second.flops.recompute.value, m.accumulate * m.L * 2 * m.T() * m.H * (m.K * m.D + m.A * m.D + m.F));
  }
}

/// All_gathers and reduce_scatters of a step, as multiples of the vectors' lengths. The embedding's backward reads no
/// weight, so it is gathered once whatever the setting.
TEST(ClosedForms, Communication) {
  struct Case {
    std::string reshard;
    /// Gathers of all blocks together, and of the head.
    int64_t blocks, heads;
  };
  for (const Sizes& m : {Small, Quickstart, Llama8B}) {
    const Lengths lengths(m);
    for (const Case& c :
         {Case{"false", m.L, 1}, Case{"layer < layers - 1", 2 * m.L - 1, 1}, Case{"true", 2 * m.L, 2}}) {
      const CommunicationSums sums = SumStepCommunication(PlanOf(m, {"shard.reshard_after_forward=" + c.reshard}));
      const auto dp = AxisSet::Of(Axis::Dp).bits;
      const CommunicationSum gathers = sums.at({OpKind::AllGather, dp, DType::F32});
      EXPECT_EQ(gathers.count, m.accumulate * (1 + c.blocks + c.heads));
      EXPECT_EQ(gathers.payload_bytes,
                m.accumulate * 4 * (lengths.embed + c.blocks * lengths.block + c.heads * lengths.head));
      EXPECT_EQ(gathers.wire_bytes, gathers.payload_bytes / m.R * (m.R - 1));
      const CommunicationSum scatters = sums.at({OpKind::ReduceScatter, dp, DType::F32});
      EXPECT_EQ(scatters.count, m.accumulate * (m.L + 2));
      EXPECT_EQ(scatters.payload_bytes, m.accumulate * 4 * lengths.total(m));
    }
  }
}

/// Groups of dp: what is freed after forward is gathered again by groups of ranks, each of which kept its part of the
/// group's.
TEST(ClosedForms, GroupsOfDp) {
  const std::pair<Sizes, int64_t> cases[] = {{Small, 2}, {Llama8B, 2}, {Llama8B, 4}, {Llama405B, 8}};
  for (const auto& [m, size] : cases) {
    SCOPED_TRACE(fmt::format("{} blocks, dp {} in groups of {}", m.L, m.R, size));
    const Lengths lengths(m);
    const Plan plan = PlanOf(m, {"shard.reshard_after_forward=true", fmt::format("shard.reshard_size={}", size)});
    const CommunicationSums sums = SumStepCommunication(plan);
    const CommunicationSum forward = sums.at({OpKind::AllGather, AxisSet::Of(Axis::Dp).bits, DType::F32});
    const CommunicationSum backward = sums.at({OpKind::AllGather, AxisSet::Of(Axis::DpInner).bits, DType::F32});
    const int64_t again = m.L * lengths.block + lengths.head;
    EXPECT_EQ(forward.payload_bytes, m.accumulate * 4 * (lengths.embed + again));
    EXPECT_EQ(forward.wire_bytes, forward.payload_bytes / m.R * (m.R - 1));
    EXPECT_EQ(backward.count, m.accumulate * (m.L + 1));
    EXPECT_EQ(backward.payload_bytes, m.accumulate * 4 * again);
    EXPECT_EQ(backward.wire_bytes, backward.payload_bytes / size * (size - 1));

    const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
    const auto op =
        std::find_if(ops.begin(), ops.end(), [](const Op& one) { return one.kind() == OpKind::CrossEntropyBackward; });
    const AliveBytes alive = SweepMemory(plan, SectionKind::Step).at(static_cast<size_t>(op - ops.begin()));
    EXPECT_EQ(alive.at(Category::Gathered), 4 * again / size);
    for (const UnitUse& unit : Explain(plan).units) {
      EXPECT_EQ(unit.kept_slice, unit.name == "embed" ? Bytes{} : unit.gathered / size) << unit.name;
      EXPECT_FALSE(unit.kept_for_backward);
    }
  }
}

/// What is alive while the logits become their gradient: all state, all that forward keeps, and what is gathered.
TEST(ClosedForms, Memory) {
  for (const Sizes& m : {Small, Quickstart, Llama8B, Llama405B}) {
    const Lengths lengths(m);
    // fp32: 4 N / R bytes of parameters, twice that of moments.
    const int64_t state = 4 * lengths.total(m) / m.R;
    const int64_t T = m.T();
    // Embedding; of the head, normed input and its rstd, logits and their lse.
    const int64_t outside = T * (m.H + m.H + 1 + m.V + 1);
    // Two norms and their rstd; q, k, v; attention and its lse; two sums; gate, up and their product.
    const int64_t block = T * (2 * m.H + 2 + (m.A + 2 * m.K) * m.D + m.A * m.D + m.A + 2 * m.H + 3 * m.F);
    struct Case {
      std::string policy;
      std::string reshard;
      int64_t kept;
      int64_t gathered;
    };
    const Case cases[] = {
        {"none", "layer < layers - 1", block, lengths.block + lengths.head},
        {"none", "false", block, m.L * lengths.block + lengths.head},
        {"none", "true", block, 0},
        {"full", "true", T * m.H, 0},
        // Input; q, v, attention and its lse; gate.
        {"torchtitan-sac", "true", T * (m.H + (2 * m.A + m.K) * m.D + m.A + m.F), 0},
    };
    for (const Case& c : cases) {
      SCOPED_TRACE(fmt::format("{} blocks, recompute {}, reshard {}", m.L, c.policy, c.reshard));
      const Plan plan = PlanOf(m, {"recompute.policy=" + c.policy, "shard.reshard_after_forward=" + c.reshard});
      const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
      const auto op = std::find_if(ops.begin(), ops.end(),
                                   [](const Op& one) { return one.kind() == OpKind::CrossEntropyBackward; });
      const AliveBytes alive = SweepMemory(plan, SectionKind::Step).at(static_cast<size_t>(op - ops.begin()));
      EXPECT_EQ(alive.at(Category::Parameters), state);
      EXPECT_EQ(alive.at(Category::Moments), 2 * state);
      EXPECT_EQ(alive.at(Category::Data), 2 * 4 * T * m.accumulate);
      EXPECT_EQ(alive.at(Category::Activations), 4 * (outside + m.L * c.kept));
      EXPECT_EQ(alive.at(Category::Gathered), 4 * c.gathered);
      // The sums of the microbatches' gradient slices.
      EXPECT_EQ(alive.at(Category::Gradients), m.accumulate > 1 ? state : 0);
      EXPECT_EQ(plan.arena_bytes[static_cast<size_t>(Arena::SharedPersistent)], state);
    }
  }
}

/// Of SGD: one buffer as long as the parameters with momentum, and nothing without.
TEST(ClosedForms, MemoryOfSgd) {
  for (const Sizes& m : {Small, Llama8B}) {
    const int64_t state = 4 * Lengths(m).total(m) / m.R;
    for (const auto& [momentum, kept] : {std::pair{0.0, int64_t{0}}, std::pair{0.9, state}}) {
      SCOPED_TRACE(fmt::format("{} blocks, momentum {}", m.L, momentum));
      const Plan plan = PlanOf(m, {"optimizer.name=sgd", fmt::format("optimizer.momentum={}", momentum)});
      const AliveBytes alive = SweepMemory(plan, SectionKind::Step).front();
      EXPECT_EQ(alive.at(Category::Parameters), state);
      EXPECT_EQ(alive.at(Category::Moments), kept);
    }
  }
}

/// Not a limit, as machines differ: printed for whoever looks.
TEST(ClosedForms, PlanTimeIsPrinted) {
  const std::string text = RecipeOf(Llama405B);
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
  const Clock::time_point begin = last;
  int64_t num_ops = 0;
  const auto plan = CompileText("closed_forms.toml", text, {}, [&](PassKind pass, const Plan& now) {
    const auto end = Clock::now();
    std::cout << fmt::format("  {:<14} {:>7.1f} ms\n", ToText(pass),
                             std::chrono::duration<double, std::milli>(end - last).count());
    last = end;
    num_ops = std::ssize(now.section(SectionKind::Step).ops);
  });
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  std::cout << fmt::format("plan time of 405B on 512 ranks, {} ops in step: {:.1f} ms\n", num_ops,
                           std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
}

}  // namespace
}  // namespace shardc
