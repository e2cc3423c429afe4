// Where a step stopped being finite: the tensor, the op, the rank and the microbatch that are named are those at fault,
// on every mesh and in every way to compute a step; and to look for it changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/core/find_nonfinite.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/fault/state_elements.h"
#include "tests/fault/zero_stream.h"
#include "tests/support/launch_runners.h"
#include "tests/support/owned_intervals.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr float NearlyLargest = 3e38F;

/// What a rank does to its state before the step.
using Prepare = std::function<void(RankRunner& runner, int64_t rank)>;

auto StateBytesOf(const Plan& plan, RankRunner& runner) -> std::vector<std::byte> {
  std::vector<std::byte> bytes;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const StateRole role : StateRoles) {
      if (HasRole(sub_vector, role)) {
        const View view = runner.ViewOf(StateOf(sub_vector, role));
        const auto* begin = view.At<const std::byte>({});
        bytes.insert(bytes.end(), begin, begin + view.num_elements() * SizeOf(view.dtype));
      }
    }
  }
  return bytes;
}

/// Runs the first step and looks for the cause, whether it was finite or not; one text a rank. `prepare` comes before
/// the step, `after` once it has run. Expects that to look changes neither state nor scalars.
auto CauseOf(const Training& training, const Plan& plan, const Prepare& prepare,
             const std::function<void(RankContext&)>& change = {}, const Prepare& after = {})
    -> std::vector<std::string> {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  std::vector<std::string> texts(static_cast<size_t>(plan.mesh.num_ranks()));
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = training / "run"},
      [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        if (prepare) {
          prepare(runner, context.rank);
        }
        const auto halt = runner.Step();
        RETURN_IF_ERROR(halt);
        if (after) {
          after(runner, context.rank);
        }
        const auto state = StateBytesOf(plan, runner);
        std::vector<double> scalars;
        for (const ScalarId id : plan.scalars.ids()) {
          scalars.push_back(runner.scalars()[id]);
        }
        for (int times = 0; times < 2; ++times) {
          const auto cause = FindNonFiniteCause(runner.binder(), runner.execution(), 0);
          RETURN_IF_ERROR(cause);
          std::string& text = texts[static_cast<size_t>(context.rank)];
          EXPECT_TRUE(times == 0 || text == cause->text) << text << "\n" << cause->text;
          text = cause->text;
        }
        EXPECT_TRUE(StateBytesOf(plan, runner) == state) << "rank " << context.rank;
        for (const ScalarId id : plan.scalars.ids()) {
          const double before = scalars[static_cast<size_t>(id.index)];
          const double after = runner.scalars()[id];
          EXPECT_TRUE(before == after || (std::isnan(before) && std::isnan(after))) << plan.scalars[id].name;
        }
        return ExitCode::Ok;
      },
      change);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return texts;
}

/// A step in all the ways there are: meshes, microbatches, types, recomputation, chunks of the loss, heads, gathers.
auto Ways() -> std::vector<Sets> {
  return {
      {},
      {"mesh.dp=1"},
      {"batch.micro=2"},
      {"batch.micro=2", "batch.reduce=last", "mesh.replicate=3"},
      {"mesh.tp=2"},
      {"mesh.tp=2", "batch.micro=3", "precision.compute=bf16", "precision.reduce=bf16"},
      {"mesh.dp=1", "mesh.replicate=2"},
      {"precision.compute=bf16", "recompute.policy=full"},
      {"precision.master=bf16", "loss.chunks=4"},
      {"mesh.dp=1", "mesh.tp=2", "recompute.policy=torchtitan-sac", "loss.chunks=2"},
      {"mesh.dp=1", "mesh.tp=2", "mesh.replicate=2", "model.tied=true"},
      {"optimizer.clip_norm=0", "shard.reshard_after_forward=false", "shard.prefetch_forward=1"},
      {"run.guard=true", "batch.micro=3", "mesh.tp=2"},
      {"run.kernels=reference"},
      {"shard.gather_into=host", "shard.units=torchtitan", "batch.micro=2"},
      // A vocabulary of three over four ranks: the last has no column, and its log_sum_exp is minus infinity.
      {"mesh.dp=1", "mesh.tp=4", "model.heads=4", "model.vocab=3"},
  };
}

auto TrainingOf(const Sets& way) -> std::unique_ptr<Training> {
  auto training = std::make_unique<Training>(Sets{"train.steps=4", "train.eval_every=0", "train.on_nonfinite=skip"});
  if (std::ranges::find(way, "model.vocab=3") != way.end()) {
    std::vector<uint16_t> ids = EasyTokens(8000);
    for (uint16_t& id : ids) {
      id %= 3;
    }
    WriteBin(*training / "tokens.bin", ids);
  }
  return training;
}

