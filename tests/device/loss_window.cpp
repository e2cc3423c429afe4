#include "runtime/device/loss_window.h"

#include <gtest/gtest.h>

#include <array>

namespace shardc {
namespace {

TEST(LossWindow, KeepsTheLastLossesInOrder) {
  LossWindow window;
  for (const double loss : {5.0, 4.0, 3.0, 2.0}) {
    window.Add(loss, 3);
  }
  EXPECT_EQ(window.losses(), (std::vector<double>{4, 3, 2}));
  window.Add(1, 2);
  EXPECT_EQ(window.losses(), (std::vector<double>{2, 1}));
  window.Restore(std::array{9.0, 8.0, 7.0}, 2);
  EXPECT_EQ(window.losses(), (std::vector<double>{8, 7}));
  window.Restore(std::array{9.0}, 2);
  EXPECT_EQ(window.losses(), (std::vector<double>{9}));
}

TEST(LossWindow, JudgesByMeanAndDeviation) {
  LossWindow window;
  for (const double loss : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) {
    window.Add(loss, 8);
  }
  EXPECT_EQ(window.Spread().mean, 5);
  EXPECT_EQ(window.Spread().deviation, 2);
  EXPECT_EQ(window.Spread().count, 8);
  EXPECT_FALSE(window.Judge(11, 8, 3));
  EXPECT_TRUE(window.Judge(11.1, 8, 3));
  EXPECT_FALSE(window.Judge(-100, 8, 3));
}

TEST(LossWindow, JudgesNothingByLessThanHalfAWindow) {
  LossWindow window;
  EXPECT_FALSE(window.Judge(1e9, 2, 1));
  window.Add(1, 2);
  EXPECT_FALSE(window.Judge(1e9, 2, 1));
  for (int i = 0; i < 3; ++i) {
    window.Add(1 + i % 2, 10);
  }
  EXPECT_FALSE(window.Judge(1e9, 10, 1));
  window.Add(1, 10);
  EXPECT_TRUE(window.Judge(1e9, 10, 1));
}

TEST(LossWindow, TellsWhatItJudgedByAfterTheLossWasAdded) {
  LossWindow window;
  window.Add(9, 2);
  window.Add(1, 2);
  EXPECT_TRUE(window.Judge(100, 2, 1));
  window.Add(100, 2);
  EXPECT_EQ(window.judged_by().mean, 5);
  EXPECT_EQ(window.judged_by().deviation, 4);
  EXPECT_EQ(window.judged_by().count, 2);
}

}  // namespace
}  // namespace shardc
