// What a loss of power may leave of a tree of directories: a file system that writes down each change, and from what it
// wrote down the states that may be found afterwards.
//
// The model, which is weaker than file systems are:
//   1. A file keeps what was written before its last fsync, and of later writes a prefix, torn at 4 KiB.
//   2. A directory has what it had at its own last fsync; of later changes (a name made, moved or removed) any subset
//      holds, in any order. The fsync of a file says nothing of its name, and that of a directory nothing of what is in
//      the directories and files below it.
//   3. So a name may stand without content, and content without a name is gone.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "tests/support/fault_fs.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

/// A change of a tree. Files and directories have numbers, which they keep whatever they are called; 0: the root.
struct DiskChange {
  enum class Kind : uint8_t { Make, Move, Remove, Write, Sync };
  Kind kind = Kind::Sync;
  /// The directory whose names change, or what is written or synced.
  int node = 0;
  std::string name;
  std::string to;
  /// The number of the file or directory that is made or moved.
  int target = 0;
  bool makes_directory = false;
  int64_t offset = 0;
  std::string bytes;
  /// Mark of what the process had been told before: a later start has to find it.
  int64_t told = 0;
};

/// A tree as it lies on a disk, with changes that are on their way there.
class Disk {
 public:
  /// Files and directories by their paths from the root; a directory's content is "/".
  using Tree = std::map<std::string, std::string>;

