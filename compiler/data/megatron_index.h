// The index of an indexed dataset of Megatron-LM, NAME.idx beside NAME.bin, whose ids it describes.
//
//   bytes 0-8    "MMIDIDX" and two zero bytes
//   8 bytes      version, 1
//   1 byte       type of the ids: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64, 7 float32, 8 uint16
//   8 bytes      S, the number of sequences
//   8 bytes      D, the length of the table of documents
//   4 S bytes    the length of each sequence, in ids
//   8 S bytes    where each sequence begins in the .bin, in bytes
//   8 D bytes    the first sequence of each document, and S at the end
//   S bytes      the mode of each sequence, in files of several modes
//
// All numbers are little-endian. Megatron writes the sequences one after another, without gaps; the ids of a file are
// therefore those of its .bin, from the first to the last. A file that is otherwise is refused. Documents follow one
// another too. Source: NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py, _IndexWriter and _IndexReader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "compiler/data/id_type.h"
#include "compiler/data/open_data_file.h"

namespace shardc {

/// NAME.idx of NAME.bin.
auto IndexPathOf(const std::string& bin_path) -> std::string;

class MegatronIndex {
 public:
  /// Judges header and size of the index, and that its last sequence ends where the .bin of `bin_bytes` ends.
  /// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
  static auto Open(const std::string& bin_path, int64_t bin_bytes, const FilePurpose& purpose)
      -> ErrorOr<MegatronIndex>;

  auto type() const -> IdType { return type_; }
  /// Documents, empty ones included.
  auto num_documents() const -> int64_t { return std::max<int64_t>(num_entries_of_documents_ - 1, 0); }

  /// Reads all of the index: each sequence begins where the one before it ends, and the documents take the sequences
  /// in order, without gaps. Errors: as Open.
  auto CheckEntries() const -> Status;
  /// Gives the number of the id after the last one of each document, in their order; that of an empty document is the
  /// one of the document before it. Requires: CheckEntries found nothing. Errors: the index cannot be read.
  auto ForEachDocumentEnd(const std::function<void(int64_t)>& visit) const -> Status;

 private:
  MegatronIndex(Descriptor file, std::string noun, int64_t bin_bytes)
      : file_(std::move(file)), noun_(std::move(noun)), bin_bytes_(bin_bytes) {}
  auto ReadHeader() -> Status;
  auto CheckEnd() const -> Status;
  auto CheckSequences() const -> Status;
  auto CheckDocuments() const -> Status;
  auto Read(void* data, int64_t bytes, int64_t offset) const -> Status;
  auto begin_of_lengths() const -> int64_t;
  auto begin_of_pointers() const -> int64_t;
  auto begin_of_documents() const -> int64_t;

  Descriptor file_;
  std::string noun_;
  int64_t bin_bytes_ = 0;
  IdType type_;
  int64_t num_sequences_ = 0;
  int64_t num_entries_of_documents_ = 0;
};

}  // namespace shardc
