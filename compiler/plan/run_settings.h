// What a plan says besides its ops: the tokens, the checkpoint that parameters begin from, and the settings of the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/run_steps.h"
#include "compiler/plan/types.h"

namespace shardc {

/// One stream of tokens, and its share of the samples.
struct TokenSource {
  /// Empty where it is the only one and takes all samples, as `data.tokens` names it.
  std::string name;
  /// An expression over `step` and `steps`: at a step its share of the samples is weight / sum of all weights.
  std::string weight;
  /// As resolved against the recipe's folder.
  std::vector<std::string> files;
  /// The number of its samples that earlier stages took, where the run goes on from there.
  int64_t first_sample = 0;
  /// The id that ends a document in files without an index; -1: none is declared.
  int64_t document_end = -1;
  /// Fate of documents that fit into no sample.
  TooLong too_long = TooLong::Refuse;
  /// Files of targets beside the tokens, as resolved against the recipe's folder; none where the targets are the next
  /// tokens.
  std::vector<std::string> targets;

  friend auto operator==(const TokenSource&, const TokenSource&) -> bool = default;
};

/// Returns true if documents are something to the model.
auto IsSplit(Documents documents) -> bool;
/// Returns true if samples are filled with whole documents.
auto IsPacked(Pack pack) -> bool;

/// The tokens. Sample i of a source is its tokens[i*seq ... i*seq+seq]; the last `eval_tokens` tokens of each are the
/// eval split, or all tokens of the eval files.
struct DataSource {
  std::vector<TokenSource> sources;
  /// llm.c's .bin (1 KiB header, u16 ids), headerless little-endian ids, or Megatron-LM's .bin beside an .idx.
  TokenFormat format = TokenFormat::Bin;
  /// How tokens are made that no file has. There is one source then, without a name and without files.
  Synthetic synthetic = Synthetic::None;
  SampleOrder order = SampleOrder::Shuffled;
  uint64_t seed = 0;
  int64_t eval_tokens = 0;
  /// As resolved against the recipe's folder; empty if the eval split is cut from the sources.
  std::vector<std::string> eval_files;
  /// Ids in the eval files.
  int64_t eval_file_tokens = 0;
  /// Samples that the eval files fill, if they are packed; else 0.
  int64_t eval_file_samples = 0;
  int64_t vocab = 0;
  int64_t seq = 0;
  Documents documents = Documents::Stream;
  Pack pack = Pack::Stream;
  /// The id that ends a document in the eval files; -1: none is declared.
  int64_t document_end = -1;
  /// Fate of documents of the eval files that fit into no sample.
  TooLong too_long = TooLong::Refuse;
  /// The largest share of documents with targets that may lose all of them.
  double max_lost = DefaultMaxLost;

  static constexpr double DefaultMaxLost = 0.01;
  auto splits_documents() const -> bool { return IsSplit(documents); }
  auto packs() const -> bool { return IsPacked(pack); }
  /// Returns true if samples differ in how many positions have a target.
  auto varies_targets() const -> bool {
    return splits_documents() ||
           std::ranges::any_of(sources, [](const TokenSource& source) { return !source.targets.empty(); });
  }
  auto is_synthetic() const -> bool { return synthetic != Synthetic::None; }
  auto has_eval_files() const -> bool { return eval_file_tokens > 0; }
  /// Returns true if samples go on after those that the stages before took.
  auto goes_on() const -> bool {
    return std::ranges::any_of(sources, [](const TokenSource& source) { return source.first_sample > 0; });
  }
  /// Returns true if samples come from sources by weights.
  auto is_mixture() const -> bool { return !sources.empty() && !sources.front().name.empty(); }
  friend auto operator==(const DataSource&, const DataSource&) -> bool = default;
};

/// Targets that a term of the loss is predicted from: ids in files of their own, aligned with the tokens. A position
/// without a target has the format's greatest number.
struct TargetHead {
  std::string name;
  int64_t vocab = 0;
  /// As resolved against the recipe's folder.
  std::vector<std::string> files;
  /// The model's own head, which otherwise predicts the next token.
  bool is_own = false;

  friend auto operator==(const TargetHead&, const TargetHead&) -> bool = default;
};

/// One of a checkpoint's tensors.
struct SeedTensor {
  std::string name;
  Dims shape;
  DType dtype = DType::F32;

