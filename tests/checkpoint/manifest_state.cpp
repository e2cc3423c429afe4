// The state in a manifest whose digest is right: a state that no run can have left is refused, with a reason.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;

class ManifestState : public testing::Test {
 protected:
  /// Of step 10, with 5 updates.
  ManifestState() {
    CHECK(SaveSmall(SmallPlan(1, folder_.path()), 10).ok(), "save");
    good_ = json::parse(ReadText(folder_ / "step-00000010/manifest.json"));
    good_.erase("digest");
  }
  static auto Read(const json& body) -> ErrorOr<Manifest> { return ManifestFromText(Sealed(body.dump())); }
  auto Says(const char* object, const char* name, const json& value) const -> std::string {
    json bad = good_;
    (*object == 0 ? bad : bad[object])[name] = value;
    const auto manifest = Read(bad);
    if (manifest.ok()) {
      return "";
    }
    EXPECT_EQ(manifest.error().code, ExitCode::Checkpoint);
    return manifest.error().message;
  }

  TemporaryFolder folder_;
  json good_;
};

TEST_F(ManifestState, ForgedStepsAreRefused) {
  ASSERT_TRUE(Read(good_).ok());
  ASSERT_EQ(Says("state", "step", 10), "");
  for (const double value : {1e300, -1e300, 0x1p63, -0x1p63, -1.0, -5.0, 0.0, 5.0, 9.0, 11.0, 12.0, 13.0, 7.5, 10.5,
                             1e18, std::nextafter(10.0, 11.0)}) {
    EXPECT_EQ(Says("state", "step", value), fmt::format("\"step\" is 10, and in \"state\" it is {}", value)) << value;
  }
  json without = good_;
  without["state"].erase("step");
  EXPECT_EQ(Read(without).error().message, "\"step\" is 10, and in \"state\" it is missing");
  // Both, beyond what a double counts.
  json huge = good_;
  huge["step"] = (int64_t{1} << 53) + 2;
  huge["state"]["step"] = 0x1p53 + 2;
  EXPECT_FALSE(Read(huge).ok());
}

TEST_F(ManifestState, ForgedUpdatesAreRefused) {
  for (const double value : {0.0, 1.0, 5.0, 10.0}) {
    EXPECT_EQ(Says("state", "updates", value), "") << value;
  }
  for (const double value : {-1.0, 11.0, 7.5, 1e300, -1e300, 0x1p63, 1e-300}) {
    EXPECT_EQ(Says("state", "updates", value),
              fmt::format("\"state\": updates is {}, which is no number of updates in 10 steps", value));
  }
}

TEST_F(ManifestState, WhatIsNotFiniteIsRefused) {
  // JSON has no such number, so only a text can say one: beyond the range of a double.
  std::string text = good_.dump();
  const size_t at = text.find("\"updates\":");
  text.insert(at, "\"other\":1e999,");
  EXPECT_FALSE(ManifestFromText(Sealed(text)).ok());
  for (const json& value : {json(nullptr), json("5"), json(true), json::array({5}), json::object()}) {
    EXPECT_EQ(Says("state", "updates", value), "\"state\": updates is no number");
  }
}

TEST_F(ManifestState, PlanHashesHaveTheirForm) {
  for (const std::string& hash :
       {std::string(200, 'a'), std::string(31, 'a'), std::string(33, 'a'), std::string(), std::string(32, 'g'),
        std::string(32, 'A'), std::string("\x1b]0;x\a") + std::string(27, 'a')}) {
    EXPECT_EQ(Says("", "plan_hash", hash), "\"plan_hash\" is not 32 hex digits");
  }
}

// Of AdamW where it is absent, as in each manifest before there was another one.
TEST_F(ManifestState, NamesTheOptimizer) {
  EXPECT_FALSE(good_.contains("optimizer"));
  EXPECT_EQ(Read(good_)->optimizer, Optimizer::Adamw);
  json of_sgd = good_;
  of_sgd["optimizer"] = "sgd";
  const auto manifest = Read(of_sgd);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->optimizer, Optimizer::Sgd);
  const auto again = ManifestFromText(ToText(*manifest));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *manifest);
  for (const json& value : {json("adam"), json(""), json(nullptr), json(1)}) {
    EXPECT_NE(Says("", "optimizer", value), "") << value;
  }
}

