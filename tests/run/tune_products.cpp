// How algorithms of products are chosen, from times that are made up.
#include "runtime/core/tune_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/base/tune_request.h"
#include "tests/support/product_double.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Returns a product whose algorithms take these times, in milliseconds.
auto Timed(const std::string& text, const std::vector<double>& ms) -> TimedProduct {
  TimedProduct timed{.product = {.text = text, .algorithms = {}}, .times = {}};
  for (const double time : ms) {
    timed.product.algorithms.push_back(fmt::format("{}-{}", text, timed.times.size()));
    timed.times.push_back(Seconds{time * 1e-3});
  }
  return timed;
}

auto MayContinue() -> Status { return Success{}; }

auto MillisecondsOf(const std::vector<Seconds>& times) -> std::vector<double> {
  std::vector<double> ms;
  for (const Seconds time : times) {
    ms.push_back(std::round(time.value * 1e6) / 1e3);
  }
  return ms;
}

TEST(TuneProducts, FirstAnswerHoldsWithoutClearGain) {
  const auto fastest = [](const std::vector<double>& ms) { return FastestOf(Timed("", ms).times); };
  EXPECT_EQ(fastest({1.0}), 0U);
  EXPECT_EQ(fastest({1.0, 0.981, 0.99}), 0U);
  EXPECT_EQ(fastest({1.0, 0.979, 0.99}), 1U);
  EXPECT_EQ(fastest({1.0, 0.9, 0.8}), 2U);
  // Given up.
  EXPECT_EQ(fastest({1.0, 0.0, 1.5}), 0U);
}

TEST(TuneProducts, RoundsTakeAllInTurn) {
  ProductDouble bench({Timed("a", {1.0, 0.5, 4.0}), Timed("b", {2.0, 2.5})});
  const auto times = MeasureProducts(bench, {.rounds = 3}, MayContinue);
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_THAT(MillisecondsOf((*times)[0]), ElementsAre(1.0, 0.5, 0.0));
  EXPECT_THAT(MillisecondsOf((*times)[1]), ElementsAre(2.0, 2.5));
  std::vector<std::string> order;
  for (const auto& [product, algorithm, repeats] : bench.calls) {
    order.push_back(fmt::format("{}{} x {}", product == 0 ? 'a' : 'b', algorithm, repeats));
  }
  // Each is called twice to load and to look; then rounds of 20 ms each, forth and back, without the hopeless one.
  EXPECT_THAT(order, ElementsAre("a0 x 1", "a0 x 3", "b0 x 1", "b0 x 3", "a1 x 1", "a1 x 3", "b1 x 1", "b1 x 3",
                                 "a2 x 1", "a2 x 3", "a0 x 20", "b0 x 10", "a1 x 40", "b1 x 8", "b1 x 8", "a1 x 40",
                                 "b0 x 10", "a0 x 20", "a0 x 20", "b0 x 10", "a1 x 40", "b1 x 8"));
}

TEST(TuneProducts, FirstAnswerIsNeverGivenUp) {
  ProductDouble bench({Timed("a", {9.0, 1.0})});
  const auto times = MeasureProducts(bench, {}, MayContinue);
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_THAT(MillisecondsOf((*times)[0]), ElementsAre(9.0, 1.0));
}

TEST(TuneProducts, RefusedAlgorithmsAreLeftOut) {
  ProductDouble bench({Timed("a", {1.0, -1.0, 0.5})});
  const auto times = MeasureProducts(bench, {}, MayContinue);
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_THAT(MillisecondsOf((*times)[0]), ElementsAre(1.0, 0.0, 0.5));
  ProductDouble first({Timed("a", {-1.0, 1.0})});
  const auto refused = MeasureProducts(first, {}, MayContinue);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("a-0 is refused"));
}

TEST(TuneProducts, MedianLeavesOutDisturbances) {
  ProductDouble bench({Timed("a", {1.0, 0.9})});
  // Two of five rounds are disturbed, in which one algorithm looks three times as slow.
  bench.factor = [](size_t call) { return call == 6 || call == 10 ? 3.0 : 1.0; };
  const auto times = MeasureProducts(bench, {.rounds = 5}, MayContinue);
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_THAT(MillisecondsOf((*times)[0]), ElementsAre(1.0, 0.9));
}

