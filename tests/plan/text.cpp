// The text form: what is printed parses back to an equal plan, and what is not a plan is refused with its place.
#include "compiler/plan/text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compiler/ops/verify_plan.h"
#include "compiler/recipe/key_rows.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

const std::vector<std::vector<std::string>> RecipeVariants{
    {},
    {"mesh.dp=1"},
    {"mesh.dp=1", "batch.global=2"},
    {"mesh.dp=3"},
    {"batch.global=4"},
    {"recompute.policy=\"full\""},
    {"recompute.policy=\"selective\"", "recompute.save=[\"q_proj\", \"attention\"]", "recompute.layers=\"1/2\""},
    {"recompute.policy=\"torchtitan-sac\""},
    {"shard.reshard_after_forward=true", "recompute.policy=\"full\"", "batch.global=4"},
    {"shard.reshard_after_forward=false"},
    {"optimizer.clip_norm=0", "train.on_nonfinite=\"skip\"", "data.eval_tokens=0", "train.eval_every=0"},
};

TEST(PlanText, CompiledPlansRoundTripAndVerifyAfterEveryPass) {
  for (const auto& sets : RecipeVariants) {
    for (const PassRow& pass : PassRows()) {
      SCOPED_TRACE(fmt::format("{} after {}", fmt::join(sets, " "), pass.name));
      const Plan plan = CompileSample(sets, pass.kind);
      const std::string text = PrintPlan(plan);
      const auto again = ParsePlan(text);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_TRUE(*again == plan);
      EXPECT_EQ(PrintPlan(*again), text);
      EXPECT_EQ(VerifyPlan(*again), std::vector<std::string>{});
    }
  }
}

