// Scans of token files: the first bad id is named, whatever the number of threads.
#include "compiler/data/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

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
  EXPECT_EQ(scanned->ids, 700'002);
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
