#include "compiler/model/model_family.h"

#include <algorithm>
#include <array>

namespace shardc {

auto CutAlong(int dim) -> Placements {
  Placements placement;
  SetPlacement(AxesSharing(Shared::Matrices), Placement::Shard(dim), placement);
  return placement;
}

auto ModelFamilyOf(Family family) -> const ModelFamily& {
  // In the order of the enumerators, which the same rows make.
  static constexpr auto families = std::to_array<const ModelFamily*>({
#define FAMILY(Name, ...) &Name##Family,
#include "schemas/families.def"
  });
  return *families.at(static_cast<size_t>(family));
}

auto BlockPrefix(int64_t layer) -> std::string { return fmt::format("model.layers.{}.", layer); }

auto ParametersOf(const ModelFamily& family, const ModelSizes& sizes) -> ParameterSpecs {
  const ParameterSpecs outside = family.outside(sizes);
  const ParameterSpecs block = family.block(sizes);
  const auto after =
      std::find_if(outside.begin(), outside.end(), [](const ParameterSpec& spec) { return spec.side == Side::After; });
  ParameterSpecs specs(outside.begin(), after);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string prefix = BlockPrefix(layer);
    for (const ParameterSpec& of_block : block) {
      specs.push_back(of_block);
      specs.back().name.insert(0, prefix);
      specs.back().layer = layer;
    }
  }
  specs.insert(specs.end(), after, outside.end());
  return specs;
}

}  // namespace shardc
