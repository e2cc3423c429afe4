#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/base/files.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "runtime/checkpoint/leftovers.h"
#include "runtime/checkpoint/read_manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/stored_pieces.h"
#include "runtime/control/agree.h"

namespace shardc {

/// The lease's, and an end.
static constexpr size_t TagBytes = 9;

/// The parts named (a) to (h) are those of the protocol in the header.
struct CheckpointWriter::Save {
  int64_t step = 0;
  std::map<std::string, double> state;
  std::vector<double> recent_losses;
  std::string final_name;
  std::string temporary_name;
  Descriptor parent;
  Descriptor directory;
  Descriptor file;
  int64_t bytes = 0;
  Digest digest;
  std::vector<StoredPiece> pieces;
  size_t num_written = 0;
  /// The first thing that went wrong on this rank.
  std::optional<Error> failure;
};

CheckpointWriter::CheckpointWriter(CheckpointWriterOptions options) : options_(std::move(options)) {
  CHECK(options_.plan != nullptr && options_.control != nullptr && options_.fs != nullptr);
  if (options_.checkpoint_dir.empty()) {
    options_.checkpoint_dir = options_.plan->run.checkpoint_dir;
  }
}

CheckpointWriter::~CheckpointWriter() = default;

auto CheckpointWriter::Begin(int64_t step, const std::map<std::string, double>& state,
                             const std::vector<double>& recent_losses) -> Status {
  const Plan& plan = *options_.plan;
  CHECK(step >= 0, "step {}", step);
  for (const auto& [name, value] : state) {
    CHECK(std::isfinite(value), "state scalar {} is {}", name, value);
  }
  save_ = std::make_unique<Save>();
  save_->step = step;
  save_->state = state;
  save_->recent_losses = recent_losses;
  save_->final_name = CheckpointName(save_->step);
  warnings_.clear();

  // (a)
  std::array<char, TagBytes> tag{};
  if (lease_ != nullptr) {
    lease_->token().copy(tag.data(), TagBytes - 1);
  }
  RETURN_IF_ERROR(options_.control->Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(tag.data()), TagBytes));
  save_->temporary_name = TemporaryName(save_->step, plan.run.run_id, tag.data());
  const Status agreed =
      FollowRankZero(*options_.control, options_.control->rank() == 0 ? MakeTemporary() : Status(Success{}));
  if (!agreed) {
    const Error error = agreed.error();
    save_.reset();
    return Fail(error.code, "checkpoint of step {} not written: {}{}", step, error.message,
                CauseInOwner(error.message));
  }
  if (const Status created = CreateFile(); !created) {
    save_->failure = created.error();
  }
  return Success{};
}

/// Errors: no whole checkpoint bears the name.
static auto ManifestAt(const Descriptor& parent, const std::string& name) -> ErrorOr<Manifest> {
  const auto directory = OpenDirectoryAt(parent, name);
  return directory ? ReadManifest(*directory) : directory.error();
}

auto CheckpointWriter::CheckOwner() const -> Status { return lease_ == nullptr ? Success{} : lease_->Check(); }

auto CheckpointWriter::CauseInOwner(const std::string& told) const -> std::string {
  const Status owned = CheckOwner();
  return owned || told.find(owned.error().message) != std::string::npos ? "" : "; " + owned.error().message;
}

auto CheckpointWriter::OtherRun(const std::string& run_id) const -> Error {
  return Fail(ExitCode::Checkpoint,
              "{}/{} belongs to run {}, and this is run {}; set `checkpoint.dir` to another folder",
              options_.checkpoint_dir, save_->final_name, run_id, options_.plan->run.run_id);
}

