// shardc logits and shardc sample: what a checkpoint makes of given ids, by shardc-run. The plan is that of the recipe
// for one sample per rank, whose evaluation takes these ids in the place of held-out tokens. The model's own head
// answers. No target is read: further heads, which belong to the model, have a file of zeros for theirs.

#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "compiler/base/mapped.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/split.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/data/replaced_input.h"
#include "compiler/data/token_file.h"
#include "compiler/data/token_ids.h"
#include "compiler/driver/checkpoint_path.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct GenerateOptions {
  RecipeOptions recipe;
  std::string checkpoint;
};

struct LogitsOptions : GenerateOptions {
  std::string tokens;
  std::string output;
};

struct SampleOptions : GenerateOptions {
  std::string prompt;
  std::string prompt_ids;
  std::string tokens_out = "128";
  std::string temperature = "1";
  std::string seed = "0";
};

using Ids = std::vector<int32_t>;
using Arguments = std::vector<std::string>;

/// A question about ids to a checkpoint.
struct Question {
  /// Finds the ids of a model with this vocabulary.
  std::function<auto(const Recipe& recipe)->ErrorOr<Ids>> find_ids;
  /// True if all ids are evaluated together; false if ids are evaluated one sample at a time.
  bool takes_all_samples = false;
  /// Options of shardc-run.
  Arguments arguments;
  /// The file that -o names; empty if the answer goes to stdout.
  std::string output;
  /// The file of --tokens; empty if the ids are in the options.
  std::string tokens;
};

}  // namespace

template <class T>
static auto NumberIn(std::string_view option, std::string_view text, T least, T most) -> ErrorOr<T> {
  const auto number = ParseWhole<T>(text);
  // A comparison with a NaN is false.
  FAIL_IF(!number || !(*number >= least && *number <= most), ExitCode::Usage,
          "{}: `{}` stands where a number from {} to {} belongs", option, text, least, most);
  return *number;
}

static auto SetTo(auto& leaf, auto value) -> void {
  leaf.value = std::move(value);
  leaf.is_set = true;
}

/// Returns the recipe for one sample per rank and microbatch, with so many samples to evaluate. Its data are not looked
/// at.
static auto ForGivenIds(Recipe recipe, int64_t samples) -> Recipe {
  const auto format = recipe.data.format;
  recipe.data = {};
  recipe.data.format = format;
  SetTo(recipe.data.synthetic, OneOf(Synthetic::Uniform));
  SetTo(recipe.data.eval_tokens, samples * *recipe.model.seq + 1);
  recipe.batch = {};
  SetTo(recipe.batch.micro, int64_t{1});
  SetTo(recipe.batch.accumulate, int64_t{1});
  return recipe;
}

/// Gives the recipe tokens and targets from files, all zeros, in place of tokens that are made, which have no targets.
static auto ReadZeros(Recipe& recipe) -> Status {
  const int64_t num_ids = *recipe.data.eval_tokens + *recipe.model.seq + 1;
  ASSIGN_OR_RETURN(const auto path, TextInMemory(std::string(static_cast<size_t>(num_ids) * sizeof(uint32_t), '\0')));
  SetTo(recipe.data.synthetic, OneOf(Synthetic::None));
  SetTo(recipe.data.format, OneOf(TokenFormat::U32));
  SetTo(recipe.data.tokens, std::vector{path});
  for (LossHead& head : recipe.loss.head) {
    SetTo(head.targets, std::vector{path});
  }
  return Success{};
}

/// Checks that the answer replaces nothing that is read, here or by a run of the recipe.
static auto CheckOutput(const GenerateOptions& options, const Question& question, std::vector<std::string> inputs)
    -> Status {
  inputs.insert(inputs.end(), {options.recipe.path, options.checkpoint, question.tokens});
  return question.output.empty() ? Status(Success{}) : CheckReplacesNone("-o", question.output, inputs);
}

