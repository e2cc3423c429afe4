#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/checkpoint/find_newest.h"
#include "runtime/checkpoint/leftovers.h"
#include "tests/checkpoint/world.h"
#include "tests/support/fault_fs.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

TEST(Checkpoint, EveryMeshLoadsEveryMeshs) {
  for (int64_t from = 1; from <= 5; ++from) {
    const TemporaryFolder folder;
    const std::string dir = folder / "deep/checkpoints";
    const Status saved = SaveSmall(SmallPlan(from, dir), 12);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    for (int64_t to = 1; to <= 5; ++to) {
      EXPECT_EQ(LoadSmall(SmallPlan(to, dir), dir + "/step-00000012", 12), "") << from << " to " << to;
    }
  }
}

TEST(Checkpoint, MeshesOfThreeAxesLoadEachOthers) {
  const std::vector<Mesh> meshes{Mesh{{1, 1, 1}}, Mesh{{1, 1, 2}}, Mesh{{1, 2, 2}}, Mesh{{2, 1, 1}},
                                 Mesh{{2, 2, 2}}, Mesh{{1, 3, 4}}, Mesh{{1, 1, 11}}};
  for (const Mesh& from : meshes) {
    const TemporaryFolder folder;
    const Status saved = SaveSmall(SmallPlan(from, folder.path()), 3);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    for (const Mesh& to : meshes) {
      EXPECT_EQ(LoadSmall(SmallPlan(to, folder.path()), folder / "step-00000003", 3), "")
          << fmt::format("{} to {}", fmt::join(from.sizes, " x "), fmt::join(to.sizes, " x "));
    }
  }
}

// Pieces of columns, in a manifest that says otherwise than they tile the matrix.
TEST(Checkpoint, ColumnsHaveToTile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSmall(SmallPlan(Mesh{{1, 1, 2}}, folder.path()), 1).ok());
  const auto manifest = ManifestFromText(ReadText(folder / "step-00000001/manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const auto says = [&](const std::function<void(Piece&)>& change) {
    Manifest changed = Listed(*manifest);
    change(changed.tensors.at(name).pieces.at(0));
    const Status status = CheckCover(changed);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(says([](Piece&) {}), "");
  EXPECT_EQ(says([](Piece& piece) { piece.columns.begin = 1; }), name + ": columns [0, 1) are in no file");
  EXPECT_EQ(says([](Piece& piece) { piece.columns.end = 67; }), name + ": columns [66, 67) are there twice");
  EXPECT_EQ(says([](Piece& piece) { piece.columns.end = 65; }), name + ": columns [65, 66) are in no file");
  EXPECT_EQ(says([](Piece& piece) { piece.elements.end = 197; }),
            name + ": elements [197, 198) of columns [0, 66) are in no file");
  EXPECT_EQ(says([](Piece& piece) { piece.columns = {}; }),
            name + ": some pieces are of whole rows, and some of columns");
}

TEST(Checkpoint, SegmentsOfAnyIntervalAreRead) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(3, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 1).ok());
  auto reader =
      CheckpointReader::Open({.path = folder / "step-00000001", .plan = &plan, .data_fingerprint = SmallFingerprint});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  for (int64_t begin = 0; begin < 396; begin += 19) {
    for (int64_t end = begin; end <= 396; end += 23) {
      std::vector<float> values(static_cast<size_t>(end - begin));
      ASSERT_TRUE(
          (*reader)
              ->ReadElements(name, StateRole::ExpAvgSq, BoxInterval::Of({begin, end}), DType::F32, values.data())
              .ok());
      for (int64_t i = begin; i < end; ++i) {
        ASSERT_EQ(values[static_cast<size_t>(i - begin)], StateValue(name, StateRole::ExpAvgSq, i, 1));
      }
    }
  }
  float beyond[2];
  EXPECT_FALSE(
      (*reader)->ReadElements(name, StateRole::Parameter, BoxInterval::Of({395, 397}), DType::F32, beyond).ok());
  EXPECT_FALSE((*reader)
                   ->ReadElements("model.norm.weight", StateRole::ExpAvg, BoxInterval::Of({0, 1}), DType::F32, beyond)
                   .ok());
  EXPECT_FALSE(
      (*reader)->ReadElements("absent", StateRole::Parameter, BoxInterval::Of({0, 1}), DType::F32, beyond).ok());
  EXPECT_FALSE((*reader)->ReadScalar("absent").ok());
}

