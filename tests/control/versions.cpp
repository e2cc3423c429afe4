// Ranks that have other libraries than rank 0 end, and say so; other machines are told, and the run continues.
#include <gtest/gtest.h>

#include "runtime/control/agree_on_versions.h"
#include "runtime/control/host_control.h"
#include "tests/control/world.h"

namespace shardc {
namespace {

using Versions = std::map<std::string, std::string>;

/// Returns what each of three ranks gets, of which the last has `others`: the line, or the error with its code.
auto Agreed(const Versions& versions, const Versions& others) -> std::vector<std::string> {
  World world(Mesh{{1, 3, 1}}, Threads);
  return world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    HostControl control(member);
    const auto line = AgreeOnVersions(control, member->rank() == 2 ? others : versions);
    return line ? *line : fmt::format("{}: {}", static_cast<int>(line.error().code), line.error().message);
  });
}

auto Everywhere(const std::string& text) -> std::vector<std::string> { return {3, text}; }

const Versions OfRankZero{{"card", "NVIDIA H100 PCIe"}, {"cudnn", "9.19.0"}, {"driver", "580.1"}};

TEST(Versions, ThatAreAlikeSayNothing) { EXPECT_EQ(Agreed(OfRankZero, OfRankZero), Everywhere("")); }

TEST(Versions, OfMachinesAreTold) {
  Versions others = OfRankZero;
  others["card"] = "NVIDIA H200";
  others.erase("driver");
  EXPECT_EQ(Agreed(OfRankZero, others),
            Everywhere("rank 2: has other versions: card NVIDIA H100 PCIe on rank 0, NVIDIA H200 here; driver 580.1 on "
                       "rank 0, none here"));
}

TEST(Versions, OfLibrariesAreErrors) {
  Versions others = OfRankZero;
  others["card"] = "NVIDIA H200";
  others["cudnn"] = "9.26.0";
  EXPECT_EQ(Agreed(OfRankZero, others),
            Everywhere("6: rank 2: has other versions: cudnn 9.19.0 on rank 0, 9.26.0 here"));
}

}  // namespace
}  // namespace shardc
