// Under which names saves write, what they publish, and what they do with what is in the way.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/checkpoint/digest.h"
#include "runtime/checkpoint/leftovers.h"
#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

TEST(Checkpoint, WhatIsToldAsSavedIsWhatWasSaved) {
  const TemporaryFolder folder;
  Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 4).ok());
  const std::string before = ReadText(folder / "step-00000004/manifest.json");
  // The same step with other content: what is there is not passed off as it.
  plan.data.seed = 7;
  ASSERT_TRUE(SaveSmall(plan, 4).ok());
  EXPECT_EQ(StepsIn(folder.path()), (std::vector<std::string>{"step-00000004", "step-00000004.replaced-1"}));
  EXPECT_EQ(LoadSmall(plan, folder / "step-00000004", 4), "");
  EXPECT_EQ(ReadText(folder / "step-00000004.replaced-1/manifest.json"), before);
  OnRanks(plan, [&](RankControl& control) {
    CheckpointWriter writer({.plan = &plan, .control = &control, .plan_hash = SmallPlanHash});
    ASSERT_TRUE(SaveWith(writer, plan, control.rank(), 4).ok());
    if (control.rank() == 0) {
      EXPECT_EQ(writer.warnings(),
                std::vector<std::string>{fmt::format("{} was there already; it was moved to step-00000004.replaced-2",
                                                     folder / "step-00000004")});
    }
  });
  // Another run does not write over it.
  Plan other = plan;
  other.run.run_id = "other";
  const Status refused = SaveSmall(other, 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("belongs to run small, and this is run other"), std::string::npos);
}

TEST(Checkpoint, AManifestThatCouldNotBeReadIsNotCommitted) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 1).ok());
  const auto bytes = static_cast<int64_t>(ReadText(folder / "step-00000001/manifest.json").size());
  for (const int64_t limit : {bytes - 1, bytes + 1000}) {
    OnRanks(plan, [&](RankControl& control) {
      CheckpointWriter writer({.plan = &plan,
                               .control = &control,
                               .plan_hash = SmallPlanHash,
                               .data_fingerprint = SmallFingerprint,
                               .max_manifest_bytes = limit});
      // Known before the first save, and before anything is written.
      EXPECT_EQ(writer.CheckManifestSize().ok(), limit > bytes);
      const Status saved = SaveWith(writer, plan, control.rank(), 2);
      EXPECT_EQ(saved.ok(), limit > bytes);
      if (!saved.ok()) {
        EXPECT_NE(saved.error().message.find("checkpoint of step 2 not written: the manifest has "), std::string::npos)
            << saved.error().message;
      }
    });
    EXPECT_EQ(std::filesystem::exists(folder / "step-00000002"), limit > bytes);
  }
}

TEST(Checkpoint, ManifestsHaveALinePerFileAndPerTensor) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSmall(SmallPlan(3, folder.path()), 7).ok());
  const std::string text = ReadText(folder / "step-00000007/manifest.json");
  // As an older program wrote it, with its indents and with what nobody read: read as before.
  auto body = nlohmann::json::parse(text);
  body.erase("digest");
  body["overrides"] = {"mesh.dp=2"};
  body["data"]["position"] = 42;
  const std::string rest = body.dump(1).substr(2) + "\n";
  const std::string older = "{\"digest\":\"" + DigestOf(rest) + "\",\n" + rest;
  const auto manifest = ManifestFromText(older);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(ToText(*manifest), text);
  EXPECT_LT(text.size(), older.size());
}

