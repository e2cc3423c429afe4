// Constraints of single ops, each by a plan of that op alone which breaks it and nothing else: types that no kernel
// computes in, sizes at which the formula of a cost or of scratch would divide by 0 or overflow, constants that mean
// nothing. Each constraint has a case in cases/ops.txt too, or is one that a plan of modest size cannot break.
#include "compiler/ops/verify_plan.h"
#include "compiler/plan/text.h"
#include "tests/verify/coded_cases.h"

namespace shardc {
namespace {

/// `operands`: the types of %0, %1, ...
struct BrokenOp {
  const char* rule;
  const char* op;
  std::vector<std::string> operands;
  const char* mesh = "1";
  /// Value n lies on the bytes of value m.
  std::vector<std::pair<size_t, size_t>> same_bytes = {};
};

auto PlanOf(const BrokenOp& broken) -> std::string {
  std::string buffers;
  std::string values;
  for (size_t i = 0; i < broken.operands.size(); ++i) {
    size_t buffer = i;
    for (const auto& [upper, lower] : broken.same_bytes) {
      buffer = upper == i ? lower : buffer;
    }
    buffers += fmt::format("buffer ${} shared-transient b{} bytes=70368744177664 category=activations\n", i, i);
    values += fmt::format("value %{} = ${}[0] {}\n", i, buffer, broken.operands[i]);
  }
  return fmt::format("plan version=1 mesh={} device=cpu kernels=fused\n{}{}section step {{\n  compute {}\n}}\n",
                     broken.mesh, buffers, values, broken.op);
}

const BrokenOp BrokenOps[] = {
    {"attention-c1",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 head_dim=4",
     {"f64[8, 2, 16]", "f64[8, 2, 8]", "f64[8, 2, 8]", "f64[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 head_dim=0",
     {"f32[8, 2, 16]", "f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 head_dim=-4",
     {"f32[8, 2, 16]", "f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 scratch=%5 head_dim=4",
     {"f32[16, 16]", "f32[16, 8]", "f32[16, 8]", "f32[16, 16]", "f32[2, 4, 8]", "f32[16]"}},
    {"attention-c2",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 scratch=%5 head_dim=8",
     {"f32[8, 2, 16]", "f32[8, 2, 4]", "f32[8, 2, 4]", "f32[8, 2, 16]", "f32[2, 2, 8]", "f32[16]"}},
    {"attention-c3",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 scratch=%5 head_dim=4",
     {"f32[8, 2, 8]", "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[8, 2, 8]", "f32[2, 2, 8]", "f32[16]"}},
    {"attention-c6",
     "attention q=%0 k=%1 v=%2 y=%3 lse=%4 head_dim=1",
     {"f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]",
      "f32[1, 1, 4398046511104]"}},
    {"attention_backward-c2",
     "attention_backward dy=%0 q=%1 k=%2 v=%3 y=%4 lse=%5 dq=%6 dk=%7 dv=%8 scratch=%9 head_dim=4",
     {"f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[8, 2, 8]", "f32[2, 2, 8]", "f32[8, 2, 8]",
      "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[16]"}},
    {"attention_backward-c2",
     "attention_backward dy=%0 q=%1 k=%2 v=%3 y=%4 lse=%5 dq=%6 dk=%7 dv=%8 scratch=%9 head_dim=4",
     {"i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "f32[2, 2, 8]", "i32[8, 2, 8]",
      "i32[8, 2, 8]", "i32[8, 2, 8]", "f32[16]"}},
    {"attention_backward-c5",
     "attention_backward dy=%0 q=%1 k=%2 v=%3 y=%4 lse=%5 dq=%6 dk=%7 dv=%8 head_dim=1",
     {"f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]",
      "f32[2147483648, 1, 1]", "f32[1, 1, 2147483648]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]",
      "f32[2147483648, 1, 1]"}},
    {"matmul-c1", "matmul a=%0 b=%1 out=%2 scratch=%3", {"f32[]", "f32[4, 4]", "f32[4, 4]", "f32[16]"}},
    {"matmul-c3", "matmul a=%0 b=%1 out=%2 scratch=%3", {"f64[4, 4]", "f64[4, 4]", "f64[4, 4]", "f32[16]"}},
    {"matmul-c5", "matmul a=%0 b=%1 out=%2 scratch=%3", {"f32[4, 4]", "f32[4, 4]", "f32[4, 4]", "f32[16]"}},
    {"matmul-c6",
     "matmul a=%0 b=%1 out=%2 scratch=%3",
     {"f32[2097152, 2097152]", "f32[2097152, 2097152]", "f32[2097152, 2097152]", "f32[16]"}},
    {"add-c1", "add a=%0 b=%1 y=%2", {"i64[8]", "i64[8]", "i64[8]"}, "1", {{2, 1}}},
    {"cast-c2", "cast x=%0 y=%1", {"f32[8]", "f32[8]"}},
    {"cast-c2", "cast x=%0 y=%1", {"f64[8]", "f32[8]"}},
    {"cross_entropy-c1",
     "cross_entropy logits=%0 targets=%1 loss=%2 lse=%3",
     {"f64[8, 2, 9]", "i32[8, 2]", "f64[1]", "f32[8, 2]"}},
    {"log_sum_exp-c1", "log_sum_exp logits=%0 lse=%1", {"i32[8, 2, 9]", "f32[8, 2]"}},
    {"sharded_cross_entropy-c1",
     "sharded_cross_entropy logits=%0 targets=%1 parts=%2 loss=%3 lse=%4",
     {"f64[8, 2, 9]", "i32[8, 2]", "f32[1, 8, 2]", "f64[1]", "f32[8, 2]"}},
    {"cross_entropy_backward-c1",
     "cross_entropy_backward logits=%0 targets=%1 lse=%2 count=%3 dlogits=%4",
     {"f64[8, 2, 9]", "i32[8, 2]", "f32[8, 2]", "f64[1]", "f64[8, 2, 9]"},
     "1",
     {{4, 0}}},
    {"embedding-c2", "embedding tokens=%0 weight=%1 y=%2", {"i32[8, 2]", "i64[9, 4]", "i64[8, 2, 4]"}},
    {"residual_add-c3", "residual_add x=%0 branch=%1 y=%2", {"f64[8]", "f64[8]", "f64[8]"}},
    {"rms_norm-c2", "rms_norm x=%0 weight=%1 y=%2 rstd=%3 eps=0", {"f64[8, 4]", "f64[4]", "f64[8, 4]", "f32[8]"}},
    {"rms_norm-c4", "rms_norm x=%0 weight=%1 y=%2 rstd=%3 eps=-0.5", {"f32[8, 4]", "f32[4]", "f32[8, 4]", "f32[8]"}},
    {"rms_norm_backward-c1",
     "rms_norm_backward dy=%0 x=%1 weight=%2 rstd=%3 dx=%4 dweight=%5",
     {"f32[8, 4]", "bf16[8, 4]", "f32[4]", "f32[8]", "bf16[8, 4]", "f32[4]"}},
    {"rope-c1", "rope x=%0 table=%1 y=%2 head_dim=0", {"f32[8, 2, 4]", "f32[8, 2, 2]", "f32[8, 2, 4]"}, "1", {{2, 0}}},
    {"rope-c3", "rope x=%0 table=%1 y=%2 head_dim=4", {"i32[8, 2, 4]", "f32[8, 2, 2]", "i32[8, 2, 4]"}, "1", {{2, 0}}},
    {"swiglu-c1", "swiglu gate=%0 up=%1 y=%2", {"i32[8]", "i32[8]", "i32[8]"}},
    {"swiglu_backward-c1",
     "swiglu_backward dy=%0 gate=%1 up=%2 dgate=%3 dup=%4",
     {"f64[8]", "f64[8]", "f64[8]", "f64[8]", "f64[8]"},
     "1",
     {{3, 1}, {4, 2}}},
    {"fill-c1", "fill out=%0 value=0.5", {"i64[8]"}},
    {"fill-c1", "fill out=%0 value=3e9", {"i32[8]"}},
    {"fill-c1", "fill out=%0 value=1e19", {"i64[8]"}},
    {"fill-c1", "fill out=%0 value=1e39", {"f32[8]"}},
    {"fill-c1", "fill out=%0 value=-3.4e38", {"bf16[8]"}},
    {"all_gather-c1", "all_gather shard=%0 full=%1 axes=dp", {"bf16[35184372088832]", "bf16[1]"}, "dp:1048576"},
    {"reduce_scatter-c1", "reduce_scatter full=%0 shard=%1 axes=dp", {"bf16[1]", "bf16[35184372088832]"}, "dp:1048576"},
    {"all_gather-c6", "all_gather shard=%0 full=%1 axes=dp", {"bf16[33554432]", "bf16[35184372088832]"}, "dp:1048576"},
    {"reduce_scatter-c6",
     "reduce_scatter full=%0 shard=%1 axes=dp",
     {"bf16[35184372088832]", "bf16[33554432]"},
     "dp:1048576"},
    {"all_reduce-c3",
     "all_reduce x=%0 y=%1 axes=dp",
     {"f32[17592186044416]", "f32[17592186044416]"},
     "dp:1048576",
     {{1, 0}}},
};

}  // namespace

auto OneOpCases() -> std::vector<CodedCase> {
  std::vector<CodedCase> cases;
  for (const BrokenOp& broken : BrokenOps) {
    const std::string text = PlanOf(broken);
    cases.push_back({text, broken.rule, [text] {
                       const auto plan = ParsePlan(text);
                       CHECK(plan.ok(), "{}", plan.error().message);
                       return VerifyPlan(*plan);
                     }});
  }
  return cases;
}

}  // namespace shardc
