#include "compiler/cost/fit_keys.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace shardc {

static constexpr auto Rows = [] {
  using enum FitWhen;
  return std::array{
#define FIT_KEY(the_key, ...) FitKey{.key = the_key, __VA_ARGS__},
#include "schemas/fit_keys.def"
  };
}();

static constexpr auto Lowers(const FitKey& row, Held held) -> bool {
  return std::ranges::find(row.lowers, held) != row.lowers.end();
}

static_assert(
    [] {
      for (auto held = static_cast<int>(Held::Nothing) + 1; held <= static_cast<int>(Held::Scratch); ++held) {
        if (std::ranges::count_if(Rows, [&](const FitKey& row) { return Lowers(row, static_cast<Held>(held)); }) != 1) {
          return false;
        }
      }
      return true;
    }(),
    "one row lowers each kind of memory");

auto FitKeys() -> std::span<const FitKey> { return Rows; }

auto FitKeyOf(Subject subject) -> const FitKey& { return *std::ranges::find(Rows, subject, &FitKey::subject); }

auto KeyThatLowers(Held held) -> std::string_view {
  return held == Held::Nothing
             ? ""
             : std::ranges::find_if(Rows, [&](const FitKey& row) { return Lowers(row, held); })->key.text();
}

auto Holds(FitWhen when, const FitFacts& facts) -> bool {
  switch (when) {
    case FitWhen::Always: return true;
    case FitWhen::Added: return facts.accumulate > 1;
    case FitWhen::Sliced: return facts.dp > 1;
    case FitWhen::Rounded: return facts.is_rounded;
    case FitWhen::FrozenWide: return facts.is_frozen_wide;
    case FitWhen::OnGpu: return facts.is_on_gpu;
  }
  CHECK(false, "condition {}", static_cast<int>(when));
}

}  // namespace shardc
