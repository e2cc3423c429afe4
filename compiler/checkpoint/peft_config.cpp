#include "compiler/checkpoint/peft_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/base/json_reader.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/split.h"

namespace shardc {

using nlohmann::json;

namespace {

struct PeftOnlyRow {
  const char* key;
  std::string_view values;
  std::string_view why;
};
constexpr auto PeftOnlyRows = std::to_array<PeftOnlyRow>({
#define PEFT_ONLY(key, values, why) {#key, values, why},
#include "schemas/peft_config.def"
});
constexpr auto PeftOtherKeys = std::to_array<std::string_view>({
#define PEFT_READ(key) #key,
#define PEFT_FREE(key) #key,
#include "schemas/peft_config.def"
});

constexpr std::string_view MergeIt =
    "merge it into its base by peft (merge_and_unload() and save_pretrained()), and begin from that model without "
    "`adapter`";

constexpr std::string_view AllLinear = "all-linear";

template <class... Arguments>
auto RefusePeft(fmt::format_string<Arguments...> text, Arguments&&... arguments) -> Error {
  return {ExitCode::Checkpoint,
          fmt::format("{}: {}", PeftConfigName, fmt::format(text, std::forward<Arguments>(arguments)...))};
}

auto IsEmpty(const json& value) -> bool {
  return value.is_null() || value == false || value == 0 || value == "" || (value.is_structured() && value.empty());
}

/// Reads what one adapter_config.json says.
class PeftConfigReader {
 public:
  PeftConfigReader(const json& config, std::string_view text) : config_(config), text_(text) {}

  auto Read() -> ErrorOr<PeftConfig>;

 private:
  /// Returns the value of a key, and notes it; null if the file lacks the key, or it is null there.
  auto Find(const char* key) -> const json*;
  auto CheckKeys() const -> Status;
  auto ReadNumber(const char* key, double absent, bool is_whole) -> ErrorOr<double>;
  auto ReadChoice(const char* key, ModuleChoice& choice) -> Status;
  auto ReadPatterns(const char* key, bool is_whole, std::vector<std::pair<ModulePattern, double>>& patterns) -> Status;
  auto ReadLayers() -> Status;