static auto Generate(GenerateOptions options, const Question& question) -> Status {
  RETURN_IF_ERROR(TakeRecipeOfRun(options.recipe, options.checkpoint));
  const std::string given = CheckpointAt(options.checkpoint);
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  FAIL_IF(named.is_plan, ExitCode::Usage, "{} is a plan; name its recipe, or the directory of its run",
          options.recipe.path);
  RecipeSource source(options.recipe, named.text);
  source.set_file_checks(FileChecks::None);
  source.TakeHostsOfLaunch();
  ASSIGN_OR_RETURN(const auto recipe, source.Printed(source.Load()));
  RETURN_IF_ERROR(CheckOutput(options, question, InputsOf(recipe)));
  ASSIGN_OR_RETURN(const auto ids, question.find_ids(recipe));
  const int64_t samples = CeilDiv(std::ssize(ids), *recipe.model.seq);
  Recipe changed = ForGivenIds(recipe, question.takes_all_samples ? samples : 1);
  if (!changed.loss.head.empty()) {
    RETURN_IF_ERROR(ReadZeros(changed));
  }
  ASSIGN_OR_RETURN(const auto plan, source.CompileChanged(changed, {.run_dir = RunDirOfCheckpoint(given)}));
  ASSIGN_OR_RETURN(const auto checkpoint, CheckpointOrNewest(given, plan));
  RETURN_IF_ERROR(ManifestAt(checkpoint));
  const auto plan_path = TextInMemory(PrintPlan(plan));
  const auto ids_path = TextInMemory({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Ids::value_type)});
  if (!plan_path || !ids_path) {
    return plan_path ? ids_path.error() : plan_path.error();
  }
  if (!recipe.loss.head.empty()) {
    const auto names = Mapped<std::string>(recipe.loss.head, [](const LossHead& head) { return *head.name; });
    fmt::print(stderr, "the model's own head answers; the heads {} do not\n",
               Printable(fmt::format("{}", fmt::join(names, ", "))));
  }
  Arguments arguments{*plan_path, "--eval", checkpoint, "--ids", *ids_path};
  arguments.insert(arguments.end(), question.arguments.begin(), question.arguments.end());
  return BecomeRuntime(arguments, plan.device);
}

/// Reads all ids of a file in the format of the recipe's data.
static auto IdsOfFile(const Recipe& recipe, const std::string& path) -> ErrorOr<Ids> {
  constexpr int64_t Most = int64_t{1} << 24;
  const FilePurpose purpose{.noun = "token", .key = "--tokens"};
  const VocabRange range{.vocab = *recipe.model.vocab, .vocab_name = "`model.vocab`"};
  ASSIGN_OR_RETURN(const auto file, OpenTokenFile(path, *recipe.data.format, purpose));
  FAIL_IF(file.num_ids == 0 || file.num_ids > Most, ExitCode::Usage, "--tokens {} has {} ids; it takes 1 to {}", path,
          file.num_ids, Most);
  std::vector<uint8_t> raw(static_cast<size_t>(file.num_ids * file.type.bytes));
  RETURN_IF_ERROR(ReadAll(file.descriptor, raw.data(), std::ssize(raw), file.header_bytes));
  Ids ids(static_cast<size_t>(file.num_ids));
  const int64_t bad = WidenIds(raw.data(), file.num_ids, file.type, range, ids.data());
  if (bad >= 0) {
    return BadId(file, purpose.noun, *recipe.data.format, bad, raw.data() + bad * file.type.bytes, range);
  }
  return ids;
}

static auto Logits(const LogitsOptions& options) -> Status {
  RETURN_IF_ERROR(CheckHasOffsets("-o", options.output));
  return Generate(options, {.find_ids = [&](const Recipe& recipe) { return IdsOfFile(recipe, options.tokens); },
                            .takes_all_samples = true,
                            .arguments = {"--logits", options.output},
                            .output = options.output,
                            .tokens = options.tokens});
}

