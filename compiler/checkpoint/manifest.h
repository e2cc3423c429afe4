// manifest.json: what a checkpoint holds and where. Its presence under the final name is what makes a directory a
// checkpoint.
//
// The first line carries a digest of all the bytes after it, so that no byte of a checkpoint can change unnoticed: the
// manifest vouches for itself, and for each file by its size and the digest of the list of digests of its blocks
// (block_digests.h), in versions 1 and 2 by that of the whole file.
//
// Versions 2 to 4 state layouts, from which the pieces of each tensor follow. Version 1 lists the pieces; it is read,
// and written of models of Hugging Face alone. pieces.h gives the pieces of all. Version 4 leaves tensors to a base
// (checkpoint_base.h), and is written where there is one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/layout.h"
#include "compiler/mesh/box_interval.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Elements [begin, end) of a logical tensor, flat and row-major, and the file that holds them. With `columns`, the
/// elements are counted in the box of these columns of the matrix.
struct Piece {
  StateRole role = StateRole::Parameter;
  Interval elements;
  Interval columns;
  std::string file;

  friend auto operator==(const Piece&, const Piece&) -> bool = default;
};

/// A tensor that a checkpoint leaves to its base: rows of one of the base's tensors.
struct TensorInBase {
  std::string tensor;
  /// The first row there.
  int64_t row = 0;
  /// Sum over its elements, as the run has them (element_sum.h).
  uint64_t sum = 0;

  friend auto operator==(const TensorInBase&, const TensorInBase&) -> bool = default;
};

struct ManifestTensor {
  Dims shape;
  DType dtype = DType::F32;
  /// Which of the manifest's layouts it lies in, and where it begins in its vector. Not of version 1.
  int64_t layout = -1;
  int64_t begin = 0;
  /// The dim that ranks along the layout's `cut` share, if there are several. Not of version 1.
  std::optional<size_t> cut_dim;
  /// The number of updates that the run's count had made before the first that the moments have seen.
  int64_t first_update = 0;
  /// Set if no file of the checkpoint has the tensor.
  std::optional<TensorInBase> in_base;
  /// Of version 1, and of the tensors of an adapter beside a seed.
  std::vector<Piece> pieces;

  auto IntervalOf(const Piece& piece) const -> BoxInterval;

  friend auto operator==(const ManifestTensor&, const ManifestTensor&) -> bool = default;
};

struct ManifestFile {
  int64_t bytes = 0;
  /// XXH3-128 of the digests of its blocks, 32 hex digits; before version 3 of the whole file.
  std::string digest;

  friend auto operator==(const ManifestFile&, const ManifestFile&) -> bool = default;
};

/// One of the sources of a mixture.
struct ManifestSource {
  std::string name;
  std::string weight;
  std::string fingerprint;

  friend auto operator==(const ManifestSource&, const ManifestSource&) -> bool = default;
};

struct ManifestData {
  /// Sizes and samples of the token files, as a text.
  std::string fingerprint;
  /// Digests of all bytes, one for each list of files: those of the sources, then those of the heads. Empty if no
  /// launch took them.
  std::vector<std::string> digests;
  SampleOrder order = SampleOrder::Shuffled;
  uint64_t seed = 0;
  int64_t seq = 0;
  int64_t eval_tokens = 0;
  int64_t tokens_per_step = 0;
  /// How samples are filled, which the numbers of samples depend on.
  Pack pack = Pack::Stream;
  /// Of a mixture; one token stream has none.
  std::vector<ManifestSource> sources;
  /// That the run was to have, which weights may depend on. Of a mixture; else 0.
  int64_t steps = 0;
  /// The samples of each source that the stages before took; empty if the run began with the first ones.
  std::vector<int64_t> first_samples;

  friend auto operator==(const ManifestData&, const ManifestData&) -> bool = default;
};

/// The seed or the checkpoint that a run began from.
struct ManifestSeed {
  std::string run_id;
  int64_t step = 0;
  /// Of its manifest; empty where the run began from scratch.
  std::string digest;
  /// Digest of the adapter that it began with; empty if it began with no adapter.
  std::string adapter;
  /// The updates that the count of a run that continues it began with, what its schedules saw as the first step, and
  /// the steps of all stages before.
  int64_t updates = 0;
  int64_t first_step = 0;
  int64_t steps_before = 0;

  friend auto operator==(const ManifestSeed&, const ManifestSeed&) -> bool = default;
};

/// The seed whose files a checkpoint of adapters needs.
struct ManifestBase {
  /// The absolute path of its directory, where the run found it.
  std::string path;
  /// The digest by which a plan knows a seed.
  std::string digest;

  friend auto operator==(const ManifestBase&, const ManifestBase&) -> bool = default;
};

