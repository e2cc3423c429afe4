// The table of `shardc doctor` on a host with GPUs.
#include "runtime/launch/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nvml_double.h"

namespace shardc {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

auto Examine(bool as_json) -> std::string {
  testing::internal::CaptureStdout();
  const auto code = RunDoctor({}, {.run_dir = "", .own_address = "", .torch_version = "2.11.0", .json = as_json});
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(code.ok() && *code == ExitCode::Ok) << text;
  return text;
}

TEST(Doctor, ShowsLinksOfGpus) {
  {
    NvmlDouble nvml({{}, {}});
    const std::string alike = Examine(false);
    EXPECT_THAT(alike, ContainsRegex("GPUs +NVLinks +PCIe +pairs of GPUs +open files"));
    EXPECT_THAT(alike, ContainsRegex(" 18 of 26.6 GB/s +gen 5 x16 +1 by NVLink, 1 reach, of 1 "));
  }
  NvmlDouble nvml({{}, {.nvlinks_up = 17, .pcie_lanes_up = 8}, {.nvlinks_up = 0}});
  const std::string text = Examine(false);
  EXPECT_THAT(text, HasSubstr(" 1 with 18 of 26.6 GB/s; 1 with 18 of 26.6 GB/s, 1 down; 1 with none "));
  EXPECT_THAT(text, HasSubstr(" 2 with gen 5 x16; 1 with gen 5 x8 of x16 "));
  EXPECT_THAT(text, HasSubstr(" 1 by NVLink, 3 reach, of 3 "));
  const auto links = nlohmann::json::parse(Examine(true))["hosts"][0]["gpu_links"];
  EXPECT_EQ(links["gpus"][1]["nvlinks_up"], 17);
  EXPECT_EQ(links["pairs_that_reach"], 3);
}

TEST(Doctor, IsSilentOfLinksWithoutNvml) {
  SetNvml(nullptr);
  EXPECT_THAT(Examine(false), testing::Not(HasSubstr("NVLinks")));
  EXPECT_FALSE(nlohmann::json::parse(Examine(true))["hosts"][0].contains("gpu_links"));
}

}  // namespace
}  // namespace shardc
