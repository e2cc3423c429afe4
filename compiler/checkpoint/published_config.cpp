#include "compiler/checkpoint/published_config.h"

#include <fmt/args.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "compiler/base/json_reader.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/split.h"
#include "compiler/checkpoint/published_rows.h"
#include "compiler/keys/key_values.h"

namespace shardc {

using nlohmann::json;

namespace {

using namespace published;

template <class... Arguments>
auto Refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) -> Error {
  return {ExitCode::Checkpoint,
          fmt::format("{}: {}", ConfigName, fmt::format(text, std::forward<Arguments>(arguments)...))};
}

/// Reads what one config.json says of its class.
class ConfigReader {
 public:
  explicit ConfigReader(const json& config) : config_(config) {}

  auto Read() -> ErrorOr<PublishedConfig>;

 private:
  /// Returns the value of a key; null if the file lacks it.
  auto Find(std::string_view key) const -> const json* {
    const auto found = config_.find(key);
    return found == config_.end() ? nullptr : &*found;
  }
  auto ReadClass() -> Status;
  auto ReadSize(const SizeRow& row) -> Status;
  auto CheckOnly(const OnlyRow& row) -> Status;
  auto ReadType() -> Status;
  auto ReadRope() -> Status;
  auto ReadScaling(const json& rope, const char* key) -> Status;
  auto CheckKeys() const -> Status;

