#include "compiler/report/init_table.h"

#include <nlohmann/json.hpp>

#include "compiler/base/text/table.h"
#include "compiler/cost/preset_use.h"
#include "compiler/expr/moments.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Returns the moments of a parameter's rule; nothing for a formula.
static auto InitMoments(const Parameter& parameter) -> std::optional<Moments> {
  const auto distribution = InitDistribution(parameter);
  return distribution ? std::optional(MomentsOf(*distribution)) : std::nullopt;
}

static auto PlaceText(const PresetUse& preset, const Origin& origin) -> std::string {
  const std::string place = RulePlaceText(preset, origin.line);
  return place.empty() ? std::string(origin.key.text()) : fmt::format("{}, {}", origin.key.text(), place);
}

auto ReadRealisedInit(const std::string& path, std::string_view text, const Plan& plan) -> RealisedInit {
  auto record = ParseInitRecord(text);
  if (!record) {
    return {path, {}, "cannot be read: " + record.error().message};
  }
  if (const std::string difference = DifferenceFrom(*record, plan); !difference.empty()) {
    return {path, {}, "belongs to another start: " + difference};
  }
  return {path, *std::move(record), ""};
}

/// Returns the record's entry of each parameter; null for one that is loaded.
static auto RealisedOf(const Plan& plan, const InitRecord& record) -> std::vector<const RealisedParameter*> {
  std::vector<const RealisedParameter*> realised;
  auto next = record.parameters.begin();
  for (const Parameter& parameter : plan.parameters) {
    realised.push_back(LoadedTensorOf(parameter) ? nullptr : &*next++);
  }
  return realised;
}

/// Returns the record; null if there is nothing to show.
static auto RecordOf(const std::optional<RealisedInit>& realised) -> const InitRecord* {
  return realised && realised->record ? &*realised->record : nullptr;
}

auto RenderInitText(const Plan& plan, const std::optional<RealisedInit>& realised) -> std::string {
  const InitRecord* const record = RecordOf(realised);
  const auto of_parameters = record == nullptr ? std::vector<const RealisedParameter*>() : RealisedOf(plan, *record);
  const PresetUse preset = PresetUseOf(plan);
  Table table("  ");
  table.KeepLeft(2);
  std::vector<std::string> head{"parameter", "shape", "rule", "mean", "std", "from"};
  if (record != nullptr) {
    head.insert(head.end() - 1, {"realised mean", "realised std"});
  }
  table.Row(std::move(head));
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const auto moments = InitMoments(parameter);
    std::vector<std::string> row{parameter.name,
                                 ToText(parameter.shape),
                                 parameter.init,
                                 moments ? fmt::format("{:.6g}", moments->mean) : "-",
                                 moments ? fmt::format("{:.6g}", moments->std) : "-",
                                 PlaceText(preset, parameter.init_origin)};
    if (record != nullptr) {
      const RealisedParameter* const there = of_parameters[static_cast<size_t>(id.index)];
      row.insert(row.end() - 1, {there == nullptr ? "-" : fmt::format("{:.6g}", there->mean),
                                 there == nullptr ? "-" : fmt::format("{:.6g}", there->std)});
    }
    table.Row(std::move(row));
  }
  std::string text =
      fmt::format("init, seed {}, {} parameters; mean and std are those of the distributions{}\n", plan.run.init_seed,
                  plan.parameters.size(), record != nullptr ? "; realised in " + realised->path : "");
  if (realised && record == nullptr) {
    text += fmt::format("not shown: {} {}\n", realised->path, realised->reason);
  }
  return text + table.Text();
}

auto RenderInitJson(const Plan& plan, const std::optional<RealisedInit>& realised) -> std::string {
  using Json = nlohmann::ordered_json;
  const InitRecord* const record = RecordOf(realised);
  const auto of_parameters = record == nullptr ? std::vector<const RealisedParameter*>() : RealisedOf(plan, *record);
  Json json;
  json["format_version"] = "1.1";
  json["seed"] = plan.run.init_seed;
  if (realised) {
    json["realised"] = {{"file", realised->path}, {"shown", record != nullptr}};
    if (record == nullptr) {
      json["realised"]["reason"] = realised->reason;
    }
  }
  json["parameters"] = Json::array();
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const auto moments = InitMoments(parameter);
    Json row{{"name", parameter.name},
             {"shape", std::vector<int64_t>(parameter.shape.begin(), parameter.shape.end())},
             {"rule", parameter.init},
             {"mean", moments ? Json(moments->mean) : Json(nullptr)},
             {"std", moments ? Json(moments->std) : Json(nullptr)},
             {"key", parameter.init_origin.key.text()},
             {"recipe_line", parameter.init_origin.line}};
    if (record != nullptr) {
      const RealisedParameter* const there = of_parameters[static_cast<size_t>(id.index)];
      row["realised_mean"] = there == nullptr ? Json(nullptr) : Json(there->mean);
      row["realised_std"] = there == nullptr ? Json(nullptr) : Json(there->std);
    }
    json["parameters"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shardc
