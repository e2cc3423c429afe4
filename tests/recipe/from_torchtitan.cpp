// A recipe made of torchtitan's configuration trains as that did, and names what it cannot say.
#include "compiler/recipe/from_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "compiler/recipe/recipe.h"
#include "tests/recipe/torchtitan_schedule.h"
#include "tests/support/compile_recipe.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// Returns the recipe of a configuration; one that the checks refuse ends the test.
auto RecipeOf(const std::string& configuration) -> Recipe {
  const auto made = RecipeFromConfig("train.toml", configuration);
  CHECK(made, "{}", made.error().message);
  return CheckedRecipe(made->text);
}

TEST(FromTorchtitan, WritesDefaultsOut) {
  const Recipe recipe = RecipeOf("[model]\nname = \"llama3\"\n");
  EXPECT_EQ(recipe.model.preset->text(), "llama-debug");
  EXPECT_EQ(recipe.model.rope_frequency->text, "llama3_rope(8, 1, 4, 8192)");
  EXPECT_EQ(*recipe.model.seq, 2048);
  EXPECT_EQ(*recipe.batch.micro, 8);
  EXPECT_FALSE(recipe.batch.global.is_set);
  EXPECT_EQ(*recipe.train.steps, 10000);
  EXPECT_EQ(recipe.precision.compute->text(), "bf16");
  EXPECT_EQ(recipe.precision.reduce->text(), "fp32");
  EXPECT_EQ(recipe.precision.master->text(), "fp32");
  EXPECT_EQ(recipe.recompute.policy->text(), "full");
  EXPECT_EQ(recipe.recompute.layers->text, "layer % 2 == 1");
  EXPECT_EQ(*recipe.shard.units, "torchtitan");
  EXPECT_EQ(recipe.shard.reshard_after_forward->text, "true");
  EXPECT_EQ(recipe.data.order->text(), "sequential");
  EXPECT_EQ(*recipe.checkpoint.every, 0);
  ExpectSchedule(recipe.optimizer.lr->text, {.total = 10000}, 8e-4, 10000);
}

TEST(FromTorchtitan, KnowsItsModels) {
  const std::string experts = "models with experts are not offered";
  const std::string sizes = "no preset has the sizes of this model; write family, layers";
  const std::string unknown = "no family here computes it";
  for (const auto& [name, flavor, line] : std::vector<std::array<std::string, 3>>{
           {"llama", "7B", "preset = \"llama2-7b\"  # llama 7B there\n"},
           {"llama2", "7B", "preset = \"llama2-7b\"  # llama2 7B there\nseq = 2048\n"},
           {"llama2", "13B", "preset = \"llama2-13b\""},
           {"llama2", "70B", "preset = \"llama2-70b\""},
           {"llama2", "1B", "# llama2 1B there: " + sizes},
           {"llama3", "1B", "# llama3 1B there: " + sizes},
           {"qwen3", "30B-A3B", "# qwen3 30B-A3B there: " + experts},
           {"qwen3", "debugmodel_moe", "# qwen3 debugmodel_moe there: " + experts},
           {"deepseek_v3", "16B", "# deepseek_v3 16B there: " + experts},
           {"llama4", "17bx16e", "# llama4 17bx16e there: " + experts},
           {"gpt_oss", "20b", "# gpt_oss 20b there: " + experts},
           {"flux", "flux-dev", "# flux flux-dev there: " + unknown},
           {"opt", "125M", "# opt 125M there: " + unknown}}) {
    const auto made =
        RecipeFromConfig("train.toml", fmt::format("[model]\nname = \"{}\"\nflavor = \"{}\"\n", name, flavor));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(made->text, HasSubstr("\n[model]\n" + line));
  }
}

