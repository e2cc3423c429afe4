// The text form: what is printed parses back to an equal plan.
#include "compiler/plan/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/ops/rewrite.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/verify/verify.h"
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
  plan.buffers.Add({.name = "// name"});
  plan.buffers.Add({.name = ""});
  plan.values.Add({.buffer = BufferId{0},
                   .offset = offset,
                   .dtype = DType::I64,
                   .shape = {1, 2, 3},
                   .placement = {Placement::Shard(2), {}, Placement::Partial(), Placement::Shard(0)},
                   .name = "{x}"});
  // Names that are the same, that look as if they had a number, and none.
  for (const char* name :
       {"x", "x#2", "x", "x", "x#2", "x#2#1", "x#02", "#1", "", "", "\"", "a, b", "e=1", "$0", "// c"}) {
    plan.values.Add({.buffer = BufferId{1}, .name = name});
  }
  plan.parameters.Add({.name = "bare"});
  int32_t next = 0;
  for (const ValueRole role :
       {ValueRole::Of(ParameterId{0}), ValueRole::Of(SubVectorId{0}), ValueRole::GradientOf(ParameterId{0}),
        ValueRole::GradientOf({}), ValueRole::Of(ParameterId{1}), ValueRole::GradientOf(ParameterId{1})}) {
    plan.values[ValueId{next++}].role = role;
  }
  StateOf(plan.sub_vectors[SubVectorId{0}], StateRole::ExpAvg) = ValueId{1};
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
       .waits = {EventId{0}, EventId{1}},
       .signals = EventId{2},
       .when = {.scalar = ScalarId{1}, .negated = true},
       .layer = 0,
       .phase = Phase::Recompute,
       .origin = {12, {}},
       .made_by = PassKind::Place});
  ops.push_back({.body = op::Fill{.out = ValueId{0}, .value = -0.1}, .origin = {0, "loss.head.targets"}});
  ops.push_back({.body = op::LoadTokens{.tokens = ValueId{0}, .targets = {}, .split = Split::Eval, .sample = offset}});
  ops.push_back({.body = op::Increment{.scalar = ScalarId{2}}});
  ops.push_back({.body = op::EndRepeat{}, .stream = Stream::Copy, .waits = {EventId{2}}});
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

TEST(PlanText, SettingsOfTheRunThatHoldTheirDefaultAreLeftOut) {
  const auto run_line = [](const std::vector<std::string>& sets) {
    const std::string text = PrintPlan(CompileSample(sets, PassKind::Build));
    const auto again = ParsePlan(text);
    CHECK(again.ok(), "{}", again.error().message);
    EXPECT_EQ(PrintPlan(*again), text);
    return LineWith(text, {"run run_id="});
  };
  // What the recipe does not set: the defaults of its keys are those that plans leave out.
  EXPECT_THAT(run_line({}),
              testing::MatchesRegex("run run_id=[^ ]+ run_dir=[^ ]+ steps=10 tokens_per_step=96 "
                                    "micro_batch=2 accumulate=3 eval_batches=[0-9]+ comm=shm init_seed=0"));
  EXPECT_THAT(run_line({"checkpoint.keep=1", "train.log_every=1", "run.threads=2", "run.compare_every=0"}),
              testing::AllOf(testing::HasSubstr(" checkpoint_keep=1 "), testing::HasSubstr(" log_every=1 "),
                             testing::HasSubstr(" threads=2 "), testing::HasSubstr(" compare_every=0")));
  EXPECT_THAT(run_line({"checkpoint.every=2", "checkpoint.keep_every=3", "checkpoint.keep_steps=[2, 8]",
                        "checkpoint.on_failure=continue"}),
              testing::HasSubstr(" keep_every=3 keep_steps=2,8 on_failure=continue"));
}

TEST(PlanText, OpLinesReadAsInTheFormat) {
  const Plan plan = OddPlan();
  const auto line = [&](size_t i) { return PrintOp(plan.section(SectionKind::Eval).ops[i], plan, true); };
  EXPECT_EQ(line(0), "host repeat count=2 {  // recipe:3 batch.accumulate, shard");
  EXPECT_EQ(
      line(1),
      "tp matmul b=\"{x}\" out=\"{x}\" transpose_a=true layer=0 phase=recompute when=!@lr#2 waits=never.0,never.1 "
      "signals=_x_  // recipe:12, place");
  EXPECT_EQ(line(2), "compute fill out=\"{x}\" value=-0.1  // recipe loss.head.targets, build");
  EXPECT_EQ(line(4), "compute increment scalar=\"@odd name\"  // build");
  EXPECT_EQ(line(5), "} stream=copy waits=_x_  // build");
}

