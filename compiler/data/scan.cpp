#include "compiler/data/scan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

#include "compiler/checkpoint/digest.h"
#include "compiler/data/megatron_index.h"
#include "compiler/data/splits.h"

namespace shardc {

namespace {

constexpr int64_t BlockBytes = int64_t{1} << 20;

/// A MiB of a file, or the rest of it, that one thread looks at.
struct Block {
  const TokenFile* file = nullptr;
  const FileList* list = nullptr;
  int64_t begin = 0;
  /// The number of the file's first id in the list.
  int64_t begin_of_file = 0;
  std::pair<uint64_t, uint64_t> digest = {};

  auto bytes() const -> int64_t { return std::min(BlockBytes, file->file_bytes - begin); }
};

auto WithPlace(const FileList& list, Error error) -> Error {
  error.message += list.place.empty() ? "" : "; " + list.place;
  return error;
}

/// Intervals of a list in which the targets of the samples lie: of the split for training, and of the one for
/// evaluation.
using PredictedIds = std::array<Interval, 2>;

auto PredictedIn(const FileList& list, int64_t num_ids) -> PredictedIds {
  if (!list.cut) {
    return {};
  }
  const auto [seq, eval_tokens] = *list.cut;
  const Splits splits = CountSamples(seq, eval_tokens, num_ids);
  // Position i predicts what lies at the place of token i + 1.
  const int64_t eval = num_ids - eval_tokens + 1;
  return {Interval{1, 1 + splits.train_samples * seq}, Interval{eval, eval + splits.eval_samples * seq}};
}

class Scanner {
 public:
  Scanner(const std::vector<FileList>* lists, std::vector<PredictedIds> predicted, std::vector<Block> blocks,
          TokenFormat format, int64_t all_bytes)
      : lists_(*lists),
        predicted_(std::move(predicted)),
        blocks_(std::move(blocks)),
        format_(format),
        all_bytes_(all_bytes),
        num_targets_(lists->size()) {}

  auto Run(const ScanOptions& options) -> Status;
  /// Blocks in the order of files and bytes.
  auto blocks() const -> const std::vector<Block>& { return blocks_; }
  auto num_targets(size_t list, size_t split) const -> int64_t { return num_targets_[list][split]; }

 private:
  /// Takes blocks until none is left before the first fault.
  auto Work(const std::function<Status()>& between) -> void;
  auto Look(Block& block, std::vector<uint8_t>& raw) -> Status;
  auto CountTargets(const Block& block, int64_t first, int64_t count, const uint8_t* ids) -> void;
  auto Report(size_t block, const Error& error) -> void;