/// Returns the ids of a prompt: numbers with commas or blanks between them, or the bytes of a text.
static auto IdsOfPrompt(const SampleOptions& options, int64_t vocab) -> ErrorOr<Ids> {
  Ids ids;
  if (options.prompt_ids.empty()) {
    FAIL_IF(
        vocab > UINT8_MAX + 1, ExitCode::Usage,
        "--prompt is for models of bytes, and this model's vocabulary has {} ids; use tools/sample_text.py with its "
        "tokenizer, or --prompt-ids",
        Grouped(vocab));
    for (const char byte : options.prompt) {
      ids.push_back(static_cast<unsigned char>(byte));
    }
  }
  const auto parts = SplitAt(options.prompt_ids, ",");
  for (const std::string_view part : parts) {
    const auto words = SplitWords(part, " \t\n");
    FAIL_IF(words.empty() && parts.size() > 1, ExitCode::Usage,
            "--prompt-ids: a comma has no id beside it; write them as in 15,27,99");
    for (const std::string_view word : words) {
      ASSIGN_OR_RETURN(const auto id, NumberIn<int32_t>("--prompt-ids", word, 0, INT32_MAX));
      ids.push_back(id);
    }
  }
  for (const int32_t id : ids) {
    FAIL_IF(id >= vocab, ExitCode::Usage, "the prompt has id {}, and the model's vocabulary ends at {}", id, vocab - 1);
  }
  return ids.empty() ? ErrorOr<Ids>(Fail(ExitCode::Usage, "the prompt is empty; a model needs an id to go on from"))
                     : ErrorOr<Ids>(std::move(ids));
}

static auto Sample(const SampleOptions& options) -> Status {
  FAIL_IF(options.prompt.empty() == options.prompt_ids.empty(), ExitCode::Usage,
          "write either --prompt TEXT or --prompt-ids IDS");
  const auto tokens_out = NumberIn<int64_t>("--tokens-out", options.tokens_out, 1, 1'000'000);
  const auto temperature = NumberIn<double>("--temperature", options.temperature, 0, 1000);
  const auto seed = NumberIn<uint64_t>("--sample-seed", options.seed, 0, UINT64_MAX);
  for (const Status& read : {tokens_out ? Status(Success{}) : Status(tokens_out.error()),
                             temperature ? Status(Success{}) : Status(temperature.error()),
                             seed ? Status(Success{}) : Status(seed.error())}) {
    RETURN_IF_ERROR(read);
  }
  Arguments asked{"--sample", options.tokens_out, "--temperature", options.temperature, "--sample-seed", options.seed};
  if (options.prompt_ids.empty()) {
    asked.emplace_back("--bytes");
  }
  return Generate(options, {.find_ids = [&](const Recipe& recipe) { return IdsOfPrompt(options, *recipe.model.vocab); },
                            .takes_all_samples = false,
                            .arguments = std::move(asked)});
}

static auto DeclareGenerateOptions(CommandOptions& options, GenerateOptions& values) -> void {
  DeclareRecipeOptions(options, values.recipe, "RECIPE|RUN",
                       "a recipe (TOML), or a run directory, for its newest recipe");
  options.Text("--checkpoint", values.checkpoint, "DIR",
               "the checkpoint to ask, or a run directory; default: the newest of the recipe's run");
}

auto DeclareLogits(CommandOptions& options) -> Action {
  const auto values = std::make_shared<LogitsOptions>();
  DeclareGenerateOptions(options, *values);
  options.Text("--tokens", values->tokens, "FILE", "a file of ids in data.format, each `seq` of which are a sample",
               true);
  options.Text("-o,--output", values->output, "FILE", "a safetensors file: logits [ids, vocab] and tokens [ids]", true);
  return [values] {
    const Status done = Logits(*values);
    return ExitCodeOf(done ? done : Status(TellLaunchOf(done.error())));
  };
}

auto DeclareSample(CommandOptions& options) -> Action {
  const auto values = std::make_shared<SampleOptions>();
  DeclareGenerateOptions(options, *values);
  options.Text("--prompt", values->prompt, "TEXT",
               "text whose bytes are the first ids; what follows is printed as bytes");
  options.Text("--prompt-ids", values->prompt_ids, "IDS",
               "the first ids, such as 15,27,99; those that follow are printed");
  options.Text("--tokens-out", values->tokens_out, "N", "ids to sample; default: 128");
  options.Text("--temperature", values->temperature, "T",
               "what logits are divided by; 0 takes the likeliest id; default: 1");
  options.Text("--sample-seed", values->seed, "S", "seed of the draws; default: 0");
  return [values] {
    const Status done = Sample(*values);
    return ExitCodeOf(done ? done : Status(TellLaunchOf(done.error())));
  };
}

}  // namespace shardc
