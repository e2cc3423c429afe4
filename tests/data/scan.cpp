// Scans of token files: the first bad id is named, and the digest of all bytes taken, whatever the number of threads.
#include "compiler/data/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "compiler/checkpoint/digest.h"
#include "compiler/data/scan_bar.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;

auto U16Text(const std::vector<uint16_t>& ids) -> std::string {
  return std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * 2);
}

class Scan : public testing::Test {
 protected:
  auto List(const std::vector<std::string>& contents) -> FileList {
    FileList list{.name = "", .purpose = {}, .range = {.vocab = 1000, .vocab_name = "`model.vocab`"}, .paths = {}};
    for (const std::string& text : contents) {
      list.paths.push_back(folder_ / fmt::format("{}.u16", num_files_++));
      WriteText(list.paths.back(), text);
    }
    return list;
  }

  TemporaryFolder folder_;
  int num_files_ = 0;
};

TEST_F(Scan, FindsTheFirstBadIdOfManyWithAnyNumberOfThreads) {
  std::mt19937 random(3);
  for (int round = 0; round < 6; ++round) {
    // Several blocks a file.
    std::vector<std::vector<uint16_t>> files(3, std::vector<uint16_t>(1'300'000, 999));
    size_t first_file = files.size();
    size_t first = 0;
    for (int i = 0; i < 5; ++i) {
      const size_t file = random() % files.size();
      const size_t at = random() % files[file].size();
      files[file][at] = 1000;
      if (std::pair(file, at) < std::pair(first_file, first)) {
        first_file = file;
        first = at;
      }
    }
    const std::vector<FileList> lists{List({U16Text(files[0])}), List({U16Text(files[1]), U16Text(files[2])})};
    const std::string path = first_file == 0 ? lists[0].paths[0] : lists[1].paths[first_file - 1];
    for (const int64_t threads : {1, 2, 5}) {
      const auto scanned = ScanIds(lists, TokenFormat::U16, {.threads = threads});
      ASSERT_FALSE(scanned.ok());
      EXPECT_EQ(scanned.error().code, ExitCode::RecipeRejected);
      EXPECT_THAT(
          scanned.error().message,
          HasSubstr(fmt::format("token file {}: id 1000 at byte {} (token {} of the file), and `model.vocab` is "
                                "1000",
                                path, 2 * first, first)));
    }
  }
}

