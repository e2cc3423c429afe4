// Answers to values of --set that are slips: each names what was meant, and the answer, put in, is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/cli/program.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Slip {
  const char* set;
  const char* answer;
  /// What the answer says; null if it is only a hint.
  const char* mended = nullptr;
};

constexpr Slip Slips[] = {
    {"shard.units=block:2", "did you mean \"blocks:2\"?", "shard.units=blocks:2"},
    {"shard.units=blocs:2", "did you mean \"blocks:2\"?", "shard.units=blocks:2"},
    {"shard.units=sizes:64 MiB", "did you mean \"size:64 MiB\"?", "shard.units=size:64 MiB"},
    {"shard.units=size:64MB", "did you mean \"size:64MiB\"?", "shard.units=size:64MiB"},
    {"shard.units=blok", "did you mean \"block\"?", "shard.units=block"},
    {"data.scan=4GB", "write \"4GiB\"", "data.scan=4GiB"},
    {"optimizer.lr=\"1e-3 if step < 4 else 2\"", "write: if condition then a else b",
     "optimizer.lr=\"if step < 4 then 1e-3 else 2\""},
    {"optimizer.lr=\"clip(step, 0, 1)\"", "did you mean `clamp`?", "optimizer.lr=\"clamp(step, 0, 1)\""},
    {"optimizer.lr=cosine",
     "`cosine` takes 2 arguments (begin, least), here none is given; write 3e-4 * warmup(100) * cosine(",
     "optimizer.lr=3e-4 * warmup(2) * cosine(2, 0.1)"},
    {"precision.compute=fp16", "write precision.compute = \"bf16\"", "precision.compute=bf16"},
    {"model.family=llama3", "write family = \"llama\"; or, for all sizes, preset = \"llama3-8b\"",
     "model.family=llama"},
    {"model.family=Qwen2.5", "write family = \"qwen2\"", "model.family=qwen2"},
    {"mesh.ZeRO-3=2", "write mesh.dp with shard.reshard_after_forward = true", "shard.reshard_after_forward=true"},
    {"batch.ga=2", "write batch.accumulate", "batch.accumulate=2"},
    {"optimizer.betas=0.9", "help: betas: ", "optimizer.betas=[0.9, 0.95]"},
    {"data.eval=[]", "to do without it, leave it out, or type --unset data.eval"},
    {"data.tokens=[\"*.nope\"]", "name files that are there; a pattern is relative to the recipe's folder"},
    {"run.backend=nccl", "write run.comm for how ranks communicate"},
    {"optimizer.ep=1e-8", "write optimizer.eps", "optimizer.eps=1e-8"},
    {"train.steps=\"1_000\"", "write steps = 1000", "train.steps=1000"},
    {"train.max_minutes=2h", "write max_minutes = 120", "train.max_minutes=120"},
};

TEST(SlipsOfValues, AreAnsweredWithWhatIsAccepted) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  for (const Slip& slip : Slips) {
    const Finished refused = RunProgram(Shardc(), {"check", recipe, "--set", slip.set});
    EXPECT_EQ(refused.exit_code, 3) << slip.set;
    EXPECT_THAT(refused.err, HasSubstr(slip.answer)) << slip.set;
    if (slip.mended != nullptr) {
      const Finished mended = RunProgram(Shardc(), {"check", recipe, "--set", slip.mended});
      EXPECT_EQ(mended.exit_code, 0) << slip.mended << "\n" << mended.err;
    }
  }
}

TEST(SlipsOfValues, UnreadPresetSuppressesMissingKeys) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "r.toml", "model = { preset = \"llama-debug\", }\n[mesh]\ndp = 2\n");
  const Finished finished = RunProgram(Shardc(), {"check", recipe, "--set", "model.seq=8"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, HasSubstr("the text is not TOML: "));
  EXPECT_THAT(finished.err, Not(HasSubstr("missing")));
  EXPECT_THAT(finished.err, Not(HasSubstr("init")));
}

TEST(SlipsOfValues, AnOverflowNamesItsFactors) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const Finished batch = RunProgram(Shardc(), {"check", recipe, "--set", "batch.micro=1000000000", "--set",
                                               "batch.accumulate=1000", "--set", "mesh.dp=8"});
  EXPECT_THAT(batch.err,
              HasSubstr("a step of 8000000000000 sequences of `seq` 8 has 64000000000000 tokens; the limit"));
  for (const char* factor :
       {"note: `micro` is 1000000000", "note: `accumulate` is 1000", "note: `dp` is 8", "note: `seq` is 8"}) {
    EXPECT_THAT(batch.err, HasSubstr(factor));
  }
  EXPECT_THAT(batch.err, Not(HasSubstr("`global`")));
  const Finished width =
      RunProgram(Shardc(), {"check", recipe, "--set", "model.hidden=16777216", "--set", "model.heads=131072"});
  EXPECT_THAT(width.err, HasSubstr("note: `hidden` is 16777216"));
}

}  // namespace
}  // namespace shardc
