// The report for programs. Fields are documented in docs/explain.md.
#include <nlohmann/json.hpp>

#include "compiler/base/mapped.h"
#include "compiler/cost/preset_use.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/report/data_json.h"
#include "compiler/report/json_lines.h"
#include "compiler/report/report.h"

namespace shardc {

using Json = nlohmann::ordered_json;

static auto UseJson(const MemoryUse& use) -> Json {
  Json json = Json::object();
  for (int i = 0; i < NumCategories; ++i) {
    json[std::string(ToText(static_cast<Category>(i)))] = use.by_category[static_cast<size_t>(i)].value;
  }
  return json;
}

/// Returns the product as a whole number; as a floating-point number if 64 bits do not hold it.
static auto Product(int64_t a, int64_t b) -> Json {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return static_cast<double>(a) * static_cast<double>(b);
  }
  return product;
}

static auto MeshJson(const Mesh& mesh) -> Json {
  Json json;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (WholeOf(axis) == axis || mesh.size(axis) > 1) {
      json[std::string(ToText(axis))] = mesh.size(axis);
    }
  }
  if (mesh.hosts != 1) {
    json["hosts"] = mesh.hosts;
  }
  return json;
}

/// Returns the bytes at each op, and where each phase begins.
static auto OverStepJson(const Report& report) -> Json {
  Json json{{"bytes", Json::array()}, {"phases", Json::array()}};
  const std::vector<Op>& ops = report.plan->section(SectionKind::Step).ops;
  for (size_t i = 0; i < report.memory_over_step.size(); ++i) {
    json["bytes"].push_back(report.memory_over_step[i].total().value);
    if (i == 0 || ops[i].phase != ops[i - 1].phase) {
      json["phases"].push_back({i, ToText(ops[i].phase)});
    }
  }
  return json;
}

static auto AliveJson(const Report& report) -> Json {
  return Mapped<Json>(report.alive_at_peak, [&](const AliveBuffers& alike) {
    return Json{{"name", alike.name},   {"blocks", alike.blocks},     {"category", ToText(alike.category)},
                {"count", alike.count}, {"bytes", alike.bytes.value}, {"key", alike.key}};
  });
}

