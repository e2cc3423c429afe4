// Recipes whose numbers are in range one by one, however extreme: each ends in a plan or in a diagnostic, soon, and
// never as a fault of the compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/check/check_recipe.h"
#include "compiler/driver/plan_text.h"
#include "compiler/model/estimate.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/key_rows.h"
#include "tests/cli/program.h"
#include "tests/support/process.h"
#include "tests/support/sanitized.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Ended {
  int status = 0;
  std::string out;
  std::string err;
  /// Of the processor.
  double seconds = 0;
};

/// Programs that the sanitizers watch take several times as long.
constexpr int Slower = IsSanitized ? 30 : 1;

/// `shardc COMMAND RECIPE --set ...` in an address space of so many MiB, and 60 s.
auto RunWithin(int64_t mebibytes, const std::string& command, const std::string& recipe,
               const std::vector<std::string>& sets, int64_t most_seconds = 60) -> Ended {
  std::vector<std::string> arguments{Shardc(), command, recipe};
  for (const std::string& set : sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const auto seconds_of_children = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double before = seconds_of_children();
  const Outcome outcome = RunProcess(arguments, {.before_exec = [mebibytes, most_seconds] {
                                       const auto bytes = static_cast<rlim_t>(mebibytes) << 20;
                                       const rlimit memory{bytes, bytes};
                                       const auto seconds = static_cast<rlim_t>(most_seconds * Slower);
                                       const rlimit processor{seconds, seconds};
                                       // The sanitizers reserve terabytes of addresses.
                                       if (!IsSanitized) {
                                         setrlimit(RLIMIT_AS, &memory);
                                       }
                                       setrlimit(RLIMIT_CPU, &processor);
                                     }});
  return {outcome.status, outcome.out, outcome.err, seconds_of_children() - before};
}

/// More heads than a plan has scalars.
auto ManyHeads(int count) -> std::string {
  std::string text = SoundRecipe();
  for (int i = 0; i < count; ++i) {
    text += fmt::format("[[loss.head]]\nname = \"h{}\"\nvocab = 8\ntargets = [\"tokens.bin\"]\n", i);
  }
  return text;
}

TEST(ExtremeRecipes, TooLargeAPlanIsRefusedBeforeItIsMade) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string heads = WriteIn(folder, "heads.toml", ManyHeads(9000));
  struct Case {
    std::string recipe;
    std::vector<std::string> sets;
    std::string says;
  };
  const Case cases[] = {
      {sound, {"model.layers=65536"}, "`layers` 65536 makes 3801088 ops or more; the limit is 1048576"},
      {sound, {"model.seq=1048576", "loss.chunks=1048576"}, "`chunks` 1048576 of 1 head, and `layers` 2, make "},
      {sound, {"batch.accumulate=1099511627776"}, "has 8796093022208 tokens; the limit is 1099511627776"},
      {sound, {"mesh.replicate=1048576", "mesh.dp=2"}, "makes 2097152 ranks; the limit is 1048576"},
      {heads, {}, "9000 tables [[loss.head]] make 18000 scalars or more; the limit is 1024"},
  };
  for (const Case& c : cases) {
    const Ended ended = RunWithin(256, "check", c.recipe, c.sets);
    EXPECT_EQ(ended.status, 3) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.says));
    EXPECT_THAT(ended.err, HasSubstr("[plan-too-large]"));
    EXPECT_LT(ended.seconds, 1 * Slower) << c.says;
  }
  // Near the limit, a plan is made before it is known to be too large.
  const std::string near = WriteIn(folder, "near.toml", ManyHeads(511));
  EXPECT_THAT(RunWithin(4096, "check", near, {}).err, HasSubstr("scalars; the limit is 1024 [plan-too-large]"));
}

TEST(ExtremeRecipes, AnInitRuleThatWouldTakeMinutesToCompileIsRefusedAtItsPlace) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const auto with_draws = [&](int count) {
    std::string rule = "normal(0, 1)";
    for (int i = 1; i < count; ++i) {
      rule += " + normal(0, 1)";
    }
    return RunWithin(256, "check", recipe, {"init.rule=[{ match = \"*\", value = \"" + rule + "\" }]"});
  };
  const Ended fits = with_draws(100);
  EXPECT_EQ(fits.status, 0) << fits.err;
  const Ended ended = with_draws(600);
  EXPECT_EQ(ended.status, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the limit is 2048"));
  EXPECT_THAT(ended.err, HasSubstr("--set"));
  EXPECT_LT(ended.seconds, 1 * Slower);
}

TEST(ExtremeRecipes, TooLongPlanIsRefused) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const auto plan = ParsePlan(RunWithin(4096, "plan", recipe, {}).out);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto text = TextForRuntime(*plan, "sound.toml");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_TRUE(TextForRuntime(*plan, "sound.toml", text->size()).ok());
  const auto refused = TextForRuntime(*plan, "sound.toml", text->size() - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ExitCode::RecipeRejected);
  EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("has {} bytes of text; a plan that runs has {} at most\n",
                                                             text->size(), text->size() - 1)));
}

auto OpsOf(const std::string& recipe, std::vector<std::string> sets, const std::string& last) -> int64_t {
  sets.push_back(last);
  const Ended ended = RunWithin(4096, "plan", recipe, sets);
  const auto plan = ParsePlan(ended.out);
  EXPECT_TRUE(plan.ok()) << ended.err;
  int64_t count = 0;
  for (size_t i = 0; plan && i < plan->sections.size(); ++i) {
    count += std::ssize(plan->sections[i].ops);
  }
  return count;
}

