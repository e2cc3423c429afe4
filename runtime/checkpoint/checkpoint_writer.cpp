#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/base/files.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "runtime/checkpoint/agree.h"
#include "runtime/checkpoint/read_manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/stored_pieces.h"

namespace shardc {

/// The parts named (a) to (h) are those of the protocol in the header.
struct CheckpointWriter::Save {
  int64_t step = 0;
  std::map<std::string, double> state;
  std::string final_name;
  std::string temporary_name;
  /// The checkpoint is there already; nothing is written.
  bool skip = false;
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
  CHECK(options_.plan != nullptr && options_.communicator != nullptr && options_.fs != nullptr);
  if (options_.checkpoint_dir.empty()) {
    options_.checkpoint_dir = options_.plan->run.checkpoint_dir;
  }
}

CheckpointWriter::~CheckpointWriter() = default;

auto CheckpointWriter::Begin(const std::map<std::string, double>& state) -> Status {
  const Plan& plan = *options_.plan;
  const auto step = state.find("step");
  CHECK(step != state.end() && step->second >= 0, "no state scalar `step`");
  for (const auto& [name, value] : state) {
    CHECK(std::isfinite(value), "state scalar {} is {}", name, value);
  }
  save_ = std::make_unique<Save>();
  save_->step = static_cast<int64_t>(step->second);
  save_->state = state;
  save_->final_name = CheckpointName(save_->step);
  save_->temporary_name = TemporaryName(save_->step, plan.run.run_id);
  warnings_.clear();

  // (a) A checkpoint that is there already comes back as an error without a text.
  Status made = Success{};
  if (options_.communicator->rank() == 0) {
    made = MakeTemporary();
    if (made && save_->skip) {
      made = Error{ExitCode::Checkpoint, ""};
    }
  }
  const Status agreed = FollowRankZero(*options_.communicator, made);
  if (!agreed && agreed.error().message.empty()) {
    save_->skip = true;
    last_path_ = options_.checkpoint_dir + "/" + save_->final_name;
    return Success{};
  }
  if (!agreed) {
    const Error error = agreed.error();
    save_.reset();
    return Fail(error.code, "checkpoint of step {} not written: {}", static_cast<int64_t>(step->second), error.message);
  }
  if (const Status created = CreateFile(); !created) {
    save_->failure = created.error();
  }
  return Success{};
}

auto CheckpointWriter::MakeTemporary() -> Status {
  const RunSettings& run = options_.plan->run;
  if (!IsPlainName(run.run_id)) {
    return Fail(ExitCode::RecipeRejected, "run_id \"{}\" is no plain name (letters, digits, `.`, `_`, `-`)",
                run.run_id);
  }
  RETURN_IF_ERROR(MakeDirectories(*options_.fs, options_.checkpoint_dir));
  auto parent = OpenDirectory(*options_.fs, options_.checkpoint_dir);
  if (!parent) {
    return parent.error();
  }
  auto names = ListDirectory(*parent);
  if (!names) {
    return names.error();
  }
  if (std::binary_search(names->begin(), names->end(), save_->final_name)) {
    auto there = OpenDirectoryAt(*parent, save_->final_name);
    auto manifest = there ? ReadManifest(*there) : there.error();
    if (manifest && manifest->run_id != run.run_id) {
      return Fail(ExitCode::Checkpoint,
                  "{}/{} belongs to run {}, and this is run {}; set `checkpoint.dir` to another folder",
                  options_.checkpoint_dir, save_->final_name, manifest->run_id, run.run_id);
    }
    if (manifest) {
      save_->skip = true;
      return Success{};
    }
  }
  if (std::binary_search(names->begin(), names->end(), save_->temporary_name)) {
    RETURN_IF_ERROR(RemoveDirectoryAt(*parent, save_->temporary_name));
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
  const int64_t rank = options_.communicator->rank();
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
         .shape = {piece.range.elements.size()}});
    metadata["elements of " + name] =
        fmt::format("[{}, {}){} of {}", piece.range.elements.begin, piece.range.elements.end,
                    piece.range.is_whole_rows()
                        ? ""
                        : fmt::format(" of columns [{}, {})", piece.range.columns.begin, piece.range.columns.end),
                    ToText(parameter.shape));
  }
  auto header = SafetensorsHeaderText(tensors, metadata);
  if (!header) {
    return header.error();
  }
  return Write(header->data(), static_cast<int64_t>(header->size()));
}

