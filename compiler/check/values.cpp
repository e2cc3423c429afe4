// Single values against the rows of recipe_values.def: numbers in their ranges, words among the known ones.

#include <algorithm>

#include "compiler/base/byte_limit.h"
#include "compiler/check/check_context.h"
#include "compiler/keys/sections.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/other_tools.h"
#include "compiler/recipe/presets.h"

namespace shardc {

/// The known word that other programs write as `word`, or the only known word that begins with `word`. Empty if there
/// is neither.
static auto WordMeant(std::string_view word, const std::vector<std::string_view>& known) -> std::string_view {
  const auto is_known = [&](std::string_view other) { return std::ranges::find(known, other) != known.end(); };
  const auto elsewhere = std::ranges::find(NamesElsewhere(), word, &Hint::word);
  if (elsewhere != NamesElsewhere().end() && is_known(elsewhere->answer)) {
    return elsewhere->answer;
  }
  const auto begins_so = [&](std::string_view other) { return word.size() > 2 && other.starts_with(word); };
  return std::ranges::count_if(known, begins_so) == 1 ? *std::ranges::find_if(known, begins_so) : std::string_view();
}

auto InBinaryUnit(std::string text) -> std::string {
  if (text.ends_with('B') && !text.ends_with("iB")) {
    text.back() = 'i';
    text += 'B';
  }
  return text;
}

auto CheckByteLimit(CheckContext& context, std::string_view key, const Located<ByteSize>& leaf) -> void {
  if (ParseByteLimit(leaf->text)) {
    return;
  }
  auto builder = context.diags().Build(leaf.at, DiagnosticKind::ByteLimitInvalid, key, leaf->text, ByteLimitForms);
  const std::string meant = InBinaryUnit(leaf->text);
  builder.Help(ParseByteLimit(meant) ? fmt::format("write \"{}\"", meant) : "");
  builder.Emit();
}

auto ReportUnknownWord(CheckContext& context, const SourceRange& at, std::string_view key, std::string_view word,
                       const std::vector<std::string_view>& known) -> void {
  auto builder = AsksForFewerBits(word)
                     ? context.diags().Build(at, DiagnosticKind::FewerBits, word)
                     : context.diags().Build(at, DiagnosticKind::UnknownChoice, key, word, QuotedWords(known));
  const PresetRow* const preset = key == "family" ? PresetLike(word) : nullptr;
  const std::string family = preset == nullptr ? "" : ValueIn(*preset, "model.family");
  if (preset != nullptr && !family.substr(1).starts_with(word)) {
    builder.Help(fmt::format("write family = {}; or, for all sizes, preset = \"{}\", one of `shardc presets`", family,
                             preset->name));
  } else if (const std::string_view hint = HintOfKey("", word); !hint.empty()) {
    builder.Help(std::string(hint));
  } else if (const std::string_view meant = WordMeant(word, known); !meant.empty()) {
    builder.Help(fmt::format("did you mean \"{}\"?", meant));
  } else if (const std::string closest = ClosestWord(word, known); !closest.empty()) {
    builder.Help(fmt::format("did you mean \"{}\"?", closest));
  }
  builder.Emit();
}

template <class T>
static auto CheckLeaf(CheckContext&, const KeyInfo&, std::string_view, const Located<T>&) -> void {}

template <class T>
requires std::same_as<T, int64_t> || std::same_as<T, double>
static auto CheckLeaf(CheckContext& context, const KeyInfo& key, std::string_view path, const Located<T>& leaf)
    -> void {
  const auto range = RangeOf(path);
  if (!range) {
    return;
  }
  // Where a bound is no double (2^63 - 1), it is the limit of the type as well.
  if (!range->Holds(static_cast<double>(leaf.value))) {
    context.MarkFaulty(leaf);
    context.diags()
        .Build(leaf.at, DiagnosticKind::OutOfRange, key.name, leaf.value,
               fmt::format("{} to {}", range->low_text, range->high_text))
        .Help(path.starts_with("mesh.") && leaf.value == -1
                  ? "write the number of ranks; no axis takes those that are left"
                  : "")
        .Emit();
  }
}

/// Is `chosen`, which stands at `at`, one of the key's words? Reports what it is else.
template <class E>
static auto CheckWord(CheckContext& context, const KeyInfo& key, std::string_view path, const SourceRange& at,
                      const OneOf<E>& chosen) -> bool {
  if (chosen.is_accepted()) {
    return true;
  }
  if constexpr (std::same_as<E, ModelPreset>) {
    // The reader looked for the preset, and told the nearest ones.
    return false;
  }
  const std::string& word = chosen.text();
  std::vector<std::string_view> accepted;
  bool is_known = false;
  for (const Choice& choice : ChoicesOf(path)) {
    if (choice.accepted) {
      accepted.push_back(choice.word);
    }
    is_known = is_known || choice.word == word;
  }
  if (is_known) {
    context.diags()
        .Build(at, DiagnosticKind::UnsupportedValue, key.name, word, QuotedWords(accepted))
        .Help(std::string(HintOfKey("", word)))
        .Emit();
  } else {
    ReportUnknownWord(context, at, key.name, word, accepted);
  }
  return false;
}

template <class E>
static auto CheckLeaf(CheckContext& context, const KeyInfo& key, std::string_view path, const Located<OneOf<E>>& leaf)
    -> void {
  if (!CheckWord(context, key, path, leaf.at, *leaf)) {
    context.MarkFaulty(leaf);
  }
}

static auto CheckLeaf(CheckContext& context, const KeyInfo& key, std::string_view path, const Located<FirstStart>& leaf)
    -> void {
  if (!leaf->from().is_set && !CheckWord(context, key, path, leaf.at, leaf->word)) {
    context.MarkFaulty(leaf);
  }
}

auto CheckValues(CheckContext& context) -> void {
  const auto check_key = [&](const KeyInfo& key, const auto& leaf) {
    // A key that is unset has no value to judge; defaults are in range (a test says so).
    if (leaf.is_set && leaf.is_known) {
      CheckLeaf(context, key, key.path(), leaf);
    }
  };
  ForEachSection(context.recipe(), [&](std::string_view, std::string_view, const auto& section) {
    ForEachKey(section, check_key);
    ForEachList(section, [&](std::string_view, std::string_view, const auto& items) {
      for (const auto& item : items) {
        ForEachKey(item, check_key);
      }
    });
  });
}

}  // namespace shardc
