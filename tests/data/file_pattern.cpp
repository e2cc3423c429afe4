// Patterns of file names: which files they stand for, and in which order.
#include "compiler/data/file_pattern.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

class FilePattern : public testing::Test {
 protected:
  FilePattern() {
    for (const char* name : {"a[1]/b.bin", "a[1]/B.bin", "a[1]/a10.bin", "a[1]/a9.bin", "a[1]/a9.idx", "a1/a.bin"}) {
      std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
      WriteText(folder_ / name, "");
    }
  }
  /// Names without the folder.
  auto Find(const std::string& folder, const std::string& pattern) -> std::vector<std::string> {
    std::vector<std::string> names;
    for (const std::string& path : FindFiles(folder_ / folder, pattern)) {
      names.push_back(path.substr((folder_ / "").size()));
    }
    return names;
  }

  TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(FilePattern, FindsFilesInByteOrder) {
  EXPECT_EQ(Find("a[1]", "*.bin"), (Names{"a[1]/B.bin", "a[1]/a10.bin", "a[1]/a9.bin", "a[1]/b.bin"}));
  EXPECT_EQ(Find("a[1]", "a[0-9].*"), (Names{"a[1]/a9.bin", "a[1]/a9.idx"}));
  EXPECT_EQ(Find("a[1]", "?.bin"), (Names{"a[1]/B.bin", "a[1]/b.bin"}));
  EXPECT_EQ(Find("a[1]", "../*/a*.bin"), (Names{"a1/a.bin", "a[1]/a10.bin", "a[1]/a9.bin"}));
  EXPECT_EQ(Find("a[1]", folder_ / "a1/*"), (Names{"a1/a.bin"}));
  EXPECT_EQ(Find("a[1]", "*.txt"), Names{});
  EXPECT_EQ(Find("missing", "*"), Names{});
}

TEST_F(FilePattern, HasCharactersOfPatterns) {
  for (const char* text : {"*.bin", "a/?.bin", "[ab].bin"}) {
    EXPECT_TRUE(IsFilePattern(text)) << text;
  }
  EXPECT_FALSE(IsFilePattern("a/b-]{1}.bin"));
}

}  // namespace
}  // namespace shardc
