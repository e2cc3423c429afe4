// InPlaceVector against std::vector, and what it refuses.

#include "compiler/base/in_place_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace shardc {
namespace {

using Three = InPlaceVector<int64_t, 3>;

auto Elements(const Three& items) -> std::vector<int64_t> { return {items.begin(), items.end()}; }

TEST(InPlaceVector, HoldsWhatAVectorWould) {
  static_assert(std::is_trivially_copyable_v<Three>);
  Three items;
  EXPECT_TRUE(items.empty());
  items.push_back(5);
  items.push_back(7);
  items.insert(items.begin(), 3);
  EXPECT_EQ(Elements(items), (std::vector<int64_t>{3, 5, 7}));
  EXPECT_EQ(items.front(), 3);
  EXPECT_EQ(items.back(), 7);
  items.pop_back();
  EXPECT_EQ(items, (Three{3, 5}));
  EXPECT_NE(items, (Three{3, 5, 7}));
  EXPECT_NE(items, (Three{3, 6}));
  items.clear();
  EXPECT_EQ(items, Three{});
}

TEST(InPlaceVectorDeathTest, RefusesWhatItHasNoRoomFor) {
  Three items{1, 2, 3};
  EXPECT_DEATH(items.push_back(4), "more than 3 elements");
  EXPECT_DEATH(static_cast<void>(items[3]), "element 3 of 3");
  EXPECT_DEATH(Three{}.pop_back(), "no element");
  EXPECT_DEATH(static_cast<void>(Three{}.front()), "element 0 of 0");
}

}  // namespace
}  // namespace shardc
