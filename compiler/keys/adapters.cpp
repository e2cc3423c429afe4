#include "compiler/keys/adapters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "compiler/base/check.h"
#include "compiler/base/glob.h"

namespace shardc {

constexpr std::string_view WeightSuffix = ".weight";

auto AdapterParameter(std::string_view weight, std::string_view suffix) -> std::string {
  CHECK(weight.ends_with(WeightSuffix), "a projection {}", weight);
  return std::string(weight.substr(0, weight.size() - WeightSuffix.size())) + std::string(suffix);
}

auto AdaptedBy(std::string_view parameter) -> std::string {
  for (const std::string_view suffix : {DownSuffix, UpSuffix}) {
    if (parameter.ends_with(suffix)) {
      return std::string(parameter.substr(0, parameter.size() - suffix.size())) + std::string(WeightSuffix);
    }
  }
  return {};
}

static auto ScalesByRoot(AdapterScaling scaling) -> bool {
  switch (scaling) {
    case AdapterScaling::Standard: return false;
    case AdapterScaling::Rslora: return true;
  }
  CHECK(false, "scaling {}", static_cast<int>(scaling));
}

auto ResolveAdapters(const PlanKeys& keys) -> AdapterSizes {
  const auto& adapter = keys.adapter;
  AdapterSizes sizes;
  // Of a word that is refused nothing follows.
  if (!adapter.kind || !adapter.kind->is_accepted()) {
    return sizes;
  }
  switch (*adapter.kind) {
    case AdapterKind::Lora: sizes.match = adapter.match.value_or(std::vector<std::string>{"*_proj.weight"}); break;
  }
  sizes.rank = adapter.rank.value_or(0);
  sizes.alpha = adapter.alpha.value_or(0);
  sizes.scales_by_root = adapter.scaling && adapter.scaling->is_accepted() && ScalesByRoot(*adapter.scaling);
  for (const auto& table : adapter.override) {
    sizes.overrides.push_back(
        {.match = table.match.value_or(""), .rank = table.rank.value_or(0), .alpha = table.alpha.value_or(0)});
  }
  for (const std::string& name : adapter.fused.value_or(std::vector<std::string>())) {
    std::ranges::copy_if(FusedModules(), std::back_inserter(sizes.fused),
                         [&](const FusedModule& module) { return module.name == name; });
  }
  return sizes;
}

auto DownOf(const AdapterSizes& sizes, std::string_view projection) -> std::string {
  const std::string fused = FusedWeight(sizes.fused, projection);
  return AdapterParameter(fused.empty() ? projection : fused, DownSuffix);
}

auto AdapterOf(const AdapterSizes& sizes, std::string_view projection) -> std::optional<LowRank> {
  if (std::ranges::none_of(sizes.match, [&](const std::string& glob) { return GlobMatches(glob, projection); })) {
    return std::nullopt;
  }
  const AdapterSizes::Override* own = nullptr;
  for (const AdapterSizes::Override& other : sizes.overrides) {
    const bool is_exact = other.match == projection;
    own = is_exact || (own == nullptr && GlobMatches(other.match, projection)) ? &other : own;
    if (is_exact) {
      break;
    }
  }
  const int64_t rank = own != nullptr && own->rank > 0 ? own->rank : sizes.rank;
  const double alpha = own != nullptr && own->alpha > 0 ? own->alpha : sizes.alpha;
  const auto by = static_cast<double>(rank);
  return LowRank{.rank = rank, .alpha = alpha, .scale = alpha / (sizes.scales_by_root ? std::sqrt(by) : by)};
}

}  // namespace shardc
