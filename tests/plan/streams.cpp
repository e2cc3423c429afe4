// Streams of collectives: those of the axes' rows.
#include <gtest/gtest.h>

#include "compiler/plan/types.h"

namespace shardc {
namespace {

TEST(Streams, OfSetsOfAxes) {
  const AxisSet dp = AxisSet::Of(Axis::Dp);
  const AxisSet tp = AxisSet::Of(Axis::Tp);
  const AxisSet part = AxisSet::Of(Axis::DpInner);
  EXPECT_EQ(StreamOf(dp), Stream::Dp);
  EXPECT_EQ(StreamOf(tp), Stream::Tp);
  EXPECT_EQ(StreamOf(AxisSet::Of(Axis::Replicate)), Stream::Dp);
  // A part has the stream of its whole, and several axes that of the first.
  EXPECT_EQ(StreamOf(part), Stream::Dp);
  EXPECT_EQ(StreamOf(dp | tp), Stream::Dp);
  EXPECT_EQ(StreamOf(part | tp), Stream::Dp);
  EXPECT_EQ(StreamOf(AxisSet{}), Stream::Dp);
}

}  // namespace
}  // namespace shardc