  /// Takes what a folder holds as what lies on the disk. Gives each file and directory its number.
  explicit Disk(const std::string& folder) {
    directories_[0];
    std::map<std::string, int> numbers{{folder, 0}};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const int node = num_nodes_++;
      const std::string path = entry.path().string();
      numbers[path] = node;
      directories_.at(numbers.at(entry.path().parent_path().string())).names[entry.path().filename().string()] = node;
      if (entry.is_directory()) {
        directories_[node];
      } else {
        files_[node].content = ReadText(path);
      }
      paths_[node] = path;
    }
  }

  auto NewNode() -> int { return num_nodes_++; }
  /// Returns where each file and directory was found, by its number.
  auto paths() const -> const std::map<int, std::string>& { return paths_; }

  auto Apply(const DiskChange& change) -> void {
    switch (change.kind) {
      case DiskChange::Kind::Make:
        if (change.makes_directory) {
          directories_[change.target];
        } else {
          files_[change.target];
        }
        [[fallthrough]];
      case DiskChange::Kind::Move:
      case DiskChange::Kind::Remove: directories_.at(change.node).pending.push_back(change); break;
      case DiskChange::Kind::Write: AddWrite(files_.at(change.node), change); break;
      case DiskChange::Kind::Sync: Sync(change.node); break;
    }
  }

  /// Calls `body` with states that a loss of power may leave: with all of them if they are `most` at most, else with
  /// so many, drawn from `random`, and with nothing and all of what is on its way.
  auto ForEachLoss(int64_t most, std::mt19937_64& random, const std::function<void(const Tree&)>& body) const -> void {
    std::vector<Choice> choices;
    double states = 1;
    for (const auto& [node, file] : files_) {
      if (!file.pending.empty()) {
        choices.push_back({.node = node, .orders = {}, .num = file.pending.size() + 1});
        states *= static_cast<double>(choices.back().num);
      }
    }
    for (const auto& [node, directory] : directories_) {
      if (!directory.pending.empty()) {
        auto orders = OrdersOf(directory.pending.size(), random);
        const size_t num = orders.size();
        choices.push_back({.node = node, .orders = std::move(orders), .num = num});
        states *= static_cast<double>(num);
      }
    }
    std::vector<size_t> chosen(choices.size(), 0);
    if (states <= static_cast<double>(most)) {
      do {
        body(TreeOf(choices, chosen));
      } while (Next(choices, chosen));
      return;
    }
    body(TreeOf(choices, chosen));
    for (size_t i = 0; i < choices.size(); ++i) {
      chosen[i] = choices[i].num - 1;
    }
    body(TreeOf(choices, chosen));
    for (int64_t state = 2; state < most; ++state) {
      for (size_t i = 0; i < choices.size(); ++i) {
        chosen[i] = std::uniform_int_distribution<size_t>(0, choices[i].num - 1)(random);
      }
      body(TreeOf(choices, chosen));
    }
  }

 private:
  struct File {
    std::string content;
    /// Writes of a page at most, in their order.
    std::vector<std::pair<int64_t, std::string>> pending;
  };
  struct Directory {
    std::map<std::string, int> names;
    std::vector<DiskChange> pending;
  };
  /// Possible losses of one file or directory: a file keeps so many writes, a directory the changes of one of the
  /// orders.
  struct Choice {
    int node;
    std::vector<std::vector<size_t>> orders;
    size_t num;
  };

  static auto AddWrite(File& file, const DiskChange& change) -> void {
    constexpr int64_t Page = 4096;
    int64_t begin = 0;
    const auto bytes = std::ssize(change.bytes);
    while (begin < bytes) {
      const int64_t at = change.offset + begin;
      const int64_t end = std::min(bytes, begin + Page - at % Page);
      file.pending.emplace_back(at, change.bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
      begin = end;
    }
  }

  static auto Put(std::string& content, const std::pair<int64_t, std::string>& write) -> void {
    const auto at = static_cast<size_t>(write.first);
    content.resize(std::max(content.size(), at + write.second.size()), '\0');
    content.replace(at, write.second.size(), write.second);
  }

  static auto Change(std::map<std::string, int>& names, const DiskChange& change) -> void {
    if (change.kind == DiskChange::Kind::Make) {
      names[change.name] = change.target;
      return;
    }
    if (const auto found = names.find(change.name); found != names.end() && found->second == change.target) {
      names.erase(found);
    }
    if (change.kind == DiskChange::Kind::Move) {
      names[change.to] = change.target;
    }
  }

  auto Sync(int node) -> void {
    if (const auto directory = directories_.find(node); directory != directories_.end()) {
      for (const DiskChange& change : directory->second.pending) {
        Change(directory->second.names, change);
      }
      directory->second.pending.clear();
      return;
    }
    File& file = files_.at(node);
    for (const auto& write : file.pending) {
      Put(file.content, write);
    }
    file.pending.clear();
  }

  /// Returns ordered subsets of `num` changes, none first and all in their order last: each up to 4 changes, of more
  /// some.
  static auto OrdersOf(size_t num, std::mt19937_64& random) -> std::vector<std::vector<size_t>> {
    std::vector<size_t> all(num);
    for (size_t i = 0; i < num; ++i) {
      all[i] = i;
    }
    std::set<std::vector<size_t>> orders;
    if (num <= 4) {
      std::vector<size_t> order = all;
      do {
        for (size_t kept = 0; kept <= num; ++kept) {
          orders.insert(std::vector(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept)));
        }
      } while (std::next_permutation(order.begin(), order.end()));
    } else {
      for (size_t i = 0; i <= num; ++i) {
        orders.insert(std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i)));
        orders.insert(std::vector(all.begin() + static_cast<std::ptrdiff_t>(i), all.end()));
      }
      for (int i = 0; i < 60; ++i) {
        std::vector<size_t> order = all;
        std::shuffle(order.begin(), order.end(), random);
        order.resize(std::uniform_int_distribution<size_t>(0, num)(random));
        orders.insert(order);
      }
    }
    orders.erase(std::vector<size_t>{});
    orders.erase(all);
    std::vector<std::vector<size_t>> sorted{{}};
    sorted.insert(sorted.end(), orders.begin(), orders.end());
    sorted.push_back(all);
    return sorted;
  }

  static auto Next(const std::vector<Choice>& choices, std::vector<size_t>& chosen) -> bool {
    for (size_t i = 0; i < choices.size(); ++i) {
      if (++chosen[i] < choices[i].num) {
        return true;
      }
      chosen[i] = 0;
    }
    return false;
  }

  auto TreeOf(const std::vector<Choice>& choices, const std::vector<size_t>& chosen) const -> Tree {
    std::map<int, std::string> contents;
    std::map<int, std::map<std::string, int>> names;
    for (const auto& [node, file] : files_) {
      contents[node] = file.content;
    }
    for (const auto& [node, directory] : directories_) {
      names[node] = directory.names;
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      const int node = choices[i].node;
      if (choices[i].orders.empty()) {
        for (size_t write = 0; write < chosen[i]; ++write) {
          Put(contents[node], files_.at(node).pending[write]);
        }
      } else {
        for (const size_t change : choices[i].orders[chosen[i]]) {
          Change(names[node], directories_.at(node).pending[change]);
        }
      }
    }
    Tree tree;
    AddTo(tree, "", 0, contents, names);
    return tree;
  }

  static auto AddTo(Tree& tree, const std::string& path, int directory, const std::map<int, std::string>& contents,
                    const std::map<int, std::map<std::string, int>>& names) -> void {
    for (const auto& [name, node] : names.at(directory)) {
      if (const auto content = contents.find(node); content != contents.end()) {
        tree[path + name] = content->second;
      } else {
        tree[path + name] = "/";
        AddTo(tree, path + name + "/", node, contents, names);
      }
    }
  }

  int num_nodes_ = 1;
  std::map<int, std::string> paths_;
  std::map<int, File> files_;
  std::map<int, Directory> directories_;
};

