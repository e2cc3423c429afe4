// What the verifier proves, each rule by a plan that breaks it: a valid plan, edited by hand, written out and read
// back.
#include "compiler/ops/verify_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "compiler/plan/red_zone.h"
#include "compiler/plan/text.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

/// Helpers to find what to break, whatever its number is.
class Editor {
 public:
  explicit Editor(Plan the_plan) : plan(std::move(the_plan)) {}

  auto Ops(SectionKind section = SectionKind::Step) -> std::vector<Op>& { return plan.section(section).ops; }
  /// Index of the n-th op with a body of type Body.
  template <class Body>
  auto Find(int nth = 0, SectionKind section = SectionKind::Step) -> size_t {
    const std::vector<Op>& ops = Ops(section);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].As<Body>() != nullptr && nth-- == 0) {
        return i;
      }
    }
    CHECK(false, "no such {} in {}", Body::Mnemonic, ToText(section));
  }
  template <class Body>
  auto Get(int nth = 0, SectionKind section = SectionKind::Step) -> Body& {
    return std::get<Body>(Ops(section)[Find<Body>(nth, section)].body);
  }
  auto Erase(size_t index, SectionKind section = SectionKind::Step) -> void {
    Ops(section).erase(Ops(section).begin() + static_cast<std::ptrdiff_t>(index));
  }
  auto Insert(size_t index, Op op, SectionKind section = SectionKind::Step) -> void {
    Ops(section).insert(Ops(section).begin() + static_cast<std::ptrdiff_t>(index), std::move(op));
  }
  auto Repeat(size_t index, SectionKind section = SectionKind::Step) -> void {
    Insert(index + 1, Op(Ops(section)[index]), section);
  }
  auto BufferOf(ValueId id) -> Buffer& { return plan.buffers[plan.values[id].buffer]; }
  auto FindRelease(BufferId buffer, SectionKind section = SectionKind::Step) -> size_t {
    for (size_t i = 0; i < Ops(section).size(); ++i) {
      const auto* release = Ops(section)[i].As<op::Release>();
      if (release != nullptr && release->buffer == buffer) {
        return i;
      }
    }
    CHECK(false, "no release of ${}", buffer.index);
  }
  /// A copy of a value under a new id.
  auto Copy(ValueId id) -> ValueId { return plan.values.Add(Value(plan.values[id])); }

  Plan plan;
};

/// The sample over one axis more: over tp with one microbatch, over replicas with a loop over two.
using Sets = std::vector<std::string>;
const Sets OverTp{"mesh.tp=2", "batch.global=4"};
const Sets OverReplicas{"mesh.replicate=2", "batch.global=16"};
const Sets Skipping{"train.on_nonfinite=skip"};
/// Units that backward gathers from two ranks of four.
const Sets InGroups{"mesh.dp=4", "batch.global=24", "shard.reshard_after_forward=true", "shard.reshard_size=2"};

/// The first vector that each rank of tp has whole, or that it has a part of.
auto FindSubVector(const Editor& e, bool tp_replicated) -> SubVectorId {
  for (const SubVectorId id : e.plan.sub_vectors.ids()) {
    if (e.plan.sub_vectors[id].tp_replicated == tp_replicated) {
      return id;
    }
  }
  CHECK(false, "no sub-vector");
}

/// The step's first sum of gradients over axes other than dp.
auto FindGradientSum(Editor& e) -> size_t {
  for (size_t i = 0; i < e.Ops().size(); ++i) {
    const auto* sum = e.Ops()[i].As<op::AllReduce>();
    if (sum != nullptr && e.BufferOf(sum->y).category == Category::Gradients) {
      return i;
    }
  }
  CHECK(false, "no sum of gradients");
}

/// The step's n-th gather over dp_inner.
auto GroupGather(Editor& e, int nth = 0) -> op::AllGather& {
  for (Op& op : e.Ops()) {
    auto* gather = std::get_if<op::AllGather>(&op.body);
    if (gather != nullptr && gather->axes == AxisSet::Of(Axis::DpInner) && nth-- == 0) {
      return *gather;
    }
  }
  CHECK(false, "no gather over dp_inner");
}

auto MoveOp(Editor& e, size_t from, size_t to) -> void {
  Op op = e.Ops()[from];
  e.Erase(from);
  e.Insert(to, std::move(op));
}

struct BrokenPlan {
  const char* what;
  const char* rule;
  void (*edit)(Editor& e);
  /// Where the plan is broken before this pass was run; else the whole plan is.
  std::optional<PassKind> after = {};
  /// Computes in bf16.
  bool bf16 = false;
  /// What else the sample is compiled with.
  Sets sets = {};
};

/// Lets the buffer that ends where another living one begins grow by one byte.
auto OverlapByOneByte(Editor& e) -> void {
  // The slice that sums the gradients of the microbatches lives through the whole loop.
  Buffer& held = e.BufferOf(e.Get<op::ReduceScatter>().shard);
  const Buffer* above = nullptr;
  Buffer* below = nullptr;
  for (const Op& op : e.Ops()) {
    for (const Access& access : AccessesOf(op.body)) {
      Buffer& other = e.BufferOf(access.value);
      if (other.arena != held.arena || op.phase == Phase::None) {
        continue;
      }
      if (other.offset >= held.offset + held.bytes.value && (above == nullptr || other.offset < above->offset)) {
        above = &other;
      } else if (other.offset < held.offset && (below == nullptr || other.offset > below->offset)) {
        below = &other;
      }
    }
  }
  if (above != nullptr) {
    held.bytes = Bytes{above->offset - held.offset + 1};
  } else {
    CHECK(below != nullptr, "one buffer alone");
    below->bytes = Bytes{held.offset - below->offset + 1};
  }
}

