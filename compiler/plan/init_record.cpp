#include "compiler/plan/init_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/base/json_reader.h"
#include "compiler/base/mapped.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

static constexpr int64_t MajorVersion = 1;

auto ToText(const InitRecord& record) -> std::string {
  nlohmann::ordered_json json;
  json["format_version"] = fmt::format("{}.2", MajorVersion);
  json["seed"] = record.seed;
  if (!record.loaded_from.empty()) {
    json["loaded_from"] = record.loaded_from;
  }
  if (!record.rotary_table.empty()) {
    json["rotary_table"] = record.rotary_table;
  }
  json["elements_drawn"] = record.elements_drawn;
  json["parameters"] = Mapped<nlohmann::ordered_json>(record.parameters, [&](const RealisedParameter& parameter) {
    return nlohmann::ordered_json{{"name", parameter.name},
                                  {"shape", std::vector<int64_t>(parameter.shape.begin(), parameter.shape.end())},
                                  {"dtype", ToText(parameter.dtype)},
                                  {"rule", parameter.rule},
                                  {"mean", parameter.mean},
                                  {"std", parameter.std}};
  });
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

/// Takes the value of an ErrorOr into `target`, or keeps its error if it is the first.
template <class T>
auto Take(ErrorOr<T> read, T& target, Status& status) -> void {
  if (read) {
    target = *std::move(read);
  } else if (status) {
    status = read.error();
  }
}

auto ReadShape(const JsonReader& parameter) -> ErrorOr<Dims> {
  ASSIGN_OR_RETURN(const auto list, parameter.List("shape"));
  FAIL_IF(list->size() > Dims::max_size(), ExitCode::Usage, "\"shape\" has more than {} numbers", Dims::max_size());
  Dims shape;
  for (const nlohmann::json& item : *list) {
    const auto size = JsonCount(item, ExitCode::Usage);
    FAIL_IF(!size, ExitCode::Usage, "\"shape\": {}", size.error().message);
    shape.push_back(*size);
  }
  return shape;
}

auto ReadParameter(const nlohmann::json& entry) -> ErrorOr<RealisedParameter> {
  const JsonReader reader(entry, ExitCode::Usage);
  RealisedParameter parameter;
  Status status = Success{};
  Take(reader.String("name"), parameter.name, status);
  Take(reader.String("rule"), parameter.rule, status);
  Take(reader.Number("mean"), parameter.mean, status);
  Take(reader.Number("std"), parameter.std, status);
  Take(reader.Enum<DType>("dtype"), parameter.dtype, status);
  Take(ReadShape(reader), parameter.shape, status);
  FAIL_IF(!status, ExitCode::Usage, "{}{}{}", parameter.name, parameter.name.empty() ? "" : ": ",
          status.error().message);
  return parameter;
}

}  // namespace

auto ParseInitRecord(std::string_view text) -> ErrorOr<InitRecord> {
  const auto json = ParseJson(text, ExitCode::Usage);
  FAIL_IF(!json || !json->is_object(), ExitCode::Usage, "it is no JSON object");
  const JsonReader reader(*json, ExitCode::Usage);
  ASSIGN_OR_RETURN(const auto version, reader.String("format_version"));
  FAIL_IF(!version.starts_with(fmt::format("{}.", MajorVersion)), ExitCode::Usage,
          "it has format version {}, this program reads version {}", version, MajorVersion);
  InitRecord record;
  Status status = Success{};
  Take(reader.Unsigned("seed"), record.seed, status);
  if (reader.Has("loaded_from")) {
    Take(reader.String("loaded_from"), record.loaded_from, status);
  }
  if (reader.Has("rotary_table")) {
    Take(reader.String("rotary_table"), record.rotary_table, status);
  }
  Take(reader.Count("elements_drawn"), record.elements_drawn, status);
  const nlohmann::json* parameters = nullptr;
  Take(reader.List("parameters"), parameters, status);
  if (!status) {
    return status.error();
  }
  for (const nlohmann::json& entry : *parameters) {
    ASSIGN_OR_RETURN(auto parameter, ReadParameter(entry));
    record.parameters.push_back(std::move(parameter));
  }
  return record;
}

auto DifferenceFrom(const InitRecord& record, const Plan& plan) -> std::string {
  if (record.seed != plan.run.init_seed) {
    return fmt::format("seed {} there, {} here", record.seed, plan.run.init_seed);
  }
  if (record.loaded_from != plan.seed.manifest) {
    const auto text = [](const std::string& digest) { return digest.empty() ? "none" : digest; };
    return fmt::format("manifest of a seed {} there, {} here", text(record.loaded_from), text(plan.seed.manifest));
  }
  std::vector<const Parameter*> generated;
  for (const Parameter& parameter : plan.parameters) {
    if (!LoadedTensorOf(parameter)) {
      generated.push_back(&parameter);
    }
  }
  for (size_t i = 0; i < std::max(record.parameters.size(), generated.size()); ++i) {
    if (i >= record.parameters.size() || i >= generated.size()) {
      return fmt::format("{} parameters there, {} here", record.parameters.size(), generated.size());
    }
    const RealisedParameter& there = record.parameters[i];
    const Parameter& here = *generated[i];
    if (there.name != here.name) {
      return fmt::format("parameter {} is {} there, {} here", i, there.name, here.name);
    }
    if (there.shape != here.shape || there.dtype != here.dtype) {
      return fmt::format("{} is {}{} there, {}{} here", here.name, ToText(there.dtype), ToText(there.shape),
                         ToText(here.dtype), ToText(here.shape));
    }
    if (there.rule != here.init) {
      return fmt::format("{} is {} there, {} here", here.name, there.rule, here.init);
    }
  }
  return "";
}

}  // namespace shardc
