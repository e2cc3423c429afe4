// Small models of Hugging Face, as transformers would save them: config.json and safetensors files, written without the
// project's own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardc {

struct PublishedTensor {
  std::vector<int64_t> shape;
  /// "F32", "F16" or "BF16".
  std::string dtype;
  std::string bytes;

  auto num_elements() const -> int64_t;
  /// Returns an element as a number, by the definition of its type.
  auto At(int64_t element) const -> float;
};
using PublishedTensors = std::map<std::string, PublishedTensor>;

/// A model of odd sizes: two blocks, two heads of width 6 for keys and values.
struct PublishedFiles {
  nlohmann::json config;
  PublishedTensors tensors;

  /// Makes a model of type llama, qwen2 or qwen3, with elements of any sign and fraction.
  static auto Make(const std::string& model_type, const std::string& dtype, bool is_tied = false) -> PublishedFiles;
  /// Returns the same model as one of type phi3: projections of one input are rows of one tensor.
  /// Requires: a model of type llama.
  auto Fused() const -> PublishedFiles;
  /// Writes config.json and model.safetensors, or so many files and an index.
  auto Write(const std::string& directory, int num_files = 1) const -> void;
};

/// Returns the bytes of a safetensors file.
auto SafetensorsFile(const PublishedTensors& tensors) -> std::string;
/// Returns the tensors of a safetensors file.
auto ReadSafetensors(const std::string& path) -> PublishedTensors;

}  // namespace shardc
