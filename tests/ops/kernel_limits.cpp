// Sizes that kernels for GPUs take at most: each is taken, and one more is not.
#include "compiler/ops/cuda/kernel_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct BoundedSize {
  const char* op;
  const char* what;
  int64_t most;
  /// Types of x0, x1, ... by the size.
  std::function<std::vector<std::string>(int64_t)> operands;
};

auto F32(std::initializer_list<int64_t> dims) -> std::string {
  return fmt::format("f32{}", ToText(Dims(dims.begin(), dims.end())));
}

const BoundedSize BoundedSizes[] = {
    {"attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=2", "sequences", 65535,
     [](int64_t n) {
       const std::string q = F32({8, n, 4});
       return std::vector{q, q, q, q, F32({n, 2, 8})};
     }},
    {"attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=2", "heads", 65535,
     [](int64_t n) {
       const std::string q = F32({8, 1, 2 * n});
       return std::vector{q, F32({8, 1, 2}), F32({8, 1, 2}), q, F32({1, n, 8})};
     }},
    {"attention_backward dy=x0 q=x1 k=x2 v=x3 y=x4 lse=x5 dq=x6 dk=x7 dv=x8 head_dim=2", "sequences", 65535,
     [](int64_t n) {
       const std::string q = F32({8, n, 4});
       return std::vector{q, q, q, q, q, F32({n, 2, 8}), q, q, q};
     }},
    {"rope x=x0 table=x1 y=x2 head_dim=2", "elements of a position", 33553920,
     [](int64_t n) {
       return std::vector{F32({8, 1, n}), F32({8, 2, 1}), F32({8, 1, n})};
     }},
    {"rope_pair q=x0 k=x1 table=x2 rotated_q=x3 rotated_k=x4 head_dim=2", "elements of a position", 16776960,
     [](int64_t n) {
       const std::string q = F32({8, 1, n});
       return std::vector{q, F32({8, 1, 2}), F32({8, 2, 1}), q, F32({8, 1, 2})};
     }},
    {"rms_norm_backward dy=x0 x=x1 weight=x2 rstd=x3 dx=x4 dweight=x5", "columns", 2097120,
     [](int64_t n) {
       const std::string x = F32({8, 1, n});
       return std::vector{x, x, F32({n}), F32({8, 1}), x, F32({n})};
     }},
    {"head_norm_backward dy=x0 x=x1 weight=x2 rstd=x3 dx=x4 dweight=x5", "columns", 2097120,
     [](int64_t n) {
       const std::string x = F32({8, 1, n});
       return std::vector{x, x, F32({n}), F32({8, 1, 1}), x, F32({n})};
     }},
    {"layer_norm_backward dy=x0 x=x1 weight=x2 mean=x3 rstd=x3 dx=x4 dweight=x5 dbias=x6", "columns", 2097120,
     [](int64_t n) {
       const std::string x = F32({8, 1, n});
       return std::vector{x, x, F32({n}), F32({8, 1}), x, F32({n}), F32({n})};
     }},
    {"bias_add x=x0 bias=x1 y=x2", "columns", 2097120,
     [](int64_t n) {
       return std::vector{F32({8, 1, n}), F32({n}), F32({8, 1, n})};
     }},
    {"bias_add_backward dy=x0 dbias=x1", "columns", 2097120,
     [](int64_t n) {
       return std::vector{F32({8, 1, n}), F32({n})};
     }},
    {"embedding_backward tokens=x0 dy=x1 dweight=x2", "columns", 8388480,
     [](int64_t n) {
       return std::vector<std::string>{"i32[8, 1]", F32({8, 1, n}), F32({16, n})};
     }},
    {"log_sum_exp logits=x0 lse=x1", "rows", INT32_MAX,
     [](int64_t n) {
       return std::vector{F32({n, 1, 1}), F32({n, 1})};
     }},
    {"matmul a=x0 b=x1 out=x2", "rows", INT32_MAX,
     [](int64_t n) {
       return std::vector{F32({n, 1}), F32({1, 1}), F32({n, 1})};
     }},
    {"matmul a=x0 b=x1 out=x2", "columns", INT32_MAX,
     [](int64_t n) {
       return std::vector{F32({1, 1}), F32({1, n}), F32({1, n})};
     }},
    {"fill out=x0 value=0", "elements", int64_t{INT32_MAX} * 256, [](int64_t n) { return std::vector{F32({n})}; }},
};

/// Returns the plan of the op alone.
auto PlanOf(const BoundedSize& bounded, int64_t size) -> Plan {
  std::string buffers;
  std::string values;
  const std::vector<std::string> operands = bounded.operands(size);
  for (size_t i = 0; i < operands.size(); ++i) {
    buffers += fmt::format("buffer $b{} transient bytes=70368744177664 category=activations\n", i);
    values += fmt::format("value x{0} = $b{0}[0] {1}\n", i, operands[i]);
  }
  auto plan =
      ParsePlan(fmt::format("plan version=2 mesh=1 device=cuda kernels=fused\n{}{}section step {{\n  compute {}\n}}\n",
                            buffers, values, bounded.op));
  CHECK(plan.ok(), "{}: {}", bounded.op, plan.error().message);
  return *std::move(plan);
}

auto LimitOf(const Plan& plan) -> std::optional<KernelLimit> {
  return FindKernelLimit(plan.section(SectionKind::Step).ops[0].body, plan);
}

TEST(KernelLimits, LieAtTheLastSizeTaken) {
  for (const BoundedSize& bounded : BoundedSizes) {
    SCOPED_TRACE(fmt::format("{}: {}", bounded.op, bounded.what));
    EXPECT_FALSE(LimitOf(PlanOf(bounded, bounded.most)));
    Plan plan = PlanOf(bounded, bounded.most + 1);
    const auto limit = LimitOf(plan);
    ASSERT_TRUE(limit);
    EXPECT_EQ(limit->what, bounded.what);
    EXPECT_EQ(limit->size, bounded.most + 1);
    EXPECT_EQ(limit->most, bounded.most);
    plan.device = Device::CpuAvx512;
    EXPECT_FALSE(LimitOf(plan));
  }
}

}  // namespace

}  // namespace shardc
