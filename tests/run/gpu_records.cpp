// The record of card, driver and libraries that a run on a GPU keeps, and the words of a restart with others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/run_records.h"
#include "runtime/record/product_record.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using Texts = std::map<std::string, std::string>;

const Texts First{{"card", "NVIDIA H100 80GB HBM3"}, {"cublaslt", "13.1.0"}, {"cudnn", "9.19.0"}, {"driver", "580.1"}};
constexpr const char* SomeProduct = "bf16 64 x 32 x 16 nt, to bf16";

/// A launch of a run on a GPU, as far as its records go.
class RecordedLaunch {
 public:
  RecordedLaunch(const std::string& run_dir, const Texts& versions) : directory_(*RunDirectory::Open(run_dir)) {
    UseEmulatedCuda();
    EmulatedVersions() = versions;
    plan_.device = Device::CudaSm90;
    plan_.run.run_id = "tiny";
    attempt_.emplace(*Attempt::Begin(directory_.folder(), plan_, {}));
    context_.plan = &plan_;
    context_.directory = &directory_;
    context_.attempt = &*attempt_;
    records_.emplace(&context_, run_dir + "/checkpoints");
  }
  RecordedLaunch(const RecordedLaunch&) = delete;
  ~RecordedLaunch() { EmulatedVersions().clear(); }

  auto records() -> RunRecords& { return *records_; }
  /// Begins, and saves.
  auto Save() -> void {
    ASSERT_TRUE(records_->Begin({}).ok());
    ASSERT_TRUE(records_->PutSave(1, "step-00000001").ok());
  }

 private:
  RunDirectory directory_;
  Plan plan_;
  std::optional<Attempt> attempt_;
  RankContext context_;
  std::optional<RunRecords> records_;
};

auto With(Texts texts, const std::string& name, const std::string& text) -> Texts {
  texts[name] = text;
  return texts;
}

TEST(GpuRecords, RestartUsesTheSameAlgorithms) {
  const TemporaryFolder folder;
  {
    RecordedLaunch first(folder.path(), First);
    EXPECT_EQ(first.records().ReadAlgorithms(), "");
    (*first.records().algorithms())[SomeProduct] = "1f-0";
    first.Save();
  }
  EXPECT_THAT(ReadText(folder / "gemm.json"), HasSubstr("\"cublaslt\": \"13.1.0\""));
  // Another driver chooses as before.
  RecordedLaunch second(folder.path(), With(First, "driver", "590.2"));
  EXPECT_EQ(second.records().ReadAlgorithms(), "");
  EXPECT_EQ(*second.records().algorithms(), (Texts{{SomeProduct, "1f-0"}}));
  EXPECT_EQ(second.records().RefusedAlgorithms(), "");
  (*second.records().algorithms())[SomeProduct] = "2e-0";
  EXPECT_THAT(second.records().RefusedAlgorithms(),
              HasSubstr("refuses 1 of the 1 algorithms of products in gemm.json"));
}

TEST(GpuRecords, OtherLibrariesChooseAgain) {
  const TemporaryFolder folder;
  {
    RecordedLaunch first(folder.path(), First);
    (*first.records().algorithms())[SomeProduct] = "1f-0";
    first.Save();
  }
  for (const auto& [name, text] : Texts{{"card", "NVIDIA H200"}, {"cublaslt", "13.2.0"}}) {
    RecordedLaunch other(folder.path(), With(First, name, text));
    EXPECT_THAT(other.records().ReadAlgorithms(),
                HasSubstr("are not for this machine: " + name + " " + text + ", was " + First.at(name)));
    EXPECT_TRUE(other.records().algorithms()->empty());
  }
  // Those that it chose are kept for the next launch.
  const Texts now = With(First, "cublaslt", "13.2.0");
  {
    RecordedLaunch other(folder.path(), now);
    other.records().ReadAlgorithms();
    (*other.records().algorithms())[SomeProduct] = "3d-0";
    other.Save();
  }
  RecordedLaunch next(folder.path(), now);
  EXPECT_EQ(next.records().ReadAlgorithms(), "");
  EXPECT_EQ(*next.records().algorithms(), (Texts{{SomeProduct, "3d-0"}}));
}

TEST(GpuRecords, BrokenRecordIsTold) {
  for (const char* text : {"", "[]", "{}", "{\"products\": 1}", "{\"products\": {\"a\": 1}}"}) {
    const TemporaryFolder folder;
    WriteText(folder / "gemm.json", text);
    RecordedLaunch launch(folder.path(), First);
    EXPECT_THAT(launch.records().ReadAlgorithms(), HasSubstr("gemm.json is not as a launch writes it")) << text;
    EXPECT_TRUE(launch.records().algorithms()->empty());
  }
}

