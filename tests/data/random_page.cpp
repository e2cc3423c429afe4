// What schemas/random.md says of mixtures is what the runtime does: the vectors of its tables.
#include <gtest/gtest.h>

#include "compiler/data/shuffle.h"
#include "runtime/data/mixture.h"
#include "tests/data/mixture_case.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

constexpr uint64_t Seed = 1234;
constexpr int64_t SamplesPerStep = 4;
constexpr int64_t Steps = 6;

/// Returns the samples of a step, as the page writes them: "a0 b0".
auto SlotsOf(SampleOrder order, int64_t step) -> std::string {
  DataSource data = MixtureOf({"2", "1", "if step < 2 then 0 else 1"});
  data.order = order;
  data.seed = Seed;
  auto mixture = Mixture::Create(data, SamplesPerStep, Steps);
  std::string text;
  for (int64_t k = 0; k < SamplesPerStep; ++k) {
    const MixedSample sample = mixture->At(step * SamplesPerStep + k).value();
    text += fmt::format("{}{}{}", k == 0 ? "" : " ", "abc"[sample.source], sample.index);
  }
  return text;
}

TEST(RandomPage, HasMixturesOfRuntime) {
  const std::string page = ReadRepositoryFile("schemas/random.md");
  for (const char* name : {"a", "b", "c", "slots of a step"}) {
    const std::string row = fmt::format("| `{}` | `{:016x}` |\n", name, DerivedSeed(Seed, name));
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  auto quotas = SampleQuotas::Create(MixtureOf({"2", "1", "if step < 2 then 0 else 1"}), SamplesPerStep, Steps);
  for (int64_t step = 0; step < Steps; ++step) {
    const std::vector<int64_t>& counts = quotas->counts();
    const std::string row = fmt::format("| {} | {} {} {} | {} | {} |\n", step, counts[0], counts[1], counts[2],
                                        SlotsOf(SampleOrder::Shuffled, step), SlotsOf(SampleOrder::Sequential, step));
    EXPECT_NE(page.find(row), std::string::npos) << row;
    ASSERT_TRUE(quotas->Next().ok());
  }
}

}  // namespace
}  // namespace shardc
