#include "runtime/checkpoint/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace shardc {

/// Ranges are in a list that only grows, since a handler may walk through it at any time; those that are free are used
/// again.
struct MappedRange {
  std::atomic<bool> is_used = true;
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> is_cut = false;
  MappedRange* next = nullptr;
};

static std::atomic<MappedRange*> first_range = nullptr;
static struct sigaction action_before {};
static uintptr_t page_bytes = 4096;

extern "C" {
static void HandleBusError(int signal, siginfo_t* info, void*) {
  const int code = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  // One that a process sent has no address.
  const bool is_fault = info->si_code > 0;
  for (MappedRange* range = first_range; is_fault && range != nullptr; range = range->next) {
    const uintptr_t end = range->end;
    if (address < range->begin || address >= end) {
      continue;
    }
    // Marked first: whoever reads a zero finds the mark.
    range->is_cut = true;
    const uintptr_t page = address / page_bytes * page_bytes;
    if (mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED) {
      errno = code;
      return;
    }
  }
  // As if there were no handler: the access is made again, and meets what was there before.
  sigaction(SIGBUS, &action_before, nullptr);
  if (!is_fault) {
    raise(signal);
  }
  errno = code;
}
}

static auto InstallHandler() -> void {
  [[maybe_unused]] static const bool is_installed = [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = HandleBusError;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, &action_before) == 0;
  }();
}

static auto FreeRange() -> MappedRange& {
  for (MappedRange* range = first_range; range != nullptr; range = range->next) {
    if (!range->is_used.exchange(true)) {
      return *range;
    }
  }
  auto* const range = new MappedRange;
  range->next = first_range;
  while (!first_range.compare_exchange_weak(range->next, range)) {
  }
  return *range;
}

auto MappedFile::Map(const Descriptor& file, int64_t bytes) -> ErrorOr<std::unique_ptr<MappedFile>> {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) {
    return SystemError("examine", file.path());
  }
  FAIL_IF(info.st_size != bytes || bytes == 0, ExitCode::Checkpoint, "{} has {} bytes, its manifest says {}",
          file.path(), info.st_size, bytes);
  InstallHandler();
  void* const data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    return SystemError("map", file.path());
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile(file, static_cast<const std::byte*>(data), static_cast<size_t>(bytes), info.st_mtim));
}

auto MappedFile::Map(const CheckpointFile* file) -> ErrorOr<std::unique_ptr<MappedFile>> {
  ASSIGN_OR_RETURN(auto mapped, Map(file->descriptor(), file->bytes()));
  if (file->has_digests()) {
    mapped->digests_ = file;
    mapped->are_checked_.resize(static_cast<size_t>(NumBlocks(file->bytes())));
  }
  return mapped;
}

MappedFile::MappedFile(const Descriptor& file, const std::byte* data, size_t bytes, timespec modified)
    : file_(file), data_(data), bytes_(bytes), modified_(modified), range_(FreeRange()) {
  range_.is_cut = false;
  range_.begin = reinterpret_cast<uintptr_t>(data);
  // The mapping ends with its last page.
  range_.end = (reinterpret_cast<uintptr_t>(data) + bytes + page_bytes - 1) / page_bytes * page_bytes;
}

MappedFile::~MappedFile() {
  range_.end = 0;
  range_.begin = 0;
  munmap(const_cast<std::byte*>(data_), bytes_);
  range_.is_used = false;
}

auto MappedFile::CheckBytes(const std::byte* first, int64_t bytes) -> void {
  const int64_t begin = first - data_;
  const int64_t end = digests_ == nullptr ? 0 : begin + bytes;
  for (int64_t block = begin / BlockBytes; block < NumBlocks(end); ++block) {
    if (are_checked_[static_cast<size_t>(block)]) {
      continue;
    }
    are_checked_[static_cast<size_t>(block)] = true;
    const Status checked = digests_->CheckBlock(block, data_ + block * BlockBytes);
    if (damage_) {
      damage_ = checked;
    }
  }
}

auto MappedFile::Check() const -> Status {
  struct stat info {};
  if (fstat(file_.get(), &info) != 0) {
    return SystemError("examine", file_.path());
  }
  // The rest of the last page of a file that was cut reads as zeros without a signal.
  FAIL_IF(range_.is_cut || info.st_size != static_cast<off_t>(bytes_), ExitCode::Checkpoint,
          "{} was cut short while it was read: it had {} bytes, and has {}", file_.path(), bytes_, info.st_size);
  FAIL_IF(info.st_mtim.tv_sec != modified_.tv_sec || info.st_mtim.tv_nsec != modified_.tv_nsec, ExitCode::Checkpoint,
          "{} was written to while it was read", file_.path());
  return damage_;
}

}  // namespace shardc