/// A plan that means nothing, with the unusual form of every field.
auto OddPlan() -> Plan {
  Plan plan;
  plan.mesh.sizes = {2, 1, 4};
  plan.mesh.set_size(Axis::DpInner, 3);
  plan.device = Device::CpuAvx512;
  plan.kernels = KernelSet::Reference;
  plan.model = {{"family", "a \"quoted\" one"}, {"layers", "2"}};
  plan.overrides = {"init.rule=\"x\\y\"", "train.steps=3 // no comment"};
  plan.recipe = {{"init.rule", "[{ match = \"*\", value = \"x\\ny\" }]"},
                 {"", ""},
                 {"odd key", std::string(100'000, '\x01')},
                 {"last", "1"}};
  plan.data.sources = {{.name = "", .weight = "", .files = {"/data/with space.bin", "b\n.bin", "\xc3\xa9.bin", ""}}};
  plan.data.seed = ~uint64_t{0};
  plan.run.run_id = "";
  plan.run.run_dir = "//share/run";
  plan.passes = {PassKind::Build, PassKind::Synchronize};
  plan.disabled = {PassKind::Recompute};
  plan.heads.Add({.name = "odd \"head\"", .vocab = 1, .files = {"a b.bin", ""}});
  plan.heads.Add({.name = "bare", .vocab = int64_t{1} << 40, .files = {}, .is_own = true});
  plan.groups.Add({.name = "*.bias", .weight_decay = 5e-324, .lr_scale = 1.7976931348623157e308});
  plan.parameters.Add({.name = "w = 1",
                       .shape = {},
                       .dtype = DType::BF16,
                       .layer = 3,
                       .trainable = false,
                       .placement = {Placement::Partial(), {}, Placement::Shard(1)},
                       .group = {},
                       .init = "",
                       .init_origin = {7, {}}});
  plan.units.Add({.name = "{u}", .reshard_after_forward = false, .origin = {0, "shard.unit"}});
  SubVector sub_vector;
  sub_vector.axes = AxisSet::All();
  sub_vector.cut = AxisSet::Of(Axis::Tp) | AxisSet::Of(Axis::DpInner);
  sub_vector.segments = {{.begin = -1, .end = 5, .parameter = ParameterId{0}, .counted_in_norm = false}, {}};
  plan.sub_vectors.Add(sub_vector);
  plan.scalars.Add({"lr", ScalarKind::Schedule, "if step < 1 then 0 else 1"});
  plan.scalars.Add({"lr", ScalarKind::Flag, ""});
  plan.scalars.Add({"odd name", ScalarKind::Metric, "", ScalarRole::TermEvalLoss, HeadId{1}});
  plan.buffers.Add({.name = "// name",
                    .arena = Arena::SharedTransient,
                    .category = Category::Collective,
                    .bytes = Bytes{-3},
                    .offset = 0});
  RankExpr offset{.base = -64, .axis = {1, -2, 0, 7}, .repeat = 3, .step = -4, .clamp = Interval{-5, 5}, .equals = 2};
  plan.values.Add({.buffer = BufferId{0},
                   .offset = offset,
                   .dtype = DType::I64,
                   .shape = {1, 2, 3},
                   .placement = {Placement::Shard(2), {}, Placement::Partial(), Placement::Shard(0)},
                   .name = "{x}"});
  for (const ValueRole role : {ValueRole::Of(ParameterId{0}), ValueRole::Of(SubVectorId{0}),
                               ValueRole::GradientOf(ParameterId{0}), ValueRole::GradientOf({})}) {
    plan.values.Add({.buffer = BufferId{0}, .offset = {}, .shape = {1}, .placement = {}, .name = "", .role = role});
    plan.values.Add({.buffer = BufferId{0}, .offset = {}, .shape = {1}, .placement = {}, .name = "x=y", .role = role});
  }
  plan.triggers = {{SectionKind::Save, TriggerKind::EverySteps, 7}, {SectionKind::Save, TriggerKind::Stop, 0}};
  plan.halts = {{.scalar = ScalarId{1}, .code = ExitCode::Diverged},
                {.scalar = ScalarId{2}, .above = 3, .code = ExitCode::Preempted}};
  plan.num_events = 3;
  plan.arena_bytes = {1, 0, 2, 0, 3};
  std::vector<Op>& ops = plan.section(SectionKind::Eval).ops;
  ops.push_back({.body = op::Repeat{.count = 2},
                 .stream = Stream::Host,
                 .origin = {3, "batch.accumulate"},
                 .made_by = PassKind::Shard});
  ops.push_back(
      {.body =
           op::Matmul{
               .a = {}, .b = ValueId{0}, .out = ValueId{0}, .out_onto = {}, .transpose_a = true, .transpose_b = false},
       .stream = Stream::Tp,
       .waits = {EventId{0}, EventId{2}},
       .signals = EventId{1},
       .when = {.scalar = ScalarId{1}, .negated = true},
       .layer = 0,
       .phase = Phase::Recompute,
       .origin = {12, {}},
       .made_by = PassKind::Place});
  ops.push_back({.body = op::Fill{.out = ValueId{0}, .value = -0.1}, .origin = {0, "loss.head.targets"}});
  ops.push_back({.body = op::LoadTokens{.tokens = ValueId{0}, .targets = {}, .split = Split::Eval, .sample = offset}});
  ops.push_back({.body = op::Increment{.scalar = ScalarId{2}}});
  ops.push_back({.body = op::EndRepeat{}, .stream = Stream::Copy, .waits = {EventId{1}}});
  return plan;
}

TEST(PlanText, UnusualFieldsRoundTrip) {
  const Plan plan = OddPlan();
  const std::string text = PrintPlan(plan);
  const auto again = ParsePlan(text);
  ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
  EXPECT_TRUE(*again == plan) << text << PrintPlan(*again);
  EXPECT_EQ(PrintPlan(*again), text);
  for (const char c : text) {
    ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
  }
}

TEST(PlanText, OpLinesReadAsInTheFormat) {
  const Plan plan = OddPlan();
  const auto line = [&](size_t i) { return PrintOp(plan.section(SectionKind::Eval).ops[i], plan, true); };
  EXPECT_EQ(line(0), "host repeat count=2 {  // recipe:3 batch.accumulate, shard");
  EXPECT_EQ(line(1),
            "tp matmul b=%0 out=%0 transpose_a=true layer=0 phase=recompute when=!@1 waits=e0,e2 signals=e1  // "
            "recipe:12, place");
  EXPECT_EQ(line(2), "compute fill out=%0 value=-0.1  // recipe loss.head.targets, build");
  EXPECT_EQ(line(5), "} stream=copy waits=e1  // build");
}

TEST(PlanText, OriginsNameKeysOfTheRecipe) {
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    const auto key = OriginKey::Find(row.path());
    ASSERT_TRUE(key.has_value()) << row.path();
    EXPECT_EQ(key->text(), row.path());
  }
  EXPECT_EQ(OriginKey::Find("shard.override"), OriginKey("shard.override"));
  EXPECT_EQ(OriginKey::Find("shard.nothing"), std::nullopt);
  EXPECT_EQ(OriginKey::Find(""), std::nullopt);
  // The comment of another program's key says nothing, and is no fault.
  const Plan plan = OddPlan();
  const auto parsed = ParsePlan(Edited(PrintPlan(plan), {{"recipe:3 batch.accumulate", "recipe:3 batch.nothing"}}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->section(SectionKind::Eval).ops[0].origin, Origin{});
}

TEST(PlanText, WithoutOriginsThePlanDiffersInOriginsOnly) {
  Plan plan = CompileSample();
  const auto again = ParsePlan(PrintPlan(plan, {.origins = false}));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(PlanHash(*again), PlanHash(plan));
  EXPECT_EQ(PrintPlan(*again, {.origins = false}), PrintPlan(plan, {.origins = false}));
}

TEST(PlanText, OneSectionIsPrintedWithWhatItTouches) {
  const Plan plan = CompileSample();
  const std::string text = PrintPlan(plan, {.section = SectionKind::Constants});
  EXPECT_NE(text.find("section constants {\n  compute rope_table"), std::string::npos) << text;
  EXPECT_EQ(text.find("section step"), std::string::npos);
  EXPECT_EQ(text.find("\nparameter"), std::string::npos);
  EXPECT_NE(text.find("rope_table"), std::string::npos);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 12);
}

TEST(PlanText, SourcesReadBack) {
  const std::vector<std::vector<TokenSource>> lists{
      {},
      {{.name = "web", .weight = "0.9 - 0.4 * step / steps", .files = {"a b.bin", ""}},
       {.name = "code", .weight = "0.3", .files = {"c.bin"}}},
      {{.name = "alone", .weight = "", .files = {}}},
      // None of these is sound, and each is another.
      {{.name = "", .weight = "1", .files = {"a.bin"}}},
      {{.name = "", .weight = "", .files = {"a.bin"}}, {.name = "", .weight = "", .files = {"b.bin"}}},
  };
  std::set<std::string> hashes;
  for (const std::vector<TokenSource>& sources : lists) {
    Plan plan = OddPlan();
    plan.data.sources = sources;
    const std::string text = PrintPlan(plan);
    const auto parsed = ParsePlan(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_TRUE(*parsed == plan) << text;
    EXPECT_EQ(PrintPlan(*parsed), text);
    EXPECT_TRUE(hashes.insert(PlanHash(plan)).second) << text;
  }
  Plan plan = OddPlan();
  plan.data.sources = lists[1];
  const std::string hash = PlanHash(plan);
  plan.data.sources[0].files = {"elsewhere.bin"};
  EXPECT_EQ(PlanHash(plan), hash);
  plan.data.sources[1].weight = "0.30";
  EXPECT_NE(PlanHash(plan), hash);
  const auto json = nlohmann::json::parse(PlanJson(plan));
  EXPECT_EQ(json["data"]["sources"][1], (nlohmann::json{{"name", "code"}, {"weight", "0.30"}, {"files", {"c.bin"}}}));
  EXPECT_FALSE(ParsePlan(Edited(PrintPlan(plan), {{"weight=", "wait="}})).ok());
}

TEST(PlanText, HashLeavesOutOriginsAndPaths) {
  const Plan plan = CompileSample();
  const std::string hash = PlanHash(plan);
  EXPECT_EQ(hash.size(), 32U);
  Plan moved = plan;
  moved.data.sources.front().files = {"/elsewhere/b.bin"};
  moved.run.run_dir = "/elsewhere";
  moved.run.checkpoint_dir = "/elsewhere/checkpoints";
  moved.overrides = {"train.steps=10"};
  moved.recipe = {{"train.steps", "10"}};
  moved.section(SectionKind::Step).ops[0].origin = {99, "train.steps"};
  moved.section(SectionKind::Step).ops[0].made_by = PassKind::Place;
  moved.parameters[ParameterId{0}].init_origin = {99, "init.std"};
  EXPECT_EQ(PlanHash(moved), hash);
  Plan changed = plan;
  changed.data.seed += 1;
  EXPECT_NE(PlanHash(changed), hash);
  changed = plan;
  changed.section(SectionKind::Step).ops[0].waits.push_back(EventId{0});
  EXPECT_NE(PlanHash(changed), hash);
}

TEST(PlanText, JsonHasTheSameContent) {
  const Plan plan = CompileSample();
  const auto json = nlohmann::json::parse(PlanJson(plan));
  EXPECT_EQ(json["hash"], PlanHash(plan));
  EXPECT_EQ(json["mesh"]["dp"], 2);
  EXPECT_EQ(json["buffers"].size(), static_cast<size_t>(plan.buffers.size()));
  EXPECT_EQ(json["values"].size(), static_cast<size_t>(plan.values.size()));
  EXPECT_EQ(json["parameters"][0]["shape"], (std::vector<int64_t>{64, 16}));
  for (size_t i = 0; i < NumSections; ++i) {
    EXPECT_EQ(json["sections"][std::string(ToText(static_cast<SectionKind>(i)))].size(), plan.sections[i].ops.size());
  }
  EXPECT_EQ(json["sections"]["init"][0]["op"], "fill");
  EXPECT_EQ(nlohmann::json::parse(PlanJson(OddPlan()))["num_events"], 3);
}

struct Refused {
  const char* text;
  const char* message;
};

constexpr const char* First = "plan version=1 mesh=dp:2 device=cpu kernels=fused\n";

const Refused RefusedTexts[] = {
    {"", "plan.shardc:1:1: the text has 0 bytes"},
    {"recipe = 1\n", "plan.shardc:1:1: `recipe` stands where `plan` belongs"},
    {"plan mesh=1 device=cpu kernels=fused\n", "plan.shardc:1:37: no field `version`"},
    {"plan version=2 mesh=1 device=cpu kernels=fused\n",
     "plan.shardc:1:1: the plan has format version 2, this program reads version 1"},
    {"plan version=1 mesh=pp:2 device=cpu kernels=fused\n", "plan.shardc:1:16: `pp:2` stands where a mesh"},
    {"plan version=1 mesh=dp:2,dp:2 device=cpu kernels=fused\n", "plan.shardc:1:16: `dp:2,dp:2` stands where a mesh"},
    {"plan version=1 mesh=dp:0 device=cpu kernels=fused\n", "plan.shardc:1:16: `dp:0` stands where a mesh"},
    {"plan version=1 mesh=1 device=cpu kernels=fused extra=1\n", "plan.shardc:1:48: field `extra` is unknown"},
    {"plan version=1 mesh=1 device=cpu kernels=fused mesh=1\n",
     "plan.shardc:1:48: field `mesh` is unknown or stands twice"},
    {"+model fam(ily=llama\n", "plan.shardc:2:7: `fam(ily` is not a name"},
    {"+model family=llama family=llama\n", "plan.shardc:2:20: field `family` stands twice"},
    {"+bufer $0 transient x bytes=1 category=data\n", "plan.shardc:2:1: `bufer` does not begin a line of a plan"},
    {"+buffer $1 transient x bytes=1 category=data\n", "plan.shardc:2:8: id 1 follows 0 lines of its kind"},
    {"+buffer %0 transient x bytes=1 category=data\n", "plan.shardc:2:8: `%0` stands where an id such as $0 belongs"},
    {"+buffer $0 heap x bytes=1 category=data\n",
     "plan.shardc:2:11: `heap` stands where one of persistent, transient,"},
    {"+buffer $0 transient x bytes=9223372036854775808 category=data\n",
     "plan.shardc:2:29: `9223372036854775808` stands where an integer of 64 bits belongs"},
    {"+buffer $0 transient x bytes=1\n", "plan.shardc:2:30: no field `category`"},
    {"+buffer $0 transient \"x bytes=1 category=data\n", "plan.shardc:2:21: quotes do not hold a whole word"},
    {"+buffer $0 transient \"\\q\" bytes=1 category=data\n", "plan.shardc:2:21: quotes do not hold a whole word"},
    {"+value %0 = $0[0] f32[1]\n", "plan.shardc:2:12: $0 does not exist; the plan has 0 of its kind"},
    {"+value %0 = $0(0) f32[1]\n", "plan.shardc:2:12: `$0(0)` stands where a place such as $3[1024] belongs"},
    {"+value %0 = $0[99999999999999999] f32[1]\n",
     "plan.shardc:2:15: `99999999999999999` stands where a rank expression"},
    {"+value %0 = $0[1**dp] f32[1]\n", "plan.shardc:2:15: `1**dp` stands where a rank expression"},
    {"+value %0 = $0[0] f32[1, x]\n", "plan.shardc:2:18: a type and shape such as"},
    {"+value %0 = $0[0] f32[1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "plan.shardc:2:18: a type and shape such as"},
    {"+value %0 = $0[0] f32[1] {dp: shard(9)}\n", "plan.shardc:2:25: a placement such as"},
    {"+value %0 = $0[0] f32[1] {dp: shard(18446744073709551615)}\n", "plan.shardc:2:25: a placement such as"},
    {"+value %0 = $0[0] f32[1] {dp: shard(-0)}\n", "plan.shardc:2:25: a placement such as"},
    {"+value %0 = $0[0] f32[1] {dp: shard()}\n", "plan.shardc:2:25: a placement such as"},
    {"\xef\xbb\xbfplan version=1\n", "plan.shardc:1:1: the text begins with a byte order mark"},
    {"plan version=1 mesh=1 device=cpu kernels=fused\r\n", "plan.shardc:1:1: the line ends in CRLF"},
    {"+events 1\r\n", "plan.shardc:2:1: the line ends in CRLF"},
    {"+recipe train.steps \"1\" \"2\"\n", "plan.shardc:2:24: nothing belongs behind"},
    {"+recipe a 1\nrecipe b 2\nrecipe a 3\n", "plan.shardc:4:8: the key `a` stands twice"},
    {"+segment begin=0 end=1\n", "plan.shardc:2:1: a segment before the first sub_vector"},
    {"+scalar @1 lr state\n", "plan.shardc:2:8: the next scalar is @0"},
    {"+events -1\n", "plan.shardc:2:8: -1 events"},
    {"+events 1\nevents 1\n", "plan.shardc:3:1: second `events` line"},
    {"+section step {\n}\nsection step {\n}\n", "plan.shardc:4:1: second `section step` line"},
    {"+section step {\n", "plan.shardc:2:1: the text ends inside a section"},
    {"+section step {\n  compute repeat count=2 {\n}\n", "plan.shardc:4:1: the text ends inside a section"},
    {"+section step {\n  compute repeat count=2\n}\n", "plan.shardc:3:25: `{` is missing"},
    {"+section step {\n  gpu repeat count=2 {\n}\n", "plan.shardc:3:3: `gpu` stands where a stream belongs: compute,"},
    {"+section step {\n  compute conv x=%0\n}\n", "plan.shardc:3:11: `conv` is not an op"},
    {"+section step {\n  compute end_repeat\n}\n", "plan.shardc:3:11: `end_repeat` is not an op"},
    {"+section step {\n  compute fill out=%0 value=nan\n}\n",
     "plan.shardc:3:29: `nan` stands where a finite number belongs"},
    {"+section step {\n  compute fill out=%0 value=1e999\n}\n",
     "plan.shardc:3:29: `1e999` stands where a finite number belongs"},
    {"+section step {\n  compute fill out=%0\n}\n", "plan.shardc:3:22: no field `value`"},
    {"+section step {\n  compute fill out=%0 value=1 vlaue=1\n}\n",
     "plan.shardc:3:31: field `vlaue` is unknown or stands twice; fields here: out, value, layer, phase, when, waits, "
     "signals"},
    {"+section step {\n  compute fill out=%0 value=1\n}\n", "plan.shardc:3:20: %0 does not exist"},
    {"+section step {\n  compute increment scalar=@lr\n}\n",
     "plan.shardc:3:28: `@lr` stands where a scalar declared above"},
    {"+section step {\n  compute save_begin waits=e0,\n}\n",
     "plan.shardc:3:28: `e0,` stands where an id such as e0 belongs"},
    {"+section step {\n  compute save_begin signals=e0\n}\n", "plan.shardc:3:30: e0 does not exist"},
    {"+section step {\n} trailing\n", "plan.shardc:3:3: nothing belongs behind"},
};

TEST(PlanText, WhatIsNoPlanIsRefusedWithItsPlace) {
  for (const Refused& refused : RefusedTexts) {
    const std::string text = refused.text[0] == '+' ? std::string(First) + (refused.text + 1) : refused.text;
    SCOPED_TRACE(text);
    const auto plan = ParsePlan(text);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, ExitCode::RecipeRejected);
    EXPECT_EQ(plan.error().message.substr(0, std::string_view(refused.message).size()), refused.message);
  }
}

TEST(PlanText, LongLinesAndTextsAreRefused) {
  EXPECT_FALSE(ParsePlan(std::string(First) + "set \"" + std::string((2 << 20) + 1, 'x') + "\"\n").ok());
  EXPECT_FALSE(ParsePlan(std::string((size_t{64} << 20) + 1, '\n')).ok());
  EXPECT_TRUE(ParsePlan(std::string(First) + "set \"" + std::string(60'000, 'x') + "\"\n").ok());
}

TEST(PlanText, CommentsAndEmptyLinesAreSkipped) {
  const auto plan = ParsePlan(
      std::string(First) +
      "\n// a note\nevents 0  // another\nsection step {\n  // a note\n\n  compute save_begin  // by hand\n}\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->section(SectionKind::Step).ops.size(), 1U);
}

}  // namespace
}  // namespace shardc