/// Makes an empty folder hold a tree.
inline auto Lay(const Disk::Tree& tree, const std::string& folder) -> void {
  for (const auto& [path, content] : tree) {
    if (content == "/") {
      std::filesystem::create_directory(folder + "/" + path);
    } else {
      std::ofstream(folder + "/" + path, std::ios::binary) << content;
    }
  }
}

/// Does what it is asked to, and writes down each change below a folder that is there. For several threads.
class RecordingFs final : public ForwardingFs {
 public:
  explicit RecordingFs(const std::string& folder) : begin_(folder) {
    NoteNode(folder, 0);
    for (const auto& [node, path] : begin_.paths()) {
      NoteNode(path, node);
    }
  }

  /// Returns what lay there at first.
  auto begin() const -> const Disk& { return begin_; }
  auto changes() const -> const std::vector<DiskChange>& { return changes_; }
  /// Notes what is known to be done.
  auto Tell(int64_t told) -> void { told_ = told; }
  auto told() const -> int64_t { return told_; }

  auto Open(int directory, const char* name, int flags, unsigned mode) -> int override {
    const std::lock_guard lock(mutex_);
    FileStatus status;
    const bool is_there = PosixFs().Stat(directory, name, status) == 0 && status.kind != EntryKind::Missing;
    const int descriptor = PosixFs().Open(directory, name, flags, mode);
    if (descriptor >= 0 && !is_there) {
      Made(directory, name, descriptor, false);
    }
    return descriptor;
  }
  auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t override {
    const std::lock_guard lock(mutex_);
    const int64_t written = PosixFs().Pwrite(descriptor, data, bytes, offset);
    Wrote(descriptor, data, written, offset);
    return written;
  }
  auto Write(int descriptor, const void* data, size_t bytes) -> int64_t override {
    const std::lock_guard lock(mutex_);
    FileStatus before;
    CHECK(PosixFs().Stat(descriptor, "", before) == 0);
    const int64_t written = PosixFs().Write(descriptor, data, bytes);
    Wrote(descriptor, data, written, before.bytes);
    return written;
  }
  auto Fsync(int descriptor) -> int override {
    const std::lock_guard lock(mutex_);
    if (const int node = NodeOf(descriptor); node >= 0) {
      Note({.kind = DiskChange::Kind::Sync, .node = node});
    }
    return PosixFs().Fsync(descriptor);
  }
  auto MakeDirectory(int directory, const char* name) -> int override {
    const std::lock_guard lock(mutex_);
    const int made = PosixFs().MakeDirectory(directory, name);
    if (made == 0) {
      const int descriptor = PosixFs().Open(directory, name, O_RDONLY | O_DIRECTORY, 0);
      Made(directory, name, descriptor, true);
      PosixFs().Close(descriptor);
    }
    return made;
  }
  auto Rename(int directory, const char* from, const char* to) -> int override {
    const std::lock_guard lock(mutex_);
    const int parent = NodeOf(directory);
    const int node = NodeAt(directory, from);
    const int renamed = PosixFs().Rename(directory, from, to);
    if (renamed == 0 && parent >= 0) {
      Note({.kind = DiskChange::Kind::Move, .node = parent, .name = from, .to = to, .target = node});
    }
    return renamed;
  }
  auto Unlink(int directory, const char* name, bool is_directory) -> int override {
    const std::lock_guard lock(mutex_);
    const int parent = NodeOf(directory);
    const int node = NodeAt(directory, name);
    const int removed = PosixFs().Unlink(directory, name, is_directory);
    if (removed == 0 && parent >= 0) {
      Note({.kind = DiskChange::Kind::Remove, .node = parent, .name = name, .target = node});
    }
    return removed;
  }