TEST(Checkpoint, HoldsWhatTheFormatSays) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 7).ok());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    names.push_back(entry.path().lexically_relative(folder.path()).string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"step-00000007", "step-00000007/manifest.json", "step-00000007/rank-00000.blocks",
                                      "step-00000007/rank-00000.safetensors", "step-00000007/rank-00001.blocks",
                                      "step-00000007/rank-00001.safetensors"}));
  const auto manifest = nlohmann::json::parse(ReadText(folder / "step-00000007/manifest.json"));
  EXPECT_EQ(manifest["run_id"], "small");
  EXPECT_EQ(manifest["step"], 7);
  EXPECT_EQ(manifest["state"]["updates"], 3);
  EXPECT_EQ(manifest["data"]["seed"], 18446744073709551615U);
  EXPECT_EQ(manifest["mesh"]["dp"], 2);
  const auto tensor = [&](const char* name) { return manifest["tensors"][name]; };
  const auto layout = [&](const char* name) { return manifest["layouts"][tensor(name)["layout"].get<size_t>()]; };
  EXPECT_EQ(layout("model.norm.weight")["roles"], nlohmann::json({"parameter"}));
  EXPECT_EQ(
      layout("model.embed_tokens.weight"),
      nlohmann::json::parse(R"({"axes":"dp","cut":"none","length":512,"roles":["parameter","exp_avg","exp_avg_sq"]})"));
  EXPECT_EQ(tensor("model.embed_tokens.weight"),
            nlohmann::json::parse(R"({"begin":0,"dtype":"f32","layout":0,"shape":[61,5]})"));
  EXPECT_EQ(tensor("model.layers.0.mlp.down_proj.weight")["begin"], 256);
  // And nothing else: padding is not stored.
  int64_t elements = 0;
  const Manifest read = *ManifestFromText(ReadText(folder / "step-00000007/manifest.json"));
  for (const auto& [name, listed] : Listed(read).tensors) {
    for (const Piece& piece : listed.pieces) {
      elements += piece.elements.size();
    }
  }
  EXPECT_EQ(elements, 3 * (305 + 21 + 5 + 396) + 5);
}

TEST(Checkpoint, ManifestTextReadsBack) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSmall(SmallPlan(3, folder.path()), 7).ok());
  const std::string text = ReadText(folder / "step-00000007/manifest.json");
  const auto manifest = ManifestFromText(text);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(ToText(*manifest), text);
}

TEST(Checkpoint, ParametersAloneCanBeRead) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 3).ok());
  Plan other = plan;
  other.data.seed = 1;
  other.run.tokens_per_step = 8;
  EXPECT_EQ(LoadSmall(other, folder / "step-00000003", 3, ReadPurpose::Parameters), "");
  EXPECT_NE(LoadSmall(other, folder / "step-00000003", 3), "");
}

TEST(Checkpoint, ShortWritesAndInterruptionsMakeTheSameBytes) {
  const TemporaryFolder plain;
  const TemporaryFolder halves;
  ASSERT_TRUE(SaveSmall(SmallPlan(2, plain.path()), 1).ok());
  FaultFs faults[2] = {FaultFs({.halves = true}), FaultFs({.halves = true})};
  for (const Status& status :
       SaveSmall(SmallPlan(2, halves.path()), 1, [&](int64_t rank) -> Fs& { return faults[rank]; })) {
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  EXPECT_GT(faults[0].num_calls(), 60);
  for (const std::string name : {"manifest.json", "rank-00000.safetensors", "rank-00001.blocks"}) {
    EXPECT_EQ(ReadText(plain / ("step-00000001/" + name)), ReadText(halves / ("step-00000001/" + name)));
  }
  FaultFs reading({.halves = true});
  const Plan plan = SmallPlan(1, halves.path());
  auto reader = CheckpointReader::Open(
      {.path = halves / "step-00000001", .plan = &plan, .data_fingerprint = SmallFingerprint, .fs = &reading});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  float value = 0;
  ASSERT_TRUE((*reader)->ReadElements("model.norm.weight", StateRole::Parameter, {4, 5}, DType::F32, &value).ok());
  EXPECT_EQ(value, StateValue("model.norm.weight", StateRole::Parameter, 4, 1));
}

TEST(Checkpoint, TheNewestByStepIsFoundWhateverTheClockSays) {
  const TemporaryFolder folder;
  Plan plan = SmallPlan(1, folder.path());
  plan.run.checkpoint_keep = 0;
  EXPECT_FALSE(FindNewest(folder / "absent", "small")->has_value());
  EXPECT_FALSE(FindNewest(folder.path(), "small")->has_value());
  for (const int64_t step : {30, 100, 20}) {
    ASSERT_TRUE(SaveSmall(plan, step).ok());
  }
  const auto newest = FindNewest(folder.path(), "small");
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->step, 100);
  EXPECT_EQ((*newest)->path, folder / "step-00000100");
  EXPECT_TRUE((*newest)->skipped.empty());
}