// Manifests of older programs have none.
TEST_F(ManifestState, SpellsRotaryFrequency) {
  struct Case {
    const char* text;
    const char* spelling;
  };
  for (const Case& c : {Case{"linear_rope(4)", "linear_rope(4)"},
                        {" linear_rope( 4.0\t)", "linear_rope(4)"},
                        {"if index(0)<2 then-(1)*-2 else(1)", "if index(0) < 2 then -(1) * -2 else (1)"},
                        {"llama3_rope(8, 1, 4, 8192)", "llama3_rope(8, 1, 4, 8192)"},
                        {"llama3_rope(8.0,1,4.0,8.192e3)", "llama3_rope(8, 1, 4, 8192)"},
                        {"no ( formula", "no ( formula"},
                        {"rope_theta ^ (-2 * index(0) / head_dim)", ""},
                        {"rope_theta^(-2*index(0)/head_dim)", ""}}) {
    json body = good_;
    body["model"]["rope_frequency"] = c.text;
    const auto manifest = Read(body);
    ASSERT_TRUE(manifest.ok()) << c.text;
    // The default is left out.
    EXPECT_EQ(manifest->model.contains("rope_frequency") ? manifest->model.at("rope_frequency") : "", c.spelling);
  }
}

TEST_F(ManifestState, HoldsDataDigests) {
  EXPECT_FALSE(good_["data"].contains("digests"));
  const std::string digest(32, 'a');
  json with = good_;
  with["data"]["digests"] = {digest, DigestOf("targets")};
  const auto manifest = Read(with);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->data.digests, (std::vector<std::string>{digest, DigestOf("targets")}));
  const auto again = ManifestFromText(ToText(*manifest));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *manifest);
  for (const json& value : {json("a"), json::array({"a"}), json::array({digest, 1}), json::array({digest + "a"})}) {
    EXPECT_NE(Says("data", "digests", value), "") << value;
  }
}

TEST_F(ManifestState, AMixtureEndsWhereItsWeightsEnd) {
  json mixture = good_;
  mixture["data"]["sources"] = json::array({{{"name", "web"}, {"weight", "1"}, {"fingerprint", "x"}}});
  for (const int64_t steps : {9, 10, 11}) {
    mixture["data"]["steps"] = steps;
    EXPECT_EQ(Read(mixture).ok(), steps >= 10);
  }
}

/// Every value of the state, and the step beside it, replaced by any number: what is accepted is a state of some run.
TEST_F(ManifestState, AnyMutationIsRefusedOrHarmless) {
  std::mt19937_64 random(6);
  const std::vector<double> places{0, 1, 5, 10, 11, 1e3, 0x1p31, 0x1p53, 0x1p63, 1e18, 1e300};
  int num_accepted = 0;
  int num_refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    json bad = good_;
    for (const char* name : {"step", "updates"}) {
      if (random() % 3 == 0) {
        continue;
      }
      const double sign = random() % 4 == 0 ? -1 : 1;
      double value = places[random() % places.size()] * sign;
      switch (random() % 4) {
        case 0: value += static_cast<double>(random() % 3) - 1; break;
        case 1: value += 0.5; break;
        case 2: value = std::nextafter(value, random() % 2 == 0 ? 1e308 : -1e308); break;
        default: break;
      }
      bad["state"][name] = value;
    }
    if (random() % 4 == 0) {
      bad["step"] = random() % 2 == 0 ? static_cast<uint64_t>(random() % 20) : random() >> random() % 64;
    }
    const auto manifest = Read(bad);
    if (!manifest.ok()) {
      ++num_refused;
      ASSERT_EQ(manifest.error().code, ExitCode::Checkpoint);
      ASSERT_FALSE(manifest.error().message.empty());
      continue;
    }
    ++num_accepted;
    const double step = manifest->state.at("step");
    const double updates = manifest->state.at("updates");
    ASSERT_EQ(static_cast<int64_t>(step), manifest->step);
    ASSERT_EQ(step, std::floor(step));
    ASSERT_EQ(updates, std::floor(updates));
    ASSERT_TRUE(0 <= updates && updates <= step) << updates << " of " << step;
  }
  EXPECT_GT(num_accepted, 100);
  EXPECT_GT(num_refused, 10'000);
}

}  // namespace
}  // namespace shardc