// What the check takes a block and a chunk for is less than any plan has of them.
TEST(ExtremeRecipes, OpsAreCountedFromBelow) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::vector<std::string> large_units{"shard.units=\"blocks:65536\"", "optimizer.clip_norm=0"};
  std::vector<std::string> frozen = large_units;
  frozen.emplace_back(R"(optimizer.frozen=["*embed*", "*layers*"])");
  const auto of_block = [&](const std::vector<std::string>& sets) {
    return (OpsOf(recipe, sets, "model.layers=60") - OpsOf(recipe, sets, "model.layers=20")) / 40;
  };
  EXPECT_GE(of_block({}), LeastOpsOfBlock(LlamaFamily, true));
  EXPECT_GE(of_block(large_units), LeastOpsOfBlock(LlamaFamily, true));
  EXPECT_GE(of_block(frozen), LeastOpsOfBlock(LlamaFamily, false));
  const auto of_chunk = [&](std::vector<std::string> sets) {
    sets.emplace_back("model.seq=64");
    return (OpsOf(recipe, sets, "loss.chunks=32") - OpsOf(recipe, sets, "loss.chunks=16")) / 16;
  };
  EXPECT_GE(of_chunk({}), 6);
  EXPECT_GE(of_chunk(frozen), 6);
}

TEST(ExtremeRecipes, LargeModelsAreNotRefused) {
  for (const std::string set : {"model.layers=8192", "loss.chunks=65536"}) {
    SourceSet sources;
    Diagnostics diagnostics(&sources);
    const auto recipe = ReadRecipe("sound.toml", SoundRecipe(), {set, "model.seq=65536"}, sources, diagnostics);
    ASSERT_TRUE(recipe.ok());
    CheckRecipe(*recipe, diagnostics);
    EXPECT_FALSE(diagnostics.has_errors()) << RenderText(diagnostics, {});
  }
}

/// Numbers and words of keys, taken by a seed: ends of the ranges, powers of two and their neighbours.
class ExtremeSets {
 public:
  explicit ExtremeSets(uint64_t seed) : random_(seed) {
    for (const std::string& path : PathsWithValues()) {
      // Those of lists have no `--set`.
      if (std::count(path.begin(), path.end(), '.') != 1) {
        continue;
      }
      if (RangeOf(path)) {
        ranged_.push_back(path);
      } else {
        worded_.push_back(path);
      }
    }
    words_ = {{"recompute.layers", {"\"1/3\"", "\"layer % 2 == 0\"", "false"}},
              {"shard.units", {"\"blocks:3\"", "\"size:1 MiB\"", "\"torchtitan\""}},
              {"shard.reshard_after_forward", {"true", "false", "\"layer % 2 == 0\""}},
              {"model.tied", {"true"}},
              {"run.guard", {"true"}}};
  }

  auto Make() -> std::vector<std::string> {
    std::vector<std::string> sets;
    for (uint64_t i = 0, count = 1 + Below(4); i < count; ++i) {
      const std::string& path = ranged_[Below(ranged_.size())];
      sets.push_back(fmt::format("{}={}", path, NumberOf(path)));
    }
    for (uint64_t i = 0, count = Below(3); i < count; ++i) {
      const auto& [path, words] = words_[Below(words_.size())];
      sets.push_back(fmt::format("{}={}", path, words[Below(words.size())]));
    }
    if (Below(2) == 0) {
      const std::string& path = worded_[Below(worded_.size())];
      const std::vector<Choice>& choices = ChoicesOf(path);
      sets.push_back(fmt::format("{}=\"{}\"", path, choices[Below(choices.size())].word));
    }
    return sets;
  }

 private:
  auto Below(size_t count) -> size_t { return random_() % count; }

  auto NumberOf(const std::string& path) -> std::string {
    const ValueRange range = *RangeOf(path);
    const size_t kind = Below(6);
    if (kind < 2) {
      return kind == 0 ? range.low_text : range.high_text;
    }
    // A power of two in the range, one less, or three times it.
    const auto bits = static_cast<size_t>(std::max(1.0, std::log2(std::min(range.high, 0x1p62))));
    const double power = std::ldexp(1.0, static_cast<int>(Below(bits + 1)));
    double number = kind == 2 ? power - 1 : kind == 3 ? 3 * power : power;
    // Plans of so many blocks or chunks are sound or a little too long, and take seconds.
    if ((path == "model.layers" && number > 256 && number < 20000) ||
        (path == "loss.chunks" && number > 4096 && number < 262144)) {
      number = 64;
    }
    return fmt::format("{:.0f}", std::clamp(number, std::ceil(range.low), std::min(range.high, 0x1p62)));
  }

  std::mt19937_64 random_;
  std::vector<std::string> ranged_;
  std::vector<std::string> worded_;
  std::vector<std::pair<std::string, std::vector<std::string>>> words_;
};

TEST(ExtremeRecipes, EndInAPlanOrADiagnostic) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  ExtremeSets extreme(16);
  int num_plans = 0;
  int num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<std::string> sets = extreme.Make();
    const std::string line = fmt::format("shardc check sound.toml --set '{}'", fmt::join(sets, "' --set '"));
    Ended ended = RunWithin(3072, "check", recipe, sets);
    EXPECT_TRUE(ended.status == 0 || ended.status == 3) << line << "\nstatus " << ended.status << "\n" << ended.err;
    EXPECT_THAT(ended.err, Not(HasSubstr("is a bug in"))) << line;
    // Others may use this machine.
    for (int again = 0; again < 3 && ended.seconds >= 2 * Slower; ++again) {
      ended = RunWithin(3072, "check", recipe, sets);
    }
    EXPECT_LT(ended.seconds, 2 * Slower) << line;
    num_plans += ended.status == 0 ? 1 : 0;
    num_refused += ended.status == 3 ? 1 : 0;
  }
  EXPECT_GT(num_plans, 50);
  EXPECT_GT(num_refused, 50);
}

}  // namespace
}  // namespace shardc
