// What the verifier asks of the sources that samples come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compiler/ops/verify_plan.h"
#include "compiler/plan/text.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

auto Mixed() -> Plan {
  Plan plan = CompileSample();
  plan.data.sources = {{.name = "web", .weight = "0.9 - 0.4 * step / steps", .files = {"a.bin"}},
                       {.name = "code", .weight = "0.3", .files = {"b.bin"}}};
  // Two times 6 samples in the place of 12.
  plan.data.eval_tokens = 50;
  return plan;
}

struct BrokenSources {
  std::string what;
  /// One of the findings ends with it.
  std::string rule;
  std::function<void(Plan&)> edit;
};

const std::vector<BrokenSources> Broken{
    {"two of one name", "source-name", [](Plan& p) { p.data.sources[1].name = "web"; }},
    {"one without a name", "source-name", [](Plan& p) { p.data.sources[1].name = ""; }},
    {"two streams without names", "source-name",
     [](Plan& p) {
       p.data.sources = {{.name = "", .weight = "", .files = {"a.bin"}}, p.data.sources[1]};
     }},
    {"a share of the only stream", "source-name",
     [](Plan& p) { p.data.sources = {{.name = "", .weight = "1", .files = {"a.bin"}}}; }},
    {"a weight that does not read", "source-weight", [](Plan& p) { p.data.sources[0].weight = "1 +"; }},
    {"a weight that is a condition", "source-weight", [](Plan& p) { p.data.sources[0].weight = "step > 3"; }},
    {"a weight that is drawn", "source-weight", [](Plan& p) { p.data.sources[0].weight = "normal(0, 1)"; }},
    {"no weight", "source-weight", [](Plan& p) { p.data.sources[0].weight = ""; }},
    {"steps without a whole sample", "source-samples", [](Plan& p) { p.run.tokens_per_step = p.data.seq - 1; }},
    {"steps of more samples than are counted", "source-samples",
     [](Plan& p) { p.run.tokens_per_step = ((int64_t{1} << 30) + 1) * p.data.seq; }},
    {"targets beside a mixture", "source-targets",
     [](Plan& p) {
       p.heads.Add({"image", 8, {"t.bin"}});
     }},
};

TEST(VerifySources, RejectsEachBrokenPlanByName) {
  ASSERT_EQ(VerifyPlan(Mixed()), std::vector<std::string>{});
  for (const BrokenSources& broken : Broken) {
    Plan plan = Mixed();
    broken.edit(plan);
    const auto read = ParsePlan(PrintPlan(plan));
    ASSERT_TRUE(read.ok()) << broken.what << ": " << read.error().message;
    const std::vector<std::string> findings = VerifyPlan(*read);
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                            [&](const std::string& finding) { return finding.ends_with("[" + broken.rule + "]"); }))
        << broken.what << ": " << fmt::format("{}", fmt::join(findings, "\n"));
    EXPECT_FALSE(VerifyRunnable(*read).empty()) << broken.what;
  }
}

}  // namespace
}  // namespace shardc
