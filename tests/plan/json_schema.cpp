// The JSON Schema of plans: what plans print keeps to it, and what does not is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/plan/text.h"
#include "tests/support/json_schema.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

auto Schema() -> nlohmann::json { return nlohmann::json::parse(PlanSchema()); }

TEST(PlanSchema, PlansKeepToIt) {
  const nlohmann::json schema = Schema();
  const std::vector<std::vector<std::string>> variants{{}, {"mesh.tp=2", "batch.global=4"}, {"optimizer.clip_norm=0"}};
  for (const auto& sets : variants) {
    for (const PassRow& pass : PassRows()) {
      const auto json = nlohmann::json::parse(PlanJson(CompileSample(sets, pass.kind)));
      EXPECT_EQ(FaultOf(json, schema, schema), "") << fmt::format("{} after {}", fmt::join(sets, " "), pass.name);
    }
  }
}

TEST(PlanSchema, WhatIsNoPlanDoesNot) {
  const nlohmann::json schema = Schema();
  const auto plan = nlohmann::json::parse(PlanJson(CompileSample()));
  const auto fault = [&](const char* pointer, nlohmann::json value) {
    nlohmann::json broken = plan;
    broken[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return FaultOf(broken, schema, schema);
  };
  EXPECT_EQ(fault("/version", 1), "/version is not 2");
  EXPECT_EQ(fault("/values/0/dtype", "f8"), "/values/0/dtype is none of the words");
  EXPECT_EQ(fault("/values/0/shape/0", "8"), "/values/0/shape/0 is no integer");
  EXPECT_EQ(fault("/run/steeps", 3), "/run has no member steeps");
  EXPECT_EQ(fault("/sections/step/0/axis", "dp"), "/sections/step/0 fits none");
  EXPECT_EQ(fault("/sections/step/0/op", "frobnicate"), "/sections/step/0 fits none");
  nlohmann::json broken = plan;
  broken["buffers"][0].erase("bytes");
  EXPECT_EQ(FaultOf(broken, schema, schema), "/buffers/0 lacks bytes");
}

}  // namespace
}  // namespace shardc
