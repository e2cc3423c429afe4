#include <xxhash.h>

#include "compiler/plan/text.h"

namespace shardc {

auto PlanHash(const Plan& plan) -> std::string {
  const std::string text = PrintPlan(plan, {.origins = false, .paths = false});
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace shardc