  const json& config_;
  std::string_view text_;
  PeftConfig peft_;
};

auto PeftConfigReader::Find(const char* key) -> const json* {
  const auto found = config_.find(key);
  if (found == config_.end() || found->is_null()) {
    return nullptr;
  }
  peft_.read[key] = found->dump();
  return &*found;
}

auto PeftConfigReader::CheckKeys() const -> Status {
  for (const PeftOnlyRow& row : PeftOnlyRows) {
    const auto given = config_.find(row.key);
    const json values = *ParseJson(row.values, ExitCode::InternalFault);
    if (given != config_.end() && !IsEmpty(*given) && std::ranges::find(values, *given) == values.end()) {
      return RefusePeft("`{}` is {:.80}: {}; {}", row.key, given->dump(), row.why, MergeIt);
    }
  }
  for (const auto& [key, value] : config_.items()) {
    if (!IsEmpty(value) && std::ranges::find(PeftOtherKeys, key) == PeftOtherKeys.end() &&
        std::ranges::find(PeftOnlyRows, key, &PeftOnlyRow::key) == PeftOnlyRows.end()) {
      return RefusePeft(
          "the key `{}` is not known, and is {:.80}: it may change what the adapter computes; delete it from the file "
          "if it does not",
          key, value.dump());
    }
  }
  return Success{};
}

/// Returns true for a rank, or for an alpha.
auto IsOf(const json& value, bool is_whole) -> bool {
  constexpr double Most = 1e9;
  return (is_whole ? value.is_number_unsigned() : value.is_number()) && value.get<double>() > 0 &&
         value.get<double>() < Most;
}

auto WantedOf(bool is_whole) -> std::string_view {
  return is_whole ? "a rank, a whole number above 0" : "an alpha, a number above 0";
}

auto PeftConfigReader::ReadNumber(const char* key, double absent, bool is_whole) -> ErrorOr<double> {
  const json* const given = Find(key);
  if (given == nullptr) {
    return absent;
  }
  return IsOf(*given, is_whole) ? ErrorOr<double>(given->get<double>())
                                : RefusePeft("`{}` is {:.80}; expected {}", key, given->dump(), WantedOf(is_whole));
}

auto PeftConfigReader::ReadChoice(const char* key, ModuleChoice& choice) -> Status {
  const json* const given = Find(key);
  if (given == nullptr) {
    return Success{};
  }
  if (given->is_string()) {
    auto pattern = ModulePattern::Make(given->get<std::string>(), PatternExtent::Whole);
    if (!pattern) {
      return RefusePeft("`{}`: {}", key, pattern.error().message);
    }
    choice.pattern = *std::move(pattern);
    return Success{};
  }
  if (!given->is_array() || !std::ranges::all_of(*given, [](const json& name) { return name.is_string(); })) {
    return RefusePeft("`{}` is {:.80}; expected a list of names of modules, or a pattern", key, given->dump());
  }
  choice.names = given->get<std::vector<std::string>>();
  return Success{};
}

auto PeftConfigReader::ReadPatterns(const char* key, bool is_whole,
                                    std::vector<std::pair<ModulePattern, double>>& patterns) -> Status {
  const json* const given = Find(key);
  if (given == nullptr) {
    return Success{};
  }
  if (!given->is_object()) {
    return RefusePeft("`{}` is {:.80}; expected an object of patterns", key, given->dump());
  }
  // Objects of the parser are sorted, and the first pattern of the text that matches holds.
  std::vector<std::pair<size_t, std::string>> in_order;
  const size_t begin = text_.rfind(json(key).dump());
  for (const auto& [pattern, value] : given->items()) {
    if (!IsOf(value, is_whole)) {
      return RefusePeft("`{}`: \"{:.80}\" is {:.80}; expected {}", key, pattern, value.dump(), WantedOf(is_whole));
    }
    in_order.emplace_back(text_.find(json(pattern).dump(), begin), pattern);
  }
  std::ranges::stable_sort(in_order, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> members;
  for (const auto& [place, text] : in_order) {
    auto pattern = ModulePattern::Make(text, PatternExtent::End);
    if (!pattern) {
      return RefusePeft("`{}`: {}", key, pattern.error().message);
    }
    const json& value = given->at(text);
    members.push_back(fmt::format("{}:{}", json(text).dump(), value.dump()));
    patterns.emplace_back(*std::move(pattern), value.get<double>());
  }
  peft_.read[key] = fmt::format("{{{}}}", fmt::join(members, ","));
  return Success{};
}

auto PeftConfigReader::ReadLayers() -> Status {
  if (const json* const given = Find("layers_to_transform"); given != nullptr && *given != json::array()) {
    const json layers = given->is_array() ? *given : json::array({*given});
    auto& numbers = peft_.layers.emplace();
    for (const json& layer : layers) {
      const auto number = JsonCount(layer, ExitCode::Checkpoint);
      if (!number) {
        return RefusePeft("`layers_to_transform` is {:.80}; expected numbers of layers", given->dump());
      }
      numbers.push_back(*number);
    }
  }
  if (const json* const given = Find("layers_pattern"); given != nullptr && *given != "") {
    const json names = given->is_array() ? *given : json::array({*given});
    for (const json& name : names) {
      if (!name.is_string() ||
          name.get_ref<const std::string&>().find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string::npos) {
        return RefusePeft("`layers_pattern` is {:.80}; expected the name of a list of layers, \"layers\"",
                          given->dump());
      }
      peft_.layer_names.push_back(name.get<std::string>());
    }
  }
  return Success{};
}

auto PeftConfigReader::Read() -> ErrorOr<PeftConfig> {
  if (!config_.is_object()) {
    return RefusePeft("it holds no object");
  }
  const json* const type = Find("peft_type");
  if (type == nullptr || *type != "LORA") {
    return RefusePeft("`peft_type` is {:.80}; only \"LORA\" is read; {}", type == nullptr ? "missing" : type->dump(),
                      MergeIt);
  }
  RETURN_IF_ERROR(CheckKeys());
  constexpr double Absent = 8;
  ASSIGN_OR_RETURN(const double rank, ReadNumber("r", Absent, true));
  ASSIGN_OR_RETURN(peft_.alpha, ReadNumber("lora_alpha", Absent, false));
  peft_.rank = static_cast<int64_t>(rank);
  if (const json* const root = Find("use_rslora"); root != nullptr) {
    if (!root->is_boolean()) {
      return RefusePeft("`use_rslora` is {:.80}; expected true or false", root->dump());
    }
    peft_.scales_by_root = root->get<bool>();
  }
  RETURN_IF_ERROR(ReadPatterns("rank_pattern", true, peft_.ranks));
  RETURN_IF_ERROR(ReadPatterns("alpha_pattern", false, peft_.alphas));
  RETURN_IF_ERROR(ReadChoice("target_modules", peft_.targets));
  peft_.targets_all = peft_.targets.pattern && peft_.targets.pattern->text() == AllLinear;
  if (!peft_.targets.pattern && peft_.targets.names.empty()) {
    return RefusePeft(
        "`target_modules` names no module, and then peft reads no adapter; write the names of its modules");
  }
  RETURN_IF_ERROR(ReadChoice("exclude_modules", peft_.excluded));
  RETURN_IF_ERROR(ReadLayers());
  if (peft_.layers && peft_.targets.pattern) {
    return RefusePeft(
        "`layers_to_transform` is there beside a pattern in `target_modules`, which peft refuses; delete it");
  }
  return std::move(peft_);
}

/// Returns the number of a module's layer as peft finds it: after one of these names, or by default the first number
/// from the third part of the name on.
auto LayerOfModule(std::string_view module, const std::vector<std::string>& names) -> std::optional<int64_t> {
  const auto parts = SplitAt(module, ".");
  const auto is_number = [&](size_t p) {
    return p + 1 < parts.size() && !parts[p].empty() &&
           parts[p].find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (names.empty()) {
    for (size_t p = 2; p < parts.size(); ++p) {
      if (is_number(p)) {
        return ParseWhole<int64_t>(parts[p]);
      }
    }
  }
  for (const std::string& name : names) {
    for (size_t p = 1; p < parts.size(); ++p) {
      if (parts[p - 1] == name && is_number(p)) {
        return ParseWhole<int64_t>(parts[p]);
      }
    }
  }
  return std::nullopt;
}

/// Returns the value of the first pattern that matches, or that of all modules.
auto ValueOf(const std::vector<std::pair<ModulePattern, double>>& patterns, std::string_view module, double of_all)
    -> double {
  const auto found = std::ranges::find_if(patterns, [&](const auto& own) { return own.first.Matches(module); });
  return found == patterns.end() ? of_all : found->second;
}

}  // namespace

auto ModuleChoice::Has(std::string_view module) const -> bool {
  if (pattern) {
    return pattern->Matches(module);
  }
  return std::ranges::any_of(names, [&](const std::string& name) {
    return module.ends_with(name) && (module.size() == name.size() || module[module.size() - name.size() - 1] == '.');
  });
}

auto PeftConfig::AdapterOf(std::string_view module) const -> std::optional<LowRank> {
  const bool is_head = module == "lm_head";
  if (excluded.Has(module) || (targets_all ? is_head : !targets.Has(module))) {
    return std::nullopt;
  }
  if (layers) {
    const auto layer = LayerOfModule(module, layer_names);
    if (!layer || std::ranges::find(*layers, *layer) == layers->end()) {
      return std::nullopt;
    }
  }
  const double own_rank = ValueOf(ranks, module, static_cast<double>(rank));
  const double own_alpha = ValueOf(alphas, module, alpha);
  return LowRank{.rank = static_cast<int64_t>(own_rank),
                 .alpha = own_alpha,
                 .scale = own_alpha / (scales_by_root ? std::sqrt(own_rank) : own_rank)};
}

auto ReadPeftConfig(std::string_view text) -> ErrorOr<PeftConfig> {
  const auto config = ParseJson(text, ExitCode::Checkpoint);
  if (!config) {
    return RefusePeft("{}", config.error().message);
  }
  return PeftConfigReader(*config, text).Read();
}

auto PeftConfigText(const std::map<std::string, std::string>& read) -> std::string {
  std::vector<std::string> members;
  for (const auto& [key, value] : read) {
    members.push_back(fmt::format("{}:{}", json(key).dump(), value));
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace shardc
