// Longest common subsequence of lines by a table, of what is left when the common lines at both ends are taken off.
#include "tests/support/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/text_lines.h"

namespace shardc {

namespace {

constexpr size_t MaxTable = size_t{16} << 20;

/// One line of the result: ' ', '-' or '+', with how many lines of each text come before it.
struct Edit {
  char sign;
  std::string_view line;
  size_t before;
  size_t after;
};

using Lines = std::vector<std::string>;

auto EditsOf(const Lines& a, const Lines& b) -> std::vector<Edit> {
  size_t head = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) {
    ++head;
  }
  size_t tail = 0;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  const size_t rows = a.size() - head - tail;
  const size_t columns = b.size() - head - tail;
  // common[i][j]: lines that the rests from i and from j have in common, in order.
  const bool fits = (rows + 1) * (columns + 1) <= MaxTable;
  std::vector<uint32_t> common(fits ? (rows + 1) * (columns + 1) : 0);
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (columns + 1) + j]; };
  for (size_t i = fits ? rows : 0; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      at(i, j) = a[head + i] == b[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }

  std::vector<Edit> edits;
  size_t i = 0;
  size_t j = 0;
  const auto keep = [&] {
    edits.push_back({' ', a[i], i, j});
    ++i;
    ++j;
  };
  while (i < head) {
    keep();
  }
  while (i < head + rows || j < head + columns) {
    const bool both = i < head + rows && j < head + columns;
    if (fits && both && a[i] == b[j]) {
      keep();
    } else if (i < head + rows && (!both || !fits || at(i + 1 - head, j - head) >= at(i - head, j + 1 - head))) {
      edits.push_back({'-', a[i], i, j});
      ++i;
    } else {
      edits.push_back({'+', b[j], i, j});
      ++j;
    }
  }
  while (i < a.size()) {
    keep();
  }
  return edits;
}

/// `12,3`: line and count, as diff writes them: an empty range is named by the line before it.
auto Range(size_t lines_before, size_t count) -> std::string {
  const size_t first = count == 0 ? lines_before : lines_before + 1;
  return count == 1 ? fmt::format("{}", first) : fmt::format("{},{}", first, count);
}

}  // namespace

auto UnifiedDiff(std::string_view before, std::string_view after, std::string_view before_name,
                 std::string_view after_name, size_t context) -> std::string {
  if (before == after) {
    return "";
  }
  const Lines a = LinesOf(before);
  const Lines b = LinesOf(after);
  const std::vector<Edit> edits = EditsOf(a, b);
  std::string out = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
  if (a == b) {
    return out + "(only the line end of the last line differs)\n";
  }
  for (size_t i = 0; i < edits.size();) {
    if (edits[i].sign == ' ') {
      ++i;
      continue;
    }
    // A hunk ends where more than twice the context is unchanged.
    const size_t begin = i - std::min(i, context);
    size_t end = i;
    for (size_t j = i; j < edits.size() && j <= end + 2 * context; ++j) {
      end = edits[j].sign == ' ' ? end : j + 1;
    }
    i = end;
    end = std::min(end + context, edits.size());
    size_t num_before = 0;
    size_t num_after = 0;
    std::string hunk;
    for (size_t j = begin; j < end; ++j) {
      num_before += edits[j].sign == '+' ? 0 : 1;
      num_after += edits[j].sign == '-' ? 0 : 1;
      hunk += fmt::format("{}{}\n", edits[j].sign, edits[j].line);
    }
    out += fmt::format("@@ -{} +{} @@\n{}", Range(edits[begin].before, num_before),
                       Range(edits[begin].after, num_after), hunk);
  }
  return out;
}

auto Patched(std::string_view before, std::string_view diff) -> std::optional<std::string> {
  const Lines lines = LinesOf(before);
  std::string text;
  size_t next = 0;
  const auto keep_to = [&](size_t end) {
    for (; next < end; ++next) {
      text += lines[next] + "\n";
    }
  };
  for (const std::string& line : LinesOf(diff)) {
    if (line.starts_with("@@ -")) {
      const size_t first = std::stoul(line.substr(4));
      // An empty range is named by the line before it.
      const bool is_empty = line.substr(4, line.find(' ', 4) - 4).ends_with(",0");
      const size_t begin = first - (is_empty ? 0 : 1);
      if (begin < next || begin > lines.size()) {
        return std::nullopt;
      }
      keep_to(begin);
    } else if (line.starts_with("+++ ") || line.starts_with("--- ")) {
      continue;
    } else if (line.starts_with("+")) {
      text += line.substr(1) + "\n";
    } else if (next == lines.size() || lines[next] != line.substr(1)) {
      return std::nullopt;
    } else {
      text += line.starts_with(" ") ? lines[next] + "\n" : "";
      ++next;
    }
  }
  keep_to(lines.size());
  return text;
}

}  // namespace shardc
