#include "compiler/data/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <vector>

namespace shardc {

static auto Order(int64_t n, uint64_t seed, int64_t epoch) -> std::vector<int64_t> {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) {
    order.push_back(ShuffledIndex(i, n, seed, epoch));
  }
  return order;
}

TEST(Shuffle, IsABijectionForEverySmallCount) {
  for (int64_t n = 1; n <= 2000; ++n) {
    std::vector<int64_t> order = Order(n, 7, n % 3);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(order[static_cast<size_t>(i)], i) << "n = " << n;
    }
  }
}

TEST(Shuffle, IsInRangeAndInjectiveOnSamplesOfLargeCounts) {
  for (const int64_t n : {int64_t{1} << 20, (int64_t{1} << 20) + 1, int64_t{1'000'000'007}, (int64_t{1} << 40) - 3,
                          (int64_t{1} << 62) - 1, int64_t{1} << 62}) {
    std::unordered_set<int64_t> seen;
    const int64_t stride = std::max<int64_t>(1, n / 5000);
    int64_t asked = 0;
    for (int64_t k = 0; k < 5000; ++k) {
      const int64_t at = ShuffledIndex(k * stride, n, 1, 0);
      ASSERT_TRUE(0 <= at && at < n) << n;
      seen.insert(at);
      ++asked;
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), asked) << n;
  }
}

TEST(Shuffle, DiffersByEpochAndSeedAndIsRepeatable) {
  const auto order = Order(1000, 1, 0);
  EXPECT_EQ(order, Order(1000, 1, 0));
  for (const auto& other : {Order(1000, 1, 1), Order(1000, 2, 0), Order(1000, 1, int64_t{1} << 40)}) {
    int64_t same = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      same += order[i] == other[i] ? 1 : 0;
    }
    // One fixed point is expected of two unrelated orders.
    EXPECT_LT(same, 10);
  }
}

// Which order an epoch takes is close to uniform, though the network is small: chi-square over the 24 orders of four
// samples.
TEST(Shuffle, SmallOrdersAreEven) {
  constexpr int NumEpochs = 24'000;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < NumEpochs; ++epoch) {
    ++counts[Order(4, 3, epoch)];
  }
  EXPECT_EQ(counts.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    chi_square += std::pow(count - NumEpochs / 24.0, 2) / (NumEpochs / 24.0);
  }
  // 23 degrees of freedom: 0.9999 quantile 57.1.
  EXPECT_LT(chi_square, 57.1);
}

// Neighbours end up far apart: the mean distance of a random order of n is n / 3.
TEST(Shuffle, SpreadsNeighbours) {
  constexpr int64_t N = 100'000;
  double sum = 0;
  for (int64_t i = 0; i + 1 < N; ++i) {
    sum += std::abs(static_cast<double>(ShuffledIndex(i, N, 5, 2) - ShuffledIndex(i + 1, N, 5, 2)));
  }
  EXPECT_NEAR(sum / (N - 1) / N, 1.0 / 3, 0.005);
}

// The order is part of what a checkpoint relies on: a change of these numbers is a change of the data of every run.
TEST(Shuffle, KnownOrders) {
  EXPECT_EQ(Order(10, 1234, 0), (std::vector<int64_t>{4, 3, 6, 5, 1, 8, 7, 2, 0, 9}));
  EXPECT_EQ(Order(10, 1234, 1), (std::vector<int64_t>{2, 7, 8, 6, 5, 9, 3, 4, 1, 0}));
  EXPECT_EQ(ShuffledIndex(0, 1'000'000'007, 1234, 5), 797973884);
}

}  // namespace shardc