TEST(PlanText, ANameHasANumberWhereItStandsAboveAlready) {
  const Plan plan = OddPlan();
  const PlanNames names(plan);
  std::vector<std::string> texts;
  for (const ValueId id : plan.values.ids()) {
    texts.push_back(names.Text(id));
    EXPECT_EQ(NameOf(plan, id), texts.back());
    EXPECT_EQ(std::string(WithoutNumber(texts.back())), plan.values[id].name);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"{x}", "x", "x#2#1", "x#2", "x#3", "x#2#2", "x#2#1#1", "x#02", "#1#1",
                                             "#1", "#2", "\"", "a, b", "e=1", "$0", "// c"}));
  EXPECT_EQ(names.Text(BufferId{0}), "$// name");
  EXPECT_EQ(names.Text(BufferId{1}), "$// name#2");
  EXPECT_EQ(names.Text(ValueId{99}), "?99");
  EXPECT_EQ(names.Text(ValueId{}), "?-1");
}

/// Lines of `text` that do not stand in `other`.
auto LinesNotIn(const std::string& text, const std::string& other) -> std::vector<std::string> {
  std::set<std::string> known;
  std::istringstream of_other(other);
  for (std::string line; std::getline(of_other, line);) {
    known.insert(line);
  }
  std::vector<std::string> lines;
  std::istringstream of_text(text);
  for (std::string line; std::getline(of_text, line);) {
    if (!known.contains(line)) {
      lines.push_back(line);
    }
  }
  return lines;
}

TEST(PlanText, WhatIsAddedChangesTheLinesThatNameIt) {
  const Plan plan = CompileSample();
  const std::string before = PrintPlan(plan);
  Plan longer = plan;
  // In front of all others of their tables, by hand: every id is one more.
  const auto shift = [](auto& id) { id.index += id.valid() ? 1 : 0; };
  IdVector<BufferId, Buffer> buffers;
  buffers.Add({.name = "fresh", .bytes = Bytes{4}, .offset = 0});
  for (const Buffer& buffer : plan.buffers) {
    buffers.Add(buffer);
  }
  longer.buffers = buffers;
  IdVector<ValueId, Value> values;
  values.Add({.buffer = BufferId{0}, .shape = {1}, .name = "fresh"});
  for (Value value : plan.values) {
    shift(value.buffer);
    values.Add(value);
  }
  longer.values = values;
  for (SubVector& sub_vector : longer.sub_vectors) {
    ForEachSlice(sub_vector, shift);
  }
  for (Section& section : longer.sections) {
    for (Op& op : section.ops) {
      ReplaceReads(op.body, shift);
      ReplaceWrites(op.body, shift);
      if (auto* release = std::get_if<op::Release>(&op.body)) {
        shift(release->buffer);
      }
      shift(op.signals);
      for (EventId& event : op.waits) {
        shift(event);
      }
    }
  }
  longer.num_events += 1;
  std::vector<Op>& ops = longer.section(SectionKind::Constants).ops;
  ops.insert(ops.begin(), Op{.body = op::Fill{.out = ValueId{0}, .value = 1}, .signals = EventId{0}});
  const std::string after = PrintPlan(longer);
  EXPECT_EQ(LinesNotIn(before, after), std::vector<std::string>{});
  EXPECT_EQ(LinesNotIn(after, before),
            (std::vector<std::string>{"buffer $fresh transient bytes=4 category=activations offset=0",
                                      "value fresh = $fresh[0] f32[1]",
                                      "  compute fill out=fresh value=1 signals=fresh  // build"}));
  const auto again = ParsePlan(after);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == longer);
}

TEST(PlanText, ANumberTellsNamesApartAndIsNoPartOfThem) {
  const auto plan = ParsePlan(std::string("plan version=2 mesh=1 device=cpu kernels=fused\n") +
                              "buffer $b host bytes=4 category=data\nvalue x#7 = $b[0] f32[1]\n"
                              "value x#3 = $b[0] i32[1]\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->values[ValueId{0}].name, "x");
  EXPECT_EQ(plan->values[ValueId{1}].name, "x");
  EXPECT_NE(PrintPlan(*plan).find("value x#2 = $b[0] i32[1]\n"), std::string::npos);
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

TEST(PlanText, HostsAreOfTheMesh) {
  Plan plan = CompileSample();
  ASSERT_EQ(plan.mesh.num_ranks(), 2);
  const std::string hash_of_one = PlanHash(plan);
  EXPECT_THAT(PrintPlan(plan), testing::Not(testing::HasSubstr("hosts:")));
  plan.mesh.hosts = 2;
  EXPECT_NE(PlanHash(plan), hash_of_one);
  EXPECT_THAT(PrintPlan(plan), testing::HasSubstr(" mesh=dp:2,hosts:2 "));
  const auto parsed = ParsePlan(PrintPlan(plan));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_TRUE(*parsed == plan);
  EXPECT_EQ(nlohmann::json::parse(PlanJson(plan))["mesh"]["hosts"], 2);
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
  EXPECT_EQ(nlohmann::json::parse(PlanJson(OddPlan()))["scalars"][1]["name"], "@lr#2");
}

TEST(PlanText, CommentsAndEmptyLinesAreSkipped) {
  const auto plan = ParsePlan(
      "plan version=2 mesh=dp:2 device=cpu kernels=fused\n"
      "\n// a note\narena host bytes=8  // another\nsection step {\n  // a note\n\n  compute save_begin  // by "
      "hand\n}\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->section(SectionKind::Step).ops.size(), 1U);
}

}  // namespace
}  // namespace shardc
