#include <algorithm>
#include <cstdlib>

#include "compiler/base/json_reader.h"
#include "compiler/base/text/split.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_rows.h"

namespace shardc {

using nlohmann::json;
using nlohmann::ordered_json;

/// Returns the value of a text. Requires: a table or code of ours has written it.
static auto Parsed(std::string_view text) -> json { return *ParseJson(text, ExitCode::InternalFault); }

/// Returns `rope_scaling` for a formula that a row has: the row's function with numbers.
static auto RopeScaling(std::string_view formula) -> ErrorOr<ordered_json> {
  const std::string_view name = formula.substr(0, formula.find('('));
  for (const published::RopeRow& row : published::RopeRows) {
    const std::string_view own = row.formula;
    if (own.empty() || own.substr(0, own.find('(')) != name || !formula.ends_with(')')) {
      continue;
    }
    const std::vector<std::string_view> floats = SplitWords(row.floats);
    const std::vector<std::string_view> counts = SplitWords(row.counts);
    const std::string numbers = fmt::format("[{}]", formula.substr(name.size() + 1, formula.size() - name.size() - 2));
    const auto values = ParseJson(numbers, ExitCode::Usage);
    const auto is_number = [](const json& value) { return value.is_number(); };
    if (!values || values->size() != floats.size() + counts.size() || !std::ranges::all_of(*values, is_number)) {
      continue;
    }
    ordered_json scaling{{"rope_type", row.type}};
    for (size_t i = 0; i < floats.size(); ++i) {
      scaling[std::string(floats[i])] = (*values)[i].get<double>();
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      scaling[std::string(counts[i])] = (*values)[floats.size() + i];
    }
    return scaling;
  }
  return Fail(ExitCode::Usage,
              "rope_frequency is {}, and no config.json says that; transformers computes the formulas {}", formula,
              "linear_rope(...) and llama3_rope(...) with numbers");
}

/// Returns a value of the line `model`. Classes refuse a float without a point or an exponent.
static auto ValueOf(std::string_view key, const std::map<std::string, std::string>& model) -> ordered_json {
  const json value = Parsed(model.at(std::string(key)));
  const ModelSectionOf<InPlan> keys;
  bool is_real = false;
  ForEachKey(keys,
             [&](const KeyInfo& info, const auto&) { is_real = is_real || (info.name == key && info.type == "Real"); });
  return is_real ? ordered_json(value.get<double>()) : ordered_json(value);
}

/// Returns true if the class takes the sizes of the model.
static auto Takes(const published::ClassRow& row, const std::map<std::string, std::string>& model) -> bool {
  const auto size = [&](std::string_view key) { return std::strtoll(model.at(std::string(key)).c_str(), nullptr, 10); };
  return std::ranges::none_of(published::MultipleRows, [&](const published::MultipleRow& each) {
    return each.architecture == row.name && size(each.model_key) % size(each.divisor) != 0;
  });
}

auto ClassOfModel(const std::map<std::string, std::string>& model, std::string_view preferred)
    -> ErrorOr<std::string_view> {
  const auto computes = [&](const published::ClassRow& row) {
    return row.family == model.at("family") && Takes(row, model);
  };
  auto row = std::ranges::find(published::ClassRows, preferred, &published::ClassRow::name);
  if (row == published::ClassRows.end() || !computes(*row)) {
    row = std::ranges::find_if(published::ClassRows, computes);
  }
  FAIL_IF(row == published::ClassRows.end(), ExitCode::Usage, "transformers has no class for the family {}",
          model.at("family"));
  return row->name;
}

auto ConfigOfModel(std::string_view architecture, const std::map<std::string, std::string>& model, DType dtype,
                   const std::map<std::string, std::string>& special_tokens) -> ErrorOr<std::string> {
  const auto row = std::ranges::find(published::ClassRows, architecture, &published::ClassRow::name);
  CHECK(row != published::ClassRows.end(), "the class {}", architecture);
  ordered_json config{{"architectures", {row->name}}, {"model_type", row->model_type}};
  for (const published::SizeRow& size : published::SizeRows) {
    if (size.architecture == row->name) {
      config[size.key] = ValueOf(size.model_key, model);
    }
  }
  for (const published::OnlyRow& only : published::OnlyRows) {
    const auto values = Parsed(only.values);
    // The class does its default without a key.
    if (only.architecture == row->name && std::ranges::find(values, Parsed(only.absent)) == values.end()) {
      config[only.key] = values[0];
    }
  }
  for (const std::string_view key : published::SpecialTokenKeys) {
    const auto found = special_tokens.find(std::string(key));
    // The class has ids of its own for an absent key.
    config[key] = found == special_tokens.end() ? ordered_json() : ordered_json(Parsed(found->second));
  }
  config["rope_theta"] = ValueOf("rope_theta", model);
  config["rope_scaling"] = nullptr;
  if (const auto formula = model.find("rope_frequency"); formula != model.end()) {
    ASSIGN_OR_RETURN(auto scaling, RopeScaling(formula->second));
    config["rope_scaling"] = std::move(scaling);
  }
  const auto type = std::ranges::find(published::TypeRows, dtype, &published::TypeRow::dtype);
  CHECK(type != published::TypeRows.end(), "weights in {}", ToText(dtype));
  config["dtype"] = type->word;
  config["torch_dtype"] = type->word;
  return config.dump(2) + "\n";
}

}  // namespace shardc