static auto BlocksJson(const Report& report) -> Json {
  Json json = Json::array();
  for (const BlockActivations& alike : report.blocks) {
    auto tensors = Mapped<Json>(alike.tensors, [&](const BlockTensor& tensor) {
      return Json{{"name", tensor.name},
                  {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                  {"dtype", ToText(tensor.dtype)},
                  {"bytes", tensor.bytes.value},
                  {"after_forward", ToText(tensor.after)},
                  {"ops", tensor.ops}};
    });
    json.push_back({{"blocks", alike.blocks}, {"kept_bytes", alike.kept().value}, {"tensors", std::move(tensors)}});
  }
  return json;
}

static auto TimeJson(const StepTime& time) -> Json {
  return {{"machine", time.machine->name},
          {"step_seconds", time.step().value},
          {"least_seconds", time.least().value},
          {"most_seconds", time.most().value},
          {"products_seconds", time.products.value},
          {"attention_seconds", time.attention.value},
          {"others_seconds", time.others.value},
          {"peers_seconds", time.peers.value},
          {"host_seconds", time.host.value},
          {"evaluation_seconds", time.evaluation.value},
          {"mfu", time.mfu},
          {"assumed_ranks_per_host", time.assumed_of_host}};
}

static auto MemoryJson(const Report& report) -> Json {
  const Plan& plan = *report.plan;
  Json json;
  json["peak_bytes"] = report.peak.use.total().value;
  json["peak_section"] = ToText(report.peak.section);
  json["peak_op"] = {
      {"index", report.peak.op_index}, {"summary", report.peak.op_summary}, {"text", report.peak.op_text}};
  json["by_category"] = UseJson(report.peak.use);
  json["sections"] = Mapped<Json>(report.section_peaks, [&](const MemoryPeak& peak) {
    return Json{{"section", ToText(peak.section)},
                {"peak_bytes", peak.use.total().value},
                {"op_index", peak.op_index},
                {"by_category", UseJson(peak.use)}};
  });
  json["reserved_bytes"] = report.reserved.value;
  for (int i = 0; i < NumArenas; ++i) {
    json["by_arena"][std::string(ToText(static_cast<Arena>(i)))] = plan.arena_bytes[static_cast<size_t>(i)];
  }
  json["alive_at_peak"] = AliveJson(report);
  json["over_step"] = OverStepJson(report);
  const OutsideArenas outside = OutsideArenasOf(plan);
  json["outside_arenas_bytes"] = outside.all().value;
  json["outside_arenas"] = {
      {"host_bytes", outside.host().value},     {"files_bytes", OutsideArenas::Files.value},
      {"plan_bytes", outside.plan.value},       {"rank_bytes", outside.rank().value},
      {"threads_bytes", outside.threads.value}, {"thread_bytes", OutsideArenas::ProductThread.value}};
  return json;
}

static auto CommunicationJson(const Report& report) -> Json {
  const Mesh& mesh = report.plan->mesh;
  Json json = Json::array();
  for (const Communication& row : report.step_communication) {
    json.push_back({{"op", ToText(row.op)},
                    {"axis", ToText(row.axes)},
                    {"dtype", ToText(row.dtype)},
                    {"count", row.count},
                    {"payload_bytes", row.payload.value},
                    {"wire_bytes", row.wire(mesh).value}});
    if (mesh.hosts > 1) {
      json.back()["between_hosts_bytes"] = row.between_hosts(mesh).value;
    }
  }
  return json;
}

static auto UnitsJson(const std::vector<UnitUse>& units) -> Json {
  Json json = Json::array();
  for (const UnitUse& unit : units) {
    json.push_back({{"name", unit.name},
                    {"parameters", unit.num_elements},
                    {"gathered_bytes", unit.gathered.value},
                    {"reshard_after_forward", unit.reshard_after_forward},
                    {"gathers_per_step", unit.num_gathers},
                    {"kept_for_backward", unit.kept_for_backward}});
    if (unit.kept_slice > Bytes{}) {
      json.back()["kept_slice_bytes"] = unit.kept_slice.value;
    }
  }
  return json;
}

static auto LossJson(const LossUse& loss) -> Json {
  Json json{{"chunks", loss.chunks}, {"logits_bytes", loss.logits.value}};
  for (const TargetHead& head : loss.heads) {
    json["heads"].push_back({{"name", head.name}, {"vocab", head.vocab}});
  }
  return json;
}

static auto InitJson(const std::vector<InitUse>& init) -> Json {
  return Mapped<Json>(init, [&](const InitUse& use) {
    return Json{{"rule", use.rule},
                {"recipe_line", use.recipe_line},
                {"parameters", use.num_parameters},
                {"elements", use.num_elements}};
  });
}

static auto PresetJson(const PresetUse& preset) -> Json {
  const auto set = Mapped<Json>(preset.set, [&](const SetBesidePreset& key) {
    return Json{{"key", key.key}, {"value", key.value}, {"in_preset", key.in_preset}, {"by", key.by}};
  });
  return {{"name", preset.name}, {"init_scheme", preset.scheme}, {"set", set}};
}

static auto SeedJson(const Seed& seed, const SeedUse& use) -> Json {
  return {{"format", ToText(seed.format)},
          {"path", seed.path},
          {"run_id", seed.run_id},
          {"step", seed.step},
          {"manifest", seed.manifest},
          {"adapter", {{"path", seed.adapter_path}, {"manifest", seed.adapter}}},
          {"loaded", {{"parameters", use.num_loaded}, {"elements", use.loaded_elements}}},
          {"read", {{"parameters", use.num_read}, {"elements", use.read_elements}}},
          {"generated", {{"parameters", use.num_generated}, {"elements", use.generated_elements}}},
          {"unused", use.unused},
          {"read_by_rank", use.read_by_rank.value},
          {"continues",
           {{"steps_before", seed.steps_before},
            {"updates", seed.updates},
            {"parameters_with_moments", use.num_with_moments},
            {"changes", use.changes}}}};
}

static auto SchedulesJson(const std::vector<ScheduleUse>& schedules) -> Json {
  Json json = Json::array();
  for (const ScheduleUse& schedule : schedules) {
    auto points = Mapped<Json>(schedule.points, [&](const SchedulePoint& point) {
      return Json{point.step, point.value};
    });
    json.push_back({{"name", schedule.name},
                    {"expression", schedule.text},
                    {"constant", schedule.is_constant},
                    {"most", {schedule.most.step, schedule.most.value}},
                    {"fault", schedule.fault},
                    {"points", std::move(points)}});
  }
  return json;
}

static auto ShareJson(const StateShare& share) -> Json {
  return {{"parameters", share.num_elements},
          {"state_bytes", share.state.value},
          {"parameters_wire_bytes", share.parameters_sent.value},
          {"gradients_wire_bytes", share.gradients_sent.value}};
}

static auto FiguresJson(const PlanFigures& figures) -> Json {
  Json json{{"peak_bytes", figures.peak.value},
            {"reserved_bytes", figures.reserved.value},
            {"communicators_bytes", figures.communicators.value},
            {"outside_arenas_bytes", figures.outside.value},
            {"flops_per_step_per_rank", figures.flops.model.value},
            {"recompute_flops_per_step_per_rank", figures.flops.recompute.value},
            {"wire_bytes_per_step_per_rank", figures.wire.value}};
  if (figures.time) {
    json["time"] = TimeJson(*figures.time);
  }
  return json;
}

static auto KnobJson(const FitUse& fit, const KnobRow& row) -> Json {
  Json knob{{"set", row.knob.sets}};
  if (row.figures) {
    knob["fits"] = fit.fits(*row.figures);
    knob.update(FiguresJson(*row.figures));
  } else {
    knob["refused"] = row.knob.refused;
  }
  return knob;
}

static auto FitJson(const FitUse& fit) -> Json {
  Json json{{"budget_bytes", fit.budget.bytes.value},
            {"machine", fit.budget.machine == nullptr ? Json(nullptr) : Json(fit.budget.machine->name)},
            {"outside_arenas_bytes", fit.outside(fit.now).value},
            {"fits", fit.fits()},
            {"spare_bytes", fit.left(fit.now).value},
            {"now", FiguresJson(fit.now)},
            {"knobs", Json::array()}};
  for (const KnobRow& row : fit.knobs) {
    json["knobs"].push_back(KnobJson(fit, row));
  }
  json["cheapest"] = fit.cheapest ? KnobJson(fit, *fit.cheapest) : Json(nullptr);
  if (fit.fastest) {
    json["fastest"] = KnobJson(fit, *fit.fastest);
  }
  const auto ranks = [&](std::string_view name, const std::optional<LeastRanks>& least) {
    json[name] = nullptr;
    if (least) {
      json[name] = {{"ranks", least->ranks}, {"hosts", least->hosts}, {"sequences_per_step", least->sequences}};
      json[name].update(KnobJson(fit, least->row));
    }
  };
  if (fit.price) {
    json["price_per_gpu_hour"] = *fit.price;
  }
  for (const GrownRow& grown : fit.grown) {
    json["grown"].push_back(KnobJson(fit, grown.row));
    json["grown"].back()["tokens_per_step"] = grown.tokens;
  }
  ranks("least_ranks", fit.least_ranks);
  ranks("least_ranks_with_keys", fit.least_with_keys);
  return json;
}

auto RenderReportJson(const Report& report) -> std::string {
  const Plan& plan = *report.plan;
  Json json;
  json["format_version"] = "1.13";
  json["plan_hash"] = report.plan_hash;
  json["model"] = plan.model;
  json["mesh"] = MeshJson(plan.mesh);
  json["parameters"] = {{"total", report.parameters_total},
                        {"trainable", report.shares.trained.num_elements},
                        {"per_rank", report.parameters_per_rank}};
  if (report.shares.frozen.num_elements > 0) {
    json["trained"] = ShareJson(report.shares.trained);
    json["frozen"] = ShareJson(report.shares.frozen);
  }
  for (const AdapterUse& use : report.adapters) {
    json["adapters"].push_back({{"rank", use.sizes.rank},
                                {"alpha", use.sizes.alpha},
                                {"scale", use.sizes.scale},
                                {"projections", use.projections},
                                {"blocks", use.blocks}});
  }
  json["optimizer"] = ToText(plan.run.optimizer);
  json["batch"] = {{"global", SamplesPerStep(plan)},
                   {"micro", plan.run.micro_batch},
                   {"accumulate", plan.run.accumulate},
                   {"tokens_per_step", plan.run.tokens_per_step}};

  json["memory"] = MemoryJson(report);
  json["communication"] = CommunicationJson(report);
  for (const OverlapUse& use : report.overlaps) {
    json["overlaps"].push_back({{"op", ToText(use.op)},
                                {"axis", ToText(use.axes)},
                                {"beside_compute", use.is_beside_compute},
                                {"count", use.count},
                                {"names", use.names}});
  }
  json["flops_per_step"] = Product(report.flops.model.value, plan.mesh.num_ranks());
  json["flops_per_step_per_rank"] = report.flops.model.value;
  json["recompute_flops_per_step"] = Product(report.flops.recompute.value, plan.mesh.num_ranks());

  if (report.time) {
    json["time"] = TimeJson(*report.time);
  }

  json["run"] = {{"steps", plan.run.steps}, {"tokens", Product(plan.run.steps, plan.run.tokens_per_step)}};
  if (report.time) {
    json["run"]["seconds"] = report.time->step().value * static_cast<double>(plan.run.steps);
    json["run"]["evaluations"] = report.time->num_evaluations;
  }
  json["checkpoint"] = {{"bytes", report.checkpoint.value}, {"keep", plan.run.checkpoint_keep}};
  if (report.in_base != Bytes{}) {
    json["checkpoint"]["bytes_in_base"] = report.in_base.value;
  }
  json["blocks"] = BlocksJson(report);
  json["units"] = UnitsJson(report.units);
  json["rings"] = {{"gathered", {{"depth", report.gather_ring.depth}, {"bytes", report.gather_ring.bytes.value}}},
                   {"reduced", {{"depth", report.reduce_ring.depth}, {"bytes", report.reduce_ring.bytes.value}}}};
  json["gradient_sums"] = {{"slices_bytes", report.gradient_sums.slices.value},
                           {"whole_bytes", report.gradient_sums.whole.value},
                           {"whole", report.gradient_sums.are_whole}};
  json["loss"] = LossJson(report.loss);
  json["init"] = InitJson(report.init);
  if (!report.preset.name.empty()) {
    json["preset"] = PresetJson(report.preset);
  }
  for (const RecipeEntry& entry : plan.recipe) {
    if (entry.is_assumed) {
      json["assumed"][entry.key] = entry.value;
    }
  }
  if (plan.seed.is_set()) {
    json["seed"] = SeedJson(plan.seed, report.seed);
  }
  if (Json data = DataJson(report); !data.is_null()) {
    json["data"] = std::move(data);
  }
  json["schedules"] = SchedulesJson(report.schedules);
  if (report.fit) {
    json["fit"] = FitJson(*report.fit);
  }
  return JsonLines(json);
}

}  // namespace shardc
