// shardc export CHECKPOINT -o DIR: a checkpoint as a model that transformers opens.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "compiler/base/files.h"
#include "compiler/base/preset_rows.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/export.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/data/replaced_input.h"
#include "compiler/driver/checkpoint_path.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/explain/fit.h"

namespace shardc {

namespace {

struct ExportOptions {
  std::string checkpoint;
  std::string output;
  std::string dtype = "as-stored";
  std::string max_file = "5GB";
  std::string tokenizer;
};

}  // namespace

/// Returns the tokens of the longest sequence that the checkpoint's model takes, as the model that the run began from
/// or the recipe's preset has them; 0 if neither says it.
static auto LongestSeqOf(const std::string& checkpoint) -> int64_t {
  int64_t longest = 0;
  const auto text = ReadFile(checkpoint + "/" + ManifestName, MaxManifestBytes);
  const auto manifest = text ? ManifestFromText(*text) : text.error();
  if (manifest && manifest->recipe.contains("model.preset")) {
    const std::string& name = manifest->recipe.at("model.preset");
    const PresetRow* const preset = name.size() > 2 ? PresetNamed(name.substr(1, name.size() - 2)) : nullptr;
    longest = preset == nullptr ? 0 : preset->longest_seq;
  }
  const std::string run_dir = RunDirOfCheckpoint(checkpoint);
  auto record = run_dir.empty() ? ErrorOr<std::string>("") : ReadFile(run_dir + "/" + SeedRecordName, MaxManifestBytes);
  const auto seed =
      record && !record->empty() ? SeedContentsFromRecord(*std::move(record)) : Fail(ExitCode::Checkpoint, "no record");
  if (seed && seed->manifest.published && seed->manifest.recipe.contains("model.seq")) {
    longest = std::max<int64_t>(longest, std::strtoll(seed->manifest.recipe.at("model.seq").c_str(), nullptr, 10));
  }
  return longest;
}

static auto Export(const ExportOptions& options) -> Status {
  const std::string checkpoint = CheckpointAt(options.checkpoint);
  RETURN_IF_ERROR(CheckIsCheckpoint(checkpoint));
  RETURN_IF_ERROR(CheckReplacesNone("-o", options.output, {{checkpoint}}));
  const auto max_file = ParseBudget(options.max_file);
  if (!max_file || max_file->machine != nullptr || max_file->bytes <= Bytes{}) {
    return Fail(ExitCode::Usage, "--max-file: `{}` is no amount of memory, such as 5GB", options.max_file);
  }
  const auto done = ExportModel({.checkpoint = checkpoint,
                                 .output = options.output,
                                 .type = FromText<DType>(options.dtype),
                                 .max_file = max_file->bytes.value,
                                 .longest_seq = LongestSeqOf(checkpoint),
                                 .tokenizer = options.tokenizer});
  if (!done) {
    return done.error();
  }
  std::printf("%s: %ld tensors of %s in %ld file%s, %s\n", options.output.c_str(), done->num_tensors,
              checkpoint.c_str(), done->num_files, done->num_files == 1 ? "" : "s",
              FormatMemory(Bytes{done->bytes}).c_str());
  return Success{};
}

auto DeclareExport(CommandOptions& options) -> Action {
  const auto values = std::make_shared<ExportOptions>();
  options.Positional("CHECKPOINT", values->checkpoint, "a checkpoint, or a run directory");
  options.Text("-o,--output", values->output, "DIR", "the directory to make", true);
  options.Choice("--dtype", values->dtype, {"as-stored", "f32", "bf16", "f16"}, "type of the weights");
  options.Text("--max-file", values->max_file, "SIZE", "bytes of a file at most; default: 5GB");
  options.Text("--tokenizer", values->tokenizer, "DIR", "directory of a published model, whose tokenizer is copied");
  return [values] { return ExitCodeOf(Export(*values)); };
}

}  // namespace shardc
