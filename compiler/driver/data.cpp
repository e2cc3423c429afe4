// shardc data show RECIPE|PLAN: prints a sample as the model gets it: tokens, the documents that they belong to,
// positions, and which places have a target.

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/table.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "runtime/data/document_ends.h"
#include "runtime/data/token_reader.h"

namespace shardc {

namespace {

struct DataOptions {
  std::string action;
  RecipeOptions recipe;
  std::string sample;
  std::string split = "train";
  std::string tokenizer;
};

/// A sample with a row for each place.
struct ShownSample {
  /// Name of the source of a mixture; empty if none has it.
  std::string source;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  std::vector<int32_t> starts;
  std::vector<int32_t> positions;

  explicit ShownSample(int64_t seq)
      : tokens(static_cast<size_t>(seq)), targets(tokens.size()), starts(tokens.size()), positions(tokens.size()) {}
};

/// The entries of a tokenizer's vocabulary, by id: those of the file, not the text that they stand for.
using Vocabulary = std::vector<std::string>;

}  // namespace

/// Reads tokenizer.json, or that of a folder: the vocabulary of its model, and its added tokens.
static auto ReadVocabulary(const std::string& path) -> ErrorOr<Vocabulary> {
  constexpr size_t MostBytes = size_t{256} << 20;
  constexpr int64_t MostIds = int64_t{1} << 24;
  const std::filesystem::path given(path);
  ASSIGN_OR_RETURN(const auto text,
                   ReadFile(std::filesystem::is_directory(given) ? given / "tokenizer.json" : given, MostBytes));
  ASSIGN_OR_RETURN(const auto json, ParseJson(text, ExitCode::Usage));
  Vocabulary names;
  const auto put = [&](int64_t id, const std::string& name) {
    if (0 <= id && id < MostIds) {
      names.resize(std::max(names.size(), static_cast<size_t>(id) + 1));
      names[static_cast<size_t>(id)] = name;
    }
  };
  const auto member = [](const nlohmann::json& object, const char* name) {
    return object.is_object() && object.contains(name) ? object.at(name) : nlohmann::json();
  };
  const nlohmann::json vocab = member(member(json, "model"), "vocab");
  for (const auto& [name, entry] : vocab.items()) {
    if (vocab.is_object() && entry.is_number_integer()) {
      put(entry.get<int64_t>(), name);
    } else if (vocab.is_array() && entry.is_array() && !entry.empty() && entry.front().is_string()) {
      // That of a Unigram model: pairs of text and score, in the order of ids.
      put(std::ssize(names), entry.front().get<std::string>());
    }
  }
  for (const nlohmann::json& added : member(json, "added_tokens")) {
    if (member(added, "id").is_number_integer() && member(added, "content").is_string()) {
      put(added.at("id").get<int64_t>(), added.at("content").get<std::string>());
    }
  }
  FAIL_IF(names.empty(), ExitCode::Usage,
          "{} has no vocabulary that this program reads; --tokenizer takes tokenizer.json", path);
  return names;
}

static auto ReadPlanOf(const DataOptions& options) -> ErrorOr<Plan> {
  NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
    RecipeSource source(options.recipe);
    return source.ReadPlan(*named.text);
  }
  RecipeSource source(options.recipe, std::move(named.text), LeftOut::Assume);
  return source.Printed(source.LoadAndCompile({}));
}

static auto ReadShown(const Plan& plan, Split split, int64_t index) -> ErrorOr<ShownSample> {
  ASSIGN_OR_RETURN(const auto reader,
                   TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.schedule_steps()}));
  FAIL_IF(split == Split::Eval && reader->num_eval_samples() == 0, ExitCode::Usage,
          "the recipe has nothing to evaluate on: set data.eval or data.eval_tokens, or leave out --split eval");
  FAIL_IF(split == Split::Eval && index >= reader->num_eval_samples(), ExitCode::Usage,
          "--sample is {}, and the eval split has {}", index, Counted(reader->num_eval_samples(), "sample"));
  ShownSample sample(plan.data.seq);
  RETURN_IF_ERROR(reader->ReadSample(split, index, sample.tokens.data(), sample.targets.data(), 1, plan.OwnHead()));
  ASSIGN_OR_RETURN(sample.source, reader->NameOfSource(split, index));
  if (!plan.data.splits_documents()) {
    return sample;
  }
  RETURN_IF_ERROR(reader->ReadDocuments(split, index, sample.starts.data(), sample.positions.data(), 1));
  TakeTargetsAtEnds(sample.starts.data(), plan.data.seq, 1, sample.targets.data());
  return sample;
}

