// Runs with SGD: what they keep, how they come back, and that a run keeps its optimizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/checkpoint/manifest.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

const Sets SgdWithMomentum{"optimizer.name=sgd", "optimizer.momentum=0.9"};

auto SetsWith(Sets sets, std::initializer_list<const char*> more) -> Sets {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(Sgd, ResumesAsIfItHadNotStopped) {
  for (const Sets& sets :
       {Sets{"optimizer.name=sgd"}, SgdWithMomentum, SetsWith(SgdWithMomentum, {"optimizer.nesterov=true"}),
        SetsWith(SgdWithMomentum, {"precision.compute=bf16", "precision.master=bf16"})}) {
    const Training training(sets);
    ASSERT_EQ(training.Run("whole").status, 0);
    ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
    const Outcome rest = training.Run();
    ASSERT_EQ(rest.status, 0) << rest.err;
    ExpectSameRun(training / "run", training / "whole");
  }
}

/// The names of the tensors that the ranks of a run of 2 stored at step 4, by the headers of their files.
auto StoredNames(const std::string& run_dir) -> std::set<std::string> {
  std::set<std::string> names;
  for (const char* file : {"rank-00000.safetensors", "rank-00001.safetensors"}) {
    const std::string bytes = ReadText(run_dir + "/checkpoints/step-00000004/" + file);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
    const auto header = nlohmann::json::parse(bytes.substr(sizeof(header_bytes), header_bytes));
    for (const auto& [name, tensor] : header.items()) {
      names.insert(name);
    }
  }
  names.erase("__metadata__");
  return names;
}

// Nothing of a frozen parameter, and without momentum nothing at all.
TEST(Sgd, KeepsABufferPerTrainedParameterThatIsSavedByName) {
  const Training training({"optimizer.frozen=[\"model.embed_tokens.weight\"]", "train.steps=4"});
  for (const bool has_momentum : {true, false}) {
    const std::string run = has_momentum ? "momentum" : "none";
    ASSERT_EQ(training.Run(run, has_momentum ? SgdWithMomentum : Sets{"optimizer.name=sgd"}).status, 0);
    const auto manifest = ManifestFromText(ReadText(training / (run + "/checkpoints/step-00000004/manifest.json")));
    ASSERT_TRUE(manifest.ok()) << manifest.error().message;
    EXPECT_EQ(manifest->optimizer, Optimizer::Sgd);
    std::set<std::string> expected;
    for (const auto& [name, tensor] : manifest->tensors) {
      expected.insert(name);
      if (has_momentum && name != "model.embed_tokens.weight") {
        expected.insert(name + ".momentum_buffer");
      }
    }
    EXPECT_EQ(expected.size(), has_momentum ? 41U : 21U);
    EXPECT_EQ(StoredNames(training / run), expected) << run;
  }
}

TEST(Sgd, ARunKeepsItsOptimizer) {
  const Training training(Sets{"train.steps=4"});
  ASSERT_EQ(training.Run("adamw").status, 0);
  ASSERT_EQ(training.Run("sgd", SgdWithMomentum).status, 0);
  const Outcome to_sgd = training.Run("adamw", SetsWith(SgdWithMomentum, {"train.steps=8"}));
  EXPECT_EQ(to_sgd.status, 5);
  EXPECT_THAT(
      to_sgd.err,
      HasSubstr("another optimizer: `optimizer.name` is adamw in the checkpoint, sgd in this run; put it back"));
  const Outcome to_adamw = training.Run("sgd", {"train.steps=8"});
  EXPECT_EQ(to_adamw.status, 5);
  EXPECT_THAT(
      to_adamw.err,
      HasSubstr("another optimizer: `optimizer.name` is sgd in the checkpoint, adamw in this run; put it back"));
  const Outcome without = training.Run("sgd", {"train.steps=8", "optimizer.name=sgd"});
  EXPECT_EQ(without.status, 5);
  EXPECT_THAT(without.err,
              HasSubstr("other settings of sgd: the run keeps a momentum_buffer, and these settings keep none; put the "
                        "keys of [optimizer] back, or start another run"));
}

TEST(Sgd, BeginsFromParametersThatAdamwTrained) {
  const Training training(Sets{"train.steps=4"});
  ASSERT_EQ(training.Run("adamw").status, 0);
  const std::string seed = fmt::format("start.first={{ seed = \"{}\" }}", training / "adamw/checkpoints/step-00000004");
  Sets sets = SgdWithMomentum;
  sets.insert(sets.end(), {seed, "start.run_id=other"});
  const Outcome sgd = training.Run("sgd", sets);
  EXPECT_EQ(sgd.status, 0) << sgd.err;
}

}  // namespace
}  // namespace shardc