auto CheckpointWriter::MakeTemporary() -> Status {
  const RunSettings& run = options_.plan->run;
  if (!IsPlainName(run.run_id)) {
    return Fail(ExitCode::RecipeRejected, "run_id \"{}\" is no plain name (letters, digits, `.`, `_`, `-`)",
                run.run_id);
  }
  RETURN_IF_ERROR(CheckOwner());
  RETURN_IF_ERROR(CheckManifestSize());
  RETURN_IF_ERROR(MakeDirectories(*options_.fs, options_.checkpoint_dir));
  auto parent = OpenDirectory(*options_.fs, options_.checkpoint_dir);
  if (!parent) {
    return parent.error();
  }
  // Before anything is written. A checkpoint of this run is replaced when the new one is whole.
  const auto manifest = ManifestAt(*parent, save_->final_name);
  if (manifest && manifest->run_id != run.run_id) {
    return OtherRun(manifest->run_id);
  }
  const auto cleared = ClearTemporary(*parent, save_->temporary_name);
  if (!cleared) {
    return cleared.error();
  }
  if (!cleared->empty()) {
    warnings_.push_back(*cleared);
  }
  if (options_.fs->MakeDirectory(parent->get(), save_->temporary_name.c_str()) != 0) {
    const int code = errno;
    return Fail(ExitCode::Environment, "cannot make directory {}/{}: {}", options_.checkpoint_dir,
                save_->temporary_name, std::strerror(code));
  }
  return parent->Fsync();
}

auto CheckpointWriter::CreateFile() -> Status {
  const Plan& plan = *options_.plan;
  const int64_t rank = options_.control->rank();
  auto parent = OpenDirectory(*options_.fs, options_.checkpoint_dir);
  if (!parent) {
    return parent.error();
  }
  save_->parent = std::move(*parent);
  auto directory = OpenDirectoryAt(save_->parent, save_->temporary_name);
  if (!directory) {
    return directory.error();
  }
  save_->directory = std::move(*directory);
  auto file = CreateFileAt(save_->directory, RankFileName(rank));
  if (!file) {
    return file.error();
  }
  save_->file = std::move(*file);

  save_->pieces = StoredPieces(plan, rank);
  std::vector<SafetensorsTensor> tensors;
  std::map<std::string, std::string> metadata{{"format", "shardc"},
                                              {"run_id", plan.run.run_id},
                                              {"step", std::to_string(save_->step)},
                                              {"rank", std::to_string(rank)}};
  for (const StoredPiece& piece : save_->pieces) {
    const Parameter& parameter = plan.parameters[piece.parameter];
    const std::string name = StoredName(parameter.name, piece.role);
    tensors.push_back(
        {.name = name,
         .dtype = std::string(SafetensorsTypeOf(StateTypeOf(plan, plan.sub_vectors[piece.sub_vector], piece.role))),
         .shape = {piece.elements.elements.size()}});
    metadata["elements of " + name] =
        fmt::format("[{}, {}){} of {}", piece.elements.elements.begin, piece.elements.elements.end,
                    piece.elements.is_whole_rows()
                        ? ""
                        : fmt::format(" of columns [{}, {})", piece.elements.columns.begin, piece.elements.columns.end),
                    ToText(parameter.shape));
  }
  auto header = SafetensorsHeaderText(tensors, metadata);
  if (!header) {
    return header.error();
  }
  return Write(header->data(), static_cast<int64_t>(header->size()));
}

auto CheckpointWriter::Write(const void* data, int64_t bytes) -> Status {
  // Small enough that a chunk is still in the cache when it is written after it was hashed.
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  for (int64_t done = 0; done < bytes; done += ChunkBytes) {
    const auto* chunk = static_cast<const std::byte*>(data) + done;
    const int64_t chunk_bytes = std::min(ChunkBytes, bytes - done);
    save_->digest.Update(chunk, chunk_bytes);
    RETURN_IF_ERROR(WriteAll(save_->file, chunk, chunk_bytes, save_->bytes));
    save_->bytes += chunk_bytes;
  }
  return Success{};
}

auto CheckpointWriter::AddShard(SubVectorId sub_vector, StateRole role, const SliceReader& read) -> void {
  CHECK(save_ != nullptr, "a shard outside a save");
  if (save_->failure) {
    return;
  }
  if (const Status written = WritePieces(sub_vector, role, read); !written) {
    save_->failure = written.error();
  }
}

auto CheckpointWriter::WritePieces(SubVectorId sub_vector, StateRole role, const SliceReader& read) -> Status {
  for (; save_->num_written < save_->pieces.size(); ++save_->num_written) {
    const StoredPiece& piece = save_->pieces[save_->num_written];
    if (piece.sub_vector != sub_vector || piece.role != role) {
      break;
    }
    const int64_t element = SizeOf(StateTypeOf(*options_.plan, options_.plan->sub_vectors[sub_vector], role));
    const int64_t bytes = piece.elements.elements.size() * element;
    const auto elements = read(piece.slice_begin * element, bytes);
    if (!elements) {
      return elements.error();
    }
    RETURN_IF_ERROR(Write(*elements, bytes));
  }
  return Success{};
}

