// Names in a plan are for people and for the lines of its text: a plan whose values, buffers, scalars and units, and so
// sub-vectors and events, have other names verifies, reads back, runs, and gives the same bits. Names of parameters,
// heads and sources are not among them: rules, checkpoints and files know those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/in_process.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::Each;
using testing::IsEmpty;

/// All names of one kind, changed as a list.
using ChangeNames = std::function<void(std::vector<std::string*>)>;

template <class Table>
auto NamesIn(Table& table) -> std::vector<std::string*> {
  std::vector<std::string*> names;
  for (auto& item : table) {
    names.push_back(&item.name);
  }
  return names;
}

auto Renamed(Plan plan, const ChangeNames& change) -> Plan {
  change(NamesIn(plan.values));
  change(NamesIn(plan.buffers));
  change(NamesIn(plan.scalars));
  change(NamesIn(plan.units));
  return plan;
}

/// Words that no name holds, each once.
auto RandomWords(uint64_t seed) -> ChangeNames {
  return [random = std::mt19937_64(seed), used = std::set<std::string>()](std::vector<std::string*> names) mutable {
    for (std::string* name : names) {
      do {
        name->clear();
        for (int i = 0; i < 12; ++i) {
          *name += static_cast<char>('a' + random() % 26);
        }
      } while (!used.insert(*name).second);
    }
  };
}

/// Each thing takes the name of another of its kind: what was found by a name is found, and is the wrong one.
auto Shuffled(uint64_t seed) -> ChangeNames {
  return [random = std::mt19937_64(seed)](std::vector<std::string*> names) mutable {
    for (size_t i = names.size(); i > 1; --i) {
      std::swap(*names[i - 1], *names[random() % i]);
    }
  };
}

const std::vector<Sets> Ways{
    {"mesh.dp=1"},
    {"mesh.dp=2"},
    {"mesh.dp=2", "mesh.tp=2", "batch.accumulate=2"},
    {"mesh.replicate=2", "mesh.dp=2", "batch.accumulate=3"},
    {"mesh.dp=2", "batch.accumulate=3", "batch.reduce=last"},
    {"mesh.dp=2", "recompute.policy=full"},
    {"mesh.dp=2", "mesh.tp=2", "recompute.policy=selective", "recompute.save=[\"q_proj\",\"o_proj\",\"attention\"]"},
    {"mesh.dp=2", "recompute.policy=torchtitan-sac"},
    {"mesh.dp=4", "shard.reshard_after_forward=true", "shard.reshard_size=2", "shard.prefetch_backward=1"},
    {"mesh.dp=2", "model.tied=true", "init.rule=[{match = \"*\", value = \"normal(0, 0.1)\"}]"},
    {"mesh.dp=2", "precision.compute=bf16", "precision.reduce=bf16", "loss.chunks=2", "train.on_nonfinite=skip"},
    {"mesh.dp=2", "optimizer.frozen=[\"*norm.weight\"]"},
    {"mesh.dp=2", "mesh.tp=2", "data.targets=[\"tokens.bin\"]",
     "loss.head=[{name = \"next\", vocab = 256, targets = [\"tokens.bin\"], weight = 0.5}]",
     "init.rule=[{match = \"*\", value = \"normal(0, 0.1)\"}]"},
};

auto ExpectSame(const Plan& plan, const Plan& renamed) -> void {
  EXPECT_THAT(VerifyRunnable(renamed), IsEmpty());
  const auto again = ParsePlan(PrintPlan(renamed));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == renamed);
  const InProcessRun expected = RunInProcess(plan, 3);
  const InProcessRun run = RunInProcess(renamed, 3);
  EXPECT_EQ(expected.code, ExitCode::Ok);
  EXPECT_EQ(run.code, ExitCode::Ok);
  EXPECT_THAT(run.errors, Each(IsEmpty()));
  EXPECT_GE(run.numbers.size(), 7U);
  EXPECT_TRUE(run.SameBits(expected));
}

TEST(Names, RandomWordsGiveTheSameBits) {
  const Training training;
  for (const Sets& way : Ways) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const Plan plan = training.Compile(way);
    const Plan renamed = Renamed(plan, RandomWords(1));
    EXPECT_EQ(PrintPlan(renamed).find(".grad"), std::string::npos);
    ExpectSame(plan, renamed);
  }
}

TEST(Names, NamesOfOthersGiveTheSameBits) {
  const Training training;
  for (const Sets& way : Ways) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(way, " ")));
    const Plan plan = training.Compile(way);
    ExpectSame(plan, Renamed(plan, Shuffled(2)));
  }
}

}  // namespace
}  // namespace shardc
