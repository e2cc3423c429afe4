#include "compiler/data/replaced_input.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "compiler/checkpoint/manifest.h"
#include "compiler/data/megatron_index.h"
#include "compiler/plan/attempts.h"

namespace shardc {

/// Returns true if a run keeps its records or its checkpoints in the folder.
static auto IsOfRun(const std::filesystem::path& folder) -> bool {
  std::error_code unknown;
  return std::filesystem::exists(folder / AttemptsName / AttemptName(1), unknown) ||
         std::filesystem::exists(folder / LeaseName, unknown) ||
         (IsCheckpointName(folder.filename().string()) && std::filesystem::exists(folder / ManifestName, unknown));
}

/// Returns the path without links, as far as it exists.
static auto Resolved(const std::string& path) -> std::filesystem::path {
  std::error_code unknown;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
}

auto CheckReplacesNone(const std::string& option, const std::string& output, std::span<const std::string> inputs)
    -> Status {
  FAIL_IF(output == "-", ExitCode::Usage, "{} - would be a file of that name, not standard output; name another file",
          option);
  std::vector<std::filesystem::path> folders;
  for (const std::string& input : inputs) {
    std::error_code unknown;
    FAIL_IF(std::filesystem::equivalent(output, input, unknown) && std::filesystem::is_regular_file(input, unknown),
            ExitCode::Usage, "{} {} would replace {}; name another file", option, output,
            output == input ? "what is read" : input + ", which is read");
    folders.push_back(Resolved(input));
  }
  const std::filesystem::path file = Resolved(output);
  for (std::filesystem::path folder = file.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    FAIL_IF(IsOfRun(folder) || std::ranges::find(folders, folder) != folders.end(), ExitCode::Usage,
            "{} {} would lie in {}, where a run keeps its files; name another folder", option, output, folder.string());
  }
  return Success{};
}

auto CheckHasOffsets(const std::string& option, const std::string& output) -> Status {
  std::error_code unknown;
  const auto type = std::filesystem::status(output, unknown).type();
  FAIL_IF(type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket, ExitCode::Usage,
          "{} {} is a pipe, which takes bytes in their order only; name a file", option, output);
  return Success{};
}

auto InputsOf(const DataSource& data, const HeadTable& heads, std::initializer_list<std::string> begun_from)
    -> std::vector<std::string> {
  std::vector<std::string> inputs;
  for (const FileList& list : ListFiles(data, heads)) {
    for (const std::string& path : list.paths) {
      inputs.push_back(path);
      if (data.format == TokenFormat::Megatron) {
        inputs.push_back(IndexPathOf(path));
      }
    }
  }
  std::ranges::copy_if(begun_from, std::back_inserter(inputs), [](const std::string& path) { return !path.empty(); });
  return inputs;
}

}  // namespace shardc
