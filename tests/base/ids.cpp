// Typed ids and the vectors they index.

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

#include "compiler/base/ids.h"

namespace shardc {
namespace {

using FruitId = Id<struct FruitTag>;
using StoneId = Id<struct StoneTag>;

TEST(Id, KindsDoNotMix) {
  static_assert(!std::is_convertible_v<FruitId, StoneId>);
  static_assert(!std::is_convertible_v<FruitId, int32_t>);
  EXPECT_FALSE(FruitId{}.valid());
  EXPECT_TRUE(FruitId{0}.valid());
  EXPECT_LT(FruitId{1}, FruitId{2});
  EXPECT_EQ((std::unordered_set<FruitId>{FruitId{1}, FruitId{1}, FruitId{2}}.size()), 2U);
}

TEST(IdVector, HandsOutIdsInOrder) {
  IdVector<FruitId, std::string> fruits;
  EXPECT_TRUE(fruits.empty());
  const FruitId apple = fruits.Add("apple");
  const FruitId pear = fruits.Add("pear");
  EXPECT_EQ(apple, FruitId{0});
  EXPECT_EQ(fruits[pear], "pear");
  EXPECT_EQ(fruits.size(), 2);
  std::vector<FruitId> ids;
  for (const FruitId id : fruits.ids()) {
    ids.push_back(id);
  }
  EXPECT_EQ(ids, (std::vector<FruitId>{apple, pear}));
  EXPECT_TRUE(fruits.Has(pear));
  EXPECT_FALSE(fruits.Has(FruitId{2}));
  EXPECT_FALSE(fruits.Has(FruitId{}));
  fruits[apple] = "fig";
  EXPECT_EQ(*fruits.begin(), "fig");
}

TEST(IdVectorDeathTest, AnIdOfNothingIsABug) {
  IdVector<FruitId, int> fruits;
  EXPECT_EXIT(fruits[FruitId{0}], testing::ExitedWithCode(1), "CHECK failed: Has\\(id\\): index 0 of 0");
}

}  // namespace
}  // namespace shardc
