// File systems for tests: one to watch single calls of the machine's, and one that misbehaves: it fails the n-th call,
// once or from then on, moves half of what it is asked to, or kills or stops the process at the n-th call.
#pragma once

#include <csignal>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "compiler/base/fs.h"

namespace shardc {

/// The machine's file system; a test overrides the calls that it looks at.
class ForwardingFs : public Fs {
 public:
  auto Open(int directory, const char* name, int flags, unsigned mode) -> int override {
    return PosixFs().Open(directory, name, flags, mode);
  }
  auto Close(int descriptor) -> int override { return PosixFs().Close(descriptor); }
  auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t override {
    return PosixFs().Pwrite(descriptor, data, bytes, offset);
  }
  auto Pread(int descriptor, void* data, size_t bytes, int64_t offset) -> int64_t override {
    return PosixFs().Pread(descriptor, data, bytes, offset);
  }
  auto Write(int descriptor, const void* data, size_t bytes) -> int64_t override {
    return PosixFs().Write(descriptor, data, bytes);
  }
  auto Read(int descriptor, void* data, size_t bytes) -> int64_t override {
    return PosixFs().Read(descriptor, data, bytes);
  }
  auto Fsync(int descriptor) -> int override { return PosixFs().Fsync(descriptor); }
  auto MakeDirectory(int directory, const char* name) -> int override {
    return PosixFs().MakeDirectory(directory, name);
  }
  auto Rename(int directory, const char* from, const char* to) -> int override {
    return PosixFs().Rename(directory, from, to);
  }
  auto Unlink(int directory, const char* name, bool is_directory) -> int override {
    return PosixFs().Unlink(directory, name, is_directory);
  }
  auto Stat(int descriptor, const char* name, FileStatus& status) -> int override {
    return PosixFs().Stat(descriptor, name, status);
  }
  auto List(int directory, std::vector<std::string>& names) -> int override { return PosixFs().List(directory, names); }
};

struct Faults {
  /// Counted from 1; 0: never.
  int64_t fail_at = 0;
  /// Also every call after it.
  bool for_good = false;
  int error = EIO;
  int64_t kill_before = 0;
  int64_t kill_after = 0;
  /// The process stops (SIGSTOP) before this call, and makes it when it is woken.
  int64_t stop_before = 0;
  /// Reads and writes move half, and every third call is interrupted first.
  bool halves = false;
};

class FaultFs final : public Fs {
 public:
  explicit FaultFs(Faults faults = {}) : faults_(faults) {}

  /// Calls so far.
  auto num_calls() const -> int64_t { return num_calls_; }
  /// True once a fault has been injected.
  auto hit() const -> bool { return faults_.fail_at > 0 && num_calls_ >= faults_.fail_at; }

  auto Open(int directory, const char* name, int flags, unsigned mode) -> int override {
    return Call([&] { return PosixFs().Open(directory, name, flags, mode); });
  }
  auto Close(int descriptor) -> int override {
    // The descriptor is gone in any case, as with the real call.
    const int closed = PosixFs().Close(descriptor);
    return Call([&] { return closed; });
  }
  auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t override {
    return Call([&] { return Interrupted() ? int64_t{-1} : PosixFs().Pwrite(descriptor, data, Part(bytes), offset); });
  }
  auto Pread(int descriptor, void* data, size_t bytes, int64_t offset) -> int64_t override {
    return Call([&] { return Interrupted() ? int64_t{-1} : PosixFs().Pread(descriptor, data, Part(bytes), offset); });
  }
  auto Write(int descriptor, const void* data, size_t bytes) -> int64_t override {
    return Call([&] { return Interrupted() ? int64_t{-1} : PosixFs().Write(descriptor, data, Part(bytes)); });
  }
  auto Read(int descriptor, void* data, size_t bytes) -> int64_t override {
    return Call([&] { return Interrupted() ? int64_t{-1} : PosixFs().Read(descriptor, data, Part(bytes)); });
  }
  auto Fsync(int descriptor) -> int override {
    return Call([&] { return PosixFs().Fsync(descriptor); });
  }
  auto MakeDirectory(int directory, const char* name) -> int override {
    return Call([&] { return PosixFs().MakeDirectory(directory, name); });
  }
  auto Rename(int directory, const char* from, const char* to) -> int override {
    return Call([&] { return PosixFs().Rename(directory, from, to); });
  }
  auto Unlink(int directory, const char* name, bool is_directory) -> int override {
    return Call([&] { return PosixFs().Unlink(directory, name, is_directory); });
  }
  auto Stat(int descriptor, const char* name, FileStatus& status) -> int override {
    return Call([&] { return PosixFs().Stat(descriptor, name, status); });
  }
  auto List(int directory, std::vector<std::string>& names) -> int override {
    return Call([&] { return PosixFs().List(directory, names); });
  }

 private:
  template <class Body>
  auto Call(Body&& body) -> decltype(body()) {
    const int64_t number = ++num_calls_;
    if (number == faults_.kill_before) {
      std::raise(SIGKILL);
    }
    if (number == faults_.stop_before) {
      std::raise(SIGSTOP);
    }
    if (faults_.fail_at > 0 && (number == faults_.fail_at || (faults_.for_good && number > faults_.fail_at))) {
      errno = faults_.error;
      return -1;
    }
    const auto result = body();
    if (number == faults_.kill_after) {
      std::raise(SIGKILL);
    }
    return result;
  }
  auto Part(size_t bytes) const -> size_t { return faults_.halves ? std::max<size_t>(1, bytes / 2) : bytes; }
  auto Interrupted() -> bool {
    if (!faults_.halves || ++num_transfers_ % 3 != 0) {
      return false;
    }
    errno = EINTR;
    return true;
  }

  Faults faults_;
  int64_t num_calls_ = 0;
  int64_t num_transfers_ = 0;
};

}  // namespace shardc
