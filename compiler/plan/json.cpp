// Plan to JSON: the fields of the text form under the same names, numbers and bools as such, things by the
// names that the text has for them.
#include <nlohmann/json.hpp>

#include "compiler/base/mapped.h"
#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

using Json = nlohmann::ordered_json;

/// Sets one member per field.
struct JsonWriter {
  const PlanNames& names;
  Json& object;

  template <class T>
  auto Field(std::string_view name, const T& value) -> void {
    if constexpr (std::is_arithmetic_v<T>) {
      object[std::string(name)] = value;
    } else if constexpr (std::same_as<T, Bytes>) {
      object[std::string(name)] = value.value;
    } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::vector<int64_t>>) {
      object[std::string(name)] = value;
    } else if constexpr (std::same_as<T, ExitCode>) {
      object[std::string(name)] = static_cast<int>(value);
    } else if constexpr (std::same_as<T, std::vector<EventId>>) {
      object[std::string(name)] = Mapped<Json>(value, [&](const EventId event) { return names.Text(event); });
    } else if constexpr (std::same_as<T, Predicate>) {
      object[std::string(name)] = (value.negated ? "!" : "") + names.Text(value.scalar);
    } else if constexpr (std::same_as<T, ValueRole>) {
      object[std::string(name)] = RoleText(names, value);
    } else if constexpr (IsId<T>) {
      object[std::string(name)] = names.Text(value);
    } else {
      object[std::string(name)] = FieldText(value);
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
  explicit JsonPrinter(const Plan& plan) : plan_(plan), names_(plan) {}

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
    if (plan_.mesh.hosts != 1) {
      mesh["hosts"] = plan_.mesh.hosts;
    }
    root["device"] = ToText(plan_.device);
    root["kernels"] = ToText(plan_.kernels);
    root["hash"] = PlanHash(plan_);
    root["model"] = Json::object();
    for (const auto& [key, value] : plan_.model) {
      root["model"][key] = value;
    }
    root["overrides"] = plan_.overrides;
    Json recipe = Json::object();
    Json assumed = Json::array();
    for (const RecipeEntry& entry : plan_.recipe) {
      recipe[entry.key] = entry.value;
      if (entry.is_assumed) {
        assumed.push_back(entry.key);
      }
    }
    root["recipe"] = std::move(recipe);
    root["assumed"] = std::move(assumed);
    root["data"] = Fields(plan_.data);
    root["data"]["sources"] = Mapped<Json>(plan_.data.sources, [&](const TokenSource& source) {
      Json fields = Fields(source, {{"name", source.name}, {"files", source.files}});
      if (!source.targets.empty()) {
        fields["targets"] = source.targets;
      }
      return fields;
    });
    if (!plan_.data.eval_files.empty()) {
      root["data"]["eval_files"] = plan_.data.eval_files;
    }
    root["run"] = Fields(plan_.run);
    if (plan_.seed.is_set()) {
      root["seed"] = Fields(plan_.seed);
      root["seed"]["tensors"] = Mapped<Json>(plan_.seed.tensors, [&](const SeedTensor& tensor) {
        return Json{{"name", tensor.name}, {"dtype", ToText(tensor.dtype)}, {"shape", tensor.shape}};
      });
    }
    root["passes"] = Passes(plan_.passes);
    root["disabled"] = Passes(plan_.disabled);
    AddTables(root);
    root["triggers"] = Json::array();
    for (const Trigger& trigger : plan_.triggers) {
      Json item = {{"section", ToText(trigger.section)}, {"kind", ToText(trigger.kind)}};
      root["triggers"].push_back(Fields(trigger, std::move(item)));
    }
    root["halts"] = Mapped<Json>(plan_.halts, [&](const Halt& halt) { return Fields(halt); });
    for (size_t i = 0; i < NumSections; ++i) {
      root["sections"][std::string(ToText(static_cast<SectionKind>(i)))] =
          Mapped<Json>(plan_.sections[i].ops, [&](const Op& op) { return OpJson(op); });
    }
    return root;
  }

 private:
  template <class T>
  auto Fields(const T& item, Json object = Json::object()) -> Json {
    VisitLine(item, JsonWriter{names_, object});
    return object;
  }

  static auto Passes(const std::vector<PassKind>& passes) -> Json {
    return Mapped<Json>(passes, [&](const PassKind pass) { return ToText(pass); });
  }

  auto AddTables(Json& root) -> void {
    AddTable(root["heads"], plan_.heads, [](const TargetHead& head) { return Json{{"files", head.files}}; });
    AddTable(root["groups"], plan_.groups, [](const OptimizerGroup&) { return Json::object(); });
    AddTable(root["parameters"], plan_.parameters, [](const Parameter& parameter) {
      return Json{{"dtype", ToText(parameter.dtype)},
                  {"shape", parameter.shape},
                  {"placement", ToText(parameter.placement)},
                  {"init_origin", OriginJson(parameter.init_origin)}};
    });
    AddTable(root["units"], plan_.units, [](const Unit& unit) { return Json{{"origin", OriginJson(unit.origin)}}; });
    AddTable(root["scalars"], plan_.scalars, [](const Scalar& scalar) { return Json{{"kind", ToText(scalar.kind)}}; });
    Json& arenas = root["arena_bytes"];
    for (int i = 0; i < NumArenas; ++i) {
      arenas[std::string(ToText(static_cast<Arena>(i)))] = plan_.arena_bytes[static_cast<size_t>(i)];
    }
    AddTable(root["buffers"], plan_.buffers, [](const Buffer& buffer) {
      return Json{{"arena", ToText(buffer.arena)}};
    });
    Json& values = root["values"] = Json::array();
    for (const ValueId id : plan_.values.ids()) {
      const Value& value = plan_.values[id];
      values.push_back(Fields(value, {{"name", names_.Text(id)},
                                      {"buffer", names_.Text(value.buffer)},
                                      {"offset", FieldText(value.offset)},
                                      {"dtype", ToText(value.dtype)},
                                      {"shape", value.shape},
                                      {"placement", ToText(value.placement)}}));
    }
    AddTable(root["sub_vectors"], plan_.sub_vectors, [&](const SubVector& sub_vector) {
      auto segments = Mapped<Json>(sub_vector.segments, [&](const Segment& segment) { return Fields(segment); });
      return Fields(SlicesOf<const SubVector>{sub_vector}, {{"segments", std::move(segments)}});
    });
  }

  /// An object for each thing of a table: its name in the text, what `more` tells of it, its fields.
  template <class IdType, class T, class More>
  auto AddTable(Json& array, const IdVector<IdType, T>& table, const More& more) -> void {
    array = Json::array();
    for (const IdType id : table.ids()) {
      Json item = {{"name", names_.Text(id)}};
      item.update(more(table[id]));
      array.push_back(Fields(table[id], std::move(item)));
    }
  }

  auto OpJson(const Op& op) -> Json {
    Json object = {{"op", ToText(op.kind())}, {"stream", ToText(op.stream)}};
    JsonWriter writer{names_, object};
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, RowFields<JsonWriter>{writer}); });
    VisitLine(op, writer);
    object["origin"] = OriginJson(op.origin);
    object["made_by"] = ToText(op.made_by);
    return object;
  }

  const Plan& plan_;
  const PlanNames names_;
};

}  // namespace

auto PlanJson(const Plan& plan) -> std::string {
  return JsonPrinter(plan).Make().dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardc
