// Files that appear whole: under failing and killed system calls, and beside what strangers left.
#include "compiler/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/fault_fs.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;

auto Opened(const std::string& path, Fs& fs = PosixFs()) -> Descriptor {
  auto directory = OpenDirectory(fs, path);
  CHECK(directory.ok(), "{}", directory.error().message);
  return *std::move(directory);
}

auto Write(const std::string& path, const std::string& text) -> void { std::ofstream(path) << text; }

TEST(PutFileAt, ReplacesTheOldContentAndLeavesNothingBesides) {
  const TemporaryFolder folder;
  const Descriptor directory = Opened(folder.path());
  ASSERT_TRUE(PutFileAt(directory, "a.json", "old").ok());
  ASSERT_TRUE(PutFileAt(directory, "a.json", "new").ok());
  EXPECT_EQ(ReadText(folder / "a.json"), "new");
  EXPECT_EQ(ListDirectory(directory).value(), std::vector<std::string>{"a.json"});
}

TEST(PutFileAt, RefusesLinksPipesAndFolders) {
  const TemporaryFolder folder;
  Write(folder / "victim", "untouched");
  std::filesystem::create_symlink(folder / "victim", folder / "link");
  std::filesystem::create_symlink(folder / "nothing", folder / "dangling");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  const Descriptor directory = Opened(folder.path());
  for (const std::string name : {"link", "dangling", "pipe", "folder"}) {
    const Status put = PutFileAt(directory, name, "text");
    ASSERT_FALSE(put.ok()) << name;
    EXPECT_THAT(put.error().message, HasSubstr("not a regular file")) << name;
    const auto appended = OpenForAppendAt(directory, name);
    ASSERT_FALSE(appended.ok()) << name;
    EXPECT_THAT(appended.error().message, HasSubstr("not a regular file")) << name;
    EXPECT_FALSE(ReadFileAt(directory, name, 100).ok()) << name;
  }
  EXPECT_EQ(ReadText(folder / "victim"), "untouched");
  EXPECT_FALSE(std::filesystem::exists(folder / "nothing"));
}

TEST(PutFileAt, ALinkUnderTheTemporaryNameIsRemovedAndNotWrittenThrough) {
  const TemporaryFolder folder;
  Write(folder / "victim", "untouched");
  std::filesystem::create_symlink(folder / "victim", folder / "a.json.tmp");
  ASSERT_TRUE(PutFileAt(Opened(folder.path()), "a.json", "text").ok());
  EXPECT_EQ(ReadText(folder / "a.json"), "text");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "a.json"));
  EXPECT_EQ(ReadText(folder / "victim"), "untouched");
}

TEST(PutFileAt, AHardLinkKeepsItsContentUnderTheOtherName) {
  const TemporaryFolder folder;
  Write(folder / "victim", "untouched");
  std::filesystem::create_hard_link(folder / "victim", folder / "a.json");
  ASSERT_TRUE(PutFileAt(Opened(folder.path()), "a.json", "text").ok());
  EXPECT_EQ(ReadText(folder / "victim"), "untouched");
  EXPECT_EQ(ReadText(folder / "a.json"), "text");
}

TEST(PutFileAt, EachCallMayFailAndTheOldOrTheNewContentIsThere) {
  int64_t num_failed = 0;
  for (int64_t fail_at = 1;; ++fail_at) {
    const TemporaryFolder folder;
    Write(folder / "a.json", "old");
    FaultFs faults({.fail_at = fail_at});
    Status put = Success{};
    {
      auto directory = OpenDirectory(faults, folder.path());
      put = directory ? PutFileAt(*directory, "a.json", "new") : Status(directory.error());
    }
    const std::string text = ReadText(folder / "a.json");
    EXPECT_TRUE(text == "old" || text == "new") << text;
    if (put.ok()) {
      EXPECT_EQ(text, "new");
    }
    num_failed += put.ok() ? 0 : 1;
    if (!faults.hit()) {
      break;
    }
  }
  // At the least: open, create, write, fsync, close and rename.
  EXPECT_GE(num_failed, 6);
}

TEST(PutFileAt, EachCallMayBeTheLastAndTheNextOneSucceeds) {
  for (const bool before : {true, false}) {
    for (int64_t kill_at = 1;; ++kill_at) {
      const TemporaryFolder folder;
      Write(folder / "a.json", "old");
      const pid_t child = fork();
      if (child == 0) {
        FaultFs faults({.kill_before = before ? kill_at : 0, .kill_after = before ? 0 : kill_at});
        auto directory = OpenDirectory(faults, folder.path());
        _exit(directory && PutFileAt(*directory, "a.json", "new") ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      const std::string text = ReadText(folder / "a.json");
      EXPECT_TRUE(text == "old" || text == "new") << text;
      ASSERT_TRUE(PutFileAt(Opened(folder.path()), "a.json", "newer").ok());
      EXPECT_EQ(ReadText(folder / "a.json"), "newer");
      EXPECT_EQ(ListDirectory(Opened(folder.path())).value(), std::vector<std::string>{"a.json"});
      if (WIFEXITED(status)) {
        break;
      }
    }
  }
}

TEST(AtomicFile, OfAUserFollowsALinkAndWritesADevice) {
  const TemporaryFolder folder;
  Write(folder / "target", "old");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  ASSERT_TRUE(WriteFile(folder / "link", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(ReadText(folder / "target"), "new");
  EXPECT_TRUE(WriteFile("/dev/null", "text").ok());
  const Status no_folder = WriteFile(folder / "missing/file", "text");
  ASSERT_FALSE(no_folder.ok());
  EXPECT_THAT(no_folder.error().message, HasSubstr("missing"));
}

TEST(ReadFileAt, ReadsUpToItsLimitAndNoFurther) {
  const TemporaryFolder folder;
  Write(folder / "a", "12345");
  EXPECT_EQ(ReadFileAt(Opened(folder.path()), "a", 5).value(), "12345");
  const auto refused = ReadFileAt(Opened(folder.path()), "a", 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("has 5 bytes; at most 4 are read"));
}

TEST(OpenForAppendAt, ContinuesAFileAndMakesAMissingOne) {
  const TemporaryFolder folder;
  const Descriptor directory = Opened(folder.path());
  for (const std::string text : {"one\n", "two\n"}) {
    auto file = OpenForAppendAt(directory, "log");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(AppendAll(*file, text).ok());
  }
  EXPECT_EQ(ReadText(folder / "log"), "one\ntwo\n");
}

/// Remembers which directories were synced, by what they are.
class SyncedFs final : public ForwardingFs {
 public:
  std::set<uint64_t> inodes;

  auto Fsync(int descriptor) -> int override {
    FileStatus status;
    PosixFs().Stat(descriptor, "", status);
    inodes.insert(status.inode);
    return PosixFs().Fsync(descriptor);
  }
};

TEST(OpenDirectory, NamesAFifo) {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(OpenDirectory(PosixFs(), fifo).error().message,
            "cannot open directory " + fifo + ": it is a FIFO, no directory");
  for (const std::string below : {"", "/below"}) {
    EXPECT_EQ(MakeDirectories(PosixFs(), fifo + below).error().message,
              "cannot make directory " + fifo + ": it is a FIFO, no directory");
  }
}

TEST(MakeDirectories, SyncsTheParentOfEachThatItMakes) {
  const TemporaryFolder folder;
  SyncedFs fs;
  ASSERT_TRUE(MakeDirectories(fs, folder / "a/b/c").ok());
  std::set<uint64_t> parents;
  for (const std::string& path : {folder.path(), folder / "a", folder / "a/b"}) {
    parents.insert(StatusOf(Opened(path)).value().inode);
  }
  EXPECT_EQ(fs.inodes, parents);
  fs.inodes.clear();
  ASSERT_TRUE(MakeDirectories(fs, folder / "a/b/c").ok());
  EXPECT_TRUE(fs.inodes.empty());
  Write(folder / "file", "");
  EXPECT_FALSE(MakeDirectories(fs, folder / "file/a").ok());
  EXPECT_FALSE(MakeDirectories(fs, folder / "file").ok());
}

}  // namespace
}  // namespace shardc
