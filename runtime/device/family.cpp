#include "runtime/device/family.h"

#include <array>

namespace shardc {

#define FAMILY(Name, meaning) +1
static constexpr size_t NumFamilies = 0
#include "schemas/devices.def"
    ;

static std::array<const FamilyParts*, NumFamilies> parts_of_families{};

auto PartsOf(DeviceFamily family) -> const FamilyParts* { return parts_of_families[static_cast<size_t>(family)]; }

auto VersionsOf(DeviceFamily family) -> std::map<std::string, std::string> {
  const FamilyParts* const parts = PartsOf(family);
  return parts == nullptr || parts->versions == nullptr ? std::map<std::string, std::string>() : parts->versions();
}

auto SetParts(DeviceFamily family, const FamilyParts* parts) -> void {
  parts_of_families[static_cast<size_t>(family)] = parts;
}

}  // namespace shardc
