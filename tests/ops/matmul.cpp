#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "compiler/ops/cpu/gemm_cut.h"
#include "compiler/ops/cpu/scratch_slots.h"
#include "tests/ops/matmul_case.h"

namespace shardc {

static auto BodyOf(KernelFixture& fixture, const MatmulCase& test, const MatmulOperands& operands) -> op::Matmul {
  const auto [m, n, k, transpose_a, transpose_b, adds, dtype, out_dtype] = test;
  const ValueId onto = adds ? fixture.Floats(out_dtype, {m, n}, operands.before) : fixture.Add(out_dtype, {m, n});
  return {.a = fixture.Floats(dtype, transpose_a ? Dims{k, m} : Dims{m, k}, operands.a),
          .b = fixture.Floats(dtype, transpose_b ? Dims{n, k} : Dims{k, n}, operands.b),
          .out = fixture.Over(onto),
          .out_onto = adds ? onto : ValueId{},
          .scratch = {},
          .transpose_a = transpose_a,
          .transpose_b = transpose_b};
}

/// All forms of one size.
static auto ExpectCloseInAllForms(int64_t m, int64_t n, int64_t k) -> void {
  for (const auto& [dtype, out_dtype] : MatmulTypes) {
    for (int bits = 0; bits < 8; ++bits) {
      const MatmulCase test{m, n, k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, dtype, out_dtype};
      SCOPED_TRACE(ToText(test));
      const MatmulOperands operands(test);
      const std::vector<double> expected = ExpectedOf(test, operands);
      ForBackends([&](const Backend& backend) {
        KernelFixture fixture(backend);
        const op::Matmul body = BodyOf(fixture, test, operands);
        fixture.Run(body);
        ExpectProduct(fixture, body.out, test, operands, expected);
      });
    }
  }
}

TEST(Matmul, EqualsLoopsInF64) {
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                {1, 7, 5},
                                {3, 1, 128},
                                {17, 3, 33},
                                {33, 129, 17},
                                {64, 64, 64},
                                {129, 33, 3},
                                {513, 17, 1},
                                {17, 257, 33},
                                {65, 10, 300}}) {
    ExpectCloseInAllForms(m, n, k);
  }
}

// Several blocks of each size: rows, columns and terms, with odd rests.
TEST(Matmul, EqualsLoopsInF64AcrossBlocks) {
  constexpr CpuBlocks Blocks = FactsOf(Device::Cpu).blocks;
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{129, 513, 33},
                                {513, 129, 33},
                                {33, 17, Blocks.gemm_depth * 2 + 3},
                                {17, 300, Blocks.gemm_depth + 1},
                                {Blocks.gemm_task_rows + 3, 17, Blocks.gemm_depth * 2 + 1}}) {
    ExpectCloseInAllForms(m, n, k);
  }
}

TEST(Matmul, TakesLeadingDimsAsRows) {
  // x [S, B, H] by W [N, H] transposed, and the gradient of W from two operands of three dims.
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const ValueId x = fixture.Floats(dtype, {2, 1, 2}, {1, 2, 3, 4});
    const ValueId weight = fixture.Floats(dtype, {3, 2}, {1, 0, 0, 1, 1, 1});
    const ValueId y = fixture.Add(dtype, {2, 1, 3});
    fixture.Run(op::Matmul{
        .a = x, .b = weight, .out = y, .out_onto = {}, .scratch = {}, .transpose_a = false, .transpose_b = true});
    ExpectClose(OpKind::Matmul, "y", fixture, y, {1, 2, 3, 3, 4, 7});
    const ValueId dweight = fixture.Add(dtype, {3, 2});
    fixture.Run(op::Matmul{
        .a = y, .b = x, .out = dweight, .out_onto = {}, .scratch = {}, .transpose_a = true, .transpose_b = false});
    ExpectClose(OpKind::Matmul, "dweight", fixture, dweight, {10, 14, 14, 20, 24, 34});
  });
}

TEST(Matmul, BitsDoNotDependOnThreads) {
  for (const Backend& backend : Backends()) {
    // With f32 on the portable path the product is the library's as a whole.
    for (const auto& [dtype, out_dtype] : MatmulTypes) {
      for (int bits = 0; bits < 4; ++bits) {
        const MatmulCase test{300, 270, 1100, (bits & 1) != 0, (bits & 2) != 0, true, dtype, out_dtype};
        if (backend.kernels != KernelSet::Fused || (backend.device == Device::CpuPortable && dtype == DType::F32)) {
          continue;
        }
        SCOPED_TRACE(fmt::format("{} {}", ToText(backend.device), ToText(test)));
        const MatmulOperands operands(test);
        KernelFixture one(backend);
        const op::Matmul with_one = BodyOf(one, test, operands);
        one.Run(with_one);
        SetComputeThreads(3);
        KernelFixture three(backend);
        const op::Matmul with_three = BodyOf(three, test, operands);
        three.Run(with_three);
        SetComputeThreads(1);
        EXPECT_EQ(one.Numbers(with_one.out), three.Numbers(with_three.out));
      }
    }
  }
}

// A plan that names its threads pays for their scratch alone.
// On a GPU a library chooses the algorithm, once.
TEST(Matmul, TakesTheRecordedAlgorithm) {
  const MatmulCase test{.m = 192, .n = 96, .k = 640, .adds = true, .dtype = DType::BF16, .out_dtype = DType::F32};
  const MatmulOperands operands(test);
  ForBackends([&](const Backend& backend) {
    KernelFixture fixture(backend);
    const auto run = [&](KernelFixture& with) {
      const op::Matmul body = BodyOf(with, test, operands);
      with.Run(body);
      return with.Numbers(body.out);
    };
    const std::vector<double> first = run(fixture);
    const std::map<std::string, std::string> record = *fixture.algorithms();
    EXPECT_EQ(record.size(), fixture.device().MeasureMemory() ? 1U : 0U);
    KernelFixture again(backend);
    *again.algorithms() = record;
    EXPECT_EQ(run(again), first);
    EXPECT_EQ(*again.algorithms(), record);
    // A text that is none of an algorithm is replaced.
    KernelFixture broken(backend);
    for (const auto& [product, algorithm] : record) {
      (*broken.algorithms())[product] = algorithm + "-0";
    }
    EXPECT_EQ(run(broken), first);
    EXPECT_EQ(*broken.algorithms(), record);
  });
}

TEST(Matmul, ScratchFollowsThePlansThreads) {
  KernelFixture fixture;
  const MatmulCase test{.m = 2048, .n = 1024, .k = 256};
  const op::Matmul body = BodyOf(fixture, test, MatmulOperands(test));
  fixture.mutable_plan().run.threads = 1;
  const Bytes one = ScratchBytes(body, fixture.plan());
  fixture.mutable_plan().run.threads = 3;
  EXPECT_EQ(ScratchBytes(body, fixture.plan()), one * 3);
  fixture.mutable_plan().run.threads = 0;
  EXPECT_EQ(ScratchBytes(body, fixture.plan()), one * OpenSlots);
}

}  // namespace shardc