/// The sets of a way that the recipe of these rules takes.
auto IsTied(const Sets& way) -> bool { return std::ranges::find(way, "model.tied=true") != way.end(); }

/// Without lm_head, of which a tied model has none.
auto WithRules(Sets way) -> Sets {
  if (IsTied(way)) {
    way.emplace_back(R"--(init.rule=[{match = "*", value = "normal(0, 0.1)"}])--");
  }
  return way;
}

TEST(NonfiniteCause, NothingIsFoundInASoundStep) {
  for (const Sets& way : Ways()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const auto training = TrainingOf(way);
    const Plan plan = training->Compile(WithRules(way));
    EXPECT_THAT(CauseOf(*training, plan, {}), Each(HasSubstr("was finite when the step was run once more")));
  }
}

TEST(NonfiniteCause, IsTheStateWhereThatIsNotFinite) {
  const StateElement places[] = {
      {"model.layers.1.mlp.up_proj.weight", StateRole::Parameter, 65},
      {"model.layers.0.self_attn.q_proj.weight", StateRole::Parameter, 32 * 32 - 1},
  };
  for (const Sets& way : Ways()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const auto training = TrainingOf(way);
    const Plan plan = training->Compile(WithRules(way));
    for (const StateElement& at : places) {
      const auto texts = CauseOf(*training, plan, [&](RankRunner& runner, int64_t rank) {
        SetInMemory(plan, runner, rank, at, NaN);
        // Comes after it, by role and by parameter.
        SetInMemory(plan, runner, rank, {at.parameter, StateRole::ExpAvg, 0}, NaN);
        SetInMemory(plan, runner, rank, {"model.norm.weight", StateRole::Parameter, 0}, NaN);
      });
      EXPECT_THAT(
          texts,
          Each(StartsWith(fmt::format("{} is not finite: element {} is nan, on rank ", at.parameter, at.element))));
    }
  }
}

TEST(NonfiniteCause, AMomentOfTheLastRankIsNamed) {
  const Training training({"train.steps=4", "train.eval_every=0", "mesh.tp=2"});
  const Plan plan = training.Compile();
  const StateElement at{"model.layers.1.mlp.down_proj.weight", StateRole::ExpAvgSq, 32 * 64 - 1};
  int64_t owner = -1;
  const auto texts = CauseOf(training, plan, {}, {}, [&](RankRunner& runner, int64_t rank) {
    if (SetInMemory(plan, runner, rank, at, NaN)) {
      owner = rank;
    }
  });
  EXPECT_GT(owner, 0);
  EXPECT_THAT(texts, Each(fmt::format("exp_avg_sq of {} is not finite: element {} is nan, on rank {}", at.parameter,
                                      at.element, owner)));
}

TEST(NonfiniteCause, IsTheOpOfTheForwardWhoseResultIsNotFinite) {
  for (const Sets& way : Ways()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const auto training = TrainingOf(way);
    const Plan plan = training->Compile(WithRules(way));
    // Each of the last block's up_proj is finite, and its product with what is normalised is not.
    const auto texts = CauseOf(*training, plan, [&](RankRunner& runner, int64_t rank) {
      for (int64_t i = 0; i < int64_t{32} * 64; ++i) {
        SetInMemory(plan, runner, rank, {"model.layers.1.mlp.up_proj.weight", StateRole::Parameter, i}, NearlyLargest);
      }
    });
    EXPECT_THAT(
        texts,
        Each(AllOf(StartsWith("model.layers.1.mlp.up_proj is not finite: matmul of block 1 made it first"),
                   HasSubstr(plan.run.accumulate > 1 ? "in forward, microbatch 0, rank 0); " : "in forward, rank 0); "),
                   HasSubstr("parameters and optimizer state are finite"))));
  }
}

