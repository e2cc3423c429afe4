#include "tests/verify/coded_cases.h"

#include <algorithm>
#include <cmath>

#include "compiler/base/plan_limits.h"
#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"
#include "tests/support/published_files.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

namespace {

template <class Body>
auto FirstOp(Plan& plan, SectionKind section = SectionKind::Step) -> Op& {
  for (Op& op : plan.section(section).ops) {
    if (op.As<Body>() != nullptr) {
      return op;
    }
  }
  CHECK(false, "no {} in {}", Body::Mnemonic, ToText(section));
}
template <class Body>
auto FirstBody(Plan& plan) -> Body& {
  return std::get<Body>(FirstOp<Body>(plan).body);
}

/// A buffer in many pieces, each overwritten in place, and many reads of the whole.
auto HostilePlan() -> std::string {
  std::string text =
      "plan version=2 mesh=1 device=cpu kernels=fused\npasses schedule\nbuffer $x transient bytes=80000 "
      "category=data\n"
      "buffer $y transient bytes=8 category=data\nvalue x = $x[0] i32[20000]\nvalue y = $y[0] f64[1]\n";
  std::string ops = "section step {\n";
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("value a{} = $x[{}] f32[1]\nvalue b{} = $x[{}] f32[1]\n", i, 4 * i, i, 4 * i);
    ops += fmt::format("  compute fill out=a{} value=0\n  compute all_reduce x=a{} y=b{} axes=dp\n", i, i, i);
  }
  for (int i = 0; i < 20'000; ++i) {
    ops += "  compute count_valid targets=x count=y\n  compute release buffer=$y\n";
  }
  return text + ops + "}\n";
}

auto JudgeHostilePlan() -> std::vector<std::string> {
  const auto plan = ParsePlan(HostilePlan());
  CHECK(plan.ok(), "{}", plan.error().message);
  return VerifyPlan(*plan);
}

/// Judges a plan that begins from a model with fused tensors, of which one rule reads another element.
auto JudgeFusedPlan(const std::string& parameter, const std::string& rule) -> std::vector<std::string> {
  const TemporaryFolder folder;
  PublishedFiles::Make("llama", "F32").Fused().Write(folder / "model");
  Plan plan =
      CompileSample({"model.hidden=60", "model.heads=4", "model.kv_heads=2", "model.head_dim=12", "model.ffn=102",
                     "model.vocab=257", "model.norm_eps=1e-5", "model.rope_theta=5000", "init.rule=[]",
                     "data.format=u16", fmt::format("start.first={{ seed = \"{}\" }}", folder / "model")});
  CHECK(VerifyPlan(plan).empty(), "the plan is sound");
  std::ranges::find(plan.parameters, parameter, &Parameter::name)->init = rule;
  return VerifyPlan(plan);
}

}  // namespace