 private:
  using Inode = std::pair<uint64_t, uint64_t>;

  auto NodeOf(int descriptor) const -> int {
    FileStatus status;
    return PosixFs().Stat(descriptor, "", status) == 0 ? NodeOf(status) : -1;
  }
  auto NodeAt(int directory, const char* name) const -> int {
    FileStatus status;
    return PosixFs().Stat(directory, name, status) == 0 ? NodeOf(status) : -1;
  }
  auto NodeOf(const FileStatus& status) const -> int {
    const auto found = nodes_.find({status.device, status.inode});
    return found == nodes_.end() ? -1 : found->second;
  }
  auto NoteNode(const std::string& path, int node) -> void {
    FileStatus status;
    CHECK(PosixFs().Stat(AT_FDCWD, path.c_str(), status) == 0, "{}", path);
    nodes_[{status.device, status.inode}] = node;
  }
  auto Note(DiskChange change) -> void {
    change.told = told_;
    changes_.push_back(std::move(change));
  }
  auto Made(int directory, const char* name, int descriptor, bool is_directory) -> void {
    const int parent = NodeOf(directory);
    if (parent < 0) {
      return;
    }
    FileStatus status;
    CHECK(PosixFs().Stat(descriptor, "", status) == 0);
    const int node = begin_.NewNode();
    // The number of one that was removed may be used again.
    nodes_[{status.device, status.inode}] = node;
    Note({.kind = DiskChange::Kind::Make,
          .node = parent,
          .name = name,
          .target = node,
          .makes_directory = is_directory});
  }
  auto Wrote(int descriptor, const void* data, int64_t written, int64_t offset) -> void {
    if (const int node = NodeOf(descriptor); node >= 0 && written > 0) {
      Note({.kind = DiskChange::Kind::Write,
            .node = node,
            .offset = offset,
            .bytes = std::string(static_cast<const char*>(data), static_cast<size_t>(written))});
    }
  }

  std::mutex mutex_;
  Disk begin_;
  std::map<Inode, int> nodes_;
  std::vector<DiskChange> changes_;
  int64_t told_ = 0;
};

struct LossJudgement {
  int64_t states = 0;
  /// Fault of the first state that is not as it should be.
  std::string wrong;
};

/// Lays the states that a loss of power may leave after each change from `first` on, up to `most` of each, into folders
/// of their own, until one is not as it should be. `judge` says what is wrong with it where so much had been told; ""
/// if nothing is.
inline auto JudgeLosses(const Disk& begin, const std::vector<DiskChange>& changes, int64_t told, int64_t most,
                        const std::function<std::string(const std::string&, int64_t)>& judge, size_t first = 0)
    -> LossJudgement {
  LossJudgement found;
  std::mt19937_64 random(1);
  Disk disk = begin;
  std::set<std::pair<int64_t, Disk::Tree>> seen;
  for (size_t i = 0; i <= changes.size() && found.wrong.empty(); ++i) {
    const int64_t told_here = i < changes.size() ? changes[i].told : told;
    const auto look = [&](const Disk::Tree& tree) {
      if (!found.wrong.empty() || !seen.emplace(told_here, tree).second) {
        return;
      }
      const TemporaryFolder folder;
      Lay(tree, folder.path());
      ++found.states;
      if (const std::string wrong = judge(folder.path(), told_here); !wrong.empty()) {
        found.wrong = fmt::format("after {} changes: {}", i, wrong);
      }
    };
    if (i >= first) {
      disk.ForEachLoss(most, random, look);
    }
    if (i < changes.size()) {
      disk.Apply(changes[i]);
    }
  }
  return found;
}

/// Returns the fsyncs without which no state is found that is not as it should be, by their numbers from 1.
inline auto NeedlessSyncs(const RecordingFs& fs, int64_t most,
                          const std::function<std::string(const std::string&, int64_t)>& judge) -> std::vector<int> {
  std::vector<int> needless;
  int num_synced = 0;
  for (size_t i = 0; i < fs.changes().size(); ++i) {
    if (fs.changes()[i].kind != DiskChange::Kind::Sync) {
      continue;
    }
    ++num_synced;
    std::vector<DiskChange> without = fs.changes();
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (JudgeLosses(fs.begin(), without, fs.told(), most, judge, i).wrong.empty()) {
      needless.push_back(num_synced);
    }
  }
  return needless;
}

}  // namespace shardc