TEST(NonfiniteCause, NamesRankAndMicrobatchOfTheSampleAtFault) {
  // Token 98 stands in one sample alone. Only its row of the embedding has an element 5, and the last row of q_proj
  // takes that alone, times what is nearly the largest float.
  constexpr int64_t Sample = 9;
  for (const Sets& way : {Sets{}, Sets{"batch.micro=2"}, Sets{"batch.micro=3", "mesh.tp=2"},
                          Sets{"batch.micro=1", "recompute.policy=full"}, Sets{"mesh.replicate=2", "batch.micro=3"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const Training training({"train.steps=4", "train.eval_every=0", "data.order=sequential"});
    std::vector<uint16_t> ids(8000, 97);
    ids[Sample * 32 + 7] = 98;
    WriteBin(training / "tokens.bin", ids);
    const Plan plan = training.Compile(way);
    const auto texts = CauseOf(training, plan, [&](RankRunner& runner, int64_t rank) {
      const auto set = [&](const std::string& name, int64_t row, int64_t column, float value) {
        SetInMemory(plan, runner, rank, {name, StateRole::Parameter, row * 32 + column}, value);
      };
      for (int64_t i = 0; i < 32; ++i) {
        set("model.embed_tokens.weight", 97, i, i == 5 ? 0 : 1);
        set("model.embed_tokens.weight", 98, i, i == 5 ? 1 : 0);
        set("model.layers.0.self_attn.q_proj.weight", 31, i, i == 5 ? NearlyLargest : 0);
      }
    });
    // Whose sample it is, and which rank of tp has the last row.
    int64_t expected_rank = -1;
    int64_t expected_repeat = -1;
    for (const Op& op : plan.section(SectionKind::Data).ops) {
      const auto* load = op.As<op::LoadTokens>();
      for (int64_t rank = 0; load != nullptr && rank < plan.mesh.num_ranks(); ++rank) {
        const bool is_last_of_tp = plan.mesh.IndexIn(AxisSet::Of(Axis::Tp), rank) == plan.mesh.size(Axis::Tp) - 1;
        for (int64_t repeat = 0; repeat < plan.run.accumulate; ++repeat) {
          const int64_t first =
              load->sample.Evaluate({.coordinates = plan.mesh.CoordinatesOf(rank), .repeat = repeat, .step = 0});
          if (first <= Sample && Sample < first + plan.run.micro_batch && is_last_of_tp) {
            expected_rank = rank;
            expected_repeat = repeat;
          }
        }
      }
    }
    ASSERT_GE(expected_rank, 0);
    const std::string microbatch = plan.run.accumulate > 1 ? fmt::format(", microbatch {}", expected_repeat) : "";
    EXPECT_THAT(texts, Each(AllOf(StartsWith("model.layers.0.self_attn.q_proj is not finite: matmul of block 0"),
                                  HasSubstr(fmt::format("in forward{}, rank {})", microbatch, expected_rank)))));
  }
}

/// The largest element of the embedding's gradient, as it is after all sums.
auto LargestGradient(const Training& training, const Plan& plan) -> double {
  std::vector<double> largest(static_cast<size_t>(plan.mesh.num_ranks()), 0);
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = training / "probe"}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        const auto halt = runner.Step();
        RETURN_IF_ERROR(halt);
        for (const SubVector& sub_vector : plan.sub_vectors) {
          const View view = runner.ViewOf(sub_vector.gradient);
          double& own = largest[static_cast<size_t>(context.rank)];
          ForEachOwnedInterval(
              plan, sub_vector, context.rank,
              [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t place) {
                for (int64_t i = 0; parameter.name == "model.embed_tokens.weight" && i < end - begin; ++i) {
                  own = std::max(own, std::abs(static_cast<double>(view.At<const float>({})[place + i])));
                }
              });
        }
        return ExitCode::Ok;
      });
  EXPECT_TRUE(result.ok()) << result.error().message;
  return *std::ranges::max_element(largest);
}

TEST(NonfiniteCause, IsASumOverRanksWhereOnlyThatIsNotFinite) {
  // Each half of the sum is finite, and the sum is not.
  struct Case {
    Sets sets;
    std::string op;
  };
  const Case cases[] = {
      {{}, "reduce_scatter"},
      {{"mesh.dp=1", "mesh.replicate=2"}, "all_reduce"},
      {{"precision.reduce=bf16"}, "reduce_scatter"},
      {{"precision.compute=bf16", "recompute.policy=full"}, "reduce_scatter"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(test.sets, " ")));
    const Training training(
        {"train.steps=4", "train.eval_every=0", "train.on_nonfinite=skip", "optimizer.clip_norm=0"});
    WriteBin(training / "tokens.bin", std::vector<uint16_t>(8000, 200));
    constexpr double Probe = 1e30;
    const auto with_norm = [&](double norm) {
      Sets sets = test.sets;
      sets.push_back(ZeroStream(fmt::format("{}", norm)));
      return training.Compile(sets);
    };
    const double largest = LargestGradient(training, with_norm(Probe));
    ASSERT_GT(largest, 0);
    const double norm = Probe / largest * 1.4 * static_cast<double>(std::numeric_limits<float>::max());
    EXPECT_THAT(
        CauseOf(training, with_norm(norm), {}),
        Each(AllOf(StartsWith("the gradient of model.embed_tokens.weight is not finite: " + test.op + " made it first"),
                   HasSubstr("and so is the forward"))))
        << norm;
  }
}

