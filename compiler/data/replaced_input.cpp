#include "compiler/data/replaced_input.h"

#include <filesystem>

#include "compiler/data/data_files.h"

namespace shardc {

auto CheckReplacesNone(const std::string& option, const std::string& output, std::span<const std::string> inputs)
    -> Status {
  for (const std::string& input : inputs) {
    std::error_code unknown;
    if (std::filesystem::equivalent(output, input, unknown) && std::filesystem::is_regular_file(input, unknown)) {
      return Fail(ExitCode::Usage, "{} {} would replace {}; name another file", option, output,
                  output == input ? "what is read" : input + ", which is read");
    }
  }
  return Success{};
}

auto TokenFilesOf(const Plan& plan) -> std::vector<std::string> {
  std::vector<std::string> paths;
  for (const FileList& list : ListFiles(plan.data, plan.heads)) {
    paths.insert(paths.end(), list.paths.begin(), list.paths.end());
  }
  return paths;
}

}  // namespace shardc
