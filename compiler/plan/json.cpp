// Plan to JSON: the fields of the text form under the same names, numbers and bools as such, ids as the text spells
// them.
#include <nlohmann/json.hpp>

#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

using Json = nlohmann::ordered_json;

/// Sets one member per field.
struct JsonWriter {
  const Plan& plan;
  Json& object;

  template <class T>
  auto Field(std::string_view name, const T& value) -> void {
    if constexpr (std::is_arithmetic_v<T>) {
      object[std::string(name)] = value;
    } else if constexpr (std::same_as<T, Bytes>) {
      object[std::string(name)] = value.value;
    } else if constexpr (std::same_as<T, std::string>) {
      object[std::string(name)] = value;
    } else if constexpr (std::same_as<T, ExitCode>) {
      object[std::string(name)] = static_cast<int>(value);
    } else if constexpr (std::same_as<T, std::vector<EventId>>) {
      Json& events = object[std::string(name)] = Json::array();
      for (const EventId event : value) {
        events.push_back(FieldText(plan, event));
      }
    } else {
      object[std::string(name)] = FieldText(plan, value);
    }
  }
  template <class T>
  auto Default(std::string_view name, const T& value, const T& left_out) -> void {
    if (!(value == left_out)) {
      Field(name, value);
    }
  }
  auto Path(std::string_view name, const std::string& value) -> void { Field(name, value); }
};

auto OriginJson(const Origin& origin) -> Json { return Json{{"line", origin.line}, {"key", origin.key.text()}}; }

class JsonPrinter {
 public:
  explicit JsonPrinter(const Plan& plan) : plan_(plan) {}

  auto Make() -> Json {
    Json root;
    root["version"] = Plan::Version;
    Json& mesh = root["mesh"];
    for (int i = 0; i < NumAxes; ++i) {
      const auto axis = static_cast<Axis>(i);
      if (WholeOf(axis) == axis || plan_.mesh.size(axis) > 1) {
        mesh[std::string(ToText(axis))] = plan_.mesh.size(axis);
      }
    }
    root["device"] = ToText(plan_.device);
    root["kernels"] = ToText(plan_.kernels);
    root["hash"] = PlanHash(plan_);
    root["model"] = Json::object();
    for (const auto& [key, value] : plan_.model) {
      root["model"][key] = value;
    }
    root["overrides"] = plan_.overrides;
    Json& recipe = root["recipe"] = Json::object();
    for (const RecipeEntry& entry : plan_.recipe) {
      recipe[entry.key] = entry.value;
    }
    root["data"] = Fields(plan_.data);
    Json& sources = root["data"]["sources"] = Json::array();
    for (const TokenSource& source : plan_.data.sources) {
      sources.push_back(Fields(source, {{"name", source.name}, {"files", source.files}}));
    }
    root["run"] = Fields(plan_.run);
    if (plan_.seed.is_set()) {
      root["seed"] = Fields(plan_.seed);
      Json& tensors = root["seed"]["tensors"] = Json::array();
      for (const SeedTensor& tensor : plan_.seed.tensors) {
        tensors.push_back({{"name", tensor.name}, {"dtype", ToText(tensor.dtype)}, {"shape", tensor.shape}});
      }
    }
    root["passes"] = Passes(plan_.passes);
    root["disabled"] = Passes(plan_.disabled);
    AddTables(root);
    root["triggers"] = Json::array();
    for (const Trigger& trigger : plan_.triggers) {
      Json item = {{"section", ToText(trigger.section)}, {"kind", ToText(trigger.kind)}};
      root["triggers"].push_back(Fields(trigger, std::move(item)));
    }
    root["halts"] = Json::array();
    for (const Halt& halt : plan_.halts) {
      root["halts"].push_back(Fields(halt));
    }
    root["num_events"] = plan_.num_events;
    for (size_t i = 0; i < NumSections; ++i) {
      Json& ops = root["sections"][std::string(ToText(static_cast<SectionKind>(i)))] = Json::array();
      for (const Op& op : plan_.sections[i].ops) {
        ops.push_back(OpJson(op));
      }
    }
    return root;
  }

 private:
  template <class T>
  auto Fields(const T& item, Json object = Json::object()) -> Json {
    VisitLine(item, JsonWriter{plan_, object});
    return object;
  }

  static auto Passes(const std::vector<PassKind>& passes) -> Json {
    Json names = Json::array();
    for (const PassKind pass : passes) {
      names.push_back(ToText(pass));
    }
    return names;
  }

  auto AddTables(Json& root) -> void {
    Json& heads = root["heads"] = Json::array();
    for (const TargetHead& head : plan_.heads) {
      heads.push_back(Fields(head, {{"name", head.name}, {"files", head.files}}));
    }
    Json& groups = root["groups"] = Json::array();
    for (const OptimizerGroup& group : plan_.groups) {
      groups.push_back(Fields(group, {{"name", group.name}}));
    }
    Json& parameters = root["parameters"] = Json::array();
    for (const Parameter& parameter : plan_.parameters) {
      Json item = {{"name", parameter.name}, {"dtype", ToText(parameter.dtype)}, {"shape", parameter.shape}};
      item["placement"] = ToText(parameter.placement);
      item["init_origin"] = OriginJson(parameter.init_origin);
      parameters.push_back(Fields(parameter, std::move(item)));
    }
    Json& units = root["units"] = Json::array();
    for (const Unit& unit : plan_.units) {
      units.push_back(Fields(unit, {{"name", unit.name}, {"origin", OriginJson(unit.origin)}}));
    }
    Json& sub_vectors = root["sub_vectors"] = Json::array();
    for (const SubVector& sub_vector : plan_.sub_vectors) {
      Json item = Fields(sub_vector);
      item["segments"] = Json::array();
      for (const Segment& segment : sub_vector.segments) {
        item["segments"].push_back(Fields(segment));
      }
      sub_vectors.push_back(std::move(item));
    }
    Json& scalars = root["scalars"] = Json::array();
    for (const Scalar& scalar : plan_.scalars) {
      scalars.push_back(Fields(scalar, {{"name", scalar.name}, {"kind", ToText(scalar.kind)}}));
    }
    Json& arenas = root["arena_bytes"];
    for (int i = 0; i < NumArenas; ++i) {
      arenas[std::string(ToText(static_cast<Arena>(i)))] = plan_.arena_bytes[static_cast<size_t>(i)];
    }
    Json& buffers = root["buffers"] = Json::array();
    for (const Buffer& buffer : plan_.buffers) {
      buffers.push_back(Fields(buffer, {{"name", buffer.name}, {"arena", ToText(buffer.arena)}}));
    }
    Json& values = root["values"] = Json::array();
    for (const Value& value : plan_.values) {
      values.push_back(Fields(value, {{"buffer", FieldText(plan_, value.buffer)},
                                      {"offset", FieldText(plan_, value.offset)},
                                      {"dtype", ToText(value.dtype)},
                                      {"shape", value.shape},
                                      {"placement", ToText(value.placement)},
                                      {"name", value.name}}));
    }
  }

  auto OpJson(const Op& op) -> Json {
    Json object = {{"op", ToText(op.kind())}, {"stream", ToText(op.stream)}};
    JsonWriter writer{plan_, object};
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, RowFields<JsonWriter>{writer}); });
    VisitLine(op, writer);
    object["origin"] = OriginJson(op.origin);
    object["made_by"] = ToText(op.made_by);
    return object;
  }

  const Plan& plan_;
};

}  // namespace

auto PlanJson(const Plan& plan) -> std::string {
  return JsonPrinter(plan).Make().dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardc
