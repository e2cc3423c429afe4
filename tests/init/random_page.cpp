// What schemas/random.md says is what the runtime makes: its vectors, and the values of its program.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include "runtime/init/initial_values.h"
#include "tests/support/random_page.h"
#include "tests/support/repository.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

constexpr std::string_view Name = "model.norm.weight";
constexpr uint64_t Seed = 1234;

auto At(std::string_view rule, int64_t element) -> float {
  static const auto kernels = SharedInitKernels();
  float value = 0;
  InitialValues values(VectorOf(rule, Seed, Name), NoOthers);
  EXPECT_TRUE(values.Fill({element, element + 1}, &value).ok()) << rule;
  return value;
}

TEST(RandomPage, HasTheValuesOfItsVectors) {
  EXPECT_EQ(RandomKey(Seed, Name), (PhiloxKey<uint64_t>{0xc0dfc3ae, 0x9f9b5805}));
  const std::string page = ReadRepositoryFile("schemas/random.md");
  constexpr int64_t Elements[] = {0, 1, 2, 3, 4, (int64_t{1} << 34) + 1};
  for (const char* rule :
       {"normal(0, 0.02)", "trunc_normal(0, 0.02, -0.04, 0.04)", "uniform(-1, 1)", "trunc_normal(0, 1, 2, 3)",
        "trunc_normal(0, 0.02, -0.1, -0.05)", "trunc_normal(0, 1, 40, 41)"}) {
    std::string row = fmt::format("| `{}` |", rule);
    for (const int64_t element : Elements) {
      row += fmt::format(" {:.9g} |", At(rule, element));
    }
    EXPECT_NE(page.find(row + "\n"), std::string::npos) << row;
  }
}

TEST(RandomPage, HasAProgramWithTheRuntimesBits) {
  struct Row {
    const char* rule;
    const char* call;
  };
  constexpr Row Rows[] = {
      {"normal(0, 0.02)", "normal(x, 0, 0.02)"},
      {"normal(-3, 0.7)", "normal(x, -3, 0.7)"},
      {"uniform(-1, 1)", "uniform(x, -1, 1)"},
      {"uniform(0.1, 7.3)", "uniform(x, 0.1, 7.3)"},
      {"trunc_normal(0, 0.02, -0.04, 0.04)", "trunc_normal(x, 0, 0.02, -0.04, 0.04)"},
      {"trunc_normal(1, 2, -1, 2.5)", "trunc_normal(x, 1, 2, -1, 2.5)"},
      {"trunc_normal(0, 0.02, -2, 2)", "trunc_normal(x, 0, 0.02, -2, 2)"},
  };
  constexpr int64_t Count = 4'000;
  constexpr int64_t Begin = (int64_t{1} << 34) - 2'001;
  for (const Row& row : Rows) {
    const std::vector<float> expected = FromRandomPage(
        fmt::format("for i in range({}, {}):\n    x = symmetric((0xc0dfc3ae, 0x9f9b5805), i, 0)\n    print(repr({}))\n",
                    Begin, Begin + Count, row.call));
    ASSERT_EQ(expected.size(), static_cast<size_t>(Count)) << row.rule;
    std::vector<float> values(static_cast<size_t>(Count));
    InitialValues made(VectorOf(row.rule, Seed, Name), NoOthers);
    ASSERT_TRUE(made.Fill({Begin, Begin + Count}, values.data()).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<int32_t>(values[i]), std::bit_cast<int32_t>(expected[i])) << row.rule << " at " << i;
    }
  }
}

TEST(RandomPage, HasTheKeysOfItsNames) {
  const std::string page = ReadRepositoryFile("schemas/random.md");
  struct Row {
    uint64_t seed;
    std::string_view name;
  };
  // The last is two bytes: U+00E9 in UTF-8.
  for (const Row& row : {Row{0, "model.embed_tokens.weight"}, Row{1234, "model.norm.weight"},
                         Row{18446744073709551615U, "model.norm.weight"}, Row{1234, "\xc3\xa9"}}) {
    const auto key = RandomKey(row.seed, row.name);
    const std::string line = fmt::format("| {} | `{}` | `{:08x} {:08x}` |\n", row.seed, row.name, key[0], key[1]);
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

// The tail that serves a mean outside of the bounds: below and above, near and far, and where nothing is left of it.
TEST(RandomPage, SaysWhichTailServesAMeanBesideTheBounds) {
  struct Row {
    const char* rule;
    const char* call;
  };
  constexpr Row Rows[] = {
      {"trunc_normal(0, 1, 2, 3)", "trunc_normal_beside(x, 0, 1, 2, 3)"},
      {"trunc_normal(0, 0.02, -0.1, -0.05)", "trunc_normal_beside(x, 0, 0.02, -0.1, -0.05)"},
      {"trunc_normal(5, 2, 5.5, 30)", "trunc_normal_beside(x, 5, 2, 5.5, 30)"},
      {"trunc_normal(1, 1, -9, -7)", "trunc_normal_beside(x, 1, 1, -9, -7)"},
      {"trunc_normal(0, 1, 40, 41)", "trunc_normal_beside(x, 0, 1, 40, 41)"},
  };
  constexpr int64_t Count = 2'000;
  for (const Row& row : Rows) {
    const std::vector<float> expected = FromRandomPage(
        fmt::format("for i in range({}):\n    x = symmetric((0xc0dfc3ae, 0x9f9b5805), i, 0)\n    print(repr({}))\n",
                    Count, row.call));
    ASSERT_EQ(expected.size(), static_cast<size_t>(Count)) << row.rule;
    std::vector<float> values(static_cast<size_t>(Count));
    InitialValues made(VectorOf(row.rule, Seed, Name), NoOthers);
    ASSERT_TRUE(made.Fill({0, Count}, values.data()).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(std::abs(std::bit_cast<int32_t>(values[i]) - std::bit_cast<int32_t>(expected[i])) <= 1)
          << row.rule << " at " << i << ": " << values[i] << ", the page has " << expected[i];
    }
  }
}

}  // namespace
}  // namespace shardc
