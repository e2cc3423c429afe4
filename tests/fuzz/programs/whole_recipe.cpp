// Prints a recipe of the tests with what it takes from its base: `whole_recipe PATH`. The harnesses begin with whole
// recipes.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "compiler/base/files.h"
#include "tests/support/over_base.h"

auto main(int argc, char** argv) -> int {
  using namespace shardc;
  if (argc != 2) {
    fmt::print(stderr, "usage: whole_recipe PATH\n");
    return static_cast<int>(ExitCode::Usage);
  }
  const std::string path = argv[1];
  const auto text = ReadFile(path, size_t{1} << 20);
  const auto whole = text ? PutOverBase(std::filesystem::path(path).parent_path().string(), *text) : text.error();
  if (!whole) {
    fmt::print(stderr, "{}: {}\n", path, whole.error().message);
    return static_cast<int>(whole.error().code);
  }
  fmt::print("{}", whole->text);
  return 0;
}