  const json& config_;
  const ClassRow* class_ = nullptr;
  PublishedConfig published_;
};

auto ConfigReader::ReadClass() -> Status {
  const auto known = Mapped<std::string_view>(ClassRows, &ClassRow::name);
  const std::string remedy = fmt::format("take a model of {}", fmt::join(known, ", "));
  const json* const classes = Find("architectures");
  const json* const type = Find("model_type");
  const bool names_one = classes != nullptr && classes->is_array() && classes->size() == 1 && (*classes)[0].is_string();
  if (!names_one && (classes == nullptr || classes->is_null())) {
    // A configuration that no class of transformers has saved yet.
    for (const ClassRow& row : ClassRows) {
      class_ = type != nullptr && *type == row.model_type ? &row : class_;
    }
    return class_ != nullptr ? Status(Success{})
                             : Refuse("it names no class in `architectures`, and `model_type` is {:.60}; {}",
                                      type == nullptr ? "missing" : type->dump(), remedy);
  }
  for (const ClassRow& row : ClassRows) {
    class_ = names_one && (*classes)[0] == row.name ? &row : class_;
  }
  if (class_ == nullptr) {
    return Refuse("`architectures` is {:.80}, which this program does not compute; {}", classes->dump(), remedy);
  }
  if (type != nullptr && *type != class_->model_type) {
    return Refuse("`model_type` is {:.60}, and that of {} is \"{}\"; correct the one that is wrong", type->dump(),
                  class_->name, class_->model_type);
  }
  return Success{};
}

// Read a value as the key of [model] takes it; false if it is of another type, or no size.
auto Take(const json& value, std::optional<bool>& key) -> bool {
  key = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
  return key.has_value();
}
auto Take(const json& value, std::optional<int64_t>& key) -> bool {
  const auto count = JsonCount(value, ExitCode::Checkpoint);
  key = count ? std::optional(*count) : std::nullopt;
  return key.has_value();
}
auto Take(const json& value, std::optional<double>& key) -> bool {
  key = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  return key.has_value();
}
/// Refuses keys of other types, which no row names.
template <class T>
auto Take(const json&, std::optional<T>&) -> bool {
  return false;
}

/// Checks that a number is in the range of the key that it gives.
auto CheckRange(std::string_view config_key, const std::string& path, const json& value) -> Status {
  const auto range = RangeOf(path);
  return !range || range->Holds(value.get<double>())
             ? Status(Success{})
             : Refuse("`{}` is {:.60}, and gives `{}`, which takes {} to {}", config_key, value.dump(), path,
                      range->low_text, range->high_text);
}

auto ConfigReader::ReadSize(const SizeRow& row) -> Status {
  const json* const given = Find(row.key);
  const json absent = *ParseJson(row.absent, ExitCode::InternalFault);
  const json& value = given != nullptr ? *given : absent;
  if (given != nullptr) {
    published_.read[row.key] = given->dump();
  }
  const bool follows = row.model_key == "kv_heads" || row.model_key == "head_dim";
  if (value.is_null() && follows) {
    return Success{};
  }
  Status taken = Success{};
  ForEachKey(published_.model, [&](const KeyInfo& key, auto& leaf) {
    if (key.name == row.model_key && !Take(value, leaf)) {
      taken = Refuse("`{}` is {:.60}, and gives `model.{}`, which takes {}", row.key, value.dump(), row.model_key,
                     DescribeType(key.type));
    } else if (key.name == row.model_key) {
      taken = CheckRange(row.key, key.path(), value);
    }
  });
  return taken;
}

auto ConfigReader::CheckOnly(const OnlyRow& row) -> Status {
  const json* const given = Find(row.key);
  const json values = *ParseJson(row.values, ExitCode::InternalFault);
  const json value = given != nullptr ? *given : *ParseJson(row.absent, ExitCode::InternalFault);
  if (given != nullptr) {
    published_.read[row.key] = given->dump();
  }
  const auto is_computed = [&](const json& item) { return std::ranges::find(values, item) != values.end(); };
  if (value.is_array() ? std::ranges::all_of(value, is_computed) : is_computed(value)) {
    // A list has an entry for each layer.
    const int64_t layers = published_.model.layers.value_or(0);
    return !value.is_array() || std::ssize(value) == layers
               ? Status(Success{})
               : Refuse("`{}` has {} entries, and `num_hidden_layers` is {}; correct the one that is wrong", row.key,
                        value.size(), layers);
  }
  const auto texts = Mapped<std::string>(values, [](const json& item) { return item.dump(); });
  return Refuse("`{}` is {:.80}{}, and this program computes {} with {} only; take another model", row.key,
                value.dump(), given == nullptr ? fmt::format(" where it is absent ({})", class_->name) : "",
                class_->name, fmt::join(texts, " or "));
}

auto ConfigReader::ReadType() -> Status {
  // The type that transformers gives to all tensors; the header of a file has that of each.
  std::optional<DType> dtype;
  for (const char* const key : {"dtype", "torch_dtype"}) {
    const json* const given = Find(key);
    if (given == nullptr || given->is_null()) {
      continue;
    }
    const auto word = std::ranges::find_if(TypeRows, [&](const TypeRow& row) { return *given == row.word; });
    if (word == TypeRows.end()) {
      return Refuse("`{}` is {:.60}; weights are read as \"float32\", \"float16\" or \"bfloat16\"", key, given->dump());
    }
    if (dtype && *dtype != word->dtype) {
      return Refuse("`dtype` and `torch_dtype` differ; delete the one that is wrong");
    }
    published_.read[key] = given->dump();
    dtype = word->dtype;
  }
  return Success{};
}

/// Reads rope_parameters (transformers 5) or rope_scaling (4), which differ only in who holds the base.
auto ConfigReader::ReadScaling(const json& rope, const char* key) -> Status {
  if (!rope.is_object()) {
    return Refuse("`{}` is {:.60}, which is no object", key, rope.dump());
  }
  const char* const type_key = rope.contains("rope_type") ? "rope_type" : "type";
  const json type = rope.value(type_key, json("default"));
  const auto row = std::ranges::find_if(RopeRows, [&](const RopeRow& known) { return type == known.type; });
  if (row == RopeRows.end()) {
    const auto known =
        Mapped<std::string>(RopeRows, [](const RopeRow& each) { return fmt::format("\"{}\"", each.type); });
    return Refuse("`{}.{}` is {:.60}; this program computes {}; take another model", key, type_key, type.dump(),
                  fmt::join(known, ", "));
  }
  fmt::dynamic_format_arg_store<fmt::format_context> numbers;
  std::vector<std::string_view> keys{"rope_type", "type", "rope_theta", "partial_rotary_factor"};
  const std::string own_keys = fmt::format("{} {}", row->floats, row->counts);
  for (const std::string_view name : SplitWords(own_keys)) {
    keys.push_back(name);
    const auto number = rope.find(name);
    if (number == rope.end() || !number->is_number()) {
      return Refuse("`{}.{}` is {:.60}, and {} needs a number", key, name,
                    number == rope.end() ? "missing" : number->dump(), type.dump());
    }
    numbers.push_back(number->get<double>());
  }
  for (const auto& [name, value] : rope.items()) {
    if (std::ranges::find(keys, name) == keys.end()) {
      return Refuse("`{}.{}` is not known with {}; delete it if it does not change the forward", key, name,
                    type.dump());
    }
  }
  if (const json factor = rope.value("partial_rotary_factor", json(1)); factor != 1) {
    return Refuse("`{}.partial_rotary_factor` is {:.60}, and this program computes 1 only; take another model", key,
                  factor.dump());
  }
  if (*row->formula != '\0') {
    published_.model.rope_frequency = Formula{fmt::vformat(row->formula, numbers)};
  }
  return Success{};
}

auto ConfigReader::ReadRope() -> Status {
  // The base of a config.json that has none, as transformers' classes take it. A recipe's default is its own.
  constexpr double Absent = 10000.0;
  const json* const parameters = Find("rope_parameters");
  const json* const scaling = Find("rope_scaling");
  const bool is_new = parameters != nullptr && !parameters->is_null();
  const bool is_old = scaling != nullptr && !scaling->is_null();
  if (is_new && is_old) {
    return Refuse("it has `rope_parameters` and `rope_scaling`; delete the one that is wrong");
  }
  const char* const key = is_new ? "rope_parameters" : "rope_scaling";
  const json* const rope = is_new ? parameters : is_old ? scaling : nullptr;
  if (rope != nullptr) {
    RETURN_IF_ERROR(ReadScaling(*rope, key));
    published_.read[key] = rope->dump();
  }
  const json* theta = Find("rope_theta");
  if (theta != nullptr) {
    published_.read["rope_theta"] = theta->dump();
  }
  if (rope != nullptr && rope->contains("rope_theta")) {
    const json& inner = rope->at("rope_theta");
    if (theta != nullptr && *theta != inner) {
      return Refuse("`rope_theta` is {:.60}, and `{}.rope_theta` {:.60}; delete the one that is wrong", theta->dump(),
                    key, inner.dump());
    }
    theta = &inner;
  }
  if (theta != nullptr && !theta->is_number()) {
    return Refuse("`rope_theta` is {:.60}, which is no number", theta->dump());
  }
  RETURN_IF_ERROR(theta == nullptr ? Status(Success{}) : CheckRange("rope_theta", "model.rope_theta", *theta));
  published_.model.rope_theta = theta == nullptr ? Absent : theta->get<double>();
  return Success{};
}

auto ConfigReader::CheckKeys() const -> Status {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config_.items()) {
    const auto is_row = [&](const auto& row) { return row.architecture == class_->name && row.key == key; };
    if (!std::ranges::any_of(SizeRows, is_row) && !std::ranges::any_of(OnlyRows, is_row) &&
        !std::ranges::any_of(FreeRows, is_row) && std::ranges::find(KnownKeys, key) == KnownKeys.end() &&
        std::ranges::find(IgnoredKeys, key) == IgnoredKeys.end() &&
        std::ranges::find(RefusedRows, key, &RefusedRow::key) == RefusedRows.end()) {
      unknown.push_back(fmt::format("`{}`", key));
    }
  }
  if (unknown.empty()) {
    return Success{};
  }
  const bool is_one = unknown.size() == 1;
  return Refuse(
      "the key{} {} {} not known for {}: {} may change what the model computes; delete {} from the file if {}",
      is_one ? "" : "s", fmt::join(unknown, ", "), is_one ? "is" : "are", class_->name, is_one ? "it" : "they",
      is_one ? "it" : "them", is_one ? "it does not" : "they do not");
}