auto CheckpointWriter::CloseFile() -> ErrorOr<Written> {
  // What an owner that was replaced meets then are consequences; this says the cause.
  RETURN_IF_ERROR(CheckOwner());
  if (save_->failure) {
    return *save_->failure;
  }
  if (save_->num_written != save_->pieces.size()) {
    return Fail(ExitCode::InternalFault, "{} of {} pieces were given, or not in the order of the save section",
                save_->num_written, save_->pieces.size());
  }
  RETURN_IF_ERROR(save_->file.Fsync());
  RETURN_IF_ERROR(save_->file.Close());
  const auto [low, high] = save_->digest.Halves();
  return Written{save_->bytes, low, high};
}

auto CheckpointWriter::Commit() -> Status {
  CHECK(save_ != nullptr, "a commit without a save");
  RankControl& control = *options_.control;
  // (b), (c)
  const int64_t step = save_->step;
  const auto own = CloseFile();
  const Status closed = AgreeOnStatus(control, own ? Status(Success{}) : Status(own.error()));
  if (save_->file.is_open()) {
    static_cast<void>(save_->file.Close());
  }
  Status committed = closed;
  if (closed) {
    const auto written = control.GatherValues(AxisSet::All(), *own);
    if (!written) {
      return written.error();
    }
    // (d) to (g)
    committed = FollowRankZero(control, control.rank() == 0 ? Publish(*written) : Status(Success{}));
  }
  if (!committed) {
    if (control.rank() == 0 && save_->parent.is_open()) {
      // Gives the disk space back. If that fails, the next save of this step or the next start does it.
      static_cast<void>(RemoveDirectoryAt(save_->parent, save_->temporary_name));
    }
    save_.reset();
    const Error error = committed.error();
    return Fail(error.code, "checkpoint of step {} not committed: {}{}; older checkpoints stand", step, error.message,
                CauseInOwner(error.message));
  }
  last_path_ = options_.checkpoint_dir + "/" + save_->final_name;
  if (control.rank() == 0) {
    Retire();
  }
  save_.reset();
  return Success{};
}

auto CheckpointWriter::MakeManifest(const std::vector<Written>& written) const -> Manifest {
  const Plan& plan = *options_.plan;
  Manifest manifest;
  manifest.run_id = plan.run.run_id;
  manifest.plan_hash = options_.plan_hash;
  manifest.model = plan.model;
  for (const RecipeEntry& entry : plan.recipe) {
    manifest.recipe[entry.key] = entry.value;
  }
  manifest.seed = options_.seed;
  manifest.optimizer = plan.run.optimizer;
  manifest.data = DescribeData(plan, options_.data_fingerprint, options_.source_fingerprints);
  DescribeState(plan, manifest);
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    const Written& of_rank = written[static_cast<size_t>(rank)];
    manifest.files[RankFileName(rank)] = {.bytes = of_rank.bytes,
                                          .digest = DigestText(of_rank.digest_low, of_rank.digest_high)};
  }
  return manifest;
}

auto CheckpointWriter::CheckBytes(int64_t manifest_bytes) const -> Status {
  if (manifest_bytes <= options_.max_manifest_bytes) {
    return Success{};
  }
  return Fail(
      ExitCode::DoesNotFit,
      "the manifest has {}, and at most {} are read: it has a line for each of {} ranks and {} parameters; use fewer "
      "ranks",
      FormatMemory(Bytes{manifest_bytes}), FormatMemory(Bytes{options_.max_manifest_bytes}),
      options_.plan->mesh.num_ranks(), options_.plan->parameters.size());
}

auto CheckpointWriter::CheckManifestSize() -> Status {
  if (manifest_fits_) {
    return Success{};
  }
  const Plan& plan = *options_.plan;
  Manifest manifest = MakeManifest(std::vector<Written>(static_cast<size_t>(plan.mesh.num_ranks())));
  for (const Scalar& scalar : plan.scalars) {
    if (scalar.kind == ScalarKind::State) {
      manifest.state[StoredName(scalar)] = 0;
    }
  }
  // The step, values of scalars and sizes of files are not known yet, so each counts as the longest.
  constexpr int64_t LongestNumber = 24;
  const int64_t losses = plan.FindScalar(ScalarRole::Spike).valid() ? plan.run.spike_window : 0;
  const auto numbers = static_cast<int64_t>(1 + manifest.state.size() + manifest.files.size()) + 2 * losses;
  RETURN_IF_ERROR(CheckBytes(static_cast<int64_t>(ToText(manifest).size()) + LongestNumber * numbers));
  manifest_fits_ = true;
  return Success{};
}

