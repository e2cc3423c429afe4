// What NVIDIA's driver tells of GPUs: limits of their clocks, and their links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/clock_limits.h"
#include "runtime/device/gpu_links.h"
#include "tests/support/nvml_double.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

auto TextsOf(const std::vector<ClockLimits::Told>& told) -> std::vector<std::string> {
  std::vector<std::string> texts;
  for (const auto& [is_warning, text] : told) {
    texts.push_back((is_warning ? "warning: " : "") + text);
  }
  return texts;
}

TEST(ClockLimits, AreToldOnceEach) {
  NvmlDouble nvml({{}, {}});
  ClockLimits limits(NvmlDouble::AddressOf(1));
  nvml.gpu(0).clock_reasons = NvmlApi::HwPowerBrake;
  EXPECT_THAT(limits.Look(), IsEmpty());
  nvml.gpu(1).clock_reasons = NvmlApi::SwPowerCap;
  EXPECT_THAT(TextsOf(limits.Look()), ElementsAre("lowers its clocks: it is at its power limit (700 W)"));
  EXPECT_THAT(limits.Look(), IsEmpty());
  nvml.gpu(1).clock_reasons |= NvmlApi::HwSlowdown | NvmlApi::HwThermalSlowdown;
  EXPECT_THAT(TextsOf(limits.Look()), ElementsAre("warning: lowers its clocks: it is too hot"));
  nvml.gpu(1).clock_reasons = NvmlApi::SwThermalSlowdown;
  EXPECT_THAT(limits.Look(), IsEmpty());
  nvml.gpu(1).clock_reasons = NvmlApi::HwSlowdown;
  EXPECT_THAT(TextsOf(limits.Look()), ElementsAre("warning: lowers its clocks: its hardware slows it down"));
  nvml.gpu(1).clock_reasons = NvmlApi::HwSlowdown | NvmlApi::HwPowerBrake;
  EXPECT_THAT(TextsOf(limits.Look()),
              ElementsAre("warning: lowers its clocks: the power supply of the machine holds it back (power brake)"));
}

TEST(ClockLimits, OfNoKnownGpuAreSilent) {
  {
    NvmlDouble nvml({PlayedGpu{.clock_reasons = NvmlApi::HwPowerBrake}});
    EXPECT_THAT(ClockLimits("").Look(), IsEmpty());
    EXPECT_THAT(ClockLimits(NvmlDouble::AddressOf(1)).Look(), IsEmpty());
    EXPECT_EQ(ClockLimits(NvmlDouble::AddressOf(0)).Look().size(), 1U);
  }
  EXPECT_THAT(ClockLimits(NvmlDouble::AddressOf(0)).Look(), IsEmpty());
}

TEST(ClockLimits, LibraryMayLackFunctions) {
  static constexpr NvmlApi Nothing;
  SetNvml(&Nothing);
  EXPECT_THAT(ClockLimits(NvmlDouble::AddressOf(0)).Look(), IsEmpty());
  EXPECT_FALSE(MeasureGpuLinks());
  SetNvml(nullptr);
}

TEST(GpuLinks, AreThoseOfEachGpu) {
  NvmlDouble nvml(
      {{}, {.nvlinks_up = 17, .pcie_lanes_up = 8}, {.nvlinks = 0, .nvlinks_up = 0, .reaches_peers = false}});
  const auto links = MeasureGpuLinks();
  ASSERT_TRUE(links);
  ASSERT_EQ(links->gpus.size(), 3U);
  EXPECT_EQ(links->gpus[0].nvlinks, 18);
  EXPECT_EQ(links->gpus[0].nvlinks_up, 18);
  EXPECT_EQ(links->gpus[0].nvlink_mb_per_s, 26'562);
  EXPECT_EQ(links->gpus[0].pcie_generation, 5);
  EXPECT_EQ(links->gpus[0].pcie_lanes, 16);
  EXPECT_EQ(links->gpus[1].nvlinks_up, 17);
  EXPECT_EQ(links->gpus[1].pcie_lanes_up, 8);
  EXPECT_EQ(links->gpus[2].nvlinks, 0);
  EXPECT_EQ(links->gpus[2].nvlink_mb_per_s, 0);
  EXPECT_EQ(links->pairs, 3);
  EXPECT_EQ(links->pairs_by_nvlink, 1);
  EXPECT_EQ(links->pairs_that_reach, 1);
}

TEST(GpuLinks, NeedTheLibrary) {
  SetNvml(nullptr);
  EXPECT_FALSE(MeasureGpuLinks());
}

}  // namespace
}  // namespace shardc