  const std::vector<FileList>& lists_;
  std::vector<PredictedIds> predicted_;
  std::vector<Block> blocks_;
  TokenFormat format_;
  int64_t all_bytes_ = 0;
  std::vector<std::array<std::atomic<int64_t>, 2>> num_targets_;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_bytes_ = 0;
  /// The first block with a fault. Blocks after it need not be looked at.
  std::atomic<size_t> end_ = std::numeric_limits<size_t>::max();
  std::mutex mutex_;
  Error error_;
};

auto Scanner::Look(Block& block, std::vector<uint8_t>& raw) -> Status {
  const TokenFile& file = *block.file;
  const VocabRange& range = block.list->range;
  raw.resize(static_cast<size_t>(block.bytes()));
  const std::string& noun = block.list->purpose.noun;
  if (const Status read = ReadAll(file.descriptor, raw.data(), block.bytes(), block.begin); !read) {
    return Fail(ExitCode::Environment, "{} file: {}", noun, read.error().message);
  }
  Digest digest;
  digest.Update(raw.data(), block.bytes());
  block.digest = digest.Halves();
  // The first block has the header, and no id spans two blocks.
  const int64_t skipped = block.begin == 0 ? file.header_bytes : 0;
  const int64_t first = (block.begin + skipped - file.header_bytes) / file.type.bytes;
  const int64_t count = (block.bytes() - skipped) / file.type.bytes;
  const uint8_t* const ids = raw.data() + skipped;
  const int64_t bad = FindBadId(ids, count, file.type, range);
  if (bad >= 0) {
    const Status found = BadId(file, noun, format_, first + bad, ids + bad * file.type.bytes, range);
    return WithPlace(*block.list, found.error());
  }
  CountTargets(block, block.begin_of_file + first, count, ids);
  return Success{};
}

/// Adds the targets among `count` ids, of which the first has this number in the list.
auto Scanner::CountTargets(const Block& block, int64_t first, int64_t count, const uint8_t* ids) -> void {
  const auto list = static_cast<size_t>(block.list - lists_.data());
  for (size_t split = 0; split < predicted_[list].size(); ++split) {
    const int64_t begin = std::max(first, predicted_[list][split].begin);
    const int64_t end = std::min(first + count, predicted_[list][split].end);
    if (begin < end) {
      const IdType type = block.file->type;
      num_targets_[list][split] += CountIds(ids + (begin - first) * type.bytes, end - begin, type, block.list->range);
    }
  }
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
    done_bytes_ += blocks_[i].bytes();
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
  ASSIGN_OR_RETURN(const auto file, Open(list, path, format));
  if (format == TokenFormat::Megatron) {
    const auto index = MegatronIndex::Open(path, file.file_bytes, list.purpose);
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

auto IdentityOf(const std::vector<FileList>& lists, TokenFormat format) -> ErrorOr<std::string> {
  std::string text;
  for (const FileList& list : lists) {
    for (const std::string& path : list.paths) {
      const auto file = Open(list, path, format);
      ASSIGN_OR_RETURN(const auto status, file ? StatusOf(file->descriptor) : file.error());
      text += fmt::format("{} {} {} {} {}{} ", status.bytes, status.inode, status.written_ns, status.changed_ns,
                          file->type.is_signed ? "i" : "u", file->type.bytes);
    }
    text += ";";
  }
  return DigestOf(text);
}

/// Sets the digest of each list, from those of its blocks.
static auto AddDigests(const std::vector<std::vector<TokenFile>>& opened, const std::vector<Block>& blocks,
                       std::vector<ScannedList>& lists) -> void {
  auto block = blocks.begin();
  for (size_t i = 0; i < opened.size(); ++i) {
    std::string files;
    for (const TokenFile& file : opened[i]) {
      std::string parts;
      for (; block != blocks.end() && block->file == &file; ++block) {
        parts += DigestText(block->digest.first, block->digest.second);
      }
      files += DigestOf(parts);
    }
    lists[i].digest = DigestOf(files);
  }
}

auto ScanIds(const std::vector<FileList>& lists, TokenFormat format, const ScanOptions& options)
    -> ErrorOr<ScanResult> {
  // Blocks point into it.
  std::vector<std::vector<TokenFile>> opened(lists.size());
  std::vector<Block> blocks;
  std::vector<PredictedIds> predicted;
  ScanResult result;
  for (size_t i = 0; i < lists.size(); ++i) {
    const FileList& list = lists[i];
    for (const std::string& path : list.paths) {
      ASSIGN_OR_RETURN(auto file, Open(list, path, format));
      ++result.files;
      result.bytes += file.file_bytes;
      opened[i].push_back(std::move(file));
    }
    int64_t num_ids = 0;
    for (const TokenFile& file : opened[i]) {
      for (int64_t begin = 0; begin < file.file_bytes; begin += BlockBytes) {
        blocks.push_back({&file, &list, begin, num_ids});
      }
      num_ids += file.num_ids;
    }
    predicted.push_back(PredictedIn(list, num_ids));
  }
  Scanner scanner(&lists, std::move(predicted), std::move(blocks), format, result.bytes);
  RETURN_IF_ERROR(scanner.Run(options));
  for (size_t i = 0; i < lists.size(); ++i) {
    result.lists.push_back(
        {.digest = {}, .train_targets = scanner.num_targets(i, 0), .eval_targets = scanner.num_targets(i, 1)});
  }
  AddDigests(opened, scanner.blocks(), result.lists);
  return result;
}

auto CheckHasTargets(const Plan& plan, const ScanResult& scanned) -> Status {
  bool reads_own = false;
  int64_t eval_targets = 0;
  auto list = scanned.lists.begin() + std::ssize(plan.data.sources);
  for (const TokenSource& source : plan.data.sources) {
    if (!source.targets.empty()) {
      RETURN_IF_ERROR(CheckHoldsTarget("source " + source.name, list->train_targets));
      ++list;
    }
  }
  for (const TargetHead& head : plan.heads) {
    RETURN_IF_ERROR(CheckHoldsTarget("head " + head.name, list->train_targets));
    eval_targets += list->eval_targets;
    reads_own = reads_own || head.is_own;
    ++list;
  }
  return reads_own && plan.data.eval_tokens > 0 ? CheckHoldsEvalTarget(eval_targets) : Success{};
}

}  // namespace shardc
