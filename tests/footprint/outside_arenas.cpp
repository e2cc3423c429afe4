// What a job takes outside of its arenas is what explain says and the start check counts, by the kernel's own figures
// (PSS): within a tenth but for pages of files, which the kernel maps and drops as it sees fit. In a program of its
// own, which neither maps LibTorch nor runs beside another test that does: pages that strangers map too count in part.
#include "compiler/ops/cpu/outside_arenas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>

#include "compiler/base/processor.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

struct JobMemory {
  int64_t proportional = 0;
  int64_t arenas = 0;
  int64_t outside = 0;
  int64_t files = 0;
  int64_t planned_outside = 0;
};

auto JobMemoryOf(const std::string& log) -> JobMemory {
  std::smatch match;
  const std::regex line(
      R"(memory of the job, \d+ ranks? and launcher, by PSS: (\d+) B, of these (\d+) B in arenas, (\d+) B outside of them, (\d+) B of that pages of the program's files \(about (\d+) B planned\)\n)");
  return std::regex_search(log, match, line)
             ? JobMemory{std::stoll(match[1]), std::stoll(match[2]), std::stoll(match[3]), std::stoll(match[4]),
                         std::stoll(match[5])}
             : JobMemory{};
}

auto Devices() -> Sets {
  return HasAvx512() ? Sets{"run.device=\"cpu-avx512\"", "run.device=\"cpu-portable\""}
                     : Sets{"run.device=\"cpu-portable\""};
}

/// A model whose products and vectors are of the size that real ones have; 0.2 GiB a rank.
const Sets Wide{"model.hidden=512", "model.heads=8", "model.ffn=1536",
                "model.layers=4",   "model.seq=256", "train.steps=2"};

/// Products that are cut into a few parts, vectors into some dozens.
const Sets Square{"model.hidden=256", "model.heads=4", "model.ffn=704", "model.seq=256", "mesh.dp=1"};

TEST(OutsideArenas, MeasuredWithinATenth) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory grows with what is touched";
#endif
  const std::vector<std::pair<std::string, Sets>> plans{
      {"one rank", {"mesh.dp=1"}},
      {"dp 2", {}},
      {"dp 4", {"mesh.dp=4"}},
      {"tp 2 in bf16", {"mesh.dp=1", "mesh.tp=2", "precision.compute=\"bf16\""}},
      {"dp 2, gathered for the host", {"shard.gather_into=\"host\""}},
      {"replicate 2", {"mesh.replicate=2", "mesh.dp=1"}},
      {"wide, dp 2", Wide},
      {"2 threads", {"mesh.dp=1", "run.threads=2"}},
      {"many threads: 8", {"run.threads=8"}},
      {"many threads: 1024", {"run.threads=1024"}},
      {"many threads: 1024 in bf16", {"run.threads=1024", "precision.compute=\"bf16\""}},
      {"dp 2, 32 blocks", {"model.layers=32"}},
      {"dp 1, 128 blocks", {"model.layers=128", "mesh.dp=1"}},
      {"dp 2, 128 blocks", {"model.layers=128"}},
      {"dp 4, 400 blocks", {"model.layers=400", "mesh.dp=4"}},
  };
  for (const std::string& device : Devices()) {
    for (const auto& [name, sets] : plans) {
      if (name.ends_with("blocks") && device != Devices().front()) {
        continue;
      }
      const Training training({"train.steps=4", "train.eval_every=0", device});
      Sets all = name.starts_with("wide") ? Wide : name.starts_with("many") ? Square : Sets{};
      all.insert(all.end(), sets.begin(), sets.end());
      const Outcome outcome = Process(training.RunCommand("run", all)).Wait(Seconds{240});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const JobMemory memory = JobMemoryOf(outcome.err);
      ASSERT_GT(memory.outside, 0) << outcome.err;
      EXPECT_EQ(memory.proportional, memory.arenas + memory.outside);
      EXPECT_EQ(memory.planned_outside, OutsideArenasOf(training.Compile(all)).all().value) << name;
      const int64_t own = memory.outside - memory.files;
      const int64_t planned_files = OutsideArenas::Files.value;
      const int64_t planned_own = memory.planned_outside - planned_files;
      // On a busy machine some of a thousand threads find no task left, and take nothing.
      const double least = name.find("1024") != std::string::npos ? 0.6 : 0.9;
      EXPECT_THAT(static_cast<double>(own) / static_cast<double>(planned_own), AllOf(Ge(least), Le(1.1)))
          << name << ", " << device << ": measured " << own << " B, planned " << planned_own;
      EXPECT_GT(memory.files, planned_files / 2) << name << ", " << device;
      EXPECT_LT(memory.files, planned_files * 2) << name << ", " << device;
      constexpr double MiB = 0x1p20;
      std::cout << fmt::format(
          "  {:<30} {:<26} outside the arenas {:>5.1f} MiB, planned {:>5.1f}; files {:>5.1f}, {:.1f}\n", name, device,
          static_cast<double>(own) / MiB, static_cast<double>(planned_own) / MiB,
          static_cast<double>(memory.files) / MiB, static_cast<double>(planned_files) / MiB);
    }
  }
}

TEST(OutsideArenas, ExplainSaysTheSame) {
  for (const Sets& sets : {Sets{}, Sets{"model.layers=32", "mesh.dp=4"}, Sets{"run.threads=8", "model.seq=256"}}) {
    const Training training(sets);
    const OutsideArenas outside = OutsideArenasOf(training.Compile());
    const Outcome text = RunProcess(training.Command("plan", {"--explain"}));
    ASSERT_EQ(text.status, 0) << text.err;
    const std::string threads = !sets.empty() && sets.front() == "run.threads=8"
                                    ? fmt::format(", {} of it for run.threads = 8", FormatMemory(outside.threads))
                                    : "";
    EXPECT_EQ(threads.empty(), outside.threads == Bytes{});
    EXPECT_THAT(text.out, testing::HasSubstr(fmt::format(
                              "  outside the arenas, about:\n    {} per host for the program, its libraries and the "
                              "plan\n    {} per rank{}\n    {} where one host has all {} ranks\n",
                              FormatMemory(outside.host()), FormatMemory(outside.rank()), threads,
                              FormatMemory(outside.all()), outside.num_ranks)));
    const Outcome json = RunProcess(training.Command("plan", {"--explain", "--format", "json"}));
    ASSERT_EQ(json.status, 0) << json.err;
    const auto memory = nlohmann::json::parse(json.out).at("memory");
    const auto& parts = memory.at("outside_arenas");
    EXPECT_EQ(memory.at("outside_arenas_bytes"), outside.all().value);
    EXPECT_EQ(parts.at("host_bytes"), outside.host().value);
    EXPECT_EQ(parts.at("plan_bytes"), outside.plan.value);
    EXPECT_EQ(parts.at("rank_bytes"), outside.rank().value);
    EXPECT_EQ(parts.at("threads_bytes"), outside.threads.value);
  }
}

}  // namespace
}  // namespace shardc
