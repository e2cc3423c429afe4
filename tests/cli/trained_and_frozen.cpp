// What commands tell of trained and of frozen parameters apart: JSON, the page, diff and --fit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TrainedAndFrozen : public testing::Test {
 protected:
  auto Ask(std::vector<std::string> command, const std::vector<std::string>& sets) const -> Finished {
    command.insert(command.begin() + 1, recipe_);
    for (const std::string& set : sets) {
      command.insert(command.end(), {"--set", set});
    }
    return RunProgram(Shardc(), command);
  }

  const std::vector<std::string> adapters_{"adapter.kind=lora", "adapter.rank=2", "adapter.alpha=6",
                                           "adapter.override=[{match=\"*.down_proj.weight\", rank=1}]", "mesh.dp=2"};
  const TemporaryFolder folder_;
  const std::string recipe_ = WriteIn(folder_, "a.toml", SoundRecipe());
};

TEST_F(TrainedAndFrozen, ReportsHaveEach) {
  const json whole = json::parse(Ask({"plan", "--explain", "--format", "json"}, {"mesh.dp=2"}).out);
  EXPECT_FALSE(whole.contains("trained") || whole.contains("frozen") || whole.contains("adapters"));
  const json report = json::parse(Ask({"plan", "--explain", "--format", "json"}, adapters_).out);
  const json& trained = report.at("trained");
  const json& frozen = report.at("frozen");
  EXPECT_EQ(trained.at("parameters"), report.at("parameters").at("trainable"));
  EXPECT_EQ(frozen.at("parameters"), whole.at("parameters").at("total"));
  EXPECT_EQ(frozen.at("gradients_wire_bytes"), 0);
  // Of each of two ranks: parameters and both moments in f32, and padding.
  EXPECT_GE(trained.at("state_bytes").get<int64_t>(), trained.at("parameters").get<int64_t>() * 3 * 4 / 2);
  EXPECT_GE(frozen.at("state_bytes").get<int64_t>(), frozen.at("parameters").get<int64_t>() * 4 / 2);
  EXPECT_GT(trained.at("gradients_wire_bytes"), 0);
  EXPECT_GT(trained.at("parameters_wire_bytes"), 0);
  EXPECT_GT(frozen.at("parameters_wire_bytes"), 0);
  ASSERT_EQ(report.at("adapters").size(), 2U);
  EXPECT_EQ(report.at("adapters")[0].at("rank"), 2);
  EXPECT_EQ(report.at("adapters")[0].at("scale"), 3);
  EXPECT_EQ(report.at("adapters")[1].at("scale"), 6);
  EXPECT_EQ(report.at("adapters")[1].at("projections"), json({"mlp.down_proj"}));
  const std::string page = Ask({"plan", "--format", "html"}, adapters_).out;
  EXPECT_THAT(page, HasSubstr("<h2>Trained and frozen</h2>"));
  EXPECT_THAT(Ask({"plan", "--format", "html"}, {}).out, Not(HasSubstr("Trained and frozen")));
  const std::string text = Ask({"plan", "--explain"}, adapters_).out;
  EXPECT_THAT(text, AllOf(HasSubstr("\ntrained     "), HasSubstr("\nfrozen      "),
                          HasSubstr("of rank 1 and scale 6: mlp.down_proj of block")));
}

TEST_F(TrainedAndFrozen, DiffCountsTrained) {
  const Finished differs = Ask({"diff"}, {"optimizer.frozen=[\"*norm.weight\"]"});
  EXPECT_EQ(differs.exit_code, 10) << differs.err;
  EXPECT_THAT(differs.out, AllOf(HasSubstr("\n  trained parameters "), Not(HasSubstr("\n  parameters "))));
  EXPECT_THAT(Ask({"diff"}, {"model.layers=1"}).out,
              AllOf(HasSubstr("\n  parameters "), Not(HasSubstr("trained parameters"))));
}

TEST_F(TrainedAndFrozen, FitOffersBf16WhereFrozenAreWide) {
  const auto rows = [&](const std::vector<std::string>& sets) { return Ask({"plan", "--fit", "80GiB"}, sets).out; };
  EXPECT_THAT(rows(adapters_), HasSubstr("  precision.frozen=bf16\n"));
  std::vector<std::string> narrow = adapters_;
  narrow.emplace_back("precision.frozen=bf16");
  EXPECT_THAT(rows(narrow), AllOf(StartsWith("fits: "), Not(HasSubstr("precision.frozen=bf16"))));
  EXPECT_THAT(rows({}), AllOf(StartsWith("fits: "), Not(HasSubstr("precision.frozen"))));
}

}  // namespace
}  // namespace shardc