  friend auto operator==(const SeedTensor&, const SeedTensor&) -> bool = default;
};

/// The form of a seed: a checkpoint of a run, or a model as transformers of Hugging Face saves it.
enum class SeedFormat : uint8_t { Checkpoint, HuggingFace };
template <>
struct EnumNames<SeedFormat> {
  static constexpr std::array<std::string_view, 2> names{"checkpoint", "hugging-face"};
};

/// The checkpoint or model that parameters begin from at a first start; none where `manifest` is empty.
struct Seed {
  SeedFormat format = SeedFormat::Checkpoint;
  /// The path of its directory, as resolved against the recipe's folder.
  std::string path;
  /// The run that wrote it, or the class of the model: "LlamaForCausalLM".
  std::string run_id;
  int64_t step = 0;
  /// The digest in its manifest, or of what was read of the model: what the plan was made for.
  std::string manifest;
  /// The digest of what was read of the adapter whose tensors are read beside its own, and the path of its directory;
  /// empty without an adapter.
  std::string adapter;
  std::string adapter_path;
  /// The number of updates that the moments have seen which the run takes from it; 0: it takes none.
  int64_t updates = 0;
  /// The steps of all stages up to it, where the run continues it.
  int64_t steps_before = 0;
  /// Those that init rules read, in the order of their names.
  std::vector<SeedTensor> tensors;

  auto is_set() const -> bool { return !manifest.empty(); }
  /// Returns true if the run is the next stage of the one that wrote it. A stage after one of no steps is like a seed.
  auto continues() const -> bool { return steps_before > 0; }
  /// Returns the tensor of that name; null if there is no such tensor.
  auto Find(std::string_view name) const -> const SeedTensor*;
  friend auto operator==(const Seed&, const Seed&) -> bool = default;
};

/// Returns "step 4 of run base", "LlamaForCausalLM of Hugging Face".
auto ToText(const Seed& seed) -> std::string;

/// The types of RUN_KEY rows.
namespace setting_type {
using Int = int64_t;
using Real = double;
using Bool = bool;
using Ints = std::vector<int64_t>;
template <class E>
using OneOf = E;
}  // namespace setting_type

/// Settings of the run beside its ops. They change nothing that an op computes, save which losses are spikes.
struct RunSettings {
  /// Defaults of recipe keys, which the text of a plan leaves out. A test compares them with those of the recipe.
  static constexpr int64_t DefaultCheckpointKeep = 2;
  static constexpr int64_t DefaultScanBytes = int64_t{4} << 30;
  static constexpr int64_t DefaultAttentionWorkspace = int64_t{2} << 30;

  std::string run_id;
  /// The folder of runs/<run_id>, resolved against the recipe's folder.
  std::string run_dir;
  std::string checkpoint_dir;
  int64_t checkpoint_keep = DefaultCheckpointKeep;
  int64_t steps = 0;
  /// The step that schedules see first, where the run goes on with the schedule of an earlier stage.
  int64_t first_step = 0;
  /// The longest time of a launch; 0: no limit.
  double max_minutes = 0;
  int64_t tokens_per_step = 0;
  int64_t micro_batch = 0;
  int64_t accumulate = 1;
  int64_t eval_batches = 0;
  Comm comm = Comm::Shm;
  /// The optimizer whose ops update, and whose state is kept.
  Optimizer optimizer = Optimizer::Adamw;
  /// Operations per second that the device of one rank can do, to compare with; 0: not known.
  double peak_flops = 0;
  uint64_t init_seed = 0;
  /// A launch compares all ids with the vocabulary if the token files have at most so many bytes together.
  int64_t scan_bytes = DefaultScanBytes;
  /// Bytes that scores take at most while attention's backward runs on a GPU.
  int64_t attention_workspace = DefaultAttentionWorkspace;
  auto schedule_steps() const -> RunSteps { return {steps, first_step}; }

  // Keys of the recipe that the plan hands on as they are. Their rows have their meaning.
#define UNSET \
  {}
#define RUN_KEY(section, name, Type, default_, doc) setting_type::Type name = default_;
#include "schemas/recipe_keys.def"
#undef UNSET

  friend auto operator==(const RunSettings&, const RunSettings&) -> bool = default;
};

}  // namespace shardc