auto ConfigReader::Read() -> ErrorOr<PublishedConfig> {
  if (!config_.is_object()) {
    return Refuse("it holds no object");
  }
  // The class first: the remedy for another key would be of no use to a model that is not computed.
  RETURN_IF_ERROR(ReadClass());
  for (const RefusedRow& row : RefusedRows) {
    if (const json* const given = Find(row.key); given != nullptr && !given->is_null()) {
      return Refuse("`{}`: {}", row.key, row.why);
    }
  }
  published_.architecture = class_->name;
  published_.model.family = OneOf<Family>(std::string(class_->family));
  for (const SizeRow& row : SizeRows) {
    if (row.architecture == class_->name) {
      RETURN_IF_ERROR(ReadSize(row));
    }
  }
  for (const OnlyRow& row : OnlyRows) {
    if (row.architecture == class_->name) {
      RETURN_IF_ERROR(CheckOnly(row));
    }
  }
  RETURN_IF_ERROR(ReadType());
  RETURN_IF_ERROR(ReadRope());
  RETURN_IF_ERROR(CheckKeys());
  return std::move(published_);
}

}  // namespace

auto IsQuantized(std::string_view text) -> bool {
  const auto config = ParseJson(text, ExitCode::Checkpoint);
  return config && config->is_object() && std::ranges::any_of(QuantizedKeys, [&](std::string_view key) {
           const auto found = config->find(key);
           return found != config->end() && !found->is_null();
         });
}

auto ReadPublishedConfig(std::string_view text) -> ErrorOr<PublishedConfig> {
  const auto config = ParseJson(text, ExitCode::Checkpoint);
  if (!config) {
    return Refuse("{}", config.error().message);
  }
  return ConfigReader(*config).Read();
}

auto IsPublishedBuffer(std::string_view tensor) -> bool {
  constexpr auto Ends = std::to_array<std::string_view>({
#define HF_BUFFER(end) end,
#include "schemas/hf_config.def"
  });
  return std::ranges::any_of(Ends, [&](std::string_view end) { return tensor.ends_with(end); });
}

auto TiedTensors() -> const std::map<std::string, std::string>& {
  static const std::map<std::string, std::string> tensors{
#define HF_TIED(tensor, other) {tensor, other},
#include "schemas/hf_config.def"
  };
  return tensors;
}

}  // namespace shardc
