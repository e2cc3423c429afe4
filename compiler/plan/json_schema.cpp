// The JSON Schema of PlanJson, made from the same tables: the fields of lines from fields.h, the ops from their rows.
#include <nlohmann/json.hpp>

#include "compiler/base/mapped.h"
#include "compiler/plan/fields.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

using Json = nlohmann::ordered_json;

auto Type(const char* name) -> Json { return Json{{"type", name}}; }
auto ArrayOf(Json items) -> Json { return Json{{"type", "array"}, {"items", std::move(items)}}; }
auto Definition(const std::string& name) -> Json { return Json{{"$ref", "#/definitions/" + name}}; }

template <NamedEnum E>
auto WordOf() -> Json {
  auto words = Mapped<Json>(EnumNames<E>::names, [](const std::string_view word) { return word; });
  return Json{{"enum", std::move(words)}};
}

/// How a field of this type is written.
template <class T>
auto TypeOf() -> Json {
  if constexpr (std::same_as<T, bool>) {
    return Type("boolean");
  } else if constexpr (std::integral<T> || std::same_as<T, Bytes> || std::same_as<T, ExitCode>) {
    return Type("integer");
  } else if constexpr (std::floating_point<T>) {
    return Type("number");
  } else if constexpr (std::same_as<T, std::vector<EventId>> || std::same_as<T, std::vector<std::string>>) {
    return ArrayOf(Type("string"));
  } else if constexpr (std::same_as<T, std::vector<int64_t>>) {
    return ArrayOf(Type("integer"));
  } else if constexpr (NamedEnum<T>) {
    return WordOf<T>();
  } else {
    // Names of things, axes, expressions of the rank.
    return Type("string");
  }
}

/// An object with these members and no others.
class Object {
 public:
  Object() = default;
  explicit Object(std::initializer_list<std::pair<const char*, Json>> members) {
    for (const auto& [name, type] : members) {
      Add(name, type);
    }
  }

  auto Add(std::string_view name, Json type, bool required = true) -> void {
    properties_[std::string(name)] = std::move(type);
    if (required) {
      required_.push_back(name);
    }
  }
  // What VisitLine and, through RowFields, VisitFields call.
  template <class T>
  auto Field(std::string_view name, const T&) -> void {
    Add(name, TypeOf<T>());
  }
  template <class T>
  auto Default(std::string_view name, const T&, const T&) -> void {
    Add(name, TypeOf<T>(), false);
  }
  auto Path(std::string_view name, const std::string&) -> void { Add(name, Type("string")); }

  auto Make() const -> Json {
    return Json{
        {"type", "object"}, {"properties", properties_}, {"required", required_}, {"additionalProperties", false}};
  }

 private:
  Json properties_ = Json::object();
  Json required_ = Json::array();
};

/// The fields of a T's line.
template <class T>
auto AddLine(Object& object) -> void {
  const T item{};
  VisitLine(item, object);
}
template <class T>
auto LineOf(Object object = {}) -> Json {
  AddLine<T>(object);
  return object.Make();
}

/// A thing of a table.
template <class T>
auto Row(std::initializer_list<std::pair<const char*, Json>> more = {}) -> Json {
  Object object{{"name", Type("string")}};
  for (const auto& [name, type] : more) {
    object.Add(name, type);
  }
  return ArrayOf(LineOf<T>(std::move(object)));
}

/// Their slices stand with them.
auto SubVectors() -> Json {
  Object object{{"name", Type("string")}, {"segments", ArrayOf(LineOf<Segment>())}};
  const SubVector item;
  VisitLine(SlicesOf<const SubVector>{item}, object);
  return ArrayOf(LineOf<SubVector>(std::move(object)));
}

auto TextsByName() -> Json { return Json{{"type", "object"}, {"additionalProperties", Type("string")}}; }

auto Origins() -> Json { return Object{{"line", Type("integer")}, {"key", Type("string")}}.Make(); }

