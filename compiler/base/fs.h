// The file system as the program sees it: one method per system call, so that a test body can fail, cut short or kill
// at any of them. Names are relative to an open directory; nothing is opened through a symbolic link there. Files that
// appear whole are in files.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// What a name in a directory stands for. Other: a symbolic link, a FIFO, a device, a socket.
enum class EntryKind : uint8_t { Missing, File, Directory, Other };

struct FileStatus {
  EntryKind kind = EntryKind::Missing;
  int64_t bytes = 0;
  /// The two name a file or directory, whatever it is called and wherever it is moved.
  uint64_t device = 0;
  uint64_t inode = 0;
  /// Names that it has; 0: it was removed.
  int64_t num_links = 0;
  /// Times of the last write, which any program may set, and of the last change of the file or its status, which only
  /// the system sets. Units: nanoseconds since the epoch.
  int64_t written_ns = 0;
  int64_t changed_ns = 0;

  auto IsSameAs(const FileStatus& other) const -> bool { return device == other.device && inode == other.inode; }
};

/// System calls: -1 with errno set on failure, as there.
class Fs {
 public:
  virtual ~Fs() = default;
  virtual auto Open(int directory, const char* name, int flags, unsigned mode) -> int = 0;
  virtual auto Close(int descriptor) -> int = 0;
  virtual auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t = 0;
  virtual auto Pread(int descriptor, void* data, size_t bytes, int64_t offset) -> int64_t = 0;
  /// At the descriptor's own position, or at the end where it was opened to append: for streams.
  virtual auto Write(int descriptor, const void* data, size_t bytes) -> int64_t = 0;
  virtual auto Read(int descriptor, void* data, size_t bytes) -> int64_t = 0;
  virtual auto Fsync(int descriptor) -> int = 0;
  virtual auto MakeDirectory(int directory, const char* name) -> int = 0;
  virtual auto Rename(int directory, const char* from, const char* to) -> int = 0;
  virtual auto Unlink(int directory, const char* name, bool is_directory) -> int = 0;
  /// Of a name, without following a link; of the descriptor itself where the name is empty.
  virtual auto Stat(int descriptor, const char* name, FileStatus& status) -> int = 0;
  /// Names in a directory, without "." and "..", sorted.
  virtual auto List(int directory, std::vector<std::string>& names) -> int = 0;
};

/// The machine's.
auto PosixFs() -> Fs&;

/// An open file or directory that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(Fs& fs, int descriptor, std::string path) : fs_(&fs), descriptor_(descriptor), path_(std::move(path)) {}
  Descriptor(Descriptor&& other) noexcept;
  auto operator=(Descriptor&& other) noexcept -> Descriptor&;
  Descriptor(const Descriptor&) = delete;
  ~Descriptor();

  auto get() const -> int { return descriptor_; }
  auto is_open() const -> bool { return descriptor_ >= 0; }
  auto fs() const -> Fs& { return *fs_; }
  /// For messages.
  auto path() const -> const std::string& { return path_; }
  /// Hands the descriptor over: it is not closed any more.
  auto Release() -> int { return std::exchange(descriptor_, -1); }
  /// Closes and tells of a failure (a network file system reports lost writes here).
  auto Close() -> Status;
  /// Never called twice on a file: after a failed fsync the kernel may have dropped the data, and a second one
  /// succeeds.
  auto Fsync() -> Status;

 private:
  Fs* fs_ = nullptr;
  int descriptor_ = -1;
  std::string path_;
};

/// Returns "cannot open PATH: No such file or directory", of the last failed system call.
auto SystemError(std::string_view what, const std::string& path) -> Error;

/// Makes a directory and its parents; an existing one is fine. The parent of each that it makes is synced.
auto MakeDirectories(Fs& fs, const std::string& path) -> Status;
/// Syncs a directory, unless its file system cannot do that.
auto SyncDirectory(const Descriptor& directory) -> Status;
/// Opens a directory. Errors: not there, not a directory.
auto OpenDirectory(Fs& fs, const std::string& path) -> ErrorOr<Descriptor>;
auto OpenDirectoryAt(const Descriptor& parent, const std::string& name) -> ErrorOr<Descriptor>;
/// Opens a file for reading; refuses what is not a regular file, without waiting on a FIFO.
auto OpenFileAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor>;
/// Creates a file for writing; refuses a name that exists.
auto CreateFileAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor>;
/// Opens a file for appending. Makes one if it is missing, and refuses what is not a regular file, without waiting on a
/// FIFO.
auto OpenForAppendAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor>;
/// Returns the status of an open file or directory.
auto StatusOf(const Descriptor& file) -> ErrorOr<FileStatus>;
/// Returns the status of a name, without following a link: EntryKind::Missing if nothing has the name.
auto StatusAt(const Descriptor& directory, const std::string& name) -> ErrorOr<FileStatus>;
/// Returns the size of a file. Errors: not a regular file.
auto FileBytes(const Descriptor& file) -> ErrorOr<int64_t>;
/// Writes all of `data`, through short writes and interruptions.
auto WriteAll(const Descriptor& file, const void* data, int64_t bytes, int64_t offset) -> Status;
auto ReadAll(const Descriptor& file, void* data, int64_t bytes, int64_t offset) -> Status;
/// Reads what there is before the file ends, `bytes` at most; returns how much it was.
auto ReadUpTo(const Descriptor& file, void* data, int64_t bytes, int64_t offset) -> ErrorOr<int64_t>;
/// Writes all of `text` to the end of a stream, or of a file that was opened to append.
auto AppendAll(const Descriptor& file, std::string_view text) -> Status;
/// Reads what comes next in a stream, `bytes` at most; returns how much it was, 0 at its end.
auto ReadNext(const Descriptor& file, void* data, int64_t bytes) -> ErrorOr<int64_t>;
auto ListDirectory(const Descriptor& directory) -> ErrorOr<std::vector<std::string>>;
auto RenameAt(const Descriptor& directory, const std::string& from, const std::string& to) -> Status;
/// Removes a file, or whatever else is no directory.
auto RemoveAt(const Descriptor& directory, const std::string& name) -> Status;
/// Removes a directory of files. What is no file in it stays, and the directory with it.
auto RemoveDirectoryAt(const Descriptor& parent, const std::string& name) -> Status;

}  // namespace shardc
