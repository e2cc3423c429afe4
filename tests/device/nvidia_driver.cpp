// What is read of NVIDIA's driver, in files of the form that it writes.
#include "runtime/device/nvidia_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

TEST(NvidiaDriver, TellsItsVersionAndGpus) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  write(
      "version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (build@host)\nGCC version:  "
      "gcc version 12.2.0\n");
  write("gpus/0000:9b:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 118\nGPU UUID: \t GPU-1\n");
  write("gpus/0000:1b:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 117\n");
  write("gpus/0000:2b:00.0/information", "Model:\n");
  EXPECT_EQ(NvidiaDriverVersion(folder.path()), "580.159.04");
  EXPECT_THAT(NvidiaGpuModels(folder.path()), testing::ElementsAre("NVIDIA H100 80GB HBM3", "NVIDIA H200", "unknown"));
}

TEST(NvidiaDriver, MayBeMissing) {
  const TemporaryFolder folder;
  EXPECT_EQ(NvidiaDriverVersion(folder.path()), "");
  EXPECT_THAT(NvidiaGpuModels(folder.path()), testing::IsEmpty());
}

}  // namespace
}  // namespace shardc
