// Estimated steps of several GPUs beside runs that others published, as docs/explain.md has them. The rates between
// ranks were compared with the first five (docs/decisions/0021); the others were held out.
//
// Sources: KempnerForge, benchmarks/mfu_scaling of April 2026, and benchmarks/config_validation for FSDP 32: compiled,
// parameters in bf16, gradients reduced once per step, hosts of 4 GPUs whose NVLinks go to each of the three others.
// torchtitan, benchmarks/llama3_h100_202412 and asyncTP_llama3_h100_2025-06: compiled. fms-fsdp #89: hosts of 8 GPUs
// with 800 Gb/s.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/base/machine_rows.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cost/step_time.h"
#include "tests/golden/golden_case.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using SetTexts = std::vector<std::string>;

struct PublishedStep {
  std::string run;
  std::string recipe;
  std::string machine;
  SetTexts sets;
  /// Tokens per second and GPU.
  double published = 0;
  bool is_held_out = true;
  /// Bandwidths of the run's hosts, if they are others than the machine's.
  std::optional<double> link_bandwidth = std::nullopt;
  std::optional<double> network_bandwidth = std::nullopt;
};

const SetTexts KempnerForge{"model.seq=4096", "recompute.policy=full", "precision.master=bf16", "batch.reduce=last"};
const SetTexts Of70B{"model.layers=80", "model.hidden=8192", "model.heads=64", "model.ffn=28672"};
/// Bytes per second between two of four GPUs, which share 6 of their 18 NVLinks.
constexpr double LinkOfTwo = 150e9;

auto Together(SetTexts sets, const SetTexts& more) -> SetTexts {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

auto PublishedSteps() -> std::vector<PublishedStep> {
  const auto kempner = [](std::string run, const SetTexts& sets, double published, bool is_held_out,
                          std::optional<double> link = std::nullopt) {
    return PublishedStep{.run = "KempnerForge, H200, " + run,
                         .recipe = "llama3_8b",
                         .machine = "h200-sxm",
                         .sets = Together(KempnerForge, sets),
                         .published = published,
                         .is_held_out = is_held_out,
                         .link_bandwidth = link};
  };
  const auto torchtitan = [](std::string run, const SetTexts& sets, double published) {
    return PublishedStep{.run = "torchtitan, H100 at 500 W, " + run,
                         .recipe = "llama3_8b",
                         .machine = "h100-sxm-96gb",
                         .sets = sets,
                         .published = published};
  };
  return {
      kempner("8B on 1", {"mesh.dp=1", "batch.micro=2", "batch.accumulate=4"}, 10471, false),
      kempner("8B, FSDP 2", {"mesh.dp=2", "batch.micro=2", "batch.accumulate=4"}, 9364, false, LinkOfTwo),
      kempner("8B, FSDP 4", {"mesh.dp=4", "batch.micro=4", "batch.accumulate=2"}, 9746, false),
      kempner("8B, tp 4", {"mesh.dp=1", "mesh.tp=4", "batch.micro=4", "batch.accumulate=2"}, 6284, false),
      kempner("8B, tp 2", {"mesh.dp=1", "mesh.tp=2", "batch.micro=4", "batch.accumulate=2"}, 6582, false, LinkOfTwo),
      kempner("8B, FSDP 2 x tp 2", {"mesh.dp=2", "mesh.tp=2", "batch.micro=4", "batch.accumulate=2"}, 6495, true,
              LinkOfTwo),
      kempner("8B, FSDP 2 x tp 4", {"mesh.dp=2", "mesh.tp=4", "mesh.hosts=2", "batch.micro=4", "batch.accumulate=2"},
              5537, true),
      kempner("8B, FSDP 8 x tp 4", {"mesh.dp=8", "mesh.tp=4", "mesh.hosts=8", "batch.micro=4", "batch.accumulate=2"},
              4872, true),
      kempner("8B, FSDP 32", {"mesh.dp=32", "mesh.hosts=8", "batch.micro=4", "batch.accumulate=4"}, 9293, true),
      kempner("70B, FSDP 8 x tp 4",
              Together(Of70B, {"mesh.dp=8", "mesh.tp=4", "mesh.hosts=8", "batch.micro=2", "batch.accumulate=4"}), 552,
              true),
      torchtitan("8B, FSDP 8", {"batch.micro=2"}, 6667),
      torchtitan("8B, FSDP 128", {"batch.micro=2", "mesh.dp=128", "mesh.hosts=16"}, 6514),
      torchtitan("8B, FSDP 8 x tp 8", {"batch.micro=12", "mesh.tp=8", "mesh.hosts=8"}, 4378),
      torchtitan(
          "70B, FSDP 32 x tp 8",
          Together(Of70B, {"batch.micro=16", "mesh.dp=32", "mesh.tp=8", "mesh.hosts=32", "recompute.policy=full"}),
          597),
      {.run = "fms-fsdp, H100, 7B, 12 copies by FSDP 8",
       .recipe = "llama2_7b_none",
       .machine = "h100-sxm",
       .sets = {"model.seq=4096", "batch.micro=2", "mesh.replicate=12", "mesh.hosts=12", "precision.reduce=bf16"},
       .published = 9600,
       .network_bandwidth = 12.5e9},
  };
}

auto TokensPerSecond(const PublishedStep& step) -> double {
  const auto plan =
      CompileRecipeFile("recipes/published/" + step.recipe + ".toml", Together(step.sets, {"run.device=cuda"}));
  CHECK(plan.ok(), "{}: {}", step.run, plan.error().message);
  MachineRow machine = *FindMachine(step.machine);
  machine.link_bandwidth.value = step.link_bandwidth.value_or(machine.link_bandwidth.value);
  machine.network_bandwidth.value = step.network_bandwidth.value_or(machine.network_bandwidth.value);
  return static_cast<double>(plan->run.tokens_per_step) / static_cast<double>(plan->mesh.num_ranks()) /
         StepTimeOf(*plan, &machine)->step().value;
}

auto Percent(double part) -> std::string { return fmt::format("{:+.1f} %", 100 * part); }

TEST(PublishedSteps, PageHasThem) {
  std::string table = "| tokens/s per GPU | published | estimated | difference |\n|---|---|---|---|\n";
  std::vector<double> held_out;
  for (const PublishedStep& step : PublishedSteps()) {
    const double tokens = TokensPerSecond(step);
    const double difference = tokens / step.published - 1;
    table += fmt::format("| {}{} | {} | {} | {} |\n", step.run, step.is_held_out ? "" : " (*)",
                         Grouped(std::llround(step.published)), Grouped(std::llround(tokens)), Percent(difference));
    if (step.is_held_out) {
      held_out.push_back(difference);
    } else {
      EXPECT_LE(std::abs(difference), StepTime{.ranks = 2}.uncertainty() / 2) << step.run;
    }
  }
  std::ranges::sort(held_out, {}, [](double difference) { return std::abs(difference); });
  const double median = std::abs(held_out[held_out.size() / 2]);
  EXPECT_LT(median, 0.15);
  table += fmt::format("| held out: median of the differences, and the largest | | | {:.1f} %, {} |\n", 100 * median,
                       Percent(held_out.back()));
  EXPECT_TRUE(ReadRepositoryFile("docs/explain.md").find(table) != std::string::npos) << "docs/explain.md has to have\n"
                                                                                      << table;
}

}  // namespace
}  // namespace shardc
