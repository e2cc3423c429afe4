#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/base/copied_pieces.h"
#include "compiler/checkpoint/safetensors.h"
#include "runtime/checkpoint/checkpoint_save.h"
#include "runtime/control/agree.h"

namespace shardc {

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
  save_ = std::make_unique<CheckpointSave>();
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

auto CheckpointWriter::CheckOwner() const -> Status { return lease_ == nullptr ? Success{} : lease_->Check(); }

auto CheckpointWriter::CauseInOwner(const std::string& told) const -> std::string {
  const Status owned = CheckOwner();
  return owned || told.find(owned.error().message) != std::string::npos ? "" : "; " + owned.error().message;
}

auto CheckpointWriter::CreateFile() -> Status {
  const Plan& plan = *options_.plan;
  const int64_t rank = options_.control->rank();
  ASSIGN_OR_RETURN(save_->parent, OpenDirectory(*options_.fs, options_.checkpoint_dir));
  ASSIGN_OR_RETURN(save_->directory, OpenDirectoryAt(save_->parent, save_->temporary_name));
  ASSIGN_OR_RETURN(save_->file, CreateFileAt(save_->directory, RankFileName(rank)));

  save_->pieces = StoredPieces(plan, rank, options_.left_to_base);
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
  ASSIGN_OR_RETURN(auto header, SafetensorsHeaderText(tensors, metadata));
  return Write(header.data(), static_cast<int64_t>(header.size()));
}

auto CheckpointWriter::Write(const void* data, int64_t bytes) -> Status {
  // Small enough that a chunk is still in the cache when it is written after it was hashed.
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  for (int64_t done = 0; done < bytes; done += ChunkBytes) {
    const auto* chunk = static_cast<const std::byte*>(data) + done;
    const int64_t chunk_bytes = std::min(ChunkBytes, bytes - done);
    save_->blocks.Update(chunk, chunk_bytes);
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
    RETURN_IF_ERROR(ForEachPiece(piece.elements.elements.size() * element, [&](int64_t begin, int64_t bytes) -> Status {
      const auto elements = read(piece.slice_begin * element + begin, bytes);
      return elements ? Write(*elements, bytes) : Status(elements.error());
    }));
  }
  return Success{};
}

auto CheckpointWriter::CloseFile() -> ErrorOr<Written> {
  // What an owner that was replaced meets then are consequences; this says the cause.
  RETURN_IF_ERROR(CheckOwner());
  if (save_->failure) {
    return *save_->failure;
  }
  FAIL_IF(save_->num_written != save_->pieces.size(), ExitCode::InternalFault,
          "{} of {} pieces were given, or not in the order of the save section", save_->num_written,
          save_->pieces.size());
  RETURN_IF_ERROR(save_->file.Fsync());
  RETURN_IF_ERROR(save_->file.Close());
  ASSIGN_OR_RETURN(const auto digest, WriteBlockDigests());
  return Written{save_->bytes, digest};
}

auto CheckpointWriter::WriteBlockDigests() -> ErrorOr<DigestBytes> {
  const std::vector<DigestBytes>& digests = save_->blocks.Finish();
  const auto bytes = std::ssize(digests) * static_cast<int64_t>(sizeof(DigestBytes));
  ASSIGN_OR_RETURN(save_->file, CreateFileAt(save_->directory, BlocksName(RankFileName(options_.control->rank()))));
  RETURN_IF_ERROR(WriteAll(save_->file, digests.data(), bytes, 0));
  RETURN_IF_ERROR(save_->file.Fsync());
  RETURN_IF_ERROR(save_->file.Close());
  return DigestBytesOf(digests.data(), bytes);
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
    ASSIGN_OR_RETURN(const auto written, control.GatherValues(AxisSet::All(), *own));
    // (d) to (g)
    committed = FollowRankZero(control, control.rank() == 0 ? Publish(written) : Status(Success{}));
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

}  // namespace shardc