TEST_F(Scan, CountsAndTells) {
  const std::vector<FileList> lists{List({U16Text(std::vector<uint16_t>(700'000, 7)), "", U16Text({1, 2})})};
  int64_t last = -1;
  const auto scanned = ScanIds(lists, TokenFormat::U16, {.threads = 3, .tell = [&](int64_t done, int64_t all) {
                                                           EXPECT_GE(done, last);
                                                           EXPECT_EQ(all, 1'400'004);
                                                           last = done;
                                                         }});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  EXPECT_EQ(scanned->files, 3);
  EXPECT_EQ(last, 1'400'004);
  EXPECT_EQ(BytesToScan(lists, TokenFormat::U16), 1'400'004);
}

TEST_F(Scan, MayBeStoppedAndNamesAMissingFile) {
  FileList list = List({U16Text(std::vector<uint16_t>(40'000'000, 7))});
  const auto stopped = ScanIds({list}, TokenFormat::U16,
                               {.threads = 2, .may_continue = [] { return Fail(ExitCode::Preempted, "stopped"); }});
  // A machine that is done within a tenth of a second never asks.
  if (!stopped.ok()) {
    EXPECT_EQ(stopped.error().code, ExitCode::Preempted);
  }
  list.paths.push_back(folder_ / "absent");
  const auto missing = ScanIds({list}, TokenFormat::U16, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("absent: No such file or directory; `data.tokens` is relative to"));
}

/// Returns the digest of files with these contents, as docs/checkpoint_format.md defines it.
auto DigestOfFiles(const std::vector<std::string>& contents) -> std::string {
  std::string files;
  for (const std::string& text : contents) {
    std::string parts;
    for (size_t begin = 0; begin < text.size(); begin += 1 << 20) {
      parts += DigestOf(std::string_view(text).substr(begin, 1 << 20));
    }
    files += DigestOf(parts);
  }
  return DigestOf(files);
}

TEST_F(Scan, DigestsCoverAllBytes) {
  std::vector<uint16_t> ids(1'300'000);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<uint16_t>(i * i % 1000);
  }
  const std::vector<std::string> contents{U16Text(ids), "", U16Text({1, 2})};
  const std::vector<FileList> lists{List(contents), List({contents[0]})};
  const auto digest_of = [&](size_t list, int64_t threads) {
    const auto scanned = ScanIds(lists, TokenFormat::U16, {.threads = threads});
    EXPECT_TRUE(scanned.ok()) << scanned.error().message;
    return scanned.ok() ? scanned->lists[list].digest : "";
  };
  EXPECT_EQ(digest_of(0, 1), DigestOfFiles(contents));
  EXPECT_EQ(digest_of(0, 4), DigestOfFiles(contents));
  EXPECT_EQ(digest_of(1, 3), DigestOfFiles({contents[0]}));
  std::set<std::string> digests{digest_of(1, 2)};
  for (const size_t at : {0U, 70'001U, 524'287U, 524'288U, 1'299'999U}) {
    std::vector<uint16_t> changed = ids;
    changed[at] ^= 1;
    WriteText(lists[1].paths[0], U16Text(changed));
    EXPECT_TRUE(digests.insert(digest_of(1, 2)).second) << at;
  }
}

TEST_F(Scan, HeaderBelongsToDigest) {
  std::string text(1024, '\0');
  const int32_t header[]{20240520, 1, 3};
  std::memcpy(text.data(), header, sizeof(header));
  text += U16Text({5, 6, 999});
  const std::vector<FileList> lists{List({text})};
  const auto scanned = ScanIds(lists, TokenFormat::Bin, {});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  EXPECT_EQ(scanned->lists[0].digest, DigestOfFiles({text}));
  text[1000] = 1;
  WriteText(lists[0].paths[0], text);
  EXPECT_EQ(ScanIds(lists, TokenFormat::Bin, {})->lists[0].digest, DigestOfFiles({text}));
  // The byte in the message counts the header.
  text[1029] = 0x7f;
  WriteText(lists[0].paths[0], text);
  EXPECT_THAT(ScanIds(lists, TokenFormat::Bin, {}).error().message, HasSubstr("at byte 1028 (token 2 of the file)"));
}

TEST_F(Scan, CountsTargetsOfSamples) {
  constexpr uint16_t None = 65535;
  // Samples of 3 tokens; the last 6 tokens are held out, which are one sample.
  constexpr TargetCut Cut{.seq = 3, .eval_tokens = 6};
  constexpr size_t NumTokens = 15;
  for (size_t at = 0; at < NumTokens; ++at) {
    std::vector<uint16_t> targets(NumTokens, None);
    targets[at] = 999;
    for (const size_t first_file : {size_t{0}, size_t{1}, size_t{8}, NumTokens}) {
      const auto middle = targets.begin() + static_cast<std::ptrdiff_t>(first_file);
      FileList list = List({U16Text({targets.begin(), middle}), U16Text({middle, targets.end()})});
      list.range.none = 1;
      list.cut = Cut;
      const auto scanned = ScanIds({list}, TokenFormat::U16, {.threads = 2});
      ASSERT_TRUE(scanned.ok()) << scanned.error().message;
      EXPECT_EQ(scanned->lists[0].train_targets, 1 <= at && at < 7 ? 1 : 0) << at;
      EXPECT_EQ(scanned->lists[0].eval_targets, 10 <= at && at < 13 ? 1 : 0) << at;
    }
  }
}

TEST_F(Scan, CountsTargetsOfManyBlocks) {
  FileList list = List({U16Text(std::vector<uint16_t>(1'300'000, 7)), U16Text(std::vector<uint16_t>(1'300'001, 7))});
  list.range.none = 1;
  list.cut = TargetCut{.seq = 1000, .eval_tokens = 600'001};
  const auto scanned = ScanIds({list}, TokenFormat::U16, {.threads = 3});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  EXPECT_EQ(scanned->lists[0].train_targets, 1'999'000);
  EXPECT_EQ(scanned->lists[0].eval_targets, 600'000);
}

// The test sets the time of the last write back. Only the system sets that of the last change.
TEST_F(Scan, IdentityChangesWithFile) {
  const std::vector<FileList> lists{List({U16Text({1, 2, 3})})};
  const std::string path = lists[0].paths[0];
  const auto identity = [&] { return *IdentityOf(lists, TokenFormat::U16); };
  const std::string before = identity();
  EXPECT_EQ(identity(), before);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  // The clock of files moves every few milliseconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::FILE* const file = std::fopen(path.c_str(), "r+");
  std::fputc(7, file);
  std::fclose(file);
  const timespec times[]{status.st_atim, status.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_NE(identity(), before);
  const std::string changed = identity();
  std::filesystem::copy_file(path, path + ".copy");
  std::filesystem::rename(path + ".copy", path);
  EXPECT_NE(identity(), changed);
  EXPECT_NE(*IdentityOf(lists, TokenFormat::U8), identity());
}

TEST_F(Scan, ABarIsOneLineThatGoesAway) {
  const std::string path = folder_ / "terminal";
  std::FILE* file = std::fopen(path.c_str(), "w");
  {
    ScanBar bar(file, true);
    bar.Tell(1 << 20, 4 << 20);
  }
  ScanBar(file, false).Tell(1, 2);
  std::fclose(file);
  EXPECT_EQ(ReadText(path), "\r\x1b[Klooking at token ids [#######.......................]  25 %, 1 of 4 MiB\r\x1b[K");
}

}  // namespace
}  // namespace shardc
