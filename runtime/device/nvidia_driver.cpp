#include "runtime/device/nvidia_driver.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace shardc {

auto NvidiaDriverVersion(const std::string& folder) -> std::string {
  std::ifstream file(folder + "/version");
  std::string word;
  while (file >> word) {
    // The first word that begins with a digit.
    if (word.front() >= '0' && word.front() <= '9') {
      return word;
    }
  }
  return "";
}

static auto ModelIn(const std::filesystem::path& file) -> std::string {
  constexpr std::string_view Name = "Model:";
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t", Name.size());
    if (line.starts_with(Name) && begin != std::string::npos) {
      return line.substr(begin);
    }
  }
  return "unknown";
}

auto NvidiaGpuModels(const std::string& folder) -> std::vector<std::string> {
  std::vector<std::string> models;
  std::error_code missing;
  for (const auto& gpu : std::filesystem::directory_iterator(folder + "/gpus", missing)) {
    models.push_back(ModelIn(gpu.path() / "information"));
  }
  std::ranges::sort(models);
  return models;
}

}  // namespace shardc
