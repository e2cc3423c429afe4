#include "compiler/data/document_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "compiler/checkpoint/digest.h"
#include "compiler/data/megatron_index.h"

namespace shardc {

namespace {

constexpr int64_t SearchedBytes = int64_t{1} << 20;

/// A MiB of a file, or the rest of it, and the ids in it that end documents.
struct SearchedBlock {
  const TokenFile* file = nullptr;
  /// Ids of the file.
  int64_t begin = 0;
  int64_t count = 0;
  /// Numbers of ids in the block.
  std::vector<uint32_t> found = {};
};

/// Adds the number of each id that is `wanted`.
template <class T>
auto FindIds(const uint8_t* raw, int64_t count, T wanted, std::vector<uint32_t>& found) -> void {
  // Documents are long, so most groups have no end: a loop without branches looks at each.
  constexpr int64_t GroupIds = 64;
  std::array<T, GroupIds> group;
  for (int64_t begin = 0; begin < count; begin += GroupIds) {
    const int64_t size = std::min(GroupIds, count - begin);
    std::memcpy(group.data(), raw + static_cast<size_t>(begin) * sizeof(T), static_cast<size_t>(size) * sizeof(T));
    T any = 0;
    for (int64_t i = 0; i < size; ++i) {
      any |= static_cast<T>(group[static_cast<size_t>(i)] == wanted);
    }
    for (int64_t i = 0; any != 0 && i < size; ++i) {
      if (group[static_cast<size_t>(i)] == wanted) {
        found.push_back(static_cast<uint32_t>(begin + i));
      }
    }
  }
}

auto SearchBlock(SearchedBlock& block, int64_t wanted, std::vector<uint8_t>& raw) -> Status {
  const TokenFile& file = *block.file;
  RETURN_IF_ERROR(ReadRawIds(file, "token", block.begin, block.count, raw));
  switch (file.type.bytes) {
    case 1: FindIds(raw.data(), block.count, static_cast<uint8_t>(wanted), block.found); break;
    case 2: FindIds(raw.data(), block.count, static_cast<uint16_t>(wanted), block.found); break;
    case 4: FindIds(raw.data(), block.count, static_cast<uint32_t>(wanted), block.found); break;
    default: CHECK(false, "ids of {} bytes", file.type.bytes);
  }
  return Success{};
}

auto SearchAll(std::vector<SearchedBlock>& blocks, int64_t wanted, int64_t num_threads) -> Status {
  std::vector<Status> searched(blocks.size(), Success{});
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    std::vector<uint8_t> raw;
    for (size_t i = next++; i < blocks.size(); i = next++) {
      searched[i] = SearchBlock(blocks[i], wanted, raw);
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min<int64_t>(num_threads, std::ssize(blocks)); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const Status& status : searched) {
    RETURN_IF_ERROR(status);
  }
  return Success{};
}

}  // namespace

auto DocumentTable::AddIndex(const TokenFile& file, const FilePurpose& purpose) -> Status {
  ASSIGN_OR_RETURN(const auto index, MegatronIndex::Open(file.path, file.file_bytes, purpose));
  RETURN_IF_ERROR(index.CheckEntries());
  ends_.reserve(ends_.size() + static_cast<size_t>(index.num_documents()));
  const int64_t begin = files_.back().begin;
  int64_t last = begin;
  return index.ForEachDocumentEnd([&](int64_t end) {
    if (begin + end == last) {
      ++num_empty_;
      return;
    }
    last = begin + end;
    ends_.push_back(last);
  });
}

auto DocumentTable::Find(const FileList& list, TokenFormat format, int64_t document_end, int64_t threads)
    -> ErrorOr<DocumentTable> {
  const bool has_index = format == TokenFormat::Megatron;
  FAIL_IF(!has_index && document_end < 0, ExitCode::RecipeRejected,
          "`data.documents` = \"split\" needs to know where documents end: set `data.document_end` to the id that ends "
          "each, or use `data.format` = megatron, whose index has it");
  DocumentTable table;
  std::vector<TokenFile> opened;
  std::vector<SearchedBlock> blocks;
  int64_t num_ids = 0;
  // Blocks point into it.
  opened.reserve(list.paths.size());
  for (const std::string& path : list.paths) {
    ASSIGN_OR_RETURN(auto file, OpenTokenFile(path, format, list.purpose));
    table.files_.push_back({.path = path, .begin = num_ids, .first_document = table.num_documents()});
    num_ids += file.num_ids;
    if (has_index) {
      RETURN_IF_ERROR(table.AddIndex(file, list.purpose));
      continue;
    }
    opened.push_back(std::move(file));
    const bool fits = document_end < int64_t{1} << (8 * opened.back().type.bytes);
    const int64_t count = fits ? opened.back().num_ids : 0;
    const int64_t of_block = SearchedBytes / opened.back().type.bytes;
    for (int64_t begin = 0; begin < count; begin += of_block) {
      blocks.push_back({.file = &opened.back(), .begin = begin, .count = std::min(of_block, count - begin)});
    }
  }
  if (has_index) {
    return table;
  }
  RETURN_IF_ERROR(SearchAll(blocks, document_end, threads));
  size_t num_found = 0;
  for (const SearchedBlock& block : blocks) {
    num_found += block.found.size();
  }
  const bool is_one = list.paths.size() == 1;
  FAIL_IF(num_found == 0 && num_ids > 0, ExitCode::RecipeRejected,
          "`data.document_end` is {}, and {}{} ({} ids) {} it nowhere; name the id that ends each document, or leave "
          "`data.documents` out",
          document_end, list.name.empty() ? "" : fmt::format("source {}: ", list.name),
          is_one ? fmt::format("{} file {}", list.purpose.noun, list.paths.front())
                 : fmt::format("{} {} files, of which {} is the first,", list.paths.size(), list.purpose.noun,
                               list.paths.front()),
          num_ids, is_one ? "has" : "have");
  table.ends_.reserve(num_found + opened.size());
  auto block = blocks.begin();
  for (size_t i = 0; i < opened.size(); ++i) {
    File& file = table.files_[i];
    file.first_document = table.num_documents();
    for (; block != blocks.end() && block->file == &opened[i]; ++block) {
      const int64_t first = file.begin + block->begin;
      for (const uint32_t id : block->found) {
        table.ends_.push_back(first + id + 1);
      }
      block->found = std::vector<uint32_t>();
    }
    const int64_t end_of_file = file.begin + opened[i].num_ids;
    if (table.num_ids() < end_of_file) {
      table.ends_.push_back(end_of_file);
    }
  }
  return table;
}

auto DocumentTable::OfLengths(const std::string& path, std::span<const int64_t> lengths) -> DocumentTable {
  DocumentTable table;
  table.files_.push_back({.path = path});
  table.ends_.resize(lengths.size());
  std::inclusive_scan(lengths.begin(), lengths.end(), table.ends_.begin());
  return table;
}

auto DocumentTable::Digest() const -> std::string {
  return shardc::ToText(DigestBytesOf(ends_.data(), std::ssize(ends_) * static_cast<int64_t>(sizeof(ends_.front()))));
}

auto DocumentTable::DocumentOf(int64_t id) const -> int64_t {
  CHECK(0 <= id && id < num_ids(), "id {} of {}", id, num_ids());
  return std::upper_bound(ends_.begin(), ends_.end(), id) - ends_.begin();
}

auto DocumentTable::NameOf(int64_t document) const -> std::string {
  const Interval ids = IdsOf(document);
  auto file = std::upper_bound(files_.begin(), files_.end(), ids.begin,
                               [](int64_t id, const File& candidate) { return id < candidate.begin; });
  --file;
  return fmt::format("{}: its document {}{}, of ids {} to {},", file->path, document - file->first_document,
                     num_empty_ == 0 ? "" : " (without the empty ones)", ids.begin - file->begin,
                     ids.end - 1 - file->begin);
}

}  // namespace shardc