TEST(FromTorchtitan, CarriesSettingsOver) {
  const Recipe recipe = RecipeOf(R"toml(
[model]
name = "llama3"
flavor = "8B"
[optimizer]
lr = 3e-4
eps = 1e-9
beta2 = 0.99
weight_decay = 0.2
[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 8192
max_norm = 0.5
steps = 50
mixed_precision_reduce = "bfloat16"
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
fsdp_reshard_after_forward = "never"
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[checkpoint]
enable = true
interval = 25
keep_latest_k = 3
[metrics]
log_freq = 1
[debug]
seed = 7
)toml");
  EXPECT_EQ(recipe.model.preset->text(), "llama3.1-8b");
  EXPECT_EQ(*recipe.model.seq, 8192);
  EXPECT_EQ(*recipe.batch.micro, 2);
  EXPECT_EQ(*recipe.batch.global, 64);
  EXPECT_EQ(*recipe.mesh.replicate, 2);
  EXPECT_EQ(*recipe.mesh.dp, 4);
  EXPECT_EQ(*recipe.mesh.tp, 2);
  EXPECT_EQ(recipe.shard.reshard_after_forward->text, "false");
  EXPECT_EQ(recipe.precision.reduce->text(), "bf16");
  EXPECT_EQ(recipe.recompute.policy->text(), "torchtitan-sac");
  EXPECT_THAT(*recipe.optimizer.betas, ElementsAre(0.9, 0.99));
  EXPECT_EQ(*recipe.optimizer.eps, 1e-9);
  EXPECT_EQ(*recipe.optimizer.weight_decay, 0.2);
  EXPECT_EQ(*recipe.optimizer.clip_norm, 0.5);
  EXPECT_EQ(*recipe.checkpoint.every, 25);
  EXPECT_EQ(*recipe.checkpoint.keep, 3);
  EXPECT_EQ(*recipe.train.log_every, 1);
  EXPECT_EQ(*recipe.init.seed, 7);
  // The warm-up is no longer than the run.
  ExpectSchedule(recipe.optimizer.lr->text, {.total = 50, .warmup = 50}, 3e-4, 50);
}

TEST(FromTorchtitan, SchedulesAreTheSame) {
  struct Case {
    std::string lines;
    Scheduler theirs;
  };
  const std::vector<Case> cases{
      {"", {}},
      {"warmup_steps = 0", {.warmup = 0}},
      {"decay_type = \"cosine\"\nmin_lr_factor = 0.1", {.type = "cosine", .least = 0.1}},
      {"decay_type = \"sqrt\"\nlr_min = 0.2", {.type = "sqrt", .least = 0.2}},
      {"decay_ratio = 0.25\nwarmup_steps = 10", {.warmup = 10, .decay_ratio = 0.25}},
      {"decay_ratio = 0.3333\ndecay_type = \"cosine\"", {.decay_ratio = 0.3333, .type = "cosine"}},
      {"decay_ratio = 0.3\ndecay_type = \"sqrt\"\nmin_lr_factor = 0.5",
       {.decay_ratio = 0.3, .type = "sqrt", .least = 0.5}},
      {"total_steps = 5000", {.total = 5000}},
      {"total_steps = 5000\ndecay_type = \"cosine\"", {.total = 5000, .type = "cosine"}},
  };
  for (const auto& [lines, theirs] : cases) {
    const Recipe recipe =
        RecipeOf("[model]\nname = \"llama3\"\n[training]\nsteps = 1000\n[lr_scheduler]\n" + lines + "\n");
    ExpectSchedule(recipe.optimizer.lr->text, theirs, 8e-4);
  }
}

TEST(FromTorchtitan, NamesWhatItCannotSay) {
  const auto made = RecipeFromConfig("train.toml", R"toml(
[model]
flavor = "13B"
converters = ["float8"]
[optimizer]
name = "Adam"
[parallelism]
pipeline_parallel_degree = 4
context_parallel_degree = 1
[activation_checkpoint]
mode = "memory_budget"
[lr_scheduler]
decay_type = "exp"
[validation]
enable = true
freq = 5
[checkpoint]
enable = 1
[debug]
seed = 7
[training]
enable_cpu_offload = false
seed = 42
steps = "1000"
"odd\nkey" = 1
)toml");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(
      made->not_carried,
      ElementsAre(
          StartsWith("[model] flavor = \"13B\": no preset has the sizes"),
          StartsWith("[activation_checkpoint] mode = \"memory_budget\": it is \"none\" here"),
          StartsWith("[training] steps = \"1000\": it is no number; the default 10000"),
          StartsWith("[optimizer] name = \"Adam\": it is AdamW here"),
          StartsWith("[lr_scheduler] decay_type = \"exp\": it is \"linear\" here"),
          StartsWith("[validation] enable = true: name files of ids in data.eval, and write train.eval_every = 5"),
          StartsWith("[training] seed = 42: debug.seed is there too, and holds"),
          StartsWith("[checkpoint] enable = 1: it is no bool; the default false"),
          StartsWith("[model] converters = [\"float8\"]: not offered"),
          StartsWith("[parallelism] pipeline_parallel_degree = 4: pipeline parallelism is not offered"),
          StartsWith("[training] odd\\nkey = 1: nothing is known of this key")));
  for (const std::string& line : made->not_carried) {
    EXPECT_THAT(made->text, HasSubstr("#   " + line + "\n"));
  }
}

