// A folder that goes away with the test. In memory where the machine has /dev/shm: tests that sync thousands of times
// would otherwise measure the disk.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "compiler/base/check.h"

namespace shardc {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir()) + "shardc_XXXXXX") {
    CHECK(mkdtemp(path_.data()) != nullptr, "cannot make {}", path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  auto path() const -> const std::string& { return path_; }
  auto operator/(const std::string& name) const -> std::string { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline auto ReadText(const std::string& path) -> std::string {
  std::ifstream in(path, std::ios::binary);
  // Not by an iterator over the buffer, which would throw for a file of /proc whose process ends meanwhile.
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline auto WriteText(const std::string& path, const std::string& text) -> void {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
}

}  // namespace shardc