const BrokenPlan BrokenPlans[] = {
    // Lives.
    {"a transient buffer grows by one byte into its neighbour", "buffer-overlap", OverlapByOneByte},
    {"a persistent buffer grows by one byte into its neighbour", "buffer-overlap",
     [](Editor& e) {
       Buffer& first = e.BufferOf(e.plan.sub_vectors[SubVectorId{0}].exp_avg);
       first.bytes = Bytes{e.BufferOf(e.plan.sub_vectors[SubVectorId{0}].exp_avg_sq).offset - first.offset + 1};
     }},
    {"attention reads q as it was before rope turned it in place", "read-after-overwrite",
     [](Editor& e) { e.Get<op::Attention>().q = e.Get<op::Rope>().x; }},
    {"backward reads logits that it has overwritten with their gradient", "read-after-overwrite",
     [](Editor& e) {
       const auto& backward = e.Get<op::CrossEntropyBackward>();
       for (Op& op : e.Ops()) {
         if (auto* matmul = std::get_if<op::Matmul>(&op.body); matmul != nullptr && matmul->a == backward.dlogits) {
           matmul->a = backward.logits;
         }
       }
     }},
    {"another name of bytes that were overwritten, in use before", "read-after-overwrite",
     [](Editor& e) {
       // q gets a second name that attention's v uses before rope, and attention after.
       const ValueId alias = e.Copy(e.Get<op::Rope>().x);
       const size_t rope = e.Find<op::Rope>();
       const ValueId fresh = e.Copy(alias);
       e.plan.values[fresh].buffer = e.plan.buffers.Add({.name = "fresh",
                                                         .arena = Arena::Persistent,
                                                         .category = Category::Workspace,
                                                         .bytes = e.plan.values[alias].bytes(),
                                                         .offset = e.plan.arena_bytes[0] / 64 * 64 + 64});
       e.plan.arena_bytes[0] += 128 + e.plan.values[alias].bytes().value;
       e.Insert(rope, Op{.body = op::Swiglu{.gate = alias, .up = alias, .y = fresh}});
       e.Get<op::Attention>().q = alias;
     }},
    {"the residual is not added", "unwritten-value", [](Editor& e) { e.Erase(e.Find<op::Add>()); }},
    {"a sum over ranks is left out", "unwritten-value", [](Editor& e) { e.Erase(e.Find<op::AllReduce>(1)); }},
    {"a unit is used without its gather", "read-undefined", [](Editor& e) { e.Erase(e.Find<op::AllGather>()); }},
    {"a unit is used before its gather", "read-undefined",
     [](Editor& e) {
       const size_t gather = e.Find<op::AllGather>();
       const size_t use = e.Find<op::Embedding>();
       std::swap(e.Ops()[gather], e.Ops()[use]);
     }},
    {"the data section loads fewer microbatches than the step reads", "read-undefined",
     [](Editor& e) { e.Get<op::Repeat>(0, SectionKind::Data).count = 2; }},
    {"the step reads more microbatches than there are", "value-outside-buffer",
     [](Editor& e) { e.Get<op::Repeat>().count = 4; }},
    {"moments that nothing restores", "read-undefined",
     [](Editor& e) { e.Erase(e.Find<op::RestoreShard>(1, SectionKind::Restore), SectionKind::Restore); }},
    {"a constant that nothing makes", "read-undefined",
     [](Editor& e) {
       e.Ops(SectionKind::Constants).clear();
       e.plan.triggers.erase(e.plan.triggers.begin());
     }},
    {"a constant is written twice", "overwrite-defined",
     [](Editor& e) { e.Repeat(e.Find<op::RopeTable>(0, SectionKind::Constants), SectionKind::Constants); }},
    {"a unit is gathered twice and released once", "overwrite-defined",
     [](Editor& e) { e.Repeat(e.Find<op::AllGather>()); }},
    {"scratch lies on bytes that hold something", "overwrite-defined",
     [](Editor& e) {
       auto& attention = e.Get<op::Attention>();
       e.plan.values[attention.scratch].buffer = e.plan.values[e.plan.sub_vectors[SubVectorId{1}].exp_avg].buffer;
       e.plan.buffers[e.plan.values[attention.scratch].buffer].bytes = Bytes{1 << 20};
       e.plan.arena_bytes = {1 << 22, 1 << 22, 1 << 22, 1 << 22, 1 << 22};
       e.plan.passes.pop_back();
       e.plan.passes.pop_back();
     }},
    {"a value is read after the release of its buffer", "read-undefined",
     [](Editor& e) {
       const size_t release = e.FindRelease(e.plan.values[e.Get<op::AllGather>().full].buffer);
       std::rotate(e.Ops().begin() + static_cast<std::ptrdiff_t>(e.Find<op::Embedding>()),
                   e.Ops().begin() + static_cast<std::ptrdiff_t>(release),
                   e.Ops().begin() + static_cast<std::ptrdiff_t>(release) + 1);
     }},
    {"a value is read that only a former life of its buffer held", "read-released",
     [](Editor& e) {
       const auto& divide = e.Get<op::Divide>();
       const ValueId old = divide.y;
       const ValueId next = e.Copy(old);
       const size_t read = e.Find<op::ReadScalar>();
       const BufferId buffer = e.plan.values[old].buffer;
       e.Insert(read, Op{.body = op::Fill{.out = next, .value = 0}});
       e.Insert(read, Op{.body = op::Release{.buffer = buffer}});
     }},
    {"a buffer is released twice", "release-dead", [](Editor& e) { e.Repeat(e.Find<op::Release>()); }},
    {"a buffer is never released", "not-released",
     [](Editor& e) { e.Erase(e.FindRelease(e.plan.values[e.Get<op::ClipFactor>().norm].buffer)); }},
    {"the body of a loop leaves a unit gathered", "loop-state",
     [](Editor& e) { e.Erase(e.FindRelease(e.plan.values[e.Get<op::AllGather>(3).full].buffer)); }},
    {"an op writes over a value of other bytes", "overwrite-mismatch",
     [](Editor& e) {
       auto& swiglu = e.Get<op::SwigluBackward>();
       std::swap(swiglu.dgate, swiglu.dup);
     }},
    {"an op writes on what it reads", "operand-overlap",
     [](Editor& e) {
       auto& add = e.Get<op::RmsNormBackward>();
       add.dy = e.Copy(add.dx);
     }},
    {"a write that may not happen", "predicated-write",
     [](Editor& e) {
       e.Ops()[e.Find<op::ClipFactor>()].when = {.scalar = e.plan.ScalarNamed("nonfinite"), .negated = true};
     }},

    // Order.
    {"a gather's result is read without waiting for it", "missing-event",
     [](Editor& e) { e.Ops()[e.Find<op::Embedding>()].waits.clear(); }},
    {"bytes are taken again while the dp stream reads them", "missing-event",
     [](Editor& e) {
       for (Op& op : e.Ops()) {
         if (op.As<op::Release>() != nullptr && !op.waits.empty()) {
           op.waits.clear();
           return;
         }
       }
       CHECK(false, "no release waits");
     }},
    {"the next pass of a loop does not wait for the one before", "missing-event",
     [](Editor& e) {
       const EventId event = e.Ops(SectionKind::Eval)[e.Find<op::Repeat>(0, SectionKind::Eval)].signals;
       for (Op& op : e.Ops(SectionKind::Eval)) {
         std::erase(op.waits, event);
       }
     }},
    {"two ops signal one event", "event-twice",
     [](Editor& e) { e.Ops()[e.Find<op::Embedding>()].signals = e.Ops()[e.Find<op::AllGather>()].signals; }},
    {"an op waits for an event that comes later", "event-order",
     [](Editor& e) { e.Ops()[0].waits.push_back(e.Ops()[e.Find<op::AllGather>()].signals); }},

    // State.
    {"a parameter without an init op", "init-missing",
     [](Editor& e) { e.Erase(e.Find<op::Initialize>(0, SectionKind::Init), SectionKind::Init); }},
    {"a parameter with two init ops", "init-twice",
     [](Editor& e) { e.Repeat(e.Find<op::Initialize>(0, SectionKind::Init), SectionKind::Init); }},
    {"a parameter is initialised under a predicate", "init-place",
     [](Editor& e) {
       e.Ops(SectionKind::Init)[e.Find<op::Initialize>(0, SectionKind::Init)].when.scalar = e.plan.ScalarNamed("step");
     }},
    {"moments are cleared twice", "state-clear",
     [](Editor& e) { e.Repeat(e.Find<op::Fill>(1, SectionKind::Init), SectionKind::Init); }},
    {"padding begins as something else than 0", "state-clear",
     [](Editor& e) { e.Get<op::Fill>(0, SectionKind::Init).value = 1; }},
    {"a step that does not count", "step-count", [](Editor& e) { e.Erase(e.Find<op::Increment>(1)); }},
    {"a step that counts where its gradients are finite", "step-count",
     [](Editor& e) { e.Ops()[e.Find<op::Increment>(1)].when = e.Ops()[e.Find<op::Increment>(0)].when; }},
    {"updates that are counted where there are none", "update-count",
     [](Editor& e) { e.Ops()[e.Find<op::Increment>(0)].when = {}; }},
    {.what = "updates left out that are counted for ever",
     .rule = "halt-count",
     .edit = [](Editor& e) { e.Erase(e.Find<op::Reset>()); },
     .sets = Skipping},
    {.what = "updates left out that are not counted",
     .rule = "halt-count",
     .edit = [](Editor& e) { e.Erase(e.Find<op::Increment>(0)); },
     .sets = Skipping},
    {.what = "updates that are made are counted as left out",
     .rule = "halt-count",
     .edit =
         [](Editor& e) {
           std::swap(e.Ops()[e.Find<op::Increment>(0)].when, e.Ops()[e.Find<op::Reset>()].when);
         },
     .sets = Skipping},
    {.what = "updates left out are counted before the ranks agree on them",
     .rule = "halt-count",
     .edit = [](Editor& e) { MoveOp(e, e.Find<op::Increment>(0), e.Find<op::Control>()); },
     .sets = Skipping},
    {"a halt at what a rank measures", "halt-count",
     [](Editor& e) { e.plan.halts[0].scalar = e.plan.ScalarNamed("loss"); }},
    {"a halt at the second time of what does not count", "halt-count", [](Editor& e) { e.plan.halts[0].above = 1; }},
    {"a halt below 0", "halt-range", [](Editor& e) { e.plan.halts[0].above = -1; }},
    {"what the ranks agreed on is set back", "flag-overwritten",
     [](Editor& e) {
       e.Insert(e.Find<op::Control>() + 1, Op{.body = op::Reset{.scalar = e.plan.ScalarNamed("nonfinite")}});
     }},
    {"init that nothing begins", "trigger-missing",
     [](Editor& e) { e.plan.triggers.erase(e.plan.triggers.begin() + 1); }},
    {"init at every step", "trigger-extra", [](Editor& e) { e.plan.triggers[1].kind = TriggerKind::EachStep; }},
    {"two steps a step", "trigger-extra",
     [](Editor& e) {
       e.plan.triggers.push_back({SectionKind::Step, TriggerKind::EachStep, 0});
     }},
    {"a gradient that is not reduced", "unreduced-parameter", [](Editor& e) { e.Erase(e.Find<op::ReduceScatter>()); }},
    {"a gradient that is reduced over the wrong axes", "unreduced-parameter",
     [](Editor& e) { e.Get<op::ReduceScatter>().axes = AxisSet::Of(Axis::Tp); }},
    {"a sub-vector that is never updated", "update-missing", [](Editor& e) { e.Erase(e.Find<op::Adamw>()); }},
    {"a sub-vector that is updated twice", "update-twice", [](Editor& e) { e.Repeat(e.Find<op::Adamw>()); }},
    {"the moments of another sub-vector", "update-place",
     [](Editor& e) { e.Get<op::Adamw>(1).exp_avg = e.plan.sub_vectors[SubVectorId{2}].exp_avg; }},
    {"an update that leaves the bf16 copy as it was",
     "update-copy",
     [](Editor& e) { e.Get<op::Adamw>().copy = {}; },
     {},
     true},
    {"an update that writes the copy of another unit",
     "update-copy",
     [](Editor& e) { e.Get<op::Adamw>().copy = e.plan.sub_vectors[SubVectorId{2}].compute_copy; },
     {},
     true},
    {"a sub-vector that computes in bf16 and has no copy in it",
     "copy-unset",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{0}].compute_copy = {}; },
     {},
     true},
    {"a start that does not make the bf16 copy",
     "copy-stale",
     [](Editor& e) { e.Erase(e.Find<op::Cast>(0, SectionKind::Init), SectionKind::Init); },
     {},
     true},
    {"a bf16 copy that is made before the parameters are drawn",
     "copy-stale",
     [](Editor& e) {
       const size_t cast = e.Find<op::Cast>(0, SectionKind::Init);
       const size_t initialize = e.Find<op::Initialize>(0, SectionKind::Init);
       std::swap(e.Ops(SectionKind::Init)[cast], e.Ops(SectionKind::Init)[initialize]);
     },
     {},
     true},
    {"a restart that does not make the bf16 copy",
     "copy-stale",
     [](Editor& e) { e.Erase(e.Find<op::Cast>(0, SectionKind::Restore), SectionKind::Restore); },
     {},
     true},
    {"an update before its gradient is complete", "update-early",
     [](Editor& e) {
       const Op adamw = e.Ops()[e.Find<op::Adamw>()];
       e.Erase(e.Find<op::Adamw>());
       e.Insert(e.Find<op::Repeat>(), adamw);
     }},
    {"a frozen parameter is updated", "update-frozen",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{0}].trainable = false; }},
    {"a frozen parameter among trainable ones", "trainable-mismatch",
     [](Editor& e) { e.plan.parameters[ParameterId{3}].trainable = false; }},
    {"state that is not saved", "save-missing",
     [](Editor& e) { e.Erase(e.Find<op::SaveShard>(2, SectionKind::Save), SectionKind::Save); }},
    {"state that is saved twice", "save-twice",
     [](Editor& e) { e.Repeat(e.Find<op::SaveShard>(2, SectionKind::Save), SectionKind::Save); }},
    {"state is saved under the name of other state", "save-place",
     [](Editor& e) {
       std::swap(e.Get<op::SaveShard>(0, SectionKind::Save).shard, e.Get<op::SaveShard>(1, SectionKind::Save).shard);
     }},
    {"state that is saved unseen", "check-missing",
     [](Editor& e) {
       const size_t first = e.Find<op::CheckFinite>(0, SectionKind::Save);
       e.Get<op::CheckFinite>(1, SectionKind::Save).bad_onto = {};
       e.Erase(first, SectionKind::Save);
     }},
    {"state that is checked twice", "check-twice",
     [](Editor& e) { e.Repeat(e.Find<op::CheckFinite>(1, SectionKind::Save), SectionKind::Save); }},
    {"a moment that is checked in the place of another", "check-place",
     [](Editor& e) {
       std::swap(e.Get<op::CheckFinite>(1, SectionKind::Save).shard, e.Get<op::CheckFinite>(2, SectionKind::Save).shard);
     }},
    {"a check whose finding the next forgets", "save-unchecked",
     [](Editor& e) { e.Get<op::CheckFinite>(2, SectionKind::Save).bad_onto = {}; }},
    {"a check after the save began", "save-unchecked",
     [](Editor& e) {
       std::swap(e.Ops(SectionKind::Save)[e.Find<op::SaveBegin>(0, SectionKind::Save)],
                 e.Ops(SectionKind::Save)[e.Find<op::SaveBegin>(0, SectionKind::Save) - 1]);
     }},
    {"a save that begins whatever the last check found", "save-unchecked",
     [](Editor& e) {
       auto& begin = e.Get<op::SaveBegin>(0, SectionKind::Save);
       begin.bad = e.Get<op::CheckFinite>(0, SectionKind::Save).bad;
     }},
    {"a save that changes what it checked", "save-changes",
     [](Editor& e) {
       e.Insert(e.Find<op::SaveBegin>(0, SectionKind::Save),
                Op{.body = op::Fill{.out = e.plan.sub_vectors[SubVectorId{0}].exp_avg, .value = 0}}, SectionKind::Save);
     }},
    {"state that is saved before the save begins", "save-order",
     [](Editor& e) {
       std::swap(e.Ops(SectionKind::Save)[e.Find<op::SaveBegin>(0, SectionKind::Save)],
                 e.Ops(SectionKind::Save)[e.Find<op::SaveShard>(0, SectionKind::Save)]);
     }},
    {"a save without its commit", "save-order", [](Editor& e) { e.Ops(SectionKind::Save).pop_back(); }},
    {"state that is not restored", "restore-missing",
     [](Editor& e) { e.Erase(e.Find<op::RestoreShard>(2, SectionKind::Restore), SectionKind::Restore); }},
    {"state that is restored twice", "restore-twice",
     [](Editor& e) { e.Repeat(e.Find<op::RestoreShard>(2, SectionKind::Restore), SectionKind::Restore); }},
    {"state is restored to the place of other state", "restore-place",
     [](Editor& e) {
       std::swap(e.Get<op::RestoreShard>(0, SectionKind::Restore).shard,
                 e.Get<op::RestoreShard>(1, SectionKind::Restore).shard);
     }},
    {"scalars that are not restored", "restore-scalars", [](Editor& e) { e.Ops(SectionKind::Restore).pop_back(); }},
    {"two parameters share elements", "segment-range",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments[2].begin -= 128; }},
    {"a parameter reaches behind its vector", "segment-range",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments.back().end += 4096; }},
    {"a parameter begins between alignments", "segment-alignment",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments[1].begin += 1; }},
    {"a segment of another size than its parameter", "segment-size",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments[1].end -= 1; }},
    {"a parameter that lies nowhere", "parameter-home",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments.pop_back(); }},
    {"a parameter that lies in two places", "parameter-home",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments.back().parameter = ParameterId{1}; }},
    {"a vector that does not cut into equal slices", "sub-vector-length",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].length -= 64; }},
    {"state without a value", "state-unset", [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].exp_avg = {}; }},
    {"a slice of another size", "state-slice",
     [](Editor& e) { e.plan.values[e.plan.sub_vectors[SubVectorId{1}].exp_avg].shape[0] -= 1; }},

    // More axes than dp.
    {.what = "gradients that the ranks of tp do not sum",
     .rule = "unreduced-parameter",
     .edit = [](Editor& e) { e.Erase(FindGradientSum(e)); },
     .sets = OverTp},
    {.what = "gradients of what tp replicates, summed over the wrong axes",
     .rule = "unreduced-parameter",
     .edit = [](Editor& e) { std::get<op::AllReduce>(e.Ops()[FindGradientSum(e)].body).axes = AxisSet::Of(Axis::Dp); },
     .sets = OverTp},
    {.what = "gradients summed over tp before the last of them is reduced over dp",
     .rule = "unreduced-parameter",
     .edit =
         [](Editor& e) {
           const size_t sum = FindGradientSum(e);
           const BufferId summed = e.plan.values[std::get<op::AllReduce>(e.Ops()[sum].body).y].buffer;
           size_t last = 0;
           for (size_t i = 0; i < sum; ++i) {
             const auto* scatter = e.Ops()[i].As<op::ReduceScatter>();
             last = scatter != nullptr && e.plan.values[scatter->shard].buffer == summed ? i : last;
           }
           CHECK(last != 0, "no reduce_scatter");
           MoveOp(e, sum, last);
         },
     .sets = OverTp},
    {.what = "gradients that the ranks of tp sum twice",
     .rule = "unreduced-parameter",
     .edit =
         [](Editor& e) {
           const size_t sum = FindGradientSum(e);
           e.Repeat(sum);
           auto& again = std::get<op::AllReduce>(e.Ops()[sum + 1].body);
           again.x = again.y;
           again.y = e.Copy(again.y);
         },
     .sets = OverTp},
    {.what = "gradients of which tp sums but a part",
     .rule = "unreduced-parameter",
     .edit =
         [](Editor& e) {
           const auto& sum = std::get<op::AllReduce>(e.Ops()[FindGradientSum(e)].body);
           e.plan.values[sum.x].shape[0] -= 128;
           e.plan.values[sum.y].shape[0] -= 128;
         },
     .sets = OverTp},
    {.what = "a matrix that tp cuts, with room for the whole",
     .rule = "segment-size",
     .edit = [](Editor& e) { e.plan.parameters[ParameterId{0}].tp_dim = -1; },
     .sets = OverTp},
    {.what = "a matrix that tp replicates among those that it cuts",
     .rule = "tp-mismatch",
     .edit = [](Editor& e) { e.plan.parameters[ParameterId{0}].tp_dim = -1; },
     .sets = OverTp},
    {.what = "norms that are said to be cut, and are not summed over tp",
     .rule = "tp-mismatch",
     .edit = [](Editor& e) { e.plan.sub_vectors[FindSubVector(e, true)].tp_replicated = false; },
     .sets = OverTp},
    {.what = "fewer rows on the ranks of tp together than there are ids",
     .rule = "vocab-rows",
     .edit = [](Editor& e) { e.plan.data.vocab += 1; },
     .sets = OverTp},
    {.what = "an embedding that takes its part of the rows for all",
     .rule = "vocab-rows",
     .edit = [](Editor& e) { e.Get<op::Embedding>().vocab_axes = {}; },
     .sets = OverTp},
    {.what = "a loss over parts of the ranks' log_sum_exp",
     .rule = "sharded_cross_entropy-c2",
     .edit = [](Editor& e) { e.plan.values[e.Get<op::ShardedCrossEntropy>().parts].shape[0] = 1; },
     .sets = OverTp},
    {.what = "partial products that nobody sums",
     .rule = "read-undefined",
     .edit = [](Editor& e) { e.Erase(e.Find<op::ReduceScatter>()); },
     .sets = OverTp},
    {.what = "a norm of terms of a sum",
     .rule = "partial-read",
     .edit =
         [](Editor& e) {
           PlaceOver(AxisSet::Of(Axis::Tp), Placement::Partial(), e.plan.values[e.Get<op::RmsNorm>().x].placement);
         },
     .sets = OverTp},
    {.what = "a cast that makes a whole of a term",
     .rule = "partial-read",
     .edit = [](Editor& e) { e.plan.values[e.Get<op::ReduceScatter>().full].placement = {}; },
     .sets = {"precision.reduce=bf16"}},
    {.what = "a sum over tp of what each of its ranks has whole",
     .rule = "whole-summed",
     .edit = [](Editor& e) { e.plan.values[e.Get<op::ReduceScatter>().full].placement = {}; },
     .sets = OverTp},
    {.what = "a log_sum_exp that takes its part of the vocabulary for all",
     .rule = "vocab-axes",
     .edit = [](Editor& e) { e.Get<op::LogSumExp>().vocab_axes = {}; },
     .sets = OverTp},
    {.what = "gradients that the replicas do not sum",
     .rule = "unreduced-parameter",
     .edit = [](Editor& e) { e.Erase(FindGradientSum(e)); },
     .sets = OverReplicas},
    {.what = "gradients that are summed over the replicas in each pass of the loop",
     .rule = "unreduced-parameter",
     .edit = [](Editor& e) { MoveOp(e, FindGradientSum(e), e.Find<op::EndRepeat>()); },
     .sets = OverReplicas},

    // Gathers.
    {"a unit is gathered in the place of another", "gather-view",
     [](Editor& e) {
       // Two blocks of the same sizes, in forward.
       e.Get<op::AllGather>(2).shard = e.Get<op::AllGather>(1).shard;
     }},
    {"moments are gathered for parameters", "gather-source",
     [](Editor& e) { e.Get<op::AllGather>(1).shard = e.plan.sub_vectors[SubVectorId{1}].exp_avg; }},
    {"an owned slice is gathered from a group alone", "gather-axes",
     [](Editor& e) { GroupGather(e).shard = e.Get<op::AllGather>().shard; }, {}, false, InGroups},
    {"a kept slice is gathered from all of dp", "gather-axes",
     [](Editor& e) { GroupGather(e).axes = AxisSet::Of(Axis::Dp); }, {}, false, InGroups},
    {"what is kept of one block is gathered for another", "gather-view",
     [](Editor& e) { GroupGather(e, 1).shard = GroupGather(e, 2).shard; }, {}, false, InGroups},
    {"each rank keeps the first part", "kept-slice",
     [](Editor& e) { e.plan.values[e.Get<op::Copy>().x].offset = {}; }, {}, false, InGroups},
    {"parts are kept by the rank's place in tp", "kept-slice",
     [](Editor& e) {
       RankExpr& offset = e.plan.values[e.Get<op::Copy>().x].offset;
       offset.axis[static_cast<size_t>(Axis::Tp)] = std::exchange(offset.axis[static_cast<size_t>(Axis::DpInner)], 0);
     },
     {}, false, InGroups},
    {"a part is kept of what was released", "kept-slice",
     [](Editor& e) {
       const size_t copy = e.Find<op::Copy>();
       MoveOp(e, copy, e.FindRelease(e.plan.values[e.Get<op::Copy>().x].buffer));
     },
     {}, false, InGroups},
    {"half of a part is kept", "kept-slice",
     [](Editor& e) {
       for (const ValueId id : {e.Get<op::Copy>().x, e.Get<op::Copy>().y}) {
         e.plan.values[id].shape = {e.plan.values[id].num_elements() / 2};
       }
     },
     {}, false, InGroups},
    {"a copy of another size", "copy-c1",
     [](Editor& e) { e.plan.values[e.Get<op::Copy>().y].shape = {128}; }, {}, false, InGroups},
    {"a slice that no rank keeps", "read-undefined",
     [](Editor& e) { e.Erase(e.Find<op::Copy>()); }, {}, false, InGroups},

    // Memory.
    {"a buffer behind the end of its arena", "outside-arena",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).offset = e.plan.arena_bytes[1] / 256 * 256; }},
    {"a buffer far behind the end of its arena", "outside-arena",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).offset = int64_t{1} << 62; }},
    {"a guarded plan without red zones", "red-zone", [](Editor& e) { e.plan.run.guard = true; }},
    {"a guarded plan with red zones at the ends of arenas alone", "buffer-overlap",
     [](Editor& e) {
       e.plan.run.guard = true;
       for (Buffer& buffer : e.plan.buffers) {
         buffer.offset += RedZoneBytes;
       }
       for (int64_t& bytes : e.plan.arena_bytes) {
         bytes += 2 * RedZoneBytes;
       }
     }},
    {"a kernel that writes where the peers read what they gathered", "gathered-write",
     [](Editor& e) {
       e.BufferOf(e.Get<op::Embedding>().y).arena = Arena::Gathered;
       e.plan.arena_bytes[static_cast<size_t>(Arena::Gathered)] =
           e.plan.arena_bytes[static_cast<size_t>(Arena::Transient)];
     }},
    {"a buffer between alignments", "buffer-alignment",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).offset += 4; }},
    {"a buffer without an offset", "buffer-alignment",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).offset = -1; }},
    {"a buffer of no bytes", "buffer-size",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).bytes = Bytes{0}; }},
    {"a buffer of more bytes than there are", "buffer-size",
     [](Editor& e) { e.BufferOf(e.Get<op::AllGather>().full).bytes = Bytes{INT64_MAX}; }},
    {"a value that begins before its buffer", "value-outside-buffer",
     [](Editor& e) { e.plan.values[e.Get<op::AllGather>().full].offset.base = -64; }},
    {"a value that ends behind its buffer", "value-outside-buffer",
     [](Editor& e) { e.plan.values[e.Get<op::AllGather>().full].offset.base = 4; }},
    {"a value that ends behind its buffer on the last rank", "value-outside-buffer",
     [](Editor& e) { e.plan.values[e.Get<op::AllGather>().full].offset.axis[1] = 4; }},
    {"an offset that overflows in the last pass of a loop", "offset-overflow",
     [](Editor& e) {
       e.Get<op::Repeat>().count = int64_t{1} << 40;
       e.plan.values[e.Get<op::Embedding>().tokens].offset.repeat = 999'999'999'999'999;
     }},
    {"a sample number that overflows", "offset-overflow",
     [](Editor& e) {
       e.plan.run.steps = int64_t{1} << 39;
       e.Get<op::LoadTokens>(0, SectionKind::Data).sample.step = 999'999'999'999'999;
     }},
    {"a sample number below 0", "offset-overflow",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.base = -1; }},
    {"an offset that moves with the step", "offset-form",
     [](Editor& e) { e.plan.values[e.Get<op::AllGather>().full].offset.step = 4; }},
    {"a value between the elements of its type", "value-alignment",
     [](Editor& e) { e.plan.values[e.Get<op::Embedding>().weight].offset.base += 2; }},
    {"a place that moves with a loop, outside of any", "repeat-outside",
     [](Editor& e) { e.plan.values[e.Get<op::CountValid>().targets].offset.repeat = 4; }},
    {"a shape that overflows", "shape-size",
     [](Editor& e) {
       e.plan.values[e.Get<op::AllGather>().full].shape = {int64_t{1} << 40, int64_t{1} << 40};
     }},
    {"a parameter without elements", "shape-size",
     [](Editor& e) {
       e.plan.parameters[ParameterId{0}].shape = {64, 0};
     }},
    {"a dim that is not there", "placement-dim",
     [](Editor& e) { e.plan.values[e.Get<op::Embedding>().y].placement[1] = Placement::Shard(3); }},

    // Structure.
    {"more ranks than a plan can have", "mesh-size",
     [](Editor& e) {
       e.plan.mesh.sizes = {int64_t{1} << 32, int64_t{1} << 32, 1};
     }},
    {"groups that do not fill dp", "mesh-size", [](Editor& e) { e.plan.mesh.dp_inner = 3; }},
    {"more events than ops", "too-many", [](Editor& e) { e.plan.num_events = INT32_MAX; }},
    {"a loop that never ends", "repeat-count", [](Editor& e) { e.Get<op::Repeat>().count = INT64_MAX; }},
    {"a loop that never begins", "repeat-count", [](Editor& e) { e.Get<op::Repeat>().count = 0; }},
    {"loops in loops", "repeat-nesting",
     [](Editor& e) {
       e.Insert(0, Op{.body = op::Repeat{.count = 2}});
       e.Ops().push_back(Op{.body = op::EndRepeat{}});
     }},
    {"an op without an operand", "field-unset", [](Editor& e) { e.Get<op::Embedding>().weight = {}; }},
    {"an op without its scratch", "field-unset", [](Editor& e) { e.Get<op::Attention>().scratch = {}; }},
    {"a collective over no axis", "axes-empty", [](Editor& e) { e.Get<op::AllGather>().axes = {}; }},
    {"two parameters of one name", "duplicate-parameter",
     [](Editor& e) { e.plan.parameters[ParameterId{1}].name = e.plan.parameters[ParameterId{0}].name; }},
    {"two scalars of one name", "duplicate-scalar", [](Editor& e) { e.plan.scalars[ScalarId{8}].name = "loss"; }},
    {"an init rule with a size left in it", "init-rule",
     [](Editor& e) { e.plan.parameters[ParameterId{1}].init = "normal(0, init_std)"; }},
    {"a copy of a parameter that there is not", "init-formula",
     [](Editor& e) { e.plan.parameters[ParameterId{1}].init = "copy('nowhere')"; }},
    {"a parameter that is a copy of itself", "init-formula",
     [](Editor& e) {
       Parameter& parameter = e.plan.parameters[ParameterId{1}];
       parameter.init = fmt::format("copy('{}')", parameter.name);
     }},
    {"an index along a third dimension", "init-formula",
     [](Editor& e) { e.plan.parameters[ParameterId{1}].init = "index(0) + 0 * index(1)"; }},
    {"an init rule that is none", "init-rule", [](Editor& e) { e.plan.parameters[ParameterId{1}].init = "normal(0,"; }},
    {"a schedule that is none", "schedule-expression",
     [](Editor& e) { e.plan.scalars[e.plan.ScalarNamed("lr")].expression = "1 +"; }},
    {"a setting out of range", "setting-range", [](Editor& e) { e.plan.run.micro_batch = 0; }},
    {"a trigger every 0 steps", "trigger",
     [](Editor& e) {
       for (Trigger& trigger : e.plan.triggers) {
         trigger.every = 0;
       }
     }},
    {"a trigger of a section without ops", "trigger", [](Editor& e) { e.Ops(SectionKind::Eval).clear(); }},
    {"a collective that some ranks may leave out", "collective-predicate",
     [](Editor& e) { e.Ops()[e.Find<op::AllReduce>()].when.scalar = e.plan.ScalarNamed("loss"); }},
    {"a collective under a flag that a rank sets for itself", "collective-predicate",
     [](Editor& e) {
       e.Get<op::ReadScalar>().to = e.plan.ScalarNamed("stop");
       e.Ops()[e.Find<op::AllReduce>()].when.scalar = e.plan.ScalarNamed("stop");
     }},
    {"an update that some ranks may leave out", "predicate-not-agreed",
     [](Editor& e) { e.Ops()[e.Find<op::Adamw>()].when.scalar = e.plan.ScalarNamed("loss"); }},

    {"a collective that all ranks may leave out", "collective-predicate",
     [](Editor& e) { e.Ops()[e.Find<op::Control>()].when.scalar = e.plan.ScalarNamed("step"); }},
    {"bytes that are given back in some steps", "predicate-op",
     [](Editor& e) { e.Ops()[e.Find<op::Release>()].when.scalar = e.plan.ScalarNamed("step"); }},
    {"a loss that is read in some steps", "predicate-op",
     [](Editor& e) { e.Ops()[e.Find<op::ReadScalar>()].when.scalar = e.plan.ScalarNamed("step"); }},

    // What the run looks up by name.
    {"a loss by another name", "scalar-missing",
     [](Editor& e) { e.plan.scalars[e.plan.ScalarNamed("loss")].name = "cost"; }},
    {"no learning rate", "scalar-missing",
     [](Editor& e) { e.plan.scalars[e.plan.ScalarNamed("lr")].name = "rate"; }},
    {"a stop that is no flag", "scalar-missing",
     [](Editor& e) { e.plan.scalars[e.plan.ScalarNamed("stop")].kind = ScalarKind::Metric; }},
    {"no number of updates", "scalar-missing",
     [](Editor& e) { e.plan.scalars[e.plan.ScalarNamed("updates")].name = "changes"; }},
    {"a stop that says whether gradients are finite", "scalar-role",
     [](Editor& e) { std::swap(e.Get<op::Control>().stop, e.Get<op::Control>().nonfinite); }},
    {"updates by another learning rate than the run tells", "scalar-role",
     [](Editor& e) {
       const ScalarId rate = e.plan.scalars.Add({"rate", ScalarKind::Schedule, "0.1"});
       for (Op& op : e.Ops()) {
         if (auto* adamw = std::get_if<op::Adamw>(&op.body)) {
           adamw->lr = rate;
         }
       }
     }},
    {"the norm is told as the loss", "scalar-unwritten",
     [](Editor& e) { e.Get<op::ReadScalar>(0).to = e.plan.ScalarNamed("grad_norm"); }},
    {"an evaluation that tells no loss", "scalar-unwritten",
     [](Editor& e) { e.Erase(e.Find<op::ReadScalar>(0, SectionKind::Eval), SectionKind::Eval); }},

    // The update.
    {"an update whatever the gradients are, of one unit among others", "update-guard",
     [](Editor& e) { e.Ops()[e.Find<op::Adamw>(1)].when = {}; }},
    {"updates whatever the gradients are", "update-guard",
     [](Editor& e) {
       for (Op& op : e.Ops()) {
         if (op.As<op::Adamw>() != nullptr || op.As<op::Increment>() != nullptr) {
           op.when = {};
         }
       }
     }},
    {"an update where a gradient is not finite", "update-guard",
     [](Editor& e) { e.Ops()[e.Find<op::Adamw>()].when.negated = false; }},
    {"an update that waits for a stop", "update-guard",
     [](Editor& e) { e.Ops()[e.Find<op::Adamw>(1)].when.scalar = e.plan.ScalarNamed("stop"); }},
    {"updates before the ranks agree", "update-guard",
     [](Editor& e) { MoveOp(e, e.Find<op::Adamw>(), e.Find<op::Control>()); }},
    {"a control of some ranks", "control-once",
     [](Editor& e) { e.Get<op::Control>().axes = AxisSet::Of(Axis::Tp); }, {}, false, OverTp},
    {"a control that begins anew", "control-once", [](Editor& e) { e.Repeat(e.Find<op::Control>()); }},
    {"the factor is told as the norm", "norm-told",
     [](Editor& e) { e.Get<op::ReadScalar>(1).value = e.Get<op::ClipFactor>().factor; }},
    {"a parameter that does not count in the norm", "norm-counted",
     [](Editor& e) { e.plan.sub_vectors[SubVectorId{1}].segments[0].counted_in_norm = false; }},
    {"one unit with another beta", "update-settings", [](Editor& e) { e.Get<op::Adamw>(1).beta2 = 0.5; }},

    // The header.
    {.what = "a header with a third layer",
     .rule = "header-layers",
     .edit = [](Editor& e) { e.plan.model["layers"] = "3"; }},
    {.what = "a header with another width",
     .rule = "header-hidden",
     .edit = [](Editor& e) { e.plan.model["hidden"] = "32"; }},
    {.what = "a header with more heads",
     .rule = "header-heads",
     .edit = [](Editor& e) { e.plan.model["heads"] = "8"; }},
    {.what = "a header with fewer heads than all ranks of tp have",
     .rule = "header-heads",
     .edit = [](Editor& e) { e.plan.model["heads"] = "2"; },
     .sets = OverTp},
    {.what = "a header with more heads of keys",
     .rule = "header-heads",
     .edit = [](Editor& e) { e.plan.model["kv_heads"] = "4"; }},
    {.what = "a header with wider heads",
     .rule = "header-heads",
     .edit = [](Editor& e) { e.plan.model["head_dim"] = "8"; }},
    {.what = "a header with a wider feed-forward layer",
     .rule = "header-ffn",
     .edit = [](Editor& e) { e.plan.model["ffn"] = "48"; }},
    {.what = "a header with another vocabulary",
     .rule = "header-vocab",
     .edit = [](Editor& e) { e.plan.model["vocab"] = "65"; }},
    {.what = "a header with longer sequences",
     .rule = "header-seq",
     .edit = [](Editor& e) { e.plan.model["seq"] = "16"; }},
    {.what = "a header with another eps of norms",
     .rule = "header-norm-eps",
     .edit = [](Editor& e) { e.plan.model["norm_eps"] = "1e-06"; }},
    {.what = "a header with another base of the rotary embedding",
     .rule = "header-rope",
     .edit = [](Editor& e) { e.plan.model["rope_theta"] = "500000"; }},
    {.what = "a header with another rotary embedding",
     .rule = "header-rope",
     .edit = [](Editor& e) { e.plan.model["rope_frequency"] = "linear_rope(2)"; }},
    {.what = "a header that ties the head to the embedding",
     .rule = "header-tied",
     .edit = [](Editor& e) { e.plan.model["tied"] = "true"; }},
    {.what = "a header with a head that there is not",
     .rule = "header-loss-heads",
     .edit = [](Editor& e) { e.plan.model["loss_heads"] = "image:8"; }},
    {.what = "a header whose layers are no number",
     .rule = "header-model",
     .edit = [](Editor& e) { e.plan.model["layers"] = "two"; }},
    {.what = "a header with what no op has",
     .rule = "header-model",
     .edit = [](Editor& e) { e.plan.model["experts"] = "8"; }},
    {"a header without the width of heads", "header-model", [](Editor& e) { e.plan.model.erase("head_dim"); }},
    {"norms of two kinds", "header-norm-eps", [](Editor& e) { e.Get<op::RmsNorm>(2).eps = 0.5; }},
    {"a header that accumulates less", "header-batch", [](Editor& e) { e.plan.run.accumulate = 2; }},
    {"a header with longer evaluations", "header-batch", [](Editor& e) { e.plan.run.eval_batches += 1; }},
    {"a header with more tokens a step", "sample-count", [](Editor& e) { e.plan.run.tokens_per_step *= 2; }},
    {"a header with a part of a sample", "sample-count", [](Editor& e) { e.plan.run.tokens_per_step += 1; }},
    {"a header with larger microbatches", "load_tokens-c1", [](Editor& e) { e.plan.run.micro_batch = 4; }},

    // Samples.
    {"the same samples on both ranks", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.axis[1] = 0; }},
    {"each sample on two ranks", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.axis[1] = 1; }},
    {"the same samples in every microbatch", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.repeat = 0; }},
    {"the first samples again and again", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.clamp = Interval{0, 3}; }},
    {"the first samples are left out", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.base = 2; }},
    {"samples that the ranks of tp do not share", "sample-by-tp",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.axis[2] = 2; }, {}, false, OverTp},
    {"the same samples in every replica", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.axis[0] = 0; }, {}, false, OverReplicas},
    {"the same samples in every step", "sample-step",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.step = 0; }},
    {"samples that two steps share", "sample-step",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).sample.step -= 1; }},
    {"fewer samples than a step has", "sample-count",
     [](Editor& e) { e.Get<op::Repeat>(0, SectionKind::Data).count = 2; }},
    {"targets of other samples", "sample-targets",
     [](Editor& e) {
       const op::LoadTokens load = e.Get<op::LoadTokens>(0, SectionKind::Data);
       const ValueId targets = e.Copy(load.targets);
       Buffer buffer = e.BufferOf(load.targets);
       int64_t& arena = e.plan.arena_bytes[static_cast<size_t>(buffer.arena)];
       buffer.offset = RoundUp(arena, 64);
       arena = buffer.offset + buffer.bytes.value;
       e.plan.values[targets].buffer = e.plan.buffers.Add(std::move(buffer));
       op::LoadTargets more{.targets = targets,
                            .split = load.split,
                            .sample = load.sample,
                            .head = e.plan.heads.Add({"image", 8, {}})};
       more.sample.step += 1;
       e.Insert(e.Find<op::LoadTokens>(0, SectionKind::Data) + 1, Op{.body = more}, SectionKind::Data);
     }},
    {"samples that are loaded twice", "sample-loads",
     [](Editor& e) { e.Repeat(e.Find<op::LoadTokens>(0, SectionKind::Data), SectionKind::Data); }},
    {"what is held out is trained on", "sample-split",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Data).split = Split::Eval; }},
    {"an evaluation on what was trained on", "sample-split",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Eval).split = Split::Train; }},
    {"an evaluation that leaves out the last samples", "sample-count",
     [](Editor& e) { e.Get<op::Repeat>(0, SectionKind::Eval).count -= 1; }},
    {"an evaluation that goes on behind the last sample", "sample-count",
     [](Editor& e) { e.Get<op::Repeat>(0, SectionKind::Eval).count += 1; }},
    {"an evaluation of the same samples on both ranks", "sample-tiles",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Eval).sample.axis[1] = 0; }},
    {"evaluations of other samples", "sample-step",
     [](Editor& e) { e.Get<op::LoadTokens>(0, SectionKind::Eval).sample.step = 1; }},
    {"the first microbatch in every pass", "sample-view",
     [](Editor& e) { e.plan.values[e.Get<op::Embedding>().tokens].offset.repeat = 0; }},
    {"targets that are counted in one microbatch alone", "sample-view",
     [](Editor& e) { e.plan.values[e.Get<op::CountValid>().targets].shape[0] = 1; }},

    // Places.
    {"a slot that meets another value on the second rank alone", "place-differs",
     [](Editor& e) {
       const auto& divide = e.Get<op::Divide>();
       Buffer& buffer = e.BufferOf(divide.y);
       buffer.bytes = Bytes{64};
       const ValueId moving = e.Copy(divide.y);
       e.plan.values[moving].offset.axis[static_cast<size_t>(Axis::Dp)] = 8;
       e.Get<op::ReadScalar>().value = moving;
     },
     PassKind::Schedule},

    {"parameters of two types in one vector", "parameter-type",
     [](Editor& e) { e.plan.parameters[e.plan.sub_vectors[SubVectorId{1}].segments[1].parameter].dtype = DType::BF16; }},
    {"an op of a layer that is not there", "layer-range", [](Editor& e) { e.Ops()[e.Find<op::Rope>()].layer = 2; }},

    // Token ids.
    {"the loss is taken of what has fewer columns than there are ids", "vocab-rows",
     [](Editor& e) { e.Get<op::CrossEntropy>().logits = e.Get<op::RopeTable>(0, SectionKind::Constants).table; }},
    {"more ids than rows", "vocab-rows", [](Editor& e) { e.plan.data.vocab += 1; }},
    {"rows are picked by targets, which may be -1", "token-source",
     [](Editor& e) { e.Get<op::Embedding>().tokens = e.Get<op::CrossEntropy>().targets; }},
    {"ids that the loader did not see", "token-source",
     [](Editor& e) {
       const ValueId ids = e.Copy(e.Get<op::LoadTokens>(0, SectionKind::Data).tokens);
       e.plan.values[ids].offset = {};
       e.Insert(0, Op{.body = op::Fill{.out = ids, .value = 1e6}}, SectionKind::Data);
     }},

    {"a loss of one head by the targets of another", "token-source",
     [](Editor& e) { e.Get<op::CrossEntropy>().head = e.plan.heads.Add({"image", 8, {}}); }},
    {"two heads of one name", "duplicate-head",
     [](Editor& e) {
       e.plan.heads.Add({"image", 8, {}});
       e.plan.heads.Add({"image", 8, {}});
     }},
    {"targets of two heads in one place", "token-source",
     [](Editor& e) {
       const op::LoadTokens load = e.Get<op::LoadTokens>(0, SectionKind::Data);
       const HeadId head = e.plan.heads.Add({"image", 8, {}});
       e.Insert(e.Find<op::LoadTokens>(0, SectionKind::Data) + 1,
                Op{.body = op::LoadTargets{
                       .targets = e.Copy(load.targets), .split = load.split, .sample = load.sample, .head = head}},
                SectionKind::Data);
     }},

    // Constraints of single ops are tested in verify_ops.cpp.
    {"two query heads over four kv heads", "attention-c3",
     [](Editor& e) { std::swap(e.Get<op::Attention>().q, e.Get<op::Attention>().k); }},
    {"frequencies that know no more than a recipe", "rope_table-c2",
     [](Editor& e) { e.Get<op::RopeTable>(0, SectionKind::Constants).frequency = "linear_rope(2)"; }},
    {"frequencies that are drawn", "rope_table-c2",
     [](Editor& e) { e.Get<op::RopeTable>(0, SectionKind::Constants).frequency = "normal(0, 1)"; }},
    {"a pair without a frequency", "rope_table-c3",
     [](Editor& e) { e.Get<op::RopeTable>(0, SectionKind::Constants).frequency = "1 / index(0)"; }},
    {"a pair that turns back", "rope_table-c3",
     [](Editor& e) { e.Get<op::RopeTable>(0, SectionKind::Constants).frequency = "-1 * (index(0) + 1)"; }},
    {"a product of matrices that do not fit", "matmul-c2",
     [](Editor& e) {
       e.plan.values[e.Get<op::Matmul>().out].shape = {8, 2, 8};
     }},
};

