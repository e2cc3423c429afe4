#include "compiler/recipe/torchtitan_config.h"

#include <fmt/ranges.h>

#include <cstdlib>

#include "compiler/base/printable.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/other_tools.h"

namespace shardc {

namespace {

/// Settings that mean something only if another one is on: `theirs` begins their names. All of these are off by
/// default.
struct Switch {
  std::string_view theirs;
  std::string_view name;
};
constexpr Switch Switches[] = {
    {"profiling.profile", "profiling.enable_profiling"},
    {"profiling.save_traces_folder", "profiling.enable_profiling"},
    {"profiling.save_memory_snapshot_folder", "profiling.enable_memory_snapshot"},
    {"metrics.save_tb_folder", "metrics.enable_tensorboard"},
    {"checkpoint.", "checkpoint.enable"},
    {"checkpoint.", "checkpoint.enable_checkpoint"},
    {"compile.", "compile.enable"},
    {"validation.", "validation.enable"},
    {"validation.", "validation.enabled"},
    {"memory_estimation.", "memory_estimation.enable"},
    {"memory_estimation.", "memory_estimation.enabled"},
    {"fault_tolerance.", "fault_tolerance.enable"},
    {"parallelism.pipeline_parallel_", "parallelism.pipeline_parallel_degree"},
    {"parallelism.context_parallel_", "parallelism.context_parallel_degree"},
    {"parallelism.expert_", "parallelism.expert_parallel_degree"},
};

/// Returns a value as TOML. No setting that is carried over is a list or a date.
auto TextOf(const TomlNode& node) -> std::string {
  std::vector<std::string> items;
  for (const TomlNode& item : node.items) {
    items.push_back(TextOf(item));
  }
  switch (node.kind) {
    case TomlNode::Kind::Text: return WriteToml(node.text);
    case TomlNode::Kind::Int: return WriteToml(node.integer);
    case TomlNode::Kind::Real: return WriteToml(node.real);
    case TomlNode::Kind::Bool: return WriteToml(node.boolean);
    case TomlNode::Kind::Array: return fmt::format("[{}]", fmt::join(items, ", "));
    default: return "\"a date\"";
  }
}

auto TypeOf(std::string_view text) -> std::string_view {
  return text.starts_with('"')               ? "text"
         : text.starts_with('[')             ? "list"
         : text == "true" || text == "false" ? "bool"
                                             : "number";
}

auto IsOff(std::string_view name, std::string_view value) -> bool {
  return value == "false" || value == "\"\"" || value == "\"disabled\"" || value == "[]" ||
         (value == "1" && name.ends_with("_degree"));
}

}  // namespace

TorchtitanConfig::TorchtitanConfig(const TomlNode& root) {
  for (const TomlEntry& section : root.entries) {
    Add(section.key, section.value);
  }
}

auto TorchtitanConfig::Take(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string {
  std::string value(default_text);
  std::string_view last;
  for (const std::string_view name : names) {
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) {
      continue;
    }
    taken_.insert(found->first);
    if (TypeOf(found->second) != TypeOf(default_text)) {
      Miss(name, fmt::format("it is no {}; the default {} is taken", TypeOf(default_text),
                             default_text.empty() ? "of torchtitan" : default_text));
      continue;
    }
    if (!last.empty()) {
      Miss(last, fmt::format("{} is there too, and holds", name));
    }
    last = name;
    value = found->second;
  }
  return value;
}

auto TorchtitanConfig::TakeText(const std::vector<std::string_view>& names, std::string_view default_text)
    -> std::string {
  const std::string value = Take(names, WriteToml(std::string(default_text)));
  return value.substr(1, value.size() - 2);
}

auto TorchtitanConfig::TakeNumber(const std::vector<std::string_view>& names, double default_number) -> double {
  return std::strtod(Take(names, WriteToml(default_number)).c_str(), nullptr);
}

auto TorchtitanConfig::Miss(std::string_view name, std::string_view why) -> void {
  if (!missed_names_.insert(std::string(name)).second) {
    return;
  }
  const auto found = values_.find(std::string(name));
  const size_t dot = name.find('.');
  missed_.push_back(PrintableLine(fmt::format("[{}] {} = {}: {}", name.substr(0, dot), name.substr(dot + 1),
                                              found == values_.end() ? "its default" : found->second, why)));
}

auto TorchtitanConfig::NotCarried() const -> std::vector<std::string> {
  std::vector<std::string> lines = missed_;
  for (const auto& [name, value] : values_) {
    if (!taken_.contains(name) && !IsOff(name, value) && !IsSwitchedOff(name)) {
      const size_t dot = name.find('.');
      const std::string section = name.substr(0, dot);
      const std::string key = name.substr(dot + 1);
      const std::string_view answer = HintOfKey(section, key);
      lines.push_back(PrintableLine(fmt::format("[{}] {} = {}: {}", section, key, value,
                                                answer.empty() ? "nothing is known of this key" : answer)));
    }
  }
  return lines;
}

auto TorchtitanConfig::IsSwitchedOff(std::string_view name) const -> bool {
  bool has_switch = false;
  for (const Switch& of : Switches) {
    if (name.starts_with(of.theirs) && name != of.name) {
      has_switch = true;
      const auto found = values_.find(std::string(of.name));
      if (found != values_.end() && !IsOff(of.name, found->second)) {
        return false;
      }
    }
  }
  return has_switch;
}

auto TorchtitanConfig::Add(const std::string& path, const TomlNode& node) -> void {
  if (node.kind != TomlNode::Kind::Table) {
    values_[path] = TextOf(node);
  }
  for (const TomlEntry& entry : node.entries) {
    Add(path + "." + entry.key, entry.value);
  }
}

}  // namespace shardc
