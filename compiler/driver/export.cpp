// shardc export CHECKPOINT -o DIR: a checkpoint as a model that transformers opens.

#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "compiler/base/units.h"
#include "compiler/checkpoint/export.h"
#include "compiler/checkpoint/export_adapter.h"
#include "compiler/data/replaced_input.h"
#include "compiler/driver/checkpoint_path.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/fit/fit.h"

namespace shardc {

namespace {

struct ExportOptions {
  std::string checkpoint;
  std::string output;
  std::string dtype = "as-stored";
  std::string max_file = "5GB";
  std::string tokenizer;
  bool merge = false;
  bool adapter = false;
};

}  // namespace

static auto Export(const ExportOptions& options) -> Status {
  const std::string checkpoint = CheckpointAt(options.checkpoint);
  ASSIGN_OR_RETURN(const auto manifest, ManifestAt(checkpoint));
  RETURN_IF_ERROR(CheckReplacesNone("-o", options.output, {{checkpoint}}));
  if (options.adapter) {
    FAIL_IF(options.merge, ExitCode::Usage, "--adapter writes the adapters alone, --merge a whole model; name one");
    FAIL_IF(options.dtype != "as-stored" || options.max_file != "5GB" || !options.tokenizer.empty(), ExitCode::Usage,
            "--adapter writes one file in f32, and no tokenizer; leave out --dtype, --max-file and --tokenizer");
    ASSIGN_OR_RETURN(const auto done, ExportAdapter(checkpoint, manifest, options.output));
    std::printf("%s: an adapter of %ld tensors of %s, %s\n", options.output.c_str(), done.num_tensors,
                checkpoint.c_str(), FormatMemory(Bytes{done.bytes}).c_str());
    return Success{};
  }
  const auto max_file = ParseBudget(options.max_file);
  if (!max_file || max_file->machine != nullptr || max_file->bytes <= Bytes{}) {
    return Fail(ExitCode::Usage, "--max-file: `{}` is no amount of memory, such as 5GB", options.max_file);
  }
  ASSIGN_OR_RETURN(const auto done, ExportModel({.checkpoint = checkpoint,
                                                 .manifest = &manifest,
                                                 .output = options.output,
                                                 .type = FromText<DType>(options.dtype),
                                                 .max_file = max_file->bytes.value,
                                                 .tokenizer = options.tokenizer,
                                                 .merges = options.merge}));
  const std::string left_out = done.heads_left_out.empty()
                                   ? ""
                                   : fmt::format("; without the heads {}, which no class of transformers has",
                                                 fmt::join(done.heads_left_out, ", "));
  const std::string merged = done.num_merged == 0 ? "" : fmt::format("; {} with their adapters added", done.num_merged);
  std::printf("%s: %ld tensors of %s in %ld file%s, %s%s%s\n", options.output.c_str(), done.num_tensors,
              checkpoint.c_str(), done.num_files, done.num_files == 1 ? "" : "s",
              FormatMemory(Bytes{done.bytes}).c_str(), merged.c_str(), left_out.c_str());
  return Success{};
}

auto DeclareExport(CommandOptions& options) -> Action {
  const auto values = std::make_shared<ExportOptions>();
  options.Positional("CHECKPOINT", values->checkpoint, "a checkpoint, or a run directory");
  options.Text("-o,--output", values->output, "DIR", "the directory to make", true);
  options.Choice("--dtype", values->dtype, {"as-stored", "f32", "bf16", "f16"}, "type of the weights");
  options.Text("--max-file", values->max_file, "SIZE", "bytes of a file at most; default: 5GB");
  options.Text("--tokenizer", values->tokenizer, "DIR", "directory of a published model, whose tokenizer is copied");
  options.Flag("--merge", values->merge, "add the adapters to the matrices that they are beside");
  options.Flag("--adapter", values->adapter, "write the adapters alone, as peft reads them");
  return [values] { return ExitCodeOf(Export(*values)); };
}

}  // namespace shardc
