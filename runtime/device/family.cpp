#include "runtime/device/family.h"

#include <array>

namespace shardc {

#define FAMILY(Name, meaning) +1
static constexpr size_t NumFamilies = 0
#include "schemas/devices.def"
    ;

static std::array<const FamilyParts*, NumFamilies> parts_of_families{};

auto PartsOf(DeviceFamily family) -> const FamilyParts& {
  static constexpr FamilyParts None;
  const FamilyParts* const parts = parts_of_families[static_cast<size_t>(family)];
  return parts == nullptr ? None : *parts;
}

auto VersionsOf(DeviceFamily family) -> std::map<std::string, std::string> {
  const auto versions = PartsOf(family).versions;
  return versions == nullptr ? std::map<std::string, std::string>() : versions();
}

auto SetParts(DeviceFamily family, const FamilyParts* parts) -> void {
  parts_of_families[static_cast<size_t>(family)] = parts;
}

}  // namespace shardc
