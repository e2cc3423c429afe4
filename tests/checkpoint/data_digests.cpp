// A restart compares the digests of all bytes of its token files with those of the checkpoint, as far as both have
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/match_plan.h"
#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class DataDigests : public testing::Test {
 protected:
  DataDigests() {
    CHECK(SaveSmall(plan_, 10).ok(), "save");
    text_ = ReadText(folder_ / "step-00000010/manifest.json");
  }
  /// Returns the error of a restart with the digests `here` from a checkpoint with the digests `there`.
  auto Says(const std::vector<std::string>& there, const std::vector<std::string>& here) const -> std::string {
    Manifest manifest = *ManifestFromText(text_);
    std::vector<std::string> fingerprints;
    if (plan_.data.is_mixture()) {
      fingerprints.assign(plan_.data.sources.size(), "1 file");
    }
    manifest.data = DescribeData(plan_, "all", fingerprints, there);
    const Status matched = MatchPlan(manifest, DigestInManifest(text_),
                                     {.path = {},
                                      .plan = &plan_,
                                      .data_fingerprint = "all",
                                      .source_fingerprints = fingerprints,
                                      .data_digests = here});
    return matched ? "" : matched.error().message;
  }

  TemporaryFolder folder_;
  Plan plan_ = SmallPlan(1, folder_.path());
  std::string text_;
};

TEST_F(DataDigests, MissingOnesAreNotCompared) {
  EXPECT_EQ(Says({"aa", "bb"}, {"aa", "bb"}), "");
  EXPECT_EQ(Says({}, {"aa", "bb"}), "");
  EXPECT_EQ(Says({"aa", "bb"}, {}), "");
  EXPECT_THAT(Says({"aa"}, {"cc"}),
              HasSubstr("run over other data: the digest of all bytes of the files that "
                        "`data.tokens` names is aa in the checkpoint, cc in this run; put it back"));
  EXPECT_THAT(
      Says({"aa", "bb"}, {"aa", "cc"}),
      HasSubstr(
          "the digest of all bytes of the files of targets or of `data.eval` is bb in the checkpoint, cc in this run"));
}

TEST_F(DataDigests, MixturesNameTheirSource) {
  plan_.data.sources = {{.name = "web", .weight = "1", .files = {"a.bin"}},
                        {.name = "code", .weight = "2", .files = {"b.bin"}}};
  EXPECT_EQ(Says({"aa", "bb"}, {"aa", "bb"}), "");
  EXPECT_THAT(Says({"aa", "bb"}, {"aa", "cc"}),
              HasSubstr("the digest of all bytes of the files of source code is bb in the checkpoint, cc in this run"));
}

}  // namespace
}  // namespace shardc