TEST(GpuRecords, RestartSaysWhatDiffers) {
  const TemporaryFolder folder;
  {
    RecordedLaunch first(folder.path(), First);
    EXPECT_EQ(first.records().CompareVersions(), "");
    first.Save();
  }
  EXPECT_THAT(ReadText(folder / "attempts/0001/attempt.json"), HasSubstr("\"driver\": \"580.1\""));
  const Texts now = With(With(First, "driver", "590.2"), "cudnn", "9.26.0");
  // One that saves nothing leaves what is compared with.
  for (int launch = 0; launch < 2; ++launch) {
    EXPECT_THAT(RecordedLaunch(folder.path(), now).records().CompareVersions(),
                HasSubstr("warning: not as in attempt 0001, which saved the last checkpoint: cudnn 9.26.0, was 9.19.0; "
                          "driver 590.2, was 580.1; "));
  }
  RecordedLaunch(folder.path(), now).Save();
  EXPECT_EQ(RecordedLaunch(folder.path(), now).records().CompareVersions(), "");
  // A run that went on on a CPU has no versions to compare.
  RecordedLaunch(folder.path(), {}).Save();
  EXPECT_EQ(RecordedLaunch(folder.path(), now).records().CompareVersions(), "");
}

TEST(GpuRecords, RestartSaysThatAlgorithmsDiffer) {
  const TemporaryFolder folder;
  std::string first_digest;
  {
    RecordedLaunch first(folder.path(), First);
    (*first.records().algorithms())[SomeProduct] = "1f-0";
    first.Save();
    EXPECT_EQ(first.records().CompareVersions(), "");
  }
  EXPECT_EQ(ReadText(folder / "attempts/0001/gemm.json"), ReadText(folder / "gemm.json"));
  EXPECT_THAT(ReadText(folder / "attempts/0001/attempt.json"), HasSubstr("\"gemm.json\": \""));
  const ProductRecord taken{.chosen_for = {{"card", First.at("card")}, {"cublaslt", "13.1.0"}},
                            .algorithms = {{SomeProduct, "1f-0"}},
                            .times = {{SomeProduct, {.first_us = 2, .chosen_us = 1, .measured = 2}}}};
  {
    // A digest of algorithms leaves their times out.
    RecordedLaunch same(folder.path(), First);
    same.records().TakeProducts(taken);
    EXPECT_EQ(same.records().CompareVersions(), "");
    EXPECT_EQ(same.records().RefusedAlgorithms(), "");
    ASSERT_TRUE(same.records().Begin({}).ok());
    EXPECT_THAT(ReadText(folder / "gemm.json"), HasSubstr("\"tuned\": true"));
  }
  RecordedLaunch other(folder.path(), First);
  ProductRecord tuned = taken;
  tuned.algorithms[SomeProduct] = "2e-0";
  other.records().TakeProducts(tuned);
  EXPECT_THAT(
      other.records().CompareVersions(),
      testing::ContainsRegex("attempt 0001, which saved the last checkpoint: gemm.json [0-9a-f]+, was [0-9a-f]+;"));
}

TEST(GpuRecords, AttemptWithoutDigestIsNotCompared) {
  const TemporaryFolder folder;
  RecordedLaunch(folder.path(), First).Save();
  RecordedLaunch next(folder.path(), First);
  (*next.records().algorithms())[SomeProduct] = "1f-0";
  EXPECT_EQ(next.records().CompareVersions(), "");
}

TEST(GpuRecords, NamedFileHasAllProducts) {
  const TemporaryFolder folder;
  RecordedLaunch launch(folder.path(), First);
  launch.records().TakeProducts(
      {.chosen_for = {}, .algorithms = {{SomeProduct, "1f-0"}, {"other", "2e-0"}}, .times = {}});
  EXPECT_TRUE(launch.records().CheckTuned().ok());
  (*launch.records().algorithms())["new"] = "3d-0";
  EXPECT_THAT(launch.records().CheckTuned().error().message, HasSubstr("it lacks algorithms for 1 of the products"));
  (*launch.records().algorithms())[SomeProduct] = "4c-0";
  EXPECT_THAT(launch.records().CheckTuned().error().message, HasSubstr("it lacks algorithms for 2 of the products"));
}

}  // namespace
}  // namespace shardc