auto RulesOf(const std::vector<std::string>& findings) -> std::set<std::string> {
  std::set<std::string> rules;
  for (const std::string& finding : findings) {
    EXPECT_EQ(finding.back(), ']') << finding;
    EXPECT_EQ(finding.find('\n'), std::string::npos) << finding;
    rules.insert(finding.substr(finding.rfind('[') + 1, finding.size() - finding.rfind('[') - 2));
  }
  return rules;
}

TEST(VerifyPlan, RejectsEachBrokenPlanByName) {
  const Plan valid = CompileSample();
  ASSERT_EQ(VerifyPlan(valid), std::vector<std::string>{});
  for (const BrokenPlan& broken : BrokenPlans) {
    SCOPED_TRACE(broken.what);
    Editor editor(!broken.sets.empty() ? CompileSample(broken.sets, broken.after)
                  : broken.bf16        ? CompileSample({"precision.compute=bf16"})
                  : broken.after       ? CompileSample({}, broken.after)
                                       : valid);
    broken.edit(editor);
    const auto read = ParsePlan(PrintPlan(editor.plan));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const std::vector<std::string> findings = VerifyPlan(*read);
    EXPECT_TRUE(RulesOf(findings).contains(broken.rule)) << fmt::format("{}", fmt::join(findings, "\n"));
  }
}

