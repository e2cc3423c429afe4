#include "compiler/data/scan.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

#include "compiler/data/megatron_index.h"

namespace shardc {

namespace {

/// A part of a file that one thread looks at.
struct Block {
  const TokenFile* file = nullptr;
  const FileList* list = nullptr;
  int64_t begin = 0;
  int64_t count = 0;
};

constexpr int64_t BlockBytes = int64_t{1} << 20;

auto WithPlace(const FileList& list, Error error) -> Error {
  error.message += list.place.empty() ? "" : "; " + list.place;
  return error;
}

class Scanner {
 public:
  Scanner(std::vector<Block> blocks, TokenFormat format, int64_t all_bytes)
      : blocks_(std::move(blocks)), format_(format), all_bytes_(all_bytes) {}

  auto Run(const ScanOptions& options) -> Status;

 private:
  /// Takes blocks until none is left before the first fault.
  auto Work(const std::function<Status()>& between) -> void;
  auto Look(const Block& block, std::vector<uint8_t>& raw) const -> Status;
  auto Report(size_t block, const Error& error) -> void;

  std::vector<Block> blocks_;
  TokenFormat format_;
  int64_t all_bytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_bytes_ = 0;
  /// The first block with a fault. Blocks after it need not be looked at.
  std::atomic<size_t> end_ = std::numeric_limits<size_t>::max();
  std::mutex mutex_;
  Error error_;
};

auto Scanner::Look(const Block& block, std::vector<uint8_t>& raw) const -> Status {
  const TokenFile& file = *block.file;
  const int64_t bytes = block.count * file.type.bytes;
  raw.resize(static_cast<size_t>(bytes));
  const std::string& noun = block.list->purpose.noun;
  if (const Status read =
          ReadAll(file.descriptor, raw.data(), bytes, file.header_bytes + block.begin * file.type.bytes);
      !read) {
    return Fail(ExitCode::Environment, "{} file: {}", noun, read.error().message);
  }
  const int64_t bad = FindBadId(raw.data(), block.count, file.type, block.list->range);
  if (bad >= 0) {
    const Status found =
        BadId(file, noun, format_, block.begin + bad, raw.data() + bad * file.type.bytes, block.list->range);
    return WithPlace(*block.list, found.error());
  }
  return Success{};
}

auto Scanner::Report(size_t block, const Error& error) -> void {
  const std::lock_guard lock(mutex_);
  if (block < end_) {
    end_ = block;
    error_ = error;
  }
}

auto Scanner::Work(const std::function<Status()>& between) -> void {
  std::vector<uint8_t> raw;
  for (size_t i = next_++; i < blocks_.size() && i < end_; i = next_++) {
    if (const Status looked = Look(blocks_[i], raw); !looked) {
      Report(i, looked.error());
    }
    done_bytes_ += blocks_[i].count * blocks_[i].file->type.bytes;
    if (const Status goes_on = between ? between() : Status(Success{}); !goes_on) {
      // Before every fault that was found.
      const std::lock_guard lock(mutex_);
      end_ = 0;
      error_ = goes_on.error();
    }
  }
}

auto Scanner::Run(const ScanOptions& options) -> Status {
  using Clock = std::chrono::steady_clock;
  constexpr auto Between = std::chrono::milliseconds(100);
  auto told = Clock::now();
  const auto between = [&]() -> Status {
    if (Clock::now() - told < Between) {
      return Success{};
    }
    told = Clock::now();
    if (options.tell) {
      options.tell(done_bytes_, all_bytes_);
    }
    return options.may_continue ? options.may_continue() : Status(Success{});
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min<int64_t>(options.threads, std::ssize(blocks_)); ++i) {
    threads.emplace_back([this] { Work(nullptr); });
  }
  Work(between);
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (end_ != std::numeric_limits<size_t>::max()) {
    return error_;
  }
  if (options.tell) {
    options.tell(all_bytes_, all_bytes_);
  }
  return Success{};
}

}  // namespace

auto BytesToScan(const std::vector<FileList>& lists, TokenFormat format) -> int64_t {
  int64_t bytes = 0;
  for (const FileList& list : lists) {
    bytes += OpenList(list, format).file_bytes;
  }
  return bytes;
}

static auto Open(const FileList& list, const std::string& path, TokenFormat format) -> ErrorOr<TokenFile> {
  auto file = OpenTokenFile(path, format, list.purpose);
  if (!file) {
    return WithPlace(list, file.error());
  }
  if (const Status fits = CheckNoneFits(*file, list.purpose.noun, list.range); !fits) {
    return WithPlace(list, fits.error());
  }
  return file;
}

auto CheckFile(const FileList& list, const std::string& path, TokenFormat format) -> Status {
  const auto file = Open(list, path, format);
  if (!file) {
    return file.error();
  }
  if (format == TokenFormat::Megatron) {
    const auto index = MegatronIndex::Open(path, file->file_bytes, list.purpose);
    if (const Status follows = index ? index->CheckEntries() : Status(index.error()); !follows) {
      return WithPlace(list, follows.error());
    }
  }
  return Success{};
}

auto CheckFiles(const std::vector<FileList>& lists, TokenFormat format) -> Status {
  for (const FileList& list : lists) {
    for (const std::string& path : list.paths) {
      RETURN_IF_ERROR(CheckFile(list, path, format));
    }
  }
  return Success{};
}

auto ScanIds(const std::vector<FileList>& lists, TokenFormat format, const ScanOptions& options)
    -> ErrorOr<ScanResult> {
  // Blocks point into it.
  std::vector<std::vector<TokenFile>> opened(lists.size());
  std::vector<Block> blocks;
  ScanResult result;
  for (size_t i = 0; i < lists.size(); ++i) {
    const FileList& list = lists[i];
    for (const std::string& path : list.paths) {
      auto file = Open(list, path, format);
      if (!file) {
        return file.error();
      }
      ++result.files;
      result.ids += file->num_ids;
      result.bytes += file->num_ids * file->type.bytes;
      opened[i].push_back(*std::move(file));
    }
    for (const TokenFile& file : opened[i]) {
      const int64_t most = BlockBytes / file.type.bytes;
      for (int64_t begin = 0; begin < file.num_ids; begin += most) {
        blocks.push_back({&file, &list, begin, std::min(most, file.num_ids - begin)});
      }
    }
  }
  RETURN_IF_ERROR(Scanner(std::move(blocks), format, result.bytes).Run(options));
  return result;
}

}  // namespace shardc