/// Strange entries under the name of a save that is to come.
TEST(Checkpoint, StrayEntriesAreInNobodysWay) {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const Plan plan = SmallPlan(2, folder.path());
  WriteText(elsewhere / "precious", "kept");
  const std::string stray = folder / "step-00000004.tmp-small";
  struct Case {
    std::function<void()> make;
    std::string says;
    bool is_kept = false;
  };
  const Case cases[] = {
      {[&] { std::filesystem::create_directory_symlink(elsewhere.path(), stray); }, "was no directory; it was removed"},
      {[&] { WriteText(stray, "a file"); }, "was no directory; it was removed"},
      {[&] { CHECK(mkfifo(stray.c_str(), 0600) == 0, "fifo"); }, "was no directory; it was removed"},
      {[&] {
         std::filesystem::create_directories(stray + "/sub");
         WriteText(stray + "/precious", "kept");
       },
       "holds directories, which no save makes; it was moved to step-00000004.tmp-small.stray-1", true},
      {[&] { std::filesystem::create_directories(stray + "/sub"); }, "it was moved to step-00000004.tmp-small.stray-2",
       true},
      {[&] {
         std::filesystem::create_directory(stray);
         std::filesystem::create_symlink(elsewhere / "precious", stray + "/rank-00000.safetensors");
       },
       ""},
  };
  for (const Case& row : cases) {
    for (const bool at_start : {false, true}) {
      SCOPED_TRACE(row.says);
      row.make();
      std::vector<std::string> warnings;
      if (at_start) {
        warnings = RemoveAbandoned(folder.path(), "small");
      } else {
        OnRanks(plan, [&](RankControl& control) {
          CheckpointWriter writer({.plan = &plan, .control = &control, .plan_hash = SmallPlanHash});
          const Status saved = SaveWith(writer, plan, control.rank(), 4);
          EXPECT_TRUE(saved.ok()) << saved.error().message;
          if (control.rank() == 0) {
            warnings = writer.warnings();
          }
        });
      }
      ASSERT_EQ(warnings.size(), row.says.empty() ? 0U : 1U);
      if (!row.says.empty()) {
        EXPECT_NE(warnings[0].find(row.says), std::string::npos) << warnings[0];
        EXPECT_NE(warnings[0].find(stray), std::string::npos) << warnings[0];
      }
      EXPECT_EQ(ReadText(elsewhere / "precious"), "kept");
      EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(stray)));
      if (row.is_kept) {
        const std::string aside = warnings[0].substr(warnings[0].rfind(' ') + 1);
        EXPECT_TRUE(std::filesystem::exists(folder / (aside + "/sub")));
        // The next case counts on.
        if (!at_start) {
          std::filesystem::remove_all(folder / aside);
        }
      }
      std::filesystem::remove_all(folder / "step-00000004");
    }
  }
  EXPECT_EQ(ReadText(folder / "step-00000004.tmp-small.stray-1/precious"), "kept");
}

TEST(Checkpoint, TemporaryNamesAreOfOneRun) {
  EXPECT_EQ(TemporaryName(4, "a", ""), "step-00000004.tmp-a");
  EXPECT_EQ(TemporaryName(4, "a", "0123abcd"), "step-00000004.tmp-a~0123abcd");
  for (const char* name : {"step-00000004.tmp-a", "step-00000004.tmp-a~0123abcd", "step-123456789.tmp-a~00000000"}) {
    EXPECT_TRUE(IsTemporaryName(name, "a")) << name;
    EXPECT_FALSE(IsTemporaryName(name, "b")) << name;
    EXPECT_FALSE(IsCheckpointName(name)) << name;
  }
  for (const char* name :
       {"step-00000004.tmp-a~0123abc", "step-00000004.tmp-a~0123abcg", "step-00000004.tmp-ba~0123abcd",
        "step-00000004.tmp-a.stray-1", "step-00000004.tmp-a~0123abcd.stray-1", "step-00000004", "~0123abcd"}) {
    EXPECT_FALSE(IsTemporaryName(name, "a")) << name;
  }
}

TEST(Checkpoint, DamagedRemainsAreMovedAside) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 4).ok());
  WriteText(folder / "step-00000004/manifest.json", "half");
  std::filesystem::create_directory(folder / "step-00000004.damaged-1");
  std::filesystem::create_directory(folder / "step-00000004.tmp-small");
  WriteText(folder / "step-00000004.tmp-small/rank-00000.safetensors", "left over");
  ASSERT_TRUE(SaveSmall(plan, 4).ok());
  EXPECT_EQ(StepsIn(folder.path()),
            (std::vector<std::string>{"step-00000004", "step-00000004.damaged-1", "step-00000004.damaged-2"}));
  EXPECT_EQ(LoadSmall(plan, folder / "step-00000004", 4), "");
}

}  // namespace
}  // namespace shardc