TEST(VerifyPlan, ShowsTheOpTheFactsAndTheUnit) {
  Editor editor(CompileSample());
  editor.Erase(editor.Find<op::AllGather>());
  const auto findings = VerifyPlan(editor.plan);
  const std::string op = fmt::format("step op {} `compute embedding tokens=", editor.Find<op::Embedding>());
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](const std::string& finding) {
    return finding.starts_with(op) && finding.ends_with("hold nothing: unit embed is not gathered [read-undefined]");
  })) << fmt::format("{}", fmt::join(findings, "\n"));
}

TEST(VerifyPlan, APlanThatClaimsLessIsNotRunnable) {
  const Plan valid = CompileSample();
  EXPECT_EQ(VerifyRunnable(valid), std::vector<std::string>{});
  Plan plan = valid;
  plan.passes.pop_back();
  EXPECT_EQ(RulesOf(VerifyRunnable(plan)), std::set<std::string>{"pass-missing"});
  plan = valid;
  std::swap(plan.passes[0], plan.passes[1]);
  EXPECT_EQ(RulesOf(VerifyRunnable(plan)), std::set<std::string>{"pass-missing"});
  plan = valid;
  plan.passes.push_back(PassKind::Build);
  EXPECT_EQ(RulesOf(VerifyRunnable(plan)), std::set<std::string>{"pass-missing"});
  plan = valid;
  plan.disabled.push_back(PassKind::Recompute);
  EXPECT_EQ(RulesOf(VerifyRunnable(plan)), std::set<std::string>{"pass-disabled"});
  plan = valid;
  plan.num_events = -1;
  EXPECT_EQ(RulesOf(VerifyRunnable(plan)), std::set<std::string>{"too-many"});
}