TEST(FromTorchtitan, LeavesOutWhatIsSwitchedOff) {
  const auto made = RecipeFromConfig("train.toml", R"toml(
[profiling]
enable_profiling = false
save_traces_folder = "profile_trace"
profile_freq = 100
enable_memory_snapshot = true
save_memory_snapshot_folder = "memory"
[metrics]
enable_tensorboard = false
save_tb_folder = "tb"
[model]
name = "llama3"
flavor = "8B"
[training]
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"
dtype = "float32"
[parallelism]
pipeline_parallel_degree = 1
pipeline_parallel_schedule = "1F1B"
context_parallel_degree = 2
context_parallel_rotate_method = "allgather"
[validation]
dataset = "c4_validation"
[checkpoint]
enable_checkpoint = true
async_mode = "disabled"
export_dtype = "bfloat16"
[compile]
enable = false
components = ["model", "loss"]
)toml");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->text, HasSubstr("compute = \"bf16\"\nreduce = \"fp32\"\nmaster = \"fp32\"\n"));
  EXPECT_THAT(made->not_carried,
              ElementsAre(StartsWith("[checkpoint] export_dtype = \"bfloat16\": `shardc export --dtype bf16` writes"),
                          StartsWith("[parallelism] context_parallel_degree = 2: "),
                          StartsWith("[parallelism] context_parallel_rotate_method = \"allgather\": "),
                          StartsWith("[profiling] enable_memory_snapshot = true: "),
                          StartsWith("[profiling] save_memory_snapshot_folder = \"memory\": ")));
}

TEST(FromTorchtitan, RefusesOtherTexts) {
  const auto why = [](const std::string& name, const std::string& text) {
    const auto made = RecipeFromConfig(name, text);
    CHECK(!made, "{}", made->text);
    EXPECT_EQ(made.error().code, ExitCode::RecipeRejected);
    return made.error().message;
  };
  EXPECT_THAT(why("train.toml", "[model]\nname = \n"), StartsWith("train.toml: line 2: "));
  EXPECT_EQ(why("config_registry.py", "from torchtitan.trainer import Trainer\n"),
            "config_registry.py is Python, which is not run; torchtitan writes what it makes of it as JSON, which is "
            "read: start it once with --debug.save_config_file FILE");
  EXPECT_EQ(why("train.toml", ""),
            "train.toml is no configuration of torchtitan or KempnerForge, which have 0 and 0 of its 0 settings; begin "
            "with `shardc new FILE --preset NAME`, where NAME is one of `shardc presets`");
  EXPECT_THAT(why("train.toml", "[model]\nlayers = 2\n"),
              HasSubstr("which have 0 and 0 of its 1 settings, and nothing of [model]; begin with"));
  EXPECT_THAT(why("train.toml", "name = 4\n"), HasSubstr("and nothing of name; begin with"));
  EXPECT_EQ(why("train.toml", "[training]\nsteps = 10\n"),
            "train.toml does not say which model it trains; write name and flavor of torchtitan into its [model]");
}

TEST(FromTorchtitan, RefusesOtherTrainers) {
  const auto other = RecipeFromConfig("train.toml", R"toml(
max_steps = 100000
[model]
name = "llama-7b"
size = "7B"
[optim]
lr = 3e-4
[scheduler]
type = "cosine"
[job]
dump_folder = "./outputs"
)toml");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ExitCode::RecipeRejected);
  EXPECT_EQ(
      other.error().message,
      "train.toml is no configuration of torchtitan or KempnerForge, which have 2 and 0 of its 6 settings, and "
      "nothing of max_steps, [optim], [scheduler]; begin with `shardc new FILE --preset NAME`, where NAME is one of "
      "`shardc presets`");
}

TEST(FromTorchtitan, RefusesUnknownSizes) {
  for (const auto& [line, fault] : std::vector<std::array<std::string, 2>>{
           {"max_context_length = 8192",
            "max_context_length = 8192: nothing is known of this key, which looks like a size, "
            "a length or a batch; take it out of the file, and set what it means in the "
            "recipe"},
           {"num_tokens_per_train_step = 65536",
            "num_tokens_per_train_step = 65536: nothing is known of this key, which "
            "looks like a size, a length or a batch; take it out of the file, and "
            "set what it means in the recipe"},
           {"seq_len = 0", "seq_len = 0: it has to be a whole number of at least 1"},
           {"local_batch_size = -4", "local_batch_size = -4: it has to be a whole number of at least 1"}}) {
    const auto made =
        RecipeFromConfig("train.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n" + line + "\n");
    ASSERT_FALSE(made) << made->text;
    EXPECT_EQ(made.error().message, "train.toml: [training] " + fault);
  }
  // A section that changes nothing that is trained may have such names.
  EXPECT_TRUE(RecipeFromConfig("train.toml", "[model]\nname = \"llama3\"\n[metrics]\nwindow_size = 5\nlog_freq = 2\n"));
}

}  // namespace
}  // namespace shardc
