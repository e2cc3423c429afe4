// Each name is a text with brackets in it. A name is expanded from left to right: the names so far, times what the next
// bracket says. Both bounds are checked before anything is made. Source: hostlist.c of Slurm 22.05, whose lists these
// are.

#include "compiler/cluster/host_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "compiler/base/printable.h"
#include "compiler/base/text/split.h"

namespace shardc {

namespace {

constexpr size_t MaxNames = 65536;
constexpr size_t MaxNameLength = 255;
constexpr size_t MaxBrackets = 8;
constexpr size_t MaxShown = 60;

auto NotAList(std::string_view text, std::string_view why) -> Error {
  const bool cut = text.size() > MaxShown;
  return Fail(ExitCode::Environment, "`{}{}` is no list of hosts as Slurm writes them: {}",
              Escaped(text.substr(0, MaxShown)), cut ? "..." : "", why);
}

auto TooMany(std::string_view text) -> Error {
  return NotAList(text, fmt::format("it stands for more than {} names", MaxNames));
}

/// Reads a number of at most 18 digits, which fits an int64.
auto ReadDigits(std::string_view text, int64_t& number) -> bool {
  constexpr size_t MaxDigits = 18;
  if (text.empty() || text.size() > MaxDigits || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  std::from_chars(text.data(), text.data() + text.size(), number);
  return true;
}

/// Expands the text between `[` and `]`: numbers and ranges with commas between them.
auto ExpandBracket(std::string_view list, std::string_view inside) -> ErrorOr<std::vector<std::string>> {
  std::vector<std::string> texts;
  for (const std::string_view entry : SplitAt(inside, ",")) {
    const size_t dash = entry.find('-');
    const std::string_view first_text = entry.substr(0, dash);
    int64_t first = 0;
    if (!ReadDigits(first_text, first)) {
      return NotAList(list, fmt::format("`{}` is neither a number nor a range", Escaped(entry.substr(0, MaxShown))));
    }
    int64_t last = first;
    if (dash != std::string_view::npos && (!ReadDigits(entry.substr(dash + 1), last) || last < first)) {
      return NotAList(list, fmt::format("`{}` is no range", Escaped(entry.substr(0, MaxShown))));
    }
    if (last - first >= static_cast<int64_t>(MaxNames - texts.size())) {
      return TooMany(list);
    }
    for (int64_t number = first; number <= last; number++) {
      texts.push_back(fmt::format("{:0{}}", number, first_text.size()));
    }
  }
  return texts;
}

/// Expands one name with its brackets. `list` is the whole list, for messages.
auto ExpandName(std::string_view list, std::string_view name) -> ErrorOr<std::vector<std::string>> {
  if (static_cast<size_t>(std::count(name.begin(), name.end(), '[')) > MaxBrackets) {
    return NotAList(list, fmt::format("a name has more than {} brackets", MaxBrackets));
  }
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const size_t open = name.find_first_of("[]");
    const std::string_view plain = name.substr(0, open);
    std::vector<std::string> endings{""};
    if (open != std::string_view::npos) {
      const size_t close = name.find_first_of("[]", open + 1);
      if (name[open] != '[' || close == std::string_view::npos || name[close] != ']') {
        return NotAList(list, "its brackets do not match");
      }
      ASSIGN_OR_RETURN(endings, ExpandBracket(list, name.substr(open + 1, close - open - 1)));
      name.remove_prefix(close + 1);
    } else {
      name = {};
    }
    if (names.size() > MaxNames / endings.size()) {
      return TooMany(list);
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * endings.size());
    for (const std::string& begin : names) {
      for (const std::string& end : endings) {
        if (begin.size() + plain.size() + end.size() > MaxNameLength) {
          return NotAList(list, fmt::format("a name has more than {} characters", MaxNameLength));
        }
        longer.push_back(fmt::format("{}{}{}", begin, plain, end));
      }
    }
    names = std::move(longer);
  }
  return names;
}

/// Returns the end of the first name of `text`: the first comma outside of brackets.
auto EndOfName(std::string_view text) -> size_t {
  bool inside = false;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == ',' && !inside) {
      return i;
    }
    inside = text[i] == '[' || (inside && text[i] != ']');
  }
  return text.size();
}

}  // namespace

auto ExpandHostList(std::string_view text) -> ErrorOr<std::vector<std::string>> {
  for (const char c : text) {
    if (c <= ' ' || c > '~') {
      return NotAList(text, "it has characters that no name has");
    }
  }
  std::vector<std::string> all;
  std::string_view rest = text;
  while (true) {
    const size_t end = EndOfName(rest);
    if (end == 0) {
      return NotAList(text, "a name is empty");
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandName(text, rest.substr(0, end)));
    if (names.size() > MaxNames - all.size()) {
      return TooMany(text);
    }
    all.insert(all.end(), names.begin(), names.end());
    if (end == rest.size()) {
      return all;
    }
    rest.remove_prefix(end + 1);
  }
}

}  // namespace shardc