static auto SampleText(const DataOptions& options, const Plan& plan, const ShownSample& sample, const Vocabulary& names)
    -> std::string {
  const bool splits = plan.data.splits_documents();
  const auto name_of = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < names.size() ? Escaped(names[static_cast<size_t>(id)]) : "";
  };
  Table table("  ");
  std::vector<std::string> head{"place", "token"};
  if (!names.empty()) {
    head.emplace_back("text");
  }
  head.emplace_back("target");
  if (splits) {
    head.insert(head.begin() + 1, {"document", "position"});
  }
  if (!names.empty()) {
    // A text may begin with a digit: it is text all the same.
    table.KeepLeft(head.size() - 2);
  }
  table.Row(head);
  int64_t documents = 0;
  int64_t targets = 0;
  for (size_t s = 0; s < sample.tokens.size(); ++s) {
    const bool begins = s == 0 || (splits && sample.starts[s] == static_cast<int32_t>(s));
    if (begins && s > 0) {
      table.Row(std::vector<std::string>(head.size(), "--"));
    }
    documents += begins ? 1 : 0;
    targets += sample.targets[s] >= 0 ? 1 : 0;
    std::vector<std::string> row{std::to_string(s), std::to_string(sample.tokens[s])};
    if (splits) {
      row.insert(row.begin() + 1, {std::to_string(documents - 1), std::to_string(sample.positions[s])});
    }
    if (!names.empty()) {
      row.push_back(name_of(sample.tokens[s]));
    }
    row.push_back(sample.targets[s] < 0 ? "-" : std::to_string(sample.targets[s]));
    table.Row(row);
  }
  return fmt::format("sample {} of the {} split{}: {}, {}{}\n\n{}", options.sample, options.split,
                     sample.source.empty() ? "" : ", from source " + PrintableLine(sample.source),
                     Counted(std::ssize(sample.tokens), "place"), Counted(targets, "target"),
                     splits ? fmt::format(", {} (each place of padding is one)", Counted(documents, "document")) : "",
                     table.Text());
}

static auto ShowSample(const DataOptions& options) -> Status {
  FAIL_IF(options.action != "show", ExitCode::Usage, "`{}` is none of show", options.action);
  const auto index = ParseWhole<int64_t>(options.sample);
  FAIL_IF(!index || *index < 0, ExitCode::Usage, "--sample is {}, and takes a whole number from 0 to {}",
          options.sample, std::numeric_limits<int64_t>::max());
  ASSIGN_OR_RETURN(const auto names, options.tokenizer.empty() ? Vocabulary() : ReadVocabulary(options.tokenizer));
  ASSIGN_OR_RETURN(const auto plan, ReadPlanOf(options));
  ASSIGN_OR_RETURN(const auto sample, ReadShown(plan, options.split == "eval" ? Split::Eval : Split::Train, *index));
  return WriteResult(SampleText(options, plan, sample, names));
}

auto DeclareData(CommandOptions& options) -> Action {
  const auto values = std::make_shared<DataOptions>();
  options.Positional("show", values->action, "what to do");
  DeclareRecipeOptions(options, values->recipe);
  options.Text("--sample", values->sample, "N", "the running number of the sample, from 0 on, over all epochs", true);
  options.Choice("--split", values->split, {"train", "eval"}, "the split that has the sample");
  options.Text("--tokenizer", values->tokenizer, "FILE|DIR",
               "a tokenizer.json, or a folder that has one: shows the entry of its vocabulary beside each id");
  return [values] { return ExitCodeOf(ShowSample(*values)); };
}

}  // namespace shardc