auto CheckpointWriter::PutBack(const std::string& aside) const -> void {
  if (aside.empty()) {
    return;
  }
  const auto there = StatusAt(save_->parent, save_->final_name);
  if (there.ok() && there->kind == EntryKind::Missing) {
    static_cast<void>(RenameAt(save_->parent, aside, save_->final_name));
  }
}

auto CheckpointWriter::FreeFinalName() -> ErrorOr<std::string> {
  const Save& save = *save_;
  const auto there = StatusAt(save.parent, save.final_name);
  if (!there) {
    return there.error();
  }
  if (there->kind == EntryKind::Missing) {
    return std::string();
  }
  const auto manifest = ManifestAt(save.parent, save.final_name);
  if (manifest && manifest->run_id != options_.plan->run.run_id) {
    return OtherRun(manifest->run_id);
  }
  const auto aside = FreeNameAt(save.parent, save.final_name + (manifest ? ".replaced" : ".damaged"));
  if (!aside) {
    return aside.error();
  }
  RETURN_IF_ERROR(CheckOwner());
  RETURN_IF_ERROR(RenameAt(save.parent, save.final_name, *aside));
  warnings_.push_back(fmt::format("{}/{} was there already{}; it was moved to {}", options_.checkpoint_dir,
                                  save.final_name, manifest ? "" : " and is no whole checkpoint", *aside));
  return *aside;
}

auto CheckpointWriter::Publish(const std::vector<Written>& written) -> Status {
  Save& save = *save_;
  Manifest manifest = MakeManifest(written);
  manifest.step = save.step;
  manifest.state = save.state;
  manifest.recent_losses = save.recent_losses;
  RETURN_IF_ERROR(CheckCover(manifest));
  const std::string text = ToText(manifest);
  RETURN_IF_ERROR(CheckBytes(static_cast<int64_t>(text.size())));
  RETURN_IF_ERROR(PutFileAt(save.directory, ManifestName, text));
  const auto aside = FreeFinalName();
  if (!aside) {
    return aside.error();
  }
  // Nothing but the rename may come after this look.
  Status published = CheckOwner();
  if (published) {
    published = RenameAt(save.parent, save.temporary_name, save.final_name);
  }
  if (!published) {
    PutBack(*aside);
    return published.error();
  }
  if (const Status synced = save.parent.Fsync(); !synced) {
    return Fail(ExitCode::Environment, "{}: {} is there, but its durability is unknown", synced.error().message,
                save.final_name);
  }
  return Success{};
}

auto CheckpointWriter::Retire() -> void {
  const RunSettings& run = options_.plan->run;
  if (run.checkpoint_keep <= 0) {
    return;
  }
  if (const Status owned = CheckOwner(); !owned) {
    warnings_.push_back(fmt::format("older checkpoints not removed: {}", owned.error().message));
    return;
  }
  const auto names = ListDirectory(save_->parent);
  if (!names) {
    warnings_.push_back(names.error().message);
    return;
  }
  std::vector<int64_t> steps;
  for (const std::string& name : *names) {
    const auto manifest = IsCheckpointName(name) ? ManifestAt(save_->parent, name) : Fail(ExitCode::Checkpoint, "");
    if (manifest && manifest->run_id == run.run_id && CheckpointName(manifest->step) == name) {
      steps.push_back(manifest->step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = static_cast<size_t>(run.checkpoint_keep); i < steps.size(); ++i) {
    // First the name goes, at once; then the files: never is half a checkpoint found under a good name.
    const std::string temporary =
        TemporaryName(steps[i], run.run_id, lease_ == nullptr ? "" : lease_->token().substr(0, TagBytes - 1));
    Status removed = RenameAt(save_->parent, CheckpointName(steps[i]), temporary);
    if (removed) {
      removed = RemoveDirectoryAt(save_->parent, temporary);
    }
    if (!removed) {
      warnings_.push_back(fmt::format("old checkpoint of step {} not removed: {}", steps[i], removed.error().message));
    }
  }
}

}  // namespace shardc
