// Prints the effective recipe: `key = value  # default | recipe.toml:12 | --set`. Keys that are unset, with a meaning
// of their own, become comments, and so do assumed keys and defaults without effect.

#include "compiler/recipe/write.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "compiler/base/printable.h"
#include "compiler/base/real_text.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/toml_tree.h"
#include "compiler/recipe/visit.h"

namespace shardc {

auto WriteToml(int64_t value) -> std::string { return fmt::format("{}", value); }

auto WriteToml(double value) -> std::string { return RealText(value); }

auto WriteToml(bool value) -> std::string { return value ? "true" : "false"; }

auto WriteToml(const std::string& value) -> std::string { return QuoteToml(value); }

template <class T>
static auto WriteList(const std::vector<T>& values) -> std::string {
  std::string text = "[";
  for (const T& value : values) {
    text += (text.size() > 1 ? ", " : "") + WriteToml(value);
  }
  return text + "]";
}

auto WriteToml(const std::vector<std::string>& value) -> std::string { return WriteList(value); }
auto WriteToml(const std::vector<double>& value) -> std::string { return WriteList(value); }

/// True for what TOML and the expression language both read as the same number.
static auto IsPlainNumber(const std::string& text) -> bool {
  if (text.empty() || text.find_first_not_of("0123456789.e-") != std::string::npos || text.front() == '.' ||
      text.back() == '.' || (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9')) {
    return false;
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) && text == fmt::format("{}", value);
}

auto WriteToml(const Formula& value) -> std::string {
  return IsPlainNumber(value.text) ? value.text : QuoteToml(value.text);
}

auto WriteToml(const ByteSize& value) -> std::string { return value.text == "0" ? value.text : QuoteToml(value.text); }

auto WriteToml(const Condition& value) -> std::string {
  return value.text == "true" || value.text == "false" ? value.text : QuoteToml(value.text);
}

auto WriteToml(const FirstStart& value) -> std::string {
  if (!value.seed.is_set) {
    return WriteToml(value.word);
  }
  std::string text = "{ seed = " + WriteToml(*value.seed);
  text += value.missing.is_set ? ", missing = " + WriteToml(*value.missing) : "";
  text += value.unused.is_set ? ", unused = " + WriteToml(*value.unused) : "";
  return text + " }";
}

namespace {

class RecipePrinter {
 public:
  explicit RecipePrinter(const Recipe& recipe)
      : recipe_(recipe), file_(PrintableLine(std::filesystem::path(recipe.path).filename().string())) {}

  auto Print() -> std::string {
    ForEachSection(recipe_, [&](std::string_view name, std::string_view, const auto& section) {
      text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
      PrintKeys(section);
      ForEachList(section, [&](std::string_view list, std::string_view, const auto& items) {
        for (const auto& item : items) {
          text_ += fmt::format("\n[[{}.{}]]\n", name, list);
          PrintKeys(item);
        }
      });
    });
    return text_;
  }

 private:
  template <class Table>
  auto PrintKeys(const Table& table) -> void {
    ForEachKey(table, [&](const KeyInfo& key, const auto& leaf) {
      if (recipe_.IsAssumed(leaf.at)) {
        text_ += fmt::format("# {} = {}  # assumed\n", key.name, WriteToml(leaf.value));
      } else if (leaf.is_set || TakesDefault(recipe_, key)) {
        text_ += fmt::format("{} = {}  # {}\n", key.name, WriteToml(leaf.value), From(leaf.at, leaf.is_set));
      } else if (HasNoEffect(recipe_, key.section, key.name)) {
        text_ += fmt::format("# {} = {}  # default, without effect here\n", key.name, WriteToml(leaf.value));
      } else if (!IsLacked(recipe_, key.section, key.name)) {
        text_ += fmt::format("# {}: unset; {}\n", key.name, key.doc);
      }
    });
  }

  auto From(const SourceRange& at, bool is_set) const -> std::string {
    if (!is_set) {
      return "default";
    }
    if (const StandIn* text = recipe_.StandInAt(at)) {
      return text->name;
    }
    return at.source == 0 ? fmt::format("{}:{}", file_, at.line) : "--set";
  }

  const Recipe& recipe_;
  std::string file_;
  std::string text_;
};

}  // namespace

auto PrintRecipe(const Recipe& recipe) -> std::string { return RecipePrinter(recipe).Print(); }

}  // namespace shardc
