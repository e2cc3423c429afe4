#include "compiler/recipe/other_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "compiler/base/printable.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/split.h"
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

/// A setting that recipes lack: a row LEFT of schemas/other_configs.def.
struct LeftRow {
  ConfigProgram program;
  std::string_view theirs;
  std::string_view default_text;
  std::string_view answer;
};

/// Sections that change nothing that is trained.
constexpr std::string_view BesideTraining[] = {
    "job", "profiling",  "profiler",   "metrics",  "comm",      "debug", "compile",         "float8",
    "mx",  "checkpoint", "validation", "quantize", "validator", "eval",  "fault_tolerance", "memory_estimation"};

/// Words of names that say how large, how long or how many.
constexpr std::string_view WordsOfSizes[] = {"len",          "length", "size",     "batch",   "batches", "microbatch",
                                             "microbatches", "seq",    "sequence", "context", "token",   "tokens",
                                             "dim",          "dims",   "width",    "depth",   "layers",  "heads",
                                             "hidden",       "ffn",    "vocab",    "steps",   "samples"};

auto TypeOf(std::string_view text) -> std::string_view {
  return text.starts_with('"')               ? "text"
         : text.starts_with('[')             ? "list"
         : text == "a table"                 ? "table"
         : text == "a date"                  ? "date"
         : text == "true" || text == "false" ? "bool"
                                             : "number";
}

auto IsOff(std::string_view name, std::string_view value) -> bool {
  return value == "false" || value == "\"\"" || value == "\"disabled\"" || value == "[]" ||
         (value == "1" && name.ends_with("_degree"));
}

/// Returns true if two texts of TOML are the same value: 1 and 1.0 are one number.
auto IsSame(std::string_view a, std::string_view b) -> bool {
  return a == b || (TypeOf(a) == "number" && TypeOf(b) == "number" && !a.empty() && !b.empty() &&
                    std::strtod(std::string(a).c_str(), nullptr) == std::strtod(std::string(b).c_str(), nullptr));
}

auto LooksLikeSize(std::string_view key) -> bool {
  return std::ranges::any_of(SplitWords(key, "_"), [](std::string_view word) {
    return std::ranges::find(WordsOfSizes, word) != std::end(WordsOfSizes);
  });
}

}  // namespace

static constexpr CarriedRow Carried[] = {
#define CARRIED(program, theirs, default_text, ours) {ConfigProgram::program, theirs, default_text, ours},
#include "schemas/other_configs.def"
};

static constexpr LeftRow Left[] = {
#define LEFT(program, theirs, default_text, answer) {ConfigProgram::program, theirs, default_text, answer},
#include "schemas/other_configs.def"
};

auto CarriedRows() -> std::span<const CarriedRow> { return Carried; }

/// Returns the first row of a setting; one whose name ends in `*` is that of all names that begin so.
static auto LeftRowOf(ConfigProgram program, std::string_view name) -> const LeftRow* {
  const auto* const found = std::ranges::find_if(Left, [&](const LeftRow& row) {
    const bool is_prefix = row.theirs.ends_with('*');
    return row.program == program &&
           (is_prefix ? name.starts_with(row.theirs.substr(0, row.theirs.size() - 1)) : name == row.theirs);
  });
  return found == std::end(Left) ? nullptr : found;
}

static auto SectionPart(std::string_view name) -> std::string_view {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? "" : name.substr(0, dot);
}

static auto KeyPart(std::string_view name) -> std::string_view { return name.substr(name.find('.') + 1); }

/// Returns torchtitan's answer to a key of this section alone; an empty text if it has none.
static auto TorchtitanAnswer(std::string_view section, std::string_view key) -> std::string_view {
  const auto rows = TorchtitanKeys();
  const auto found =
      std::ranges::find_if(rows, [&](const KeyElsewhere& row) { return row.section == section && row.key == key; });
  return found == rows.end() ? std::string_view() : found->answer;
}

auto IsKnownSetting(ConfigProgram program, std::string_view section, std::string_view key) -> bool {
  const std::string name = section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  return LeftRowOf(program, name) != nullptr ||
         (program == ConfigProgram::TorchtitanToml && !TorchtitanAnswer(section, key).empty()) ||
         std::ranges::any_of(Carried,
                             [&](const CarriedRow& row) { return row.program == program && row.theirs == name; });
}

OtherConfig::OtherConfig(ConfigProgram program, const TomlNode& root) : program_(program) {
  for (const TomlEntry& section : root.entries) {
    if (section.value.kind != TomlNode::Kind::Table) {
      values_[section.key] = TextOf(section.value);
    }
    for (const TomlEntry& entry : section.value.entries) {
      values_[section.key + "." + entry.key] = TextOf(entry.value);
    }
  }
}

