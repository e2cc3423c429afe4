#include "compiler/plan/init_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

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
  json["parameters"] = nlohmann::ordered_json::array();
  for (const RealisedParameter& parameter : record.parameters) {
    json["parameters"].push_back({{"name", parameter.name},
                                  {"shape", std::vector<int64_t>(parameter.shape.begin(), parameter.shape.end())},
                                  {"dtype", ToText(parameter.dtype)},
                                  {"rule", parameter.rule},
                                  {"mean", parameter.mean},
                                  {"std", parameter.std}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

/// Members of one object; the first that is missing or of another type is kept as the reason.
class Members {
 public:
  explicit Members(const nlohmann::json& object) : object_(object) {}

  auto Text(const char* name) -> std::string {
    const nlohmann::json* member = Find(name);
    return member != nullptr && Want(member->is_string(), name, "a string") ? member->get<std::string>() : "";
  }
  auto Unsigned(const char* name) -> uint64_t {
    const nlohmann::json* member = Find(name);
    return member != nullptr && Want(member->is_number_unsigned(), name, "a whole number") ? member->get<uint64_t>()
                                                                                           : 0;
  }
  auto Number(const char* name) -> double {
    const nlohmann::json* member = Find(name);
    return member != nullptr && Want(member->is_number(), name, "a number") ? member->get<double>() : 0;
  }
  auto Array(const char* name) -> const nlohmann::json* {
    const nlohmann::json* member = Find(name);
    return member != nullptr && Want(member->is_array(), name, "an array") ? member : nullptr;
  }
  auto Want(bool holds, const char* name, std::string_view what) -> bool {
    if (!holds && fault_.empty()) {
      fault_ = fmt::format("`{}` is not {}", name, what);
    }
    return holds;
  }
  auto fault() const -> const std::string& { return fault_; }

 private:
  auto Find(const char* name) -> const nlohmann::json* {
    const auto member = object_.is_object() ? object_.find(name) : object_.end();
    if (object_.is_object() && member != object_.end()) {
      return &*member;
    }
    Want(false, name, "there");
    return nullptr;
  }

  const nlohmann::json& object_;
  std::string fault_;
};

auto ParseParameter(const nlohmann::json& json) -> ErrorOr<RealisedParameter> {
  Members members(json);
  RealisedParameter parameter{.name = members.Text("name"),
                              .shape = {},
                              .dtype = DType::F32,
                              .rule = members.Text("rule"),
                              .mean = members.Number("mean"),
                              .std = members.Number("std")};
  const auto dtype = FromText<DType>(members.Text("dtype"));
  members.Want(dtype.has_value(), "dtype", "an element type");
  parameter.dtype = dtype.value_or(DType::F32);
  const nlohmann::json* const shape = members.Array("shape");
  if (shape != nullptr && members.Want(shape->size() <= Dims().max_size(), "shape", "of few dims")) {
    for (const nlohmann::json& size : *shape) {
      if (members.Want(size.is_number_unsigned(), "shape", "of whole numbers")) {
        parameter.shape.push_back(size.get<int64_t>());
      }
    }
  }
  if (!members.fault().empty()) {
    return Fail(ExitCode::Usage, "{}{}{}", parameter.name, parameter.name.empty() ? "" : ": ", members.fault());
  }
  return parameter;
}

}  // namespace

auto ParseInitRecord(std::string_view text) -> ErrorOr<InitRecord> {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return Fail(ExitCode::Usage, "it is no JSON object");
  }
  Members members(json);
  const std::string version = members.Text("format_version");
  if (members.fault().empty() && !version.starts_with(fmt::format("{}.", MajorVersion))) {
    return Fail(ExitCode::Usage, "it has format version {}, this program reads version {}", version, MajorVersion);
  }
  InitRecord record{.seed = members.Unsigned("seed"),
                    .loaded_from = json.contains("loaded_from") ? members.Text("loaded_from") : "",
                    .rotary_table = json.contains("rotary_table") ? members.Text("rotary_table") : "",
                    .elements_drawn = static_cast<int64_t>(members.Unsigned("elements_drawn")),
                    .parameters = {}};
  const nlohmann::json* const parameters = members.Array("parameters");
  if (!members.fault().empty()) {
    return Fail(ExitCode::Usage, "{}", members.fault());
  }
  for (const nlohmann::json& entry : *parameters) {
    auto parameter = ParseParameter(entry);
    if (!parameter) {
      return parameter.error();
    }
    record.parameters.push_back(*std::move(parameter));
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
