// What the emulation of GPUs notices: kernels that are wrong, each in one place.
#include "tests/support/device_code_emulated.h"
//
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <csignal>

#include "runtime/kernels/cuda/device_code.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

using Line = std::array<float, 256>;

/// Reverses 256 elements through shared memory.
template <bool HasBarrier>
static __global__ void ReverseKernel(const float* x, float* y) {
  SHARED(elements, float[256]);
  elements[cuda::Thread()] = x[cuda::Thread()];
  if constexpr (HasBarrier) {
    __syncthreads();
  }
  y[cuda::Thread()] = elements[255 - cuda::Thread()];
}

template <bool HasBarrier>
static auto Reversed(emulated::WarpOrder order) -> Line {
  emulated::warp_order = order;
  Line x{};
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
  }
  Line y{};
  EXPECT_TRUE(cuda::Launch(nullptr, {}, ReverseKernel<HasBarrier>, x.data(), y.data()).ok());
  return y;
}

TEST(Emulation, BarrierMakesOrderNoMatter) {
  using enum emulated::WarpOrder;
  const Line ascending = Reversed<true>(Ascending);
  EXPECT_EQ(ascending, Reversed<true>(Descending));
  EXPECT_EQ(ascending[0], 255);
  EXPECT_EQ(ascending[255], 0);
}

TEST(Emulation, MissingBarrierChangesResults) {
  using enum emulated::WarpOrder;
  const Line ascending = Reversed<false>(Ascending);
  const Line descending = Reversed<false>(Descending);
  EXPECT_NE(ascending, descending);
  // The first warp reads what the last one has not written.
  EXPECT_TRUE(std::isnan(ascending[0]));
  EXPECT_TRUE(std::isnan(descending[255]));
}

static __global__ void BarrierOfSomeKernel() {
  if (cuda::Thread() < 100) {
    __syncthreads();
  }
}

static __global__ void ShuffleOfSomeKernel(float* y) {
  if (cuda::Lane() < 16) {
    *y = __shfl_xor_sync(~0U, 1.0F, 8);
  }
}

static __global__ void TwoKindsKernel(float* y) {
  if (cuda::Lane() < 16) {
    *y = __shfl_xor_sync(~0U, 1.0F, 8);
  } else {
    __syncthreads();
  }
}

TEST(Emulation, BarrierNeedsAllThreads) {
  emulated::warp_order = emulated::WarpOrder::Ascending;
  float y = 0;
  EXPECT_EXIT(static_cast<void>(cuda::Launch(nullptr, {}, BarrierOfSomeKernel)), testing::ExitedWithCode(1),
              "thread 0 waits at __syncthreads, thread 100 has returned");
  EXPECT_EXIT(static_cast<void>(cuda::Launch(nullptr, {}, ShuffleOfSomeKernel, &y)), testing::ExitedWithCode(1),
              "thread 0 waits at __shfl_xor_sync, thread 16 has returned");
  EXPECT_EXIT(static_cast<void>(cuda::Launch(nullptr, {}, TwoKindsKernel, &y)), testing::ExitedWithCode(1),
              "thread 0 waits at __shfl_xor_sync, thread 16 waits at __syncthreads");
}

static __global__ void WritePastEndKernel() { cuda::DynamicShared<float>()[cuda::Thread()] = 1; }

TEST(Emulation, SharedMemoryHasGuards) {
  EXPECT_EXIT(
      static_cast<void>(cuda::Launch(nullptr, {.grid = {}, .threads = 256, .shared_bytes = 1020}, WritePastEndKernel)),
      testing::ExitedWithCode(1), "wrote past the end of 1020 B");
}

static __global__ void KeepForNextBlockKernel(float* y) {
  SHARED(kept, float);
  if (cuda::Thread() == 0) {
    y[cuda::BlockX()] = kept;
    kept = 1;
  }
}

TEST(Emulation, SharedMemoryStartsAsNan) {
  std::array<float, 2> y{};
  EXPECT_TRUE(cuda::Launch(nullptr, {.grid = {2}, .threads = 32}, KeepForNextBlockKernel, y.data()).ok());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
}

constexpr Backend Emulated{Device::CudaSm90, KernelSet::Fused};

TEST(Emulation, WrongScratchSizeShows) {
  KernelFixture fixture(Emulated);
  constexpr int64_t Columns = 64;
  op::BiasAddBackward body{.dy = fixture.F32({2100, Columns}, RandomNumbers(2100 * Columns, 1)),
                           .dbias = fixture.Add(DType::F32, {Columns})};
  // As if ScratchBytes had told of 16 columns: the value tells what the kernel asks for, and the buffer has less.
  const int64_t asked = ScratchBytes(body, fixture.plan()).value;
  Plan& plan = fixture.mutable_plan();
  const BufferId buffer = plan.buffers.Add({.name = "scratch", .bytes = Bytes{asked / 4}, .offset = 0});
  body.scratch =
      plan.values.Add({.buffer = buffer, .offset = {}, .dtype = DType::F32, .shape = {asked / SizeOf(DType::F32)}});
  fixture.AllocateNewBuffers();
  EXPECT_NONFATAL_FAILURE(static_cast<void>(fixture.TryRun(body)), "wrote outside its operands");
}

TEST(Emulation, HostCannotReadDeviceMemory) {
  KernelFixture fixture(Emulated);
  const View view = fixture.ViewOf(fixture.F32({1}, {1}));
  EXPECT_EXIT(fmt::print("{}", *view.At<const volatile float>(Moment{})), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace shardc