TEST(Checkpoint, WhatIsNoCheckpointIsSkippedWithItsReason) {
  const TemporaryFolder folder;
  Plan plan = SmallPlan(1, folder.path());
  plan.run.checkpoint_keep = 0;
  ASSERT_TRUE(SaveSmall(plan, 1).ok());
  std::filesystem::create_directory(folder / "step-00000002");
  std::filesystem::copy(folder / "step-00000001", folder / "step-00000003");
  std::filesystem::create_directory_symlink(folder / "gone", folder / "step-00000004");
  WriteText(folder / "step-00000005", "a file");
  std::filesystem::create_directory(folder / "step-00000006");
  WriteText(folder / "step-00000006/manifest.json", "{}");
  Plan other = plan;
  other.run.run_id = "other";
  ASSERT_TRUE(SaveSmall(other, 7).ok());
  std::filesystem::create_directory(folder / "step-00000008.tmp-small");
  std::filesystem::create_directory(folder / "step-00000009.tmp-other");
  std::filesystem::create_directory(folder / "notes");

  const auto newest = FindNewest(folder.path(), "small");
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->step, 1);
  const std::string skipped = fmt::format("{}", fmt::join((*newest)->skipped, "\n"));
  EXPECT_EQ((*newest)->skipped.size(), 6U) << skipped;
  for (const std::string part :
       {"step-00000002: cannot open", "step-00000003: its manifest is of step 1", "step-00000004: cannot open",
        "step-00000005: cannot open", "first line is no digest", "step-00000007: it belongs to run other"}) {
    EXPECT_NE(skipped.find(part), std::string::npos) << skipped << "\nlacks: " << part;
  }
  EXPECT_TRUE(RemoveAbandoned(folder.path(), "small").empty());
  EXPECT_FALSE(std::filesystem::exists(folder / "step-00000008.tmp-small"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-00000009.tmp-other"));
}

TEST(Checkpoint, ScratchIsNeverASilentFallBack) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSmall(SmallPlan(1, folder.path()), 1).ok());
  const auto other = FindNewest(folder.path(), "other");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ExitCode::Checkpoint);
  EXPECT_NE(other.error().message.find("it belongs to run small"), std::string::npos) << other.error().message;
  WriteText(folder / "step-00000001/manifest.json", "");
  EXPECT_FALSE(FindNewest(folder.path(), "small").ok());
}

TEST(Checkpoint, AllRanksChooseTheSame) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(3, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 5).ok());
  OnRanks(plan, [&](RankControl& control) {
    const auto newest = ChooseNewest(folder.path(), "small", control);
    ASSERT_TRUE(newest.ok() && newest->has_value());
    EXPECT_EQ((*newest)->path, folder / "step-00000005");
    const auto none = ChooseNewest(folder / "absent", "small", control);
    EXPECT_TRUE(none.ok() && !none->has_value());
    EXPECT_FALSE(ChooseNewest(folder.path(), "other", control).ok());
  });
}

TEST(Checkpoint, KeepsTheNewestOnly) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  Plan other = plan;
  other.run.run_id = "other";
  ASSERT_TRUE(SaveSmall(other, 5).ok());
  for (const int64_t step : {10, 20, 30, 40}) {
    ASSERT_TRUE(SaveSmall(plan, step).ok());
  }
  EXPECT_EQ(StepsIn(folder.path()), (std::vector<std::string>{"step-00000005", "step-00000030", "step-00000040"}));
}

TEST(Checkpoint, ShardsOutOfOrderAreNotCommitted) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(1, folder.path());
  OnRanks(plan, [&](RankControl& control) {
    CheckpointWriter writer({.plan = &plan, .control = &control});
    ASSERT_TRUE(writer.Begin(1, {{"step", 1}}).ok());
    writer.AddShard(SubVectorId{1}, StateRole::Parameter,
                    ReadSliceOf(plan, SubVectorId{1}, StateRole::Parameter, 0, 1));
    const Status status = writer.Commit();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("pieces were given"), std::string::npos) << status.error().message;
  });
  EXPECT_TRUE(StepsIn(folder.path()).empty());
}

}  // namespace
}  // namespace shardc
