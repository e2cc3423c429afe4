// Reads checkpoints, whatever mesh wrote them: a rank asks for elements of logical tensors and gets them from the
// pieces that hold them. Manifest, sizes of files and lists of digests are checked before the first element is given
// out, and each block of a file when it is read: a block that no rank reads is not checked. A checkpoint of versions 1
// and 2 has no digests of blocks, so that whole files are checked first. Tensors that a checkpoint leaves to its base
// are read from there, by a reader of the base.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/checkpoint_file.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/expr/loaded_tensor.h"
#include "runtime/checkpoint/left_to_base.h"
#include "runtime/checkpoint/reader_options.h"

namespace shardc {

class CheckpointReader {
 public:
  /// Checks format version, model identity, data, tensors (both ways), exact cover, file sizes and their digests.
  /// Errors: ExitCode::Checkpoint, naming what differs: "checkpoint of another model: layers is 4 there, 6 here".
  static auto Open(CheckpointReaderOptions options) -> ErrorOr<std::unique_ptr<CheckpointReader>>;
  ~CheckpointReader();

  auto manifest() const -> const Manifest& { return manifest_; }
  /// Adds elements of a parameter, as they were read, to its sum, if the checkpoint has it in its base, or the plan
  /// leaves it to one. Each rank adds what it owns.
  auto AddToSum(const Parameter& parameter, const BoxInterval& elements, DType dtype, const std::byte* bytes) -> void;
  /// Returns what the run's checkpoints may leave to a base: parameters of the plan all of whose elements were read
  /// from one, or are in the base of this checkpoint. Empty if it is read from nowhere but the run's own files.
  /// Collective. Errors: ExitCode::Checkpoint: the base has other numbers than those that the run began from.
  auto SumBase() -> ErrorOr<LeftToBase>;
  /// Manifests that a run which began from this seed puts on record, with what the ranks have read of files without
  /// digests.
  struct Records {
    std::string seed;
    /// Empty if no adapter is read beside it.
    std::string adapter;
  };
  /// Returns them. Collective.
  auto Record() -> ErrorOr<Records>;
  auto step() const -> int64_t { return manifest_.step; }
  /// True if states of this role are read for the purpose.
  auto Gives(StateRole role) const -> bool {
    return options_.purpose == ReadPurpose::Resume || role == StateRole::Parameter;
  }
  /// Value of a scalar of kind State. Errors: not in the checkpoint.
  auto ReadScalar(std::string_view name) const -> ErrorOr<double>;
  /// Reads elements of a logical tensor, whatever pieces they were saved in. If they were saved in another type than
  /// `dtype`, they are widened to f32, or rounded to the nearest bf16, ties to even. Errors: ExitCode::Checkpoint: a
  /// block with some of them is damaged. `out` holds anything then.
  auto ReadElements(std::string_view name, StateRole role, const BoxInterval& wanted, DType dtype, void* out) -> Status;
  /// A parameter's tensor, to be read from any element on; it lives as long as the reader. What is read counts only if
  /// CheckMapped succeeds after it.
  auto Map(std::string_view name) -> ErrorOr<const LoadedTensor*>;
  /// Errors: ExitCode::Checkpoint: a file that Map reads is damaged where it was read, or was cut short or written to,
  /// with its name.
  auto CheckMapped() const -> Status;
  /// Closes the files, when all has been read: their headers and blocks take memory. No tensor stays mapped.
  auto CloseFiles() -> void;

 private:
  struct ShardFile;

  /// The bytes that were read of files of which no digest is known before.
  struct ReadBytesOf {
    /// Digests of the bytes of each tensor, in the order of reading.
    std::map<std::string, Digest, std::less<>> digests;
    int64_t bytes = 0;
  };
  /// The adapter of peft beside a seed, whose tensors the manifest of the seed gets.
  struct Adapter {
    Descriptor directory;
    Manifest manifest;
    /// The names in its file, by those of parameters.
    std::map<std::string, std::string, std::less<>> names;
    ReadBytesOf read;
  };

  explicit CheckpointReader(CheckpointReaderOptions options);
  auto Load() -> Status;
  /// Opens the reader of the base, if the manifest has one.
  auto LoadBase() -> Status;
  auto LoadAdapter() -> Status;
  /// Returns a published manifest with what all ranks have read.
  auto RecordOf(Manifest manifest, const ReadBytesOf& read, const std::string& path) const -> ErrorOr<std::string>;
  auto CheckFiles(int64_t part, int64_t num_parts) -> Status;
  /// Compares the bits of tensors that are said to be one.
  auto CheckCopies(int64_t part, int64_t num_parts) -> Status;
  /// Elements [begin, begin + count) of a piece of type `saved`.
  auto ReadInterval(const std::string& stored, const Piece& piece, DType saved, int64_t begin, int64_t count,
                    DType dtype, void* out) -> Status;
  /// Where a piece is read from.
  struct Source {
    ShardFile* file = nullptr;
    /// Of the piece's first byte in the file.
    int64_t offset = 0;
  };
  /// Reads bytes [begin, begin + bytes) of a piece.
  auto ReadBytes(const std::string& stored, const Source& source, int64_t begin, int64_t bytes, std::byte* to)
      -> Status;
  auto SourceOf(const std::string& stored, const Piece& piece, DType dtype) -> ErrorOr<Source>;
  auto FileNamed(const std::string& name) -> ErrorOr<ShardFile*>;

  CheckpointReaderOptions options_;
  Manifest manifest_;
  std::string manifest_text_;
  /// By which the plan knows a seed.
  std::string digest_;
  /// Bytes of a published model.
  ReadBytesOf read_;
  std::optional<Adapter> adapter_;
  Descriptor directory_;
  KeptBlocks kept_;
  std::map<std::string, std::unique_ptr<ShardFile>, std::less<>> files_;
  std::map<std::string, std::unique_ptr<LoadedTensor>, std::less<>> mapped_;
  /// Reader of the base, which no plan has to match. Null if the manifest has no base.
  std::unique_ptr<CheckpointReader> base_;
  /// By parameters: the elements that this rank has read and stores, and their sum.
  struct ReadSum {
    int64_t num_elements = 0;
    uint64_t sum = 0;
  };
  std::map<std::string, ReadSum, std::less<>> sums_;
};

}  // namespace shardc
