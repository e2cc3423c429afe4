#include "compiler/checkpoint/merged_adapter.h"

#include <algorithm>
#include <set>

#include "compiler/keys/adapters.h"

namespace shardc {

auto HasAdapters(const Manifest& manifest) -> bool {
  return std::ranges::any_of(manifest.tensors, [](const auto& tensor) { return !AdaptedBy(tensor.first).empty(); });
}

/// Reads a whole tensor of f32.
static auto ReadWhole(CheckpointFiles* files, const Manifest& manifest, const std::string& name)
    -> ErrorOr<std::vector<float>> {
  StoredTensor tensor(files, manifest, name);
  FAIL_IF(tensor.dtype() != DType::F32, ExitCode::Checkpoint, "{} is {}, and adapters are kept in f32", name,
          ToText(tensor.dtype()));
  std::vector<float> numbers(static_cast<size_t>(tensor.num_elements()));
  RETURN_IF_ERROR(tensor.Read(0, tensor.num_elements(), reinterpret_cast<std::byte*>(numbers.data())));
  return numbers;
}

auto CheckAdapters(const Manifest& manifest) -> Status {
  const AdapterSizes sizes = ResolveAdapters(ReadKeys(manifest.recipe).keys);
  std::set<std::string> used;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!name.ends_with(UpSuffix)) {
      continue;
    }
    const std::string weight = AdaptedBy(name);
    const auto base = manifest.tensors.find(weight);
    const auto down = manifest.tensors.find(DownOf(sizes, weight));
    const auto adapter = AdapterOf(sizes, weight);
    const bool is_sound = base != manifest.tensors.end() && down != manifest.tensors.end() && adapter &&
                          base->second.shape.size() == 2 &&
                          down->second.shape == Dims{adapter->rank, base->second.shape[1]} &&
                          tensor.shape == Dims{base->second.shape[0], adapter->rank};
    FAIL_IF(!is_sound, ExitCode::Checkpoint, "the adapter of {} is not what the checkpoint's [adapter] says of it",
            weight);
    used.insert(down->first);
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    FAIL_IF(name.ends_with(DownSuffix) && !used.contains(name), ExitCode::Checkpoint,
            "no projection of the checkpoint has {}", name);
  }
  return Success{};
}

auto MergedAdapter::Read(CheckpointFiles* files, const Manifest& manifest, const std::string& weight)
    -> ErrorOr<MergedAdapter> {
  MergedAdapter merged;
  constexpr std::string_view Weight = ".weight";
  const auto up =
      weight.ends_with(Weight) ? manifest.tensors.find(AdapterParameter(weight, UpSuffix)) : manifest.tensors.end();
  if (up == manifest.tensors.end()) {
    return merged;
  }
  const AdapterSizes sizes = ResolveAdapters(ReadKeys(manifest.recipe).keys);
  const auto down = manifest.tensors.find(DownOf(sizes, weight));
  const auto adapter = AdapterOf(sizes, weight);
  CHECK(down != manifest.tensors.end() && adapter, "the adapter of {} came this far", weight);
  ASSIGN_OR_RETURN(merged.down_, ReadWhole(files, manifest, down->first));
  ASSIGN_OR_RETURN(merged.up_, ReadWhole(files, manifest, up->first));
  merged.rank_ = adapter->rank;
  merged.inputs_ = down->second.shape[1];
  merged.scale_ = static_cast<float>(adapter->scale);
  return merged;
}

auto MergedAdapter::AddTo(int64_t begin, std::span<float> elements) -> void {
  int64_t done = 0;
  const auto size = std::ssize(elements);
  while (done < size) {
    const int64_t row = (begin + done) / inputs_;
    const int64_t column = (begin + done) % inputs_;
    const int64_t count = std::min(inputs_ - column, size - done);
    row_.assign(static_cast<size_t>(count), 0);
    for (int64_t r = 0; r < rank_; ++r) {
      const float factor = up_[static_cast<size_t>(row * rank_ + r)];
      const float* const down = down_.data() + r * inputs_ + column;
      for (int64_t i = 0; i < count; ++i) {
        row_[static_cast<size_t>(i)] += factor * down[i];
      }
    }
    float* const out = elements.data() + done;
    for (int64_t i = 0; i < count; ++i) {
      out[i] += scale_ * row_[static_cast<size_t>(i)];
    }
    done += count;
  }
}

}  // namespace shardc