TEST(VerifyPlan, OpsOnASliceNeedItsSegmentsAndNotItsPadding) {
  // One rank and one microbatch: nothing sums the gradients, and nothing clears the padding between them.
  Editor editor(CompileSample({"mesh.dp=1", "batch.global=2"}));
  EXPECT_EQ(VerifyPlan(editor.plan), std::vector<std::string>{});
  editor.Erase(editor.Find<op::EmbeddingBackward>());
  const auto findings = VerifyPlan(editor.plan);
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const std::string& finding) {
    return finding.find("sum_squares") != std::string::npos && finding.ends_with("[read-undefined]");
  })) << fmt::format("{}", fmt::join(findings, "\n"));
}

// What cannot be written as text, as the passes could make it.
TEST(VerifyPlan, RejectsIdsOutOfRangeAndBrokenNesting) {
  const Plan valid = CompileSample();
  const auto rules = [&](const std::function<void(Editor&)>& edit) {
    Editor editor(valid);
    edit(editor);
    return RulesOf(VerifyPlan(editor.plan));
  };
  const std::set<std::string> range{"id-out-of-range"};
  EXPECT_EQ(rules([](Editor& e) { e.Get<op::Embedding>().weight = ValueId{1 << 30}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.Get<op::Release>().buffer = BufferId{1 << 30}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.Ops()[0].waits.push_back(EventId{1 << 30}); }), range);
  EXPECT_EQ(rules([](Editor& e) { e.Ops()[0].signals = EventId{1 << 30}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.Ops()[0].when.scalar = ScalarId{1 << 30}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.plan.values[ValueId{0}].buffer = BufferId{1 << 30}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.plan.sub_vectors[SubVectorId{0}].unit = UnitId{-2}; }), range);
  EXPECT_EQ(rules([](Editor& e) { e.plan.sub_vectors[SubVectorId{0}].segments[0].parameter = ParameterId{99}; }),
            range);
  EXPECT_EQ(rules([](Editor& e) { e.plan.halts.push_back({.scalar = ScalarId{99}, .code = ExitCode::Ok}); }), range);
  EXPECT_EQ(rules([](Editor& e) { e.Ops()[e.Find<op::EndRepeat>()].body = op::SaveCommit{}; }),
            std::set<std::string>{"repeat-nesting"});
  EXPECT_EQ(rules([](Editor& e) { e.Insert(0, Op{.body = op::EndRepeat{}}); }),
            std::set<std::string>{"repeat-nesting"});
  EXPECT_EQ(rules([](Editor& e) { e.Insert(0, Op{}); }), std::set<std::string>{"op-empty"});
  EXPECT_EQ(rules([](Editor& e) { e.Get<op::Fill>().value = NAN; }), std::set<std::string>{"not-finite"});
  EXPECT_EQ(rules([](Editor& e) { e.plan.groups[GroupId{0}].lr_scale = INFINITY; }),
            std::set<std::string>{"not-finite"});
}

