// The program that schemas/random.md has: whoever reads the page can make every initial value.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/repository.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

/// What the page's Python prints when `calls` come after it: numbers, as floats.
inline auto FromRandomPage(const std::string& calls) -> std::vector<float> {
  const std::string page = ReadRepositoryFile("schemas/random.md");
  const std::string begin = "```python\n";
  std::string program;
  for (size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    program += page.substr(at, page.find("```", at) - at);
  }
  const TemporaryFolder folder;
  WriteText(folder / "page.py", program + calls);
  FILE* const pipe = popen(("python3 " + (folder / "page.py")).c_str(), "r");
  std::vector<float> values;
  double value = 0;
  while (std::fscanf(pipe, "%lf", &value) == 1) {
    values.push_back(static_cast<float>(value));
  }
  EXPECT_EQ(pclose(pipe), 0) << calls;
  return values;
}

}  // namespace shardc
