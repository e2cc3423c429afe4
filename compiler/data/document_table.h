// The places of the documents of a list of files: in Megatron's format the table of documents of each index has them,
// in the other formats an id ends each (`data.document_end`), which belongs to the document that it ends. A document
// never goes on in the next file: ids after the last end of a file are a document too.
//
// A document without ids takes no place in any sample: it is counted, and not kept. In memory a document takes 8 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/data/data_files.h"

namespace shardc {

class DocumentTable {
 public:
  /// Opens the files and finds the documents in them. Without an index it looks at all ids, with so many threads.
  /// Errors: what OpenTokenFile and the index find; no id that ends documents (`document_end` < 0), or one that no file
  ///   has (ExitCode::RecipeRejected); a file that cannot be read (ExitCode::Environment).
  static auto Find(const FileList& list, TokenFormat format, int64_t document_end, int64_t threads = 1)
      -> ErrorOr<DocumentTable>;
  /// Returns the table of one file whose documents have so many ids each, all of them more than 0.
  static auto OfLengths(const std::string& path, std::span<const int64_t> lengths) -> DocumentTable;

  /// Documents with ids.
  auto num_documents() const -> int64_t { return std::ssize(ends_); }
  auto num_empty() const -> int64_t { return num_empty_; }
  auto num_ids() const -> int64_t { return ends_.empty() ? 0 : ends_.back(); }

  /// Returns the ids of a document, by their numbers in the list. Requires: 0 <= document < num_documents().
  auto IdsOf(int64_t document) const -> Interval {
    return {document == 0 ? 0 : ends_[static_cast<size_t>(document - 1)], ends_[static_cast<size_t>(document)]};
  }
  /// Returns a digest of where all documents end.
  auto Digest() const -> std::string;
  /// Returns the number of the document that has this id of the list. Requires: 0 <= id < num_ids().
  auto DocumentOf(int64_t id) const -> int64_t;
  /// Returns words for messages that name a document: "FILE: its document 3, of ids 120 to 260,".
  auto NameOf(int64_t document) const -> std::string;

 private:
  struct File {
    std::string path;
    int64_t begin = 0;
    int64_t first_document = 0;
  };

  auto AddIndex(const TokenFile& file, const FilePurpose& purpose) -> Status;

  std::vector<File> files_;
  /// Numbers of the ids after the last one of each document.
  std::vector<int64_t> ends_;
  int64_t num_empty_ = 0;
};

}  // namespace shardc