TEST(NonfiniteCause, IsTheGradientThatBackwardReachesFirst) {
  const Training training({"train.steps=4", "train.eval_every=0", "train.on_nonfinite=skip", ZeroStream("1e5")});
  WriteBin(training / "tokens.bin", std::vector<uint16_t>(8000, 200));
  for (const Sets& way : {Sets{}, Sets{"batch.micro=2"}, Sets{"mesh.tp=2"}, Sets{"recompute.policy=full"},
                          Sets{"precision.compute=bf16"}, Sets{"loss.chunks=4"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const Plan plan = training.Compile(way);
    // The row of the head that the data ask for: what comes back through it is finite, and times the last norm's
    // weight it is not. All that backward makes after that is not finite either.
    const auto texts = CauseOf(training, plan, [&](RankRunner& runner, int64_t rank) {
      for (int64_t i = 0; i < 32; ++i) {
        SetInMemory(plan, runner, rank, {"lm_head.weight", StateRole::Parameter, int64_t{200} * 32 + i}, NearlyLargest);
      }
    });
    EXPECT_THAT(texts,
                Each(AllOf(StartsWith("the gradient model.layers.1.mlp.down_proj."),
                           HasSubstr(" is not finite: rms_norm_backward made it first"), HasSubstr("in backward"),
                           Not(HasSubstr("of block")), HasSubstr("and so is the forward"))));
  }
}

TEST(NonfiniteCause, TransientBlamesMachine) {
  const Training training({"train.steps=4", "train.eval_every=0", "train.on_nonfinite=skip"});
  const Plan plan = training.Compile();
  const auto change = [&](RankContext& context) {
    // The first sum over ranks on rank 1 goes wrong, once.
    auto times = std::make_shared<int>(0);
    context.execution.wrap = [&plan, &context, times](SectionKind section, size_t index, Kernel kernel) -> Kernel {
      const auto* scatter = plan.section(section).ops[index].As<op::ReduceScatter>();
      if (context.rank != 1 || section != SectionKind::Step || scatter == nullptr) {
        return kernel;
      }
      const Value& shard = plan.values[scatter->shard];
      const Buffer& buffer = plan.buffers[shard.buffer];
      auto* const first =
          reinterpret_cast<float*>(context.device->Base(buffer.arena) + buffer.offset + shard.offset.base);
      return [=](const Moment& moment) -> Status {
        RETURN_IF_ERROR(kernel(moment));
        if ((*times)++ == 0) {
          *first = NaN;
        }
        return Success{};
      };
    };
  };
  EXPECT_THAT(CauseOf(training, plan, {}, change),
              Each(HasSubstr("was finite when the step was run once more: the same bits are due")));
}

TEST(NonfiniteCause, ALongRunDoesNotFloodItsLog) {
  // Every second update leaves the parameters where they are, and the other half of the steps is not finite.
  const Training training({"train.steps=60", "train.eval_every=0", "train.on_nonfinite=skip", "train.max_skipped=1",
                           "checkpoint.every=0", "optimizer.lr=0", "data.order=sequential", "run.device=cpu-portable"});
  const Plan plan = training.Compile();
  std::vector<std::string> told;
  const auto result = LaunchBegunRunners(plan, {.run_dir = training / "run"},
                                         [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
                                           Divergence divergence(runner.binder(), runner.execution());
                                           const StateElement at{"model.norm.weight", StateRole::Parameter, 0};
                                           for (int64_t step = 0; step < plan.run.steps; ++step) {
                                             SetInMemory(plan, runner, context.rank, at, step % 2 == 0 ? NaN : 1);
                                             const auto halt = runner.Step();
                                             RETURN_IF_ERROR(halt);
                                             const auto text = divergence.AfterStep(halt->has_value(), "");
                                             RETURN_IF_ERROR(text);
                                             if (context.rank == 0 && !text->empty()) {
                                               told.push_back(*text);
                                             }
                                           }
                                           return ExitCode::Ok;
                                         });
  ASSERT_TRUE(result.ok()) << result.error().message;
  // At the first of a row and at its end.
  ASSERT_EQ(told.size(), 2U * Divergence::MostTold);
  EXPECT_THAT(told[0], StartsWith("step 1: model.norm.weight is not finite: element 0 is nan"));
  EXPECT_EQ(told[1], "step 2: finite again; 1 update was left out before it");
  EXPECT_THAT(told[2 * Divergence::MostTold - 2], HasSubstr("later ones are not told"));
}

}  // namespace
}  // namespace shardc
