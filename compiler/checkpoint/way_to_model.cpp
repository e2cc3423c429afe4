// Judges by names alone: no file is opened.
#include "compiler/checkpoint/way_to_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace shardc {

namespace fs = std::filesystem;

static constexpr const char* OfAdapter =
    "it is an adapter, which is not read; merge it into its model first (merge_and_unload() and save_pretrained() of "
    "the "
    "package peft), and name the folder of that";
static constexpr const char* OfGguf =
    "it is GGUF, which is not read; take the model as transformers saves it, in safetensors, and name its folder";
static constexpr const char* OfTorch =
    "it is a checkpoint of torch.distributed.checkpoint, which is not read; torchtitan's "
    "scripts/checkpoint_conversion/convert_to_hf.py makes a model of Hugging Face of it";

static auto Has(const fs::path& folder, const char* name) -> bool {
  std::error_code unknown;
  return fs::exists(folder / name, unknown);
}

static auto HasEnding(const fs::path& folder, std::string_view ending) -> bool {
  std::error_code unknown;
  fs::directory_iterator entry(folder, unknown);
  for (; !unknown && entry != fs::directory_iterator(); entry.increment(unknown)) {
    if (entry->path().extension() == ending) {
      return true;
    }
  }
  return false;
}

/// Returns true for "some-org/Some-Model-1B".
static auto IsNameOfHub(std::string_view path) -> bool {
  return std::ranges::count(path, '/') == 1 && !path.starts_with('.') && !path.starts_with('/') &&
         !path.ends_with('/') && std::ranges::all_of(path, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
         });
}

static auto WayFromFile(const fs::path& file) -> std::string {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (file.extension() == ".gguf") {
    return OfGguf;
  }
  if (Has(folder, "adapter_config.json")) {
    return OfAdapter;
  }
  if (Has(folder, "config.json") && (HasEnding(folder, ".safetensors") || HasEnding(folder, ".bin"))) {
    return fmt::format("it is a file of a model; name its folder, {}", folder.string());
  }
  return file.extension() == ".safetensors"
             ? "it is a file without the config.json of its model; put both into a folder, "
               "and name that"
             : "";
}

auto WayToModel(const std::string& path) -> std::string {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    return fs::exists(path, unknown) ? WayFromFile(path)
           : IsNameOfHub(path)       ? fmt::format(
                                           "there is no such folder; if it is a name of the hub, `hf download {0} "
                                                 "--local-dir {1}` makes the folder {1}",
                                           path, fs::path(path).filename().string())
                               : "";
  }
  return Has(path, "adapter_config.json") ? OfAdapter
         : HasEnding(path, ".gguf")       ? OfGguf
         : Has(path, ".metadata")         ? OfTorch
                                          : "";
}

}  // namespace shardc
