#include "tests/support/recorded.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "tests/support/repository.h"
#include "tests/support/unified_diff.h"

namespace shardc {

auto ExpectRecorded(const std::string& path, const std::string& text, std::string_view accept,
                    const ShowDifference& show) -> void {
  const std::string place = RepositoryPath(path);
  const bool is_there = std::filesystem::exists(place);
  const std::string recorded = is_there ? ReadText(place) : "";
  if (is_there && recorded == text) {
    return;
  }
  const char* update = std::getenv("SHARDC_UPDATE_GOLDENS");
  if (update != nullptr && std::string_view(update) == "1") {
    WriteText(place, text);
    std::cout << "wrote " << path << '\n';
    return;
  }
  std::string difference = path + " is missing\n";
  if (is_there) {
    difference = show ? show(recorded) : UnifiedDiff(recorded, text, path, "what this build makes");
  }
  ADD_FAILURE() << difference << "to accept: " << accept;
}

}  // namespace shardc