auto AllOps() -> Json {
  Json any = Json::array();
  const auto add = [&](const auto& body, std::string_view mnemonic) {
    Object object{{"op", Json{{"const", mnemonic}}}, {"stream", WordOf<Stream>()}};
    VisitFields(body, RowFields<Object>{object});
    AddLine<Op>(object);
    object.Add("origin", Definition("origin"));
    object.Add("made_by", WordOf<PassKind>());
    any.push_back(object.Make());
  };
#define OP(Type, mnemonic, differentiable, fields, doc) add(op::Type{}, #mnemonic);
#include "schemas/ops.def"
  return Json{{"oneOf", std::move(any)}};
}

auto Meshes() -> Json {
  Object object;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    object.Add(ToText(axis), Type("integer"), WholeOf(axis) == axis);
  }
  object.Add("hosts", Type("integer"), false);
  return object.Make();
}

auto Data() -> Json {
  Object object;
  AddLine<DataSource>(object);
  object.Add("sources",
             ArrayOf(LineOf<TokenSource>(Object{{"name", Type("string")}, {"files", ArrayOf(Type("string"))}})));
  object.Add("eval_files", ArrayOf(Type("string")), false);
  return object.Make();
}

auto Seeds() -> Json {
  Object object;
  AddLine<Seed>(object);
  object.Add(
      "tensors",
      ArrayOf(
          Object{{"name", Type("string")}, {"dtype", WordOf<DType>()}, {"shape", ArrayOf(Type("integer"))}}.Make()));
  return object.Make();
}

auto Arenas() -> Json {
  Object object;
  for (const std::string_view arena : EnumNames<Arena>::names) {
    object.Add(arena, Type("integer"));
  }
  return object.Make();
}

auto Sections() -> Json {
  Object object;
  for (const std::string_view section : EnumNames<SectionKind>::names) {
    object.Add(section, ArrayOf(Definition("op")));
  }
  return object.Make();
}

auto Root() -> Object {
  const Json shape = ArrayOf(Type("integer"));
  Object root{{"version", Json{{"const", Plan::Version}}},
              {"mesh", Meshes()},
              {"device", Type("string")},
              {"kernels", Type("string")},
              {"hash", Type("string")},
              {"model", TextsByName()},
              {"overrides", ArrayOf(Type("string"))},
              {"recipe", TextsByName()},
              {"assumed", ArrayOf(Type("string"))},
              {"data", Data()},
              {"run", LineOf<RunSettings>()}};
  root.Add("seed", Seeds(), false);
  root.Add("passes", ArrayOf(WordOf<PassKind>()));
  root.Add("disabled", ArrayOf(WordOf<PassKind>()));
  root.Add("heads", Row<TargetHead>({{"files", ArrayOf(Type("string"))}}));
  root.Add("groups", Row<OptimizerGroup>());
  root.Add("parameters", Row<Parameter>({{"dtype", WordOf<DType>()},
                                         {"shape", shape},
                                         {"placement", Type("string")},
                                         {"init_origin", Definition("origin")}}));
  root.Add("units", Row<Unit>({{"origin", Definition("origin")}}));
  root.Add("scalars", Row<Scalar>({{"kind", WordOf<ScalarKind>()}}));
  root.Add("arena_bytes", Arenas());
  root.Add("buffers", Row<Buffer>({{"arena", WordOf<Arena>()}}));
  root.Add("values", Row<Value>({{"buffer", Type("string")},
                                 {"offset", Type("string")},
                                 {"dtype", WordOf<DType>()},
                                 {"shape", shape},
                                 {"placement", Type("string")}}));
  root.Add("sub_vectors", SubVectors());
  root.Add("triggers",
           ArrayOf(LineOf<Trigger>(Object{{"section", WordOf<SectionKind>()}, {"kind", WordOf<TriggerKind>()}})));
  root.Add("halts", ArrayOf(LineOf<Halt>()));
  root.Add("sections", Sections());
  return root;
}

}  // namespace

auto PlanSchema() -> std::string {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "A plan of shardc, as `shardc plan --emit=json` prints it"}};
  schema.update(Root().Make());
  schema["definitions"] = {{"origin", Origins()}, {"op", AllOps()}};
  return schema.dump(1) + "\n";
}

}  // namespace shardc