auto CodedCases() -> std::vector<CodedCase> {
  static const Plan valid = CompileSample();
  std::vector<CodedCase> cases;
  const auto add = [&](const char* what, const char* label, void (*edit)(Plan&)) {
    cases.push_back({what, label, [edit] {
                       Plan plan = valid;
                       edit(plan);
                       return VerifyPlan(plan);
                     }});
  };
  add("an operand that there is not", "id-out-of-range",
      [](Plan& p) { FirstBody<op::Embedding>(p).weight = ValueId{1 << 30}; });
  add("the release of a buffer that there is not", "id-out-of-range",
      [](Plan& p) { FirstBody<op::Release>(p).buffer = BufferId{1 << 30}; });
  add("a wait for an event that there is not", "id-out-of-range",
      [](Plan& p) { p.section(SectionKind::Step).ops[0].waits.push_back(EventId{1 << 30}); });
  add("a signal of an event that there is not", "id-out-of-range",
      [](Plan& p) { p.section(SectionKind::Step).ops[0].signals = EventId{1 << 30}; });
  add("a predicate on a scalar that there is not", "id-out-of-range",
      [](Plan& p) { p.section(SectionKind::Step).ops[0].when.scalar = ScalarId{1 << 30}; });
  add("a value in a buffer that there is not", "id-out-of-range",
      [](Plan& p) { p.values[ValueId{0}].buffer = BufferId{1 << 30}; });
  add("a value that is a parameter that there is not", "id-out-of-range",
      [](Plan& p) { p.values[ValueId{0}].role = ValueRole::Of(ParameterId{1 << 30}); });
  add("a value that is the gradient of a parameter that there is not", "id-out-of-range",
      [](Plan& p) { p.values[ValueId{0}].role = ValueRole::GradientOf(ParameterId{-2}); });
  add("a value that is a sub-vector that there is not", "id-out-of-range",
      [](Plan& p) { p.values[ValueId{0}].role = ValueRole::Of(SubVectorId{99}); });
  add("a scalar of a head that there is not", "id-out-of-range",
      [](Plan& p) { p.scalars[ScalarId{0}].head = HeadId{99}; });
  add("a sub-vector of a unit that there is not", "id-out-of-range",
      [](Plan& p) { p.sub_vectors[SubVectorId{0}].unit = UnitId{-2}; });
  add("a segment of a parameter that there is not", "id-out-of-range",
      [](Plan& p) { p.sub_vectors[SubVectorId{0}].segments[0].parameter = ParameterId{99}; });
  add("a halt at a scalar that there is not", "id-out-of-range",
      [](Plan& p) { p.halts.push_back({.scalar = ScalarId{99}, .code = ExitCode::Ok}); });
  add("a loop without an end", "repeat-nesting", [](Plan& p) { FirstOp<op::EndRepeat>(p).body = op::SaveCommit{}; });
  add("an end without a loop", "repeat-nesting", [](Plan& p) {
    std::vector<Op>& ops = p.section(SectionKind::Step).ops;
    ops.insert(ops.begin(), Op{.body = op::EndRepeat{}});
  });
  add("an op without a body", "op-empty", [](Plan& p) {
    std::vector<Op>& ops = p.section(SectionKind::Step).ops;
    ops.insert(ops.begin(), Op{});
  });
  add("a constant that is no number", "not-finite", [](Plan& p) {
    for (Op& op : p.section(SectionKind::Step).ops) {
      if (auto* adamw = std::get_if<op::Adamw>(&op.body)) {
        adamw->beta1 = NAN;
      }
    }
  });
  add("a learning-rate scale without bound", "not-finite", [](Plan& p) { p.groups[GroupId{0}].lr_scale = INFINITY; });
  add("an init rule that takes too long to compile", "init-formula", [](Plan& p) {
    std::string& rule = p.parameters[ParameterId{0}].init;
    rule = "normal(0, 1)";
    for (int i = 0; i < 600; ++i) {
      rule += " + normal(0, 1)";
    }
  });
  add("more ops than a plan can have", "too-many",
      [](Plan& p) { p.section(SectionKind::Step).ops.resize(static_cast<size_t>(MostOps) + 1); });
  add("more events than ops", "too-many", [](Plan& p) { p.num_events = 2147483647; });
  add("fewer events than none", "too-many", [](Plan& p) { p.num_events = -1; });
  add("more scalars than a plan can have", "too-many", [](Plan& p) {
    while (p.scalars.size() <= MostScalars) {
      p.scalars.Add({fmt::format("more{}", p.scalars.size()), ScalarKind::Metric, {}});
    }
  });
  cases.push_back({"a parameter that is the rows of another", "header-recipe", [] {
                     return JudgeFusedPlan("model.layers.0.mlp.up_proj.weight",
                                           "seed('model.layers.0.mlp.gate_up_proj.weight', index(0), index(1))");
                   }});
  cases.push_back({"a parameter that is rows of another block", "header-recipe", [] {
                     return JudgeFusedPlan("model.layers.0.self_attn.k_proj.weight",
                                           "seed('model.layers.1.self_attn.qkv_proj.weight', index(0) + 48, index(1))");
                   }});
  cases.push_back({"byte ranges that take too long to follow", "too-complex", JudgeHostilePlan});
  return cases;
}

}  // namespace shardc
