// What --help and `shardc help` print.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/driver/command.h"
#include "tests/cli/program.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

auto AskForHelp(const std::vector<std::string>& arguments) -> Finished { return RunProgram(Shardc(), arguments); }

TEST(Cli, HelpShowsExamplesFirstAndTheExitCodes) {
  for (const Subcommand& subcommand : Subcommands()) {
    const std::string command(subcommand.name);
    const Finished finished = AskForHelp({command, "--help"});
    EXPECT_LE(finished.out.find(subcommand.examples.substr(0, subcommand.examples.find('\n'))), 2U) << command;
    EXPECT_THAT(finished.out, HasSubstr("Usage: shardc " + command));
    EXPECT_THAT(finished.out, HasSubstr("75  stopped by a signal; a run has saved"));
  }
  EXPECT_THAT(AskForHelp({"--help"}).out, HasSubstr("  docs  "));
}

TEST(Cli, HelpPrintsWhatIsWrittenInTheLanguage) {
  EXPECT_EQ(AskForHelp({"help", "warmup"}).out,
            "warmup(n) (function of expressions): rises in equal parts from 1 / n at step 0 to 1 at step n - 1, and is "
            "1 from then on; n = 0 means no warm-up; takes n >= 0\n  = if step < n then (step + 1) / n else 1\n");
  EXPECT_THAT(AskForHelp({"help", "olmo-mitchell"}).out,
              HasSubstr("  attention_out: trunc_normal_sigma(0, 1 / sqrt(2 * hidden * (layer + 1)), 3)\n"));
}

TEST(Cli, HelpKnowsWhatAFindingHasInBrackets) {
  EXPECT_EQ(AskForHelp({"help", "update-frozen"}).out,
            "update-frozen (rule of the verifier)\n  A frozen sub-vector is not updated.\n");
  const std::string of_op = AskForHelp({"help", "carry"}).out;
  EXPECT_THAT(of_op, testing::EndsWith(".\n  carry-c1: last and first are the same bytes.\n  carry-c2: last and first "
                                       "are of one type.\n"))
      << of_op;
  EXPECT_EQ(AskForHelp({"help", "carry-c2"}).out,
            "carry-c2 (constraint of the op carry)\n  last and first are of one type.\n\n" + of_op);
  EXPECT_THAT(AskForHelp({"help", "read-undefned"}).err, HasSubstr("did you mean `read-undefined`?"));
}

TEST(Cli, HelpKnowsTheWordsOfPlans) {
  EXPECT_THAT(
      AskForHelp({"help", "hosts"}).out,
      HasSubstr(
          "\nhosts (of a plan's mesh): number of hosts. Each has the same number of ranks, numbered host by host; 1 "
          "where a plan does not say\n"));
  EXPECT_EQ(AskForHelp({"help", "dp_inner"}).out,
            "dp_inner (of a plan's mesh): the ranks in a group of neighbours along dp\n");
  EXPECT_EQ(AskForHelp({"help", "momentum_buffer"}).out,
            "momentum_buffer (vector that the optimizer sgd keeps of each parameter): decaying sum of gradients; none "
            "where momentum is 0\n");
  EXPECT_EQ(AskForHelp({"help", "exp_avg"}).out,
            "exp_avg (vector that the optimizer adamw keeps of each parameter): first moment\n");
}

TEST(Cli, HelpKnowsWordsOfOtherTrainersHoweverSpelt) {
  for (const auto& [word, answer] : std::vector<std::pair<std::string, std::string>>{
           {"zero3", "write mesh.dp with shard.reshard_after_forward = true"},
           {"ZeRO-3", "write mesh.dp with shard.reshard_after_forward = true"},
           {"zero2", "write mesh.dp with shard.reshard_after_forward = false"},
           {"accumulation", "write batch.accumulate"},
           {"gradient accumulation", "write batch.accumulate"},
           {"ga", "write batch.accumulate"},
           {"micro_batch", "write batch.micro"},
           {"checkpointing", "write recompute.policy = \"full\""},
           {"flash-attention", "there is no switch"},
           {"megatron", "write mesh.tp"},
           {"nccl", "run.comm = \"auto\" takes NCCL"},
           {"shuffle", "write data.order = \"shuffled\""},
           {"dataloader", "data.order and data.seed say"},
           {"lora", "docs/adapters.md"},
           {"fp16", "write precision.compute = \"bf16\""},
           {"137", "killed by signal 9 (SIGKILL): the kernel sends it if memory is short"},
           {"143", "killed by signal 15 (SIGTERM): a run that gets it saves and ends with 75"},
           {"139", "killed by signal 11 (SIGSEGV)"}}) {
    const Finished finished = AskForHelp({"help", word});
    EXPECT_EQ(finished.exit_code, 0) << word;
    EXPECT_THAT(finished.out, HasSubstr(answer)) << word;
  }
  EXPECT_EQ(AskForHelp({"help", "300"}).exit_code, 2);
}

TEST(Cli, HelpSaysWhichKeysAFamilyAndAnOptimizerHave) {
  EXPECT_THAT(AskForHelp({"help", "sgd"}).out,
              testing::StartsWith("sgd (optimizer): gradient descent with momentum, as torch.optim.SGD computes it\n"
                                  "  has the key momentum\n  has the key nesterov\n\nsgd (op): "));
  EXPECT_THAT(AskForHelp({"help", "qwen3"}).out,
              HasSubstr("\n  keys of [model]: family, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq, "
                        "norm_eps, tied, rope_theta, rope_frequency\n"));
  EXPECT_THAT(AskForHelp({"help", "betas"}).out, HasSubstr("; of \"adamw\" alone\n"));
  EXPECT_THAT(AskForHelp({"help", "norm_eps"}).out, HasSubstr("; default of \"qwen2\" and \"qwen3\": 1e-06\n"));
}

}  // namespace
}  // namespace shardc
