// Constraints of single ops, each by a plan of that op alone which breaks it and nothing else: types that no kernel
// computes in, sizes at which the formula of a cost or of scratch would divide by 0 or overflow, constants that mean
// nothing. Each constraint has a case in cases/ops.txt too, or is one that a plan of modest size cannot break.
#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/verify/coded_cases.h"

namespace shardc {
namespace {

/// `operands`: the types of x0, x1, ...
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
    buffers += fmt::format("buffer $b{} shared-transient bytes=70368744177664 category=activations\n", i);
    values += fmt::format("value x{} = $b{}[0] {}\n", i, buffer, broken.operands[i]);
  }
  return fmt::format("plan version=2 mesh={} device=cpu kernels=fused\n{}{}section step {{\n  compute {}\n}}\n",
                     broken.mesh, buffers, values, broken.op);
}

const BrokenOp BrokenOps[] = {
    {"attention-c1",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=4",
     {"f64[8, 2, 16]", "f64[8, 2, 8]", "f64[8, 2, 8]", "f64[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=0",
     {"f32[8, 2, 16]", "f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=-4",
     {"f32[8, 2, 16]", "f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[2, 4, 8]"}},
    {"attention-c1",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 scratch=x5 head_dim=4",
     {"f32[16, 16]", "f32[16, 8]", "f32[16, 8]", "f32[16, 16]", "f32[2, 4, 8]", "f32[16]"}},
    {"attention-c2",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 scratch=x5 head_dim=8",
     {"f32[8, 2, 16]", "f32[8, 2, 4]", "f32[8, 2, 4]", "f32[8, 2, 16]", "f32[2, 2, 8]", "f32[16]"}},
    {"attention-c3",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 scratch=x5 head_dim=4",
     {"f32[8, 2, 8]", "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[8, 2, 8]", "f32[2, 2, 8]", "f32[16]"}},
    {"attention-c5",
     "attention q=x0 k=x1 v=x2 y=x3 lse=x4 head_dim=1",
     {"f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]", "f32[4398046511104, 1, 1]",
      "f32[1, 1, 4398046511104]"}},
    {"attention_backward-c2",
     "attention_backward dy=x0 q=x1 k=x2 v=x3 y=x4 lse=x5 dq=x6 dk=x7 dv=x8 scratch=x9 head_dim=4",
     {"f32[8, 2, 8]", "f32[8, 2, 8]", "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[8, 2, 8]", "f32[2, 2, 8]", "f32[8, 2, 8]",
      "f32[8, 2, 16]", "f32[8, 2, 16]", "f32[16]"}},
    {"attention_backward-c2",
     "attention_backward dy=x0 q=x1 k=x2 v=x3 y=x4 lse=x5 dq=x6 dk=x7 dv=x8 scratch=x9 head_dim=4",
     {"i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "i32[8, 2, 8]", "f32[2, 2, 8]", "i32[8, 2, 8]",
      "i32[8, 2, 8]", "i32[8, 2, 8]", "f32[16]"}},
    {"attention_backward-c4",
     "attention_backward dy=x0 q=x1 k=x2 v=x3 y=x4 lse=x5 dq=x6 dk=x7 dv=x8 head_dim=1",
     {"f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]",
      "f32[2147483648, 1, 1]", "f32[1, 1, 2147483648]", "f32[2147483648, 1, 1]", "f32[2147483648, 1, 1]",
      "f32[2147483648, 1, 1]"}},
    {"matmul-c1", "matmul a=x0 b=x1 out=x2 scratch=x3", {"f32[]", "f32[4, 4]", "f32[4, 4]", "f32[16]"}},
    {"matmul-c3", "matmul a=x0 b=x1 out=x2 scratch=x3", {"f64[4, 4]", "f64[4, 4]", "f64[4, 4]", "f32[16]"}},
    {"scratch-size", "matmul a=x0 b=x1 out=x2 scratch=x3", {"f32[4, 4]", "f32[4, 4]", "f32[4, 4]", "f32[16]"}},
    {"matmul-c5",
     "matmul a=x0 b=x1 out=x2 scratch=x3",
     {"f32[2097152, 2097152]", "f32[2097152, 2097152]", "f32[2097152, 2097152]", "f32[16]"}},
    {"add-c1", "add a=x0 b=x1 y=x2", {"i64[8]", "i64[8]", "i64[8]"}, "1", {{2, 1}}},
    {"cast-c2", "cast x=x0 y=x1", {"f32[8]", "f32[8]"}},
    {"cast-c2", "cast x=x0 y=x1", {"f64[8]", "f32[8]"}},
    {"cross_entropy-c1",
     "cross_entropy logits=x0 targets=x1 loss=x2 lse=x3",
     {"f64[8, 2, 9]", "i32[8, 2]", "f64[1]", "f32[8, 2]"}},
    {"log_sum_exp-c1", "log_sum_exp logits=x0 lse=x1", {"i32[8, 2, 9]", "f32[8, 2]"}},
    {"sharded_cross_entropy-c1",
     "sharded_cross_entropy logits=x0 targets=x1 parts=x2 loss=x3 lse=x4",
     {"f64[8, 2, 9]", "i32[8, 2]", "f32[1, 8, 2]", "f64[1]", "f32[8, 2]"}},
    {"cross_entropy_backward-c1",
     "cross_entropy_backward logits=x0 targets=x1 lse=x2 count=x3 dlogits=x4",
     {"f64[8, 2, 9]", "i32[8, 2]", "f32[8, 2]", "f64[1]", "f64[8, 2, 9]"},
     "1",
     {{4, 0}}},
    {"embedding-c2", "embedding tokens=x0 weight=x1 y=x2", {"i32[8, 2]", "i64[9, 4]", "i64[8, 2, 4]"}},
    {"residual_add-c3", "residual_add x=x0 branch=x1 y=x2", {"f64[8]", "f64[8]", "f64[8]"}},
    {"rms_norm-c2", "rms_norm x=x0 weight=x1 y=x2 rstd=x3 eps=0", {"f64[8, 4]", "f64[4]", "f64[8, 4]", "f32[8]"}},
    {"rms_norm-c4", "rms_norm x=x0 weight=x1 y=x2 rstd=x3 eps=-0.5", {"f32[8, 4]", "f32[4]", "f32[8, 4]", "f32[8]"}},
    {"rms_norm_backward-c1",
     "rms_norm_backward dy=x0 x=x1 weight=x2 rstd=x3 dx=x4 dweight=x5",
     {"f32[8, 4]", "bf16[8, 4]", "f32[4]", "f32[8]", "bf16[8, 4]", "f32[4]"}},
    {"rope-c1", "rope x=x0 table=x1 y=x2 head_dim=0", {"f32[8, 2, 4]", "f32[8, 2, 2]", "f32[8, 2, 4]"}, "1", {{2, 0}}},
    {"rope-c3", "rope x=x0 table=x1 y=x2 head_dim=4", {"i32[8, 2, 4]", "f32[8, 2, 2]", "i32[8, 2, 4]"}, "1", {{2, 0}}},
    {"swiglu-c1", "swiglu gate=x0 up=x1 y=x2", {"i32[8]", "i32[8]", "i32[8]"}},
    {"swiglu_backward-c1",
     "swiglu_backward dy=x0 gate=x1 up=x2 dgate=x3 dup=x4",
     {"f64[8]", "f64[8]", "f64[8]", "f64[8]", "f64[8]"},
     "1",
     {{3, 1}, {4, 2}}},
    {"fill-c1", "fill out=x0 value=0.5", {"i64[8]"}},
    {"fill-c1", "fill out=x0 value=3e9", {"i32[8]"}},
    {"fill-c1", "fill out=x0 value=1e19", {"i64[8]"}},
    {"fill-c1", "fill out=x0 value=1e39", {"f32[8]"}},
    {"fill-c1", "fill out=x0 value=-3.4e38", {"bf16[8]"}},
    {"all_gather-c1", "all_gather shard=x0 full=x1 axes=dp", {"bf16[35184372088832]", "bf16[1]"}, "dp:1048576"},
    {"reduce_scatter-c1", "reduce_scatter full=x0 shard=x1 axes=dp", {"bf16[1]", "bf16[35184372088832]"}, "dp:1048576"},
    {"all_gather-c6", "all_gather shard=x0 full=x1 axes=dp", {"bf16[33554432]", "bf16[35184372088832]"}, "dp:1048576"},
    {"reduce_scatter-c6",
     "reduce_scatter full=x0 shard=x1 axes=dp",
     {"bf16[35184372088832]", "bf16[33554432]"},
     "dp:1048576"},
    {"all_reduce-c3",
     "all_reduce x=x0 y=x1 axes=dp",
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
