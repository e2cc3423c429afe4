// A plan file of any bytes: it is refused, or is a plan that prints and reads back the same, that the verifier judges,
// and that reports, comparisons and the search of --fit read if the verifier accepts it and all passes were run.
#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/fit/offers.h"
#include "compiler/plan/text.h"
#include "compiler/report/compare.h"
#include "compiler/report/report.h"
#include "compiler/verify/verify.h"

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  const auto plan = ParsePlan(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!plan.ok()) {
    CHECK(!plan.error().message.empty(), "refused without a word");
    return 0;
  }
  const auto again = ParsePlan(PrintPlan(*plan));
  CHECK(again.ok() && *again == *plan, "what is printed reads back to another plan");
  if (VerifyRunnable(*plan).empty()) {
    const Report report = Explain(*plan);
    CHECK(!RenderReportText(report).empty() && !RenderReportJson(report).empty() && !RenderReportHtml(report).empty(),
          "no report");
    CHECK(Compare(report, report).is_same(), "a plan differs from itself");
    CHECK(KnobOf(OffersOf(*plan), AsItIs(OffersOf(*plan))).sets.empty(), "the plan as it is changes keys");
    KnobsOf(*plan);
  }
  return 0;
}