TEST(VerifyPlan, RejectsWhatPeersWouldReadInAnotherPlace) {
  const auto rules = [](std::string_view values, std::string_view op) {
    const auto plan = ParsePlan(fmt::format(R"(plan version=1 mesh=dp:4 device=cpu kernels=fused
passes schedule
buffer $0 shared-transient whole bytes=8192 category=activations
buffer $1 transient part bytes=512 category=activations
{}section step {{
  compute fill out=%0 value=1
  compute {}
  compute release buffer=$0
  compute release buffer=$1
}}
)",
                                            values, op));
    CHECK(plan.ok(), "{}", plan.error().message);
    return RulesOf(VerifyPlan(*plan));
  };
  EXPECT_EQ(rules("value %0 = $0[512*dp] f32[32] slot\nvalue %1 = $1[0] f32[128] whole\n",
                  "all_gather shard=%0 full=%1 axes=dp"),
            std::set<std::string>{"all_gather-c5"});
  // In place, at the slots of the gathered vector.
  const auto in_place =
      rules("value %0 = $0[512*dp] f32[128] slot\nvalue %1 = $0[0] f32[512] whole\nvalue %2 = $1[0] f32[128] part\n",
            "all_gather shard=%0 full=%1 axes=dp\n  compute fill out=%2 value=0");
  EXPECT_TRUE(in_place.contains("all_gather-c5"));
  EXPECT_TRUE(in_place.contains("operand-overlap"));
  EXPECT_EQ(rules("value %0 = $0[2048*dp] f32[512] full\nvalue %1 = $1[0] f32[128] shard\n",
                  "reduce_scatter full=%0 shard=%1 axes=dp"),
            std::set<std::string>{"reduce_scatter-c5"});
  EXPECT_EQ(rules("value %0 = $0[2048] f32[512] full\nvalue %1 = $1[0] f32[128] shard\n",
                  "reduce_scatter full=%0 shard=%1 axes=dp"),
            std::set<std::string>{});
}

