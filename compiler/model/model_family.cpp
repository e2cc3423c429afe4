#include "compiler/model/model_family.h"

#include <algorithm>
#include <array>
#include <span>

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

/// Returns the placement of a matrix whose dim `dim` is the projection's `of`: cut where that is.
static auto CutAs(const ParameterSpec& projection, int of, int dim) -> Placements {
  Placements placement = projection.placement;
  for (Placement& over : placement) {
    over = over == Placement::Shard(of) ? Placement::Shard(dim) : Placement{};
  }
  return placement;
}

/// Returns A and B of the projection's adapter, in that order; B alone if the block has declared its A; nothing if it
/// has no adapter. A is cut along the inputs where the projection is, B along the outputs; each rank has the whole of
/// the other.
static auto AdapterSpecs(const AdapterSizes& sizes, const ParameterSpec& projection,
                         std::span<const ParameterSpec> declared) -> ParameterSpecs {
  const auto adapter = AdapterOf(sizes, projection.name);
  if (!adapter) {
    return {};
  }
  const int64_t outputs = projection.shape[0];
  const int64_t inputs = projection.shape[1];
  ParameterSpecs specs;
  const std::string down = DownOf(sizes, projection.name);
  if (std::ranges::find(declared, down, &ParameterSpec::name) == declared.end()) {
    specs.push_back({.name = down,
                     .kind = projection.kind,
                     .shape = {adapter->rank, inputs},
                     .fan_in = inputs,
                     .placement = CutAs(projection, 1, 1),
                     .layer = projection.layer,
                     .init = DownInit});
  }
  specs.push_back({.name = AdapterParameter(projection.name, UpSuffix),
                   .kind = projection.kind,
                   .shape = {outputs, adapter->rank},
                   .fan_in = adapter->rank,
                   .placement = CutAs(projection, 0, 0),
                   .layer = projection.layer,
                   .init = UpInit});
  return specs;
}

auto ParametersOf(const ModelFamily& family, const ModelSizes& sizes) -> ParameterSpecs {
  const ParameterSpecs outside = family.outside(sizes);
  const ParameterSpecs block = family.block(sizes);
  const auto after =
      std::find_if(outside.begin(), outside.end(), [](const ParameterSpec& spec) { return spec.side == Side::After; });
  ParameterSpecs specs(outside.begin(), after);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string prefix = BlockPrefix(layer);
    const size_t begin = specs.size();
    for (const ParameterSpec& of_block : block) {
      specs.push_back(of_block);
      specs.back().name.insert(0, prefix);
      specs.back().layer = layer;
      if (!of_block.projection.empty()) {
        const ParameterSpecs adapter = AdapterSpecs(sizes.adapter, specs.back(), std::span(specs).subspan(begin));
        specs.insert(specs.end(), adapter.begin(), adapter.end());
      }
    }
  }
  specs.insert(specs.end(), after, outside.end());
  return specs;
}

}  // namespace shardc