auto CheckpointWriter::Write(const void* data, int64_t bytes) -> Status {
  // Small enough that a stretch is still in the cache when it is written after it was hashed.
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

auto CheckpointWriter::AddShard(SubVectorId sub_vector, StateRole role, const void* shard) -> void {
  CHECK(save_ != nullptr, "a shard outside a save");
  if (save_->skip || save_->failure) {
    return;
  }
  if (const Status written = WritePieces(sub_vector, role, shard); !written) {
    save_->failure = written.error();
  }
}

auto CheckpointWriter::WritePieces(SubVectorId sub_vector, StateRole role, const void* shard) -> Status {
  for (; save_->num_written < save_->pieces.size(); ++save_->num_written) {
    const StoredPiece& piece = save_->pieces[save_->num_written];
    if (piece.sub_vector != sub_vector || piece.role != role) {
      break;
    }
    const int64_t element = SizeOf(StateTypeOf(*options_.plan, options_.plan->sub_vectors[sub_vector], role));
    RETURN_IF_ERROR(Write(static_cast<const std::byte*>(shard) + piece.slice_begin * element,
                          piece.range.elements.size() * element));
  }
  return Success{};
}

auto CheckpointWriter::CloseFile() -> ErrorOr<Written> {
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
  Communicator& communicator = *options_.communicator;
  if (save_->skip) {
    save_.reset();
    return Success{};
  }

  // (b), (c)
  const int64_t step = save_->step;
  const auto own = CloseFile();
  const Status closed = AgreeOnStatus(communicator, own ? Status(Success{}) : Status(own.error()));
  if (save_->file.is_open()) {
    static_cast<void>(save_->file.Close());
  }
  Status committed = closed;
  if (closed) {
    std::vector<Written> written(static_cast<size_t>(options_.plan->mesh.num_ranks()));
    RETURN_IF_ERROR(communicator.GatherSmall(AxisSet::All(), reinterpret_cast<const std::byte*>(&*own), sizeof(Written),
                                             reinterpret_cast<std::byte*>(written.data())));
    // (d) to (g)
    committed = FollowRankZero(communicator, communicator.rank() == 0 ? Publish(written) : Status(Success{}));
  }
  if (!committed) {
    if (communicator.rank() == 0 && save_->parent.is_open()) {
      // Gives the room back. Where that fails the next save of this step or the next start does it.
      static_cast<void>(RemoveDirectoryAt(save_->parent, save_->temporary_name));
    }
    save_.reset();
    const Error error = committed.error();
    return Fail(error.code, "checkpoint of step {} not committed: {}; older checkpoints stand", step, error.message);
  }
  last_path_ = options_.checkpoint_dir + "/" + save_->final_name;
  if (communicator.rank() == 0) {
    Retire();
  }
  save_.reset();
  return Success{};
}

auto CheckpointWriter::MakeManifest(const std::vector<Written>& written) const -> Manifest {
  const Plan& plan = *options_.plan;
  Manifest manifest;
  manifest.run_id = plan.run.run_id;
  manifest.step = save_->step;
  manifest.plan_hash = options_.plan_hash;
  manifest.model = plan.model;
  manifest.mesh = plan.mesh;
  manifest.overrides = plan.overrides;
  manifest.state = save_->state;
  manifest.data = DescribeData(plan, options_.data_fingerprint, options_.source_fingerprints);
  manifest.data.position = save_->step * SamplesPerStep(plan);
  for (const Parameter& parameter : plan.parameters) {
    manifest.tensors[parameter.name] = {.shape = parameter.shape, .dtype = parameter.dtype, .pieces = {}};
  }
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    const std::string file = RankFileName(rank);
    const Written& of_rank = written[static_cast<size_t>(rank)];
    manifest.files[file] = {.bytes = of_rank.bytes, .digest = DigestText(of_rank.digest_low, of_rank.digest_high)};
    for (const StoredPiece& piece : StoredPieces(plan, rank)) {
      manifest.tensors[plan.parameters[piece.parameter].name].pieces.push_back(
          {.role = piece.role,
           .elements = piece.range.elements,
           .columns = piece.range.is_whole_rows() ? Interval{} : piece.range.columns,
           .file = file});
    }
  }
  return manifest;
}

auto CheckpointWriter::Publish(const std::vector<Written>& written) -> Status {
  Save& save = *save_;
  const Manifest manifest = MakeManifest(written);
  RETURN_IF_ERROR(CheckCover(manifest));
  const std::string text = ToText(manifest);
  RETURN_IF_ERROR(PutFileAt(save.directory, ManifestName, text));

  // What bears the final name now is no checkpoint, as MakeTemporary saw; it stays, under a name that says so.
  auto names = ListDirectory(save.parent);
  if (!names) {
    return names.error();
  }
  if (std::binary_search(names->begin(), names->end(), save.final_name)) {
    std::string aside;
    int number = 0;
    do {
      aside = fmt::format("{}.damaged-{}", save.final_name, ++number);
    } while (std::binary_search(names->begin(), names->end(), aside));
    RETURN_IF_ERROR(RenameAt(save.parent, save.final_name, aside));
  }
  RETURN_IF_ERROR(RenameAt(save.parent, save.temporary_name, save.final_name));
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
  const auto names = ListDirectory(save_->parent);
  if (!names) {
    warnings_.push_back(names.error().message);
    return;
  }
  std::vector<int64_t> steps;
  for (const std::string& name : *names) {
    auto directory = IsCheckpointName(name) ? OpenDirectoryAt(save_->parent, name) : Fail(ExitCode::Checkpoint, "");
    const auto manifest = directory ? ReadManifest(*directory) : directory.error();
    if (manifest && manifest->run_id == run.run_id && CheckpointName(manifest->step) == name) {
      steps.push_back(manifest->step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = static_cast<size_t>(run.checkpoint_keep); i < steps.size(); ++i) {
    // First the name goes, at once; then the files: never is half a checkpoint found under a good name.
    const std::string temporary = TemporaryName(steps[i], run.run_id);
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