TEST(VerifyPlan, LooksForAnOrderOnEveryRank) {
  // On rank 0 the dp stream reads the first 512 bytes, and compute writes the next ones; on rank 1 they meet.
  const auto plan = ParsePlan(R"(plan version=1 mesh=dp:4 device=cpu kernels=fused
passes schedule synchronize
buffer $0 shared-transient whole bytes=2048 category=activations
buffer $1 transient copy bytes=512 category=activations
value %0 = $0[0] f32[512] whole
value %1 = $0[512*dp] f32[128] slot
value %2 = $0[512] f32[128] second
value %3 = $0[512] f32[128] second.next
value %4 = $1[0] f32[128] copy
events 2
section step {
  compute fill out=%0 value=1 signals=e0
  dp copy x=%1 y=%4 waits=e0 signals=e1
  compute add a=%2 b=%2 y=%3
  compute release buffer=$0 waits=e1
  compute release buffer=$1
}
)");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(RulesOf(VerifyPlan(*plan)).contains("missing-event"));
}

TEST(VerifyPlan, BoundsTheWorkOfHostilePlans) {
  // A buffer in many pieces, each overwritten in place, and many reads of the whole.
  std::string text =
      "plan version=1 mesh=1 device=cpu kernels=fused\npasses schedule\nbuffer $0 transient x bytes=80000 "
      "category=data\n"
      "buffer $1 transient y bytes=8 category=data\nvalue %0 = $0[0] i32[20000]\nvalue %1 = $1[0] f64[1]\n";
  std::string ops = "section step {\n";
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("value %{} = $0[{}] f32[1]\nvalue %{} = $0[{}] f32[1]\n", 2 * i + 2, 4 * i, 2 * i + 3, 4 * i);
    ops += fmt::format("  compute fill out=%{} value=0\n  compute all_reduce x=%{} y=%{} axes=dp\n", 2 * i + 2,
                       2 * i + 2, 2 * i + 3);
  }
  for (int i = 0; i < 20'000; ++i) {
    ops += "  compute count_valid targets=%0 count=%1\n  compute release buffer=$1\n";
  }
  const auto plan = ParsePlan(text + ops + "}\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(RulesOf(VerifyPlan(*plan)), std::set<std::string>{"too-complex"});
}

TEST(VerifyPlan, EveryRuleHasABrokenPlan) {
  std::set<std::string> tested;
  std::string test_text;
  for (const char* name :
       {"tests/plan/verify.cpp", "tests/plan/verify_sources.cpp", "tests/plan/seed.cpp", "tests/plan/backward.cpp"}) {
    std::ifstream own(std::filesystem::path(SHARDC_SOURCE_DIR) / name);
    test_text.append(std::istreambuf_iterator<char>(own), {});
  }
  const std::regex rule("\"([a-z]+(?:-[a-z]+)*)\"_rule");
  int rules = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SHARDC_SOURCE_DIR) / "compiler/ops")) {
    if (!entry.path().filename().string().starts_with("verify_") || entry.path().extension() != ".cpp") {
      continue;
    }
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator found(text.begin(), text.end(), rule); found != std::sregex_iterator(); ++found) {
      ++rules;
      EXPECT_NE(test_text.find((*found)[1].str()), std::string::npos)
          << entry.path().filename() << ": no broken plan for [" << (*found)[1].str() << "]";
    }
  }
  EXPECT_GT(rules, 40);
}

}  // namespace
}  // namespace shardc
