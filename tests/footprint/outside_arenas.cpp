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
#include "runtime/device/device.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

/// A row of the table at the end of a run, in MiB.
struct MeasuredAndPlanned {
  double measured = 0;
  double planned = 0;
};

auto RowOf(const std::string& log, const std::string& name) -> MeasuredAndPlanned {
  std::smatch match;
  return std::regex_search(log, match, std::regex("\n  " + name + " +([0-9.]+) +([0-9.]+)\n"))
             ? MeasuredAndPlanned{std::stod(match[1]), std::stod(match[2])}
             : MeasuredAndPlanned{};
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
      EXPECT_THAT(outcome.err, testing::ContainsRegex("memory of the job, [0-9] ranks? and launcher, in MiB:"));
      const MeasuredAndPlanned own = RowOf(outcome.err, "own memory outside of them");
      const MeasuredAndPlanned files = RowOf(outcome.err, "pages of files, which the kernel may drop");
      const MeasuredAndPlanned arenas = RowOf(outcome.err, "arenas");
      ASSERT_GT(own.measured, 0) << outcome.err;
      constexpr double MiB = 0x1p20;
      const Plan plan = training.Compile(all);
      const OutsideArenas outside = OutsideArenasOf(plan);
      const ArenaSizes sizes = HostArenas(plan);
      const int64_t of_all = sizes[static_cast<size_t>(Arena::Gathered)];
      const int64_t of_ranks = (ReservedBytes(plan).value - of_all) * outside.num_ranks;
      EXPECT_NEAR(arenas.planned, static_cast<double>(of_ranks + of_all) / MiB, 0.06) << name;
      EXPECT_NEAR(arenas.measured, arenas.planned, 0.2 * arenas.planned) << name;
      EXPECT_NEAR(own.planned, static_cast<double>((outside.all() - OutsideArenas::Files).value) / MiB, 0.06) << name;
      EXPECT_NEAR(files.planned, static_cast<double>(OutsideArenas::Files.value) / MiB, 0.06);
      // On a busy machine some of a thousand threads find no task left, and take nothing.
      const double least = name.find("1024") != std::string::npos ? 0.6 : 0.9;
      EXPECT_THAT(own.measured / own.planned, AllOf(Ge(least), Le(1.1)))
          << name << ", " << device << ": measured " << own.measured << " MiB, planned " << own.planned;
      // Other programs on the machine may use the same libraries, and have a part in their pages then.
      EXPECT_GT(files.measured, files.planned / 4) << name << ", " << device;
      EXPECT_LT(files.measured, files.planned * 2) << name << ", " << device;
      std::cout << fmt::format(
          "  {:<30} {:<26} outside the arenas {:>5.1f} MiB, planned {:>5.1f}; files {:>5.1f}, {:.1f}\n", name, device,
          own.measured, own.planned, files.measured, files.planned);
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
    EXPECT_THAT(text.out,
                testing::HasSubstr(fmt::format(
                    "  outside the arenas, about:\n    {} per host for libraries, heap and the plan\n    {} "
                    "per rank{}\n    {} per host of pages of the program's files, which the kernel may drop\n"
                    "    {} where one host has all {} ranks\n",
                    FormatMemory(outside.host() - OutsideArenas::Files), FormatMemory(outside.rank()), threads,
                    FormatMemory(OutsideArenas::Files), FormatMemory(outside.all()), outside.num_ranks)));
    const Outcome json = RunProcess(training.Command("plan", {"--explain", "--format", "json"}));
    ASSERT_EQ(json.status, 0) << json.err;
    const auto memory = nlohmann::json::parse(json.out).at("memory");
    const auto& parts = memory.at("outside_arenas");
    EXPECT_EQ(memory.at("outside_arenas_bytes"), outside.all().value);
    EXPECT_EQ(parts.at("host_bytes"), outside.host().value);
    EXPECT_EQ(parts.at("files_bytes"), OutsideArenas::Files.value);
    EXPECT_EQ(parts.at("plan_bytes"), outside.plan.value);
    EXPECT_EQ(parts.at("rank_bytes"), outside.rank().value);
    EXPECT_EQ(parts.at("threads_bytes"), outside.threads.value);
  }
}

}  // namespace
}  // namespace shardc
