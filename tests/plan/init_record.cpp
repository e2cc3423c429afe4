// init.json: what is written reads back, what is damaged does not, and whose values they are is told.
#include "compiler/plan/init_record.h"
#include "tests/support/edited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardc {
namespace {

using testing::HasSubstr;

auto Sample() -> InitRecord {
  return {
      .seed = 0xffff'ffff'ffff'fffe,
      .rotary_table = "0123456789abcdef0123456789abcdef",
      .elements_drawn = 14,
      .parameters = {{"a", {2, 3}, DType::F32, "normal(0, 0.02)", -1.0 / 3, 0.1}, {"b", {4}, DType::BF16, "1", 1, 0}}};
}

auto PlanOfSample() -> Plan {
  Plan plan;
  plan.run.init_seed = Sample().seed;
  for (const RealisedParameter& parameter : Sample().parameters) {
    plan.parameters.Add(
        {.name = parameter.name, .shape = parameter.shape, .dtype = parameter.dtype, .init = parameter.rule});
  }
  return plan;
}

TEST(InitRecord, ReadsBack) {
  const auto read = ParseInitRecord(ToText(Sample()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, Sample());
  EXPECT_EQ(DifferenceFrom(*read, PlanOfSample()), "");
}

TEST(InitRecord, DamageIsNamed) {
  const std::string sound = ToText(Sample());
  struct Case {
    std::string from;
    std::string to;
    std::string message;
  };
  const Case cases[] = {
      {"{", "", "it is no JSON object"},
      {"\"1.2\"", "\"2.0\"", "it has format version 2.0, this program reads version 1"},
      {"\"elements_drawn\": 14", "\"elements_drawn\": 14, \"elements_drawn\": 15", "it is no JSON object"},
      {"\"format_version\"", "\"version\"", "\"format_version\" is missing"},
      {"\"seed\": 18446744073709551614", "\"seed\": -1", "\"seed\": a whole number from 0 to 2^64 - 1 was expected"},
      {"\"parameters\"", "\"tensors\"", "\"parameters\" is missing"},
      {"\"elements_drawn\": 14", "\"elements_drawn\": 1.5",
       "\"elements_drawn\": a whole number from 0 to 2^63 - 1 was expected"},
      {"\"name\": \"a\"", "\"name\": 1", "\"name\" is no string"},
      {"\"f32\"", "\"f31\"", "a: \"dtype\" is \"f31\", which is not known"},
      {"\"rotary_table\": \"0123456789abcdef0123456789abcdef\"", "\"rotary_table\": 1",
       "\"rotary_table\" is no string"},
      {"\"mean\": 1.0", "\"mean\": null", "b: \"mean\" is no number"},
      {"4\n", "-4\n", "b: \"shape\": a whole number from 0 to 2^63 - 1 was expected"},
      {"4\n", "1, 1, 1, 1, 1, 1, 1, 1, 1\n", "b: \"shape\" has more than 8 numbers"},
  };
  for (const Case& row : cases) {
    const auto read = ParseInitRecord(Edited(sound, {{row.from, row.to}}));
    ASSERT_FALSE(read.ok()) << row.to;
    EXPECT_EQ(read.error().message, row.message);
  }
  for (size_t size = 0; size + 2 < sound.size(); ++size) {
    EXPECT_FALSE(ParseInitRecord(sound.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseInitRecord("[]").ok());
}

// What is loaded was not drawn.
TEST(InitRecord, LeavesOutWhatIsLoaded) {
  InitRecord record = Sample();
  record.loaded_from = "0f";
  EXPECT_EQ(ParseInitRecord(ToText(record)).value(), record);
  Plan plan = PlanOfSample();
  plan.seed.manifest = "0f";
  EXPECT_EQ(DifferenceFrom(record, plan), "");
  plan.parameters[ParameterId{1}].init = "seed('b')";
  EXPECT_EQ(DifferenceFrom(record, plan), "2 parameters there, 1 here");
  record.parameters.pop_back();
  EXPECT_EQ(DifferenceFrom(record, plan), "");
}

TEST(InitRecord, AnotherStartIsNamed) {
  const auto difference = [](const std::function<void(Plan&)>& change) {
    Plan plan = PlanOfSample();
    change(plan);
    return DifferenceFrom(Sample(), plan);
  };
  const ParameterId a{0};
  EXPECT_EQ(difference([](Plan& plan) { plan.run.init_seed = 3; }), "seed 18446744073709551614 there, 3 here");
  EXPECT_EQ(difference([](Plan& plan) { plan.parameters.Add({}); }), "2 parameters there, 3 here");
  EXPECT_EQ(difference([&](Plan& plan) { plan.parameters[a].name = "c"; }), "parameter 0 is a there, c here");
  EXPECT_EQ(difference([&](Plan& plan) { plan.parameters[a].shape = {3, 2}; }), "a is f32[2, 3] there, f32[3, 2] here");
  EXPECT_EQ(difference([&](Plan& plan) { plan.parameters[a].dtype = DType::BF16; }),
            "a is f32[2, 3] there, bf16[2, 3] here");
  EXPECT_EQ(difference([&](Plan& plan) { plan.parameters[a].init = "normal(0, 0.03)"; }),
            "a is normal(0, 0.02) there, normal(0, 0.03) here");
  EXPECT_EQ(difference([&](Plan& plan) { plan.seed.manifest = "0f"; }), "manifest of a seed none there, 0f here");
  // What values do not depend on.
  EXPECT_EQ(difference([](Plan& plan) { plan.mesh = Mesh{{2, 4, 1}}; }), "");
  EXPECT_EQ(difference([](Plan& plan) { plan.run.steps = 100; }), "");
}

}  // namespace
}  // namespace shardc