auto OtherConfig::Take(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string {
  std::string value(default_text);
  std::string_view last;
  for (const std::string_view name : names) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      continue;
    }
    taken_.insert(found->first);
    if (TypeOf(found->second) != TypeOf(default_text)) {
      Miss(name, fmt::format("it is no {}; the default {} is taken", TypeOf(default_text),
                             default_text.empty() ? "of the trainer" : default_text));
      continue;
    }
    if (TypeOf(found->second) == "number" && !std::isfinite(std::strtod(found->second.c_str(), nullptr))) {
      Refuse(name, "it has to be a finite number");
    }
    if (!last.empty()) {
      Miss(last, fmt::format("{} is there too, and holds", name));
    }
    last = name;
    value = found->second;
  }
  return value;
}

auto OtherConfig::TakeText(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string {
  const std::string value = Take(names, WriteToml(std::string(default_text)));
  return value.substr(1, value.size() - 2);
}

auto OtherConfig::TakeNumber(const std::vector<std::string_view>& names, double default_number) -> double {
  return std::strtod(Take(names, WriteToml(default_number)).c_str(), nullptr);
}

auto OtherConfig::TakeCount(const std::vector<std::string_view>& names, int64_t default_count) -> int64_t {
  const int64_t count = ParseWhole<int64_t>(Take(names, std::to_string(default_count))).value_or(0);
  if (count < 1) {
    const auto given = std::ranges::find_if(names, [&](std::string_view name) { return Has(name); });
    Refuse(given == names.end() ? names.back() : *given,
           given == names.end() ? "it is missing" : "it has to be a whole number of at least 1");
  }
  return std::max<int64_t>(count, 1);
}

auto OtherConfig::Named(std::string_view name) const -> std::string {
  const auto found = values_.find(name);
  const std::string_view section = SectionPart(name);
  return fmt::format("{}{}{}", section.empty() ? "" : fmt::format("[{}] ", section), KeyPart(name),
                     found == values_.end() || found->second == "a table" ? "" : " = " + found->second);
}

auto OtherConfig::Miss(std::string_view name, std::string_view why) -> void {
  if (missed_names_.insert(std::string(name)).second) {
    missed_.push_back(PrintableLine(fmt::format("{}: {}", Named(name), why)));
  }
}

auto OtherConfig::Refuse(std::string_view name, std::string_view why) -> void {
  faults_.push_back(PrintableLine(fmt::format("{}: {}", Named(name), why)));
}

auto OtherConfig::NotCarried() -> std::vector<std::string> {
  std::vector<std::string> lines = missed_;
  for (const auto& [name, value] : values_) {
    if (taken_.contains(name) || missed_names_.contains(name)) {
      continue;
    }
    const std::string_view section = SectionPart(name);
    const std::string_view key = KeyPart(name);
    const bool is_beside = std::ranges::find(BesideTraining, section) != std::end(BesideTraining);
    if (!IsKnownSetting(program_, section, key) && !is_beside && LooksLikeSize(key)) {
      Refuse(name,
             "nothing is known of this key, which looks like a size, a length or a batch; take it out of the file, and "
             "set what it means in the recipe");
      continue;
    }
    const LeftRow* const row = LeftRowOf(program_, name);
    const bool has_default =
        row != nullptr && (row->default_text.empty() ? row->answer.empty() : IsSame(row->default_text, value));
    if (has_default || IsOff(name, value) || IsSwitchedOff(name)) {
      continue;
    }
    std::string_view answer = row == nullptr ? std::string_view() : row->answer;
    if (answer.empty() && program_ != ConfigProgram::KempnerForge) {
      answer = TorchtitanAnswer(section, key);
    }
    if (answer.empty()) {
      answer = HintOfWord(key);
    }
    lines.push_back(
        PrintableLine(fmt::format("{}: {}", Named(name), answer.empty() ? "nothing is known of this key" : answer)));
  }
  return lines;
}

auto OtherConfig::Judge(const std::string& file) const -> Status {
  FAIL_IF(!faults_.empty(), ExitCode::RecipeRejected, "{}: {}", file, faults_.front());
  return Success{};
}

auto OtherConfig::IsSwitchedOff(std::string_view name) const -> bool {
  // In KempnerForge each switch has a row of its own.
  bool has_switch = false;
  for (const Switch& of : program_ == ConfigProgram::KempnerForge ? std::span<const Switch>() : std::span(Switches)) {
    if (name.starts_with(of.theirs) && name != of.name) {
      has_switch = true;
      const auto found = values_.find(of.name);
      if (found != values_.end() && !IsOff(of.name, found->second)) {
        return false;
      }
    }
  }
  return has_switch;
}

}  // namespace shardc