TEST(TuneProducts, ManyProductsTakeNoLonger) {
  std::vector<TimedProduct> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(Timed(fmt::format("p{}", i), std::vector<double>(16, 0.01)));
  }
  ProductDouble bench(many);
  ASSERT_TRUE(MeasureProducts(bench, {.rounds = 5, .all = Seconds{60}}, MayContinue).ok());
  double seconds = 0;
  for (const auto& call : bench.calls) {
    seconds += static_cast<double>(call.repeats) * 1e-5;
  }
  EXPECT_LT(seconds, 70);
}

TEST(TuneProducts, StopEndsMeasurement) {
  ProductDouble bench({Timed("a", {1.0, 0.9})});
  const auto times = MeasureProducts(bench, {}, [&]() -> Status {
    return bench.calls.size() == 7 ? Status(Fail(ExitCode::Preempted, "stopped")) : Status(Success{});
  });
  ASSERT_FALSE(times.ok());
  EXPECT_EQ(times.error().code, ExitCode::Preempted);
  EXPECT_EQ(bench.calls.size(), 7U);
}

TEST(TuneProducts, NoProductIsNoMeasurement) {
  ProductDouble bench({});
  const auto times = MeasureProducts(bench, {}, MayContinue);
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_TRUE(times->empty());
}

TEST(TuneProducts, FlagWithoutValueMeasures) {
  EXPECT_FALSE(TuneRequestOf("").is_set());
  EXPECT_TRUE(TuneRequestOf("true").measures);
  EXPECT_EQ(TuneRequestOf("true").file, "");
  EXPECT_FALSE(TuneRequestOf("a/gemm.json").measures);
  EXPECT_EQ(TuneRequestOf("a/gemm.json").file, "a/gemm.json");
}

TEST(TuneProducts, PlanForCpuIsRefused) {
  const Training training;
  for (const std::string tune : {"--tune", "--tune=gemm.json", "--graphs"}) {
    std::vector<std::string> command = training.RunCommand();
    // It does not take the recipe for its value.
    command.insert(command.begin() + 2, tune);
    const Outcome outcome = RunProcess(command);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(tune.substr(0, tune.find('=')) + " is for runs on GPUs, and run.device is \""));
  }
}

TEST(ProductRecord, TextReadsAgain) {
  const ProductRecord record{.chosen_for = {{"card", "NVIDIA H100"}, {"cublaslt", "13.1.0"}},
                             .algorithms = {{"a", "1f-0"}, {"b", "2e-0"}},
                             .times = {{"a", {.first_us = 400.5, .chosen_us = 380.25, .measured = 9}}}};
  EXPECT_EQ(ProductRecordIn(TextOf(record)), record);
  EXPECT_THAT(TextOf(record), HasSubstr("\"tuned\": true"));
  const ProductRecord heuristic{record.chosen_for, record.algorithms, {}};
  EXPECT_EQ(ProductRecordIn(TextOf(heuristic)), heuristic);
  EXPECT_THAT(TextOf(heuristic), testing::Not(HasSubstr("tuned")));
  for (const char* times : {"1", "{\"a\": 1}", "{\"a\": {\"first_us\": 1, \"chosen_us\": 1}}",
                            "{\"a\": {\"first_us\": 1, \"chosen_us\": 1, \"measured\": \"9\"}}"}) {
    EXPECT_FALSE(ProductRecordIn(fmt::format("{{\"products\": {{}}, \"times\": {}}}", times))) << times;
  }
}

TEST(ProductRecord, NamedFileIsReadOrRefused) {
  const TemporaryFolder folder;
  const ProductRecord record{.chosen_for = {{"card", "NVIDIA H100"}}, .algorithms = {{"a", "1f-0"}}, .times = {}};
  WriteText(folder / "good.json", TextOf(record));
  EXPECT_EQ(*ReadProductFile(folder / "good.json"), record);
  WriteText(folder / "bad.json", "{}");
  EXPECT_THAT(ReadProductFile(folder / "bad.json").error().message, HasSubstr("is not as a launch writes it"));
  EXPECT_FALSE(ReadProductFile(folder / "none.json").ok());
}

}  // namespace
}  // namespace shardc