/// A model that a run did not write: files of Hugging Face, whose headers and config.json a manifest describes. It
/// lists a piece for each tensor. Its `run_id` is the class of the model, its `recipe` has the keys of [model], and the
/// digests of `files` are those of their headers.
struct PublishedModel {
  /// The keys of config.json that decide about the model, with their values in JSON.
  std::map<std::string, std::string> config;
  /// XXH3-128 of the index; empty if there is one file alone.
  std::string index;
  /// Tensors that are another one, by that one's name; a start compares their bits.
  std::map<std::string, std::string> copies;
  /// The name of the directory that a start read, and bytes and digest of what its ranks read; in a record only.
  std::string directory;
  int64_t bytes_read = 0;
  std::string digest_read;

  friend auto operator==(const PublishedModel&, const PublishedModel&) -> bool = default;
};

struct Manifest {
  /// Readers refuse other versions; fields that they do not know they ignore.
  static constexpr int64_t ListsPieces = 1;
  static constexpr int64_t StatesLayouts = 2;
  static constexpr int64_t DigestsBlocks = 3;
  static constexpr int64_t HasBase = 4;

  int64_t version = DigestsBlocks;
  std::string run_id;
  int64_t step = 0;
  std::string plan_hash;
  std::map<std::string, std::string> model;
  Mesh mesh;
  /// Key and value of the recipe with every default, in TOML; empty where none was recorded.
  std::map<std::string, std::string> recipe;
  ManifestSeed seed;
  /// Set in version 4 alone.
  std::optional<ManifestBase> base;
  /// Whose state it holds.
  Optimizer optimizer = Optimizer::Adamw;
  /// Every scalar of kind State.
  std::map<std::string, double> state;
  /// Of a run that judges losses: those of its last steps with a finite gradient, oldest first.
  std::vector<double> recent_losses;
  ManifestData data;
  std::vector<Layout> layouts;
  std::map<std::string, ManifestTensor> tensors;
  std::map<std::string, ManifestFile> files;
  /// Set where no run wrote it.
  std::optional<PublishedModel> published;

  /// Returns false if the digests of files are those of all their bytes.
  auto digests_blocks() const -> bool { return version >= DigestsBlocks; }

  friend auto operator==(const Manifest&, const Manifest&) -> bool = default;
};

constexpr const char* ManifestName = "manifest.json";
/// In a run directory: the manifest of the checkpoint that the run began from.
constexpr const char* SeedRecordName = "seed.json";
/// File in a directory of checkpoints that a launch owns.
constexpr const char* LeaseName = "lease.json";
/// A file that is larger is not read.
constexpr int64_t MaxManifestBytes = int64_t{64} << 20;

/// In the version that the manifest has.
auto ToText(const Manifest& manifest) -> std::string;
/// Errors: ExitCode::Checkpoint: damaged (digest, syntax, depth, duplicate keys, ranges, names, layouts, a state that
/// no run can have), or another version.
auto ManifestFromText(std::string_view text) -> ErrorOr<Manifest>;

/// The digest that the first line of a manifest holds. Requires: the text reads.
auto DigestInManifest(std::string_view text) -> std::string;
/// What the data of a plan is, as far as a restart must find it again. `fingerprints`: of each source by itself.
/// `digests`: as ManifestData has them.
auto DescribeData(const Plan& plan, std::string fingerprint, const std::vector<std::string>& fingerprints,
                  std::vector<std::string> digests) -> ManifestData;

/// "model.norm.weight", "model.norm.weight.ROLE": the tensor's name in a rank's file.
auto StoredName(std::string_view parameter, StateRole role) -> std::string;
/// "step", "updates": the key of a state scalar in "state". Scalars are known by their roles, whatever they are called.
inline auto StoredName(const Scalar& scalar) -> std::string { return std::string(ToText(scalar.role)); }
/// "rank-00003.safetensors".
auto RankFileName(int64_t rank) -> std::string;
/// "step-00000123".
auto CheckpointName(int64_t step) -> std::string;
/// True for what CheckpointName makes.
auto IsCheckpointName(std::string_view name) -> bool;
/// "step-00000123.tmp-<run id>~<tag>": the tag (8 hex digits) is that of one owner of the directory, so that no two
/// write to the same files. Without a tag, "step-00000123.tmp-<run id>".
auto TemporaryName(int64_t step, std::string_view run_id, std::string_view tag) -> std::string;
/// True for what TemporaryName makes for this run, with any tag or none.
auto IsTemporaryName(std::string_view name, std::string_view run_id) -> bool;
/// True for names of files and tensors that a manifest may hold: 1 to 200 of [A-Za-z0-9._-], not beginning with a dot.
auto IsPlainName(std::string_view name) -> bool;

}  // namespace shardc
