// 1. Both texts are split into blocks: what is before the first header, and each header with its lines.
// 2. What `without` names leaves the base.
// 3. Each block of the recipe is followed by the keys of the base's block of that header that the recipe does not set.
// 4. The blocks of the base whose header the recipe lacks come last.

#include "tests/support/over_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/base/files.h"
#include "tests/support/text_lines.h"

namespace shardc {

namespace {

constexpr std::string_view SharedBases = SHARDC_SOURCE_DIR "/tests/support/bases";

struct Line {
  std::string text;
  LineSource source;
  /// The key that the line sets, or empty.
  std::string key;
};

struct Block {
  /// "model" of [model], "init.rule" of [[init.rule]]; empty before the first header.
  std::string path;
  bool is_list = false;
  /// The header is the first of them.
  std::vector<Line> lines;
};

auto Trimmed(std::string_view text) -> std::string {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

/// Returns "heads" of `heads = 2`; "" of a comment, an empty line, and a line within a value.
auto KeyOf(std::string_view line) -> std::string {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || line.find_first_of(" \t#]})") == 0) {
    return "";
  }
  return Trimmed(line.substr(0, equals));
}

auto BlocksOf(std::string_view text, bool is_of_base) -> std::vector<Block> {
  std::vector<Block> blocks(1);
  int32_t number = 0;
  for (std::string& line : LinesOf(text)) {
    ++number;
    const bool is_list = line.starts_with("[[");
    if (line.starts_with("[")) {
      const size_t brackets = is_list ? 2 : 1;
      blocks.push_back({line.substr(brackets, line.find(']') - brackets), is_list, {}});
    }
    std::string key = line.starts_with("[") ? "" : KeyOf(line);
    blocks.back().lines.push_back({std::move(line), {is_of_base, number}, std::move(key)});
  }
  return blocks;
}

auto PathOf(const Block& block, const std::string& key) -> std::string {
  return block.path.empty() ? key : fmt::format("{}.{}", block.path, key);
}

/// A `# base` line, by its parts.
struct BaseLine {
  std::string file;
  std::vector<std::string> without;
};

auto ParseBaseLine(const std::string& line) -> std::optional<BaseLine> {
  constexpr std::string_view begin = "# base: ";
  constexpr std::string_view without = " without ";
  if (!line.starts_with(begin)) {
    return std::nullopt;
  }
  const std::string rest = line.substr(begin.size());
  const size_t end = std::min(rest.find(without), rest.size());
  BaseLine base{rest.substr(0, end), {}};
  for (size_t at = end + without.size(); end < rest.size() && at <= rest.size();) {
    const size_t comma = std::min(rest.find(',', at), rest.size());
    base.without.push_back(Trimmed(std::string_view(rest).substr(at, comma - at)));
    at = comma + 1;
  }
  return base;
}

auto ReadBase(const std::string& folder, const std::string& file) -> ErrorOr<std::string> {
  constexpr size_t limit = size_t{1} << 20;
  for (const std::string& path : {fmt::format("{}/{}", folder, file), fmt::format("{}/{}", SharedBases, file)}) {
    if (auto text = ReadFile(path, limit)) {
      return text;
    }
  }
  return Error{ExitCode::Usage, fmt::format("neither {} nor tests/support/bases has the file", folder)};
}

/// Takes a section, a list or a key out of the base. Returns false if the base has none of the name.
auto LeaveOut(std::vector<Block>& base, const std::string& name) -> bool {
  size_t count = std::erase_if(base, [&](const Block& block) { return !name.empty() && block.path == name; });
  for (Block& block : base) {
    count += std::erase_if(block.lines,
                           [&](const Line& line) { return !line.key.empty() && PathOf(block, line.key) == name; });
  }
  return count > 0;
}

/// Comments and empty lines of the base are not taken.
auto TakeKeys(const std::vector<Line>& lines, const std::set<std::string>& set, const Block& block, WholeRecipe& whole)
    -> int {
  int count = 0;
  for (const Line& line : lines) {
    if (!line.key.empty() && !set.contains(PathOf(block, line.key))) {
      whole.text += line.text + "\n";
      whole.sources.push_back(line.source);
      ++count;
    }
  }
  return count;
}

auto Merge(const std::vector<Block>& own, const std::vector<Block>& base, WholeRecipe& whole) -> int {
  // Sections, lists and keys that the recipe gives.
  std::set<std::string> set;
  for (const Block& block : own) {
    set.insert(block.path);
    for (const Line& line : block.lines) {
      if (!line.key.empty()) {
        set.insert(PathOf(block, line.key));
      }
    }
  }
  int taken = 0;
  for (const Block& block : own) {
    // Empty lines and comments at the end of a block belong to what follows.
    size_t end = block.lines.size();
    while (end > 0 && block.lines[end - 1].key.empty() && !block.lines[end - 1].text.starts_with("[")) {
      --end;
    }
    for (size_t i = 0; i <= block.lines.size(); ++i) {
      if (i == end && !block.path.empty() && !block.is_list) {
        for (const Block& other : base) {
          taken += other.path == block.path ? TakeKeys(other.lines, set, block, whole) : 0;
        }
      }
      if (i < block.lines.size()) {
        whole.text += block.lines[i].text + "\n";
        whole.sources.push_back(block.lines[i].source);
      }
    }
  }
  for (const Block& block : base) {
    if (!set.contains(block.path)) {
      whole.text += block.lines.front().text + "\n";
      whole.sources.push_back(block.lines.front().source);
      taken += 1 + TakeKeys(block.lines, set, block, whole);
    }
  }
  return taken;
}

struct Parts {
  std::vector<Block> own;
  /// Empty if the recipe is whole.
  std::string base_line;
  std::string file;
  std::vector<Block> base;
};

auto Refused(const std::string& base_line, const std::string& reason) -> Error {
  return Error{ExitCode::Usage, fmt::format("`{}`: {}", base_line, reason)};
}

auto PartsOf(const std::string& folder, const std::string& text) -> ErrorOr<Parts> {
  Parts parts{BlocksOf(text, false), "", "", {}};
  const std::vector<std::string> lines = LinesOf(text);
  const auto line = std::ranges::find_if(lines, [](const std::string& l) { return l.starts_with("# base"); });
  if (line == lines.end()) {
    return parts;
  }
  parts.base_line = *line;
  const std::optional<BaseLine> asked = ParseBaseLine(*line);
  if (!asked) {
    return Refused(*line, "the form is `# base: FILE` or `# base: FILE without NAME, NAME`");
  }
  const auto base_text = ReadBase(folder, asked->file);
  if (!base_text) {
    return Refused(*line, base_text.error().message);
  }
  if (base_text->find("# base") != std::string::npos) {
    return Refused(*line, "the file has a base itself");
  }
  parts.file = asked->file;
  parts.base = BlocksOf(*base_text, true);
  // Before the first header a base has comments alone.
  parts.base.erase(parts.base.begin());
  for (const std::string& name : asked->without) {
    if (!LeaveOut(parts.base, name)) {
      return Refused(*line, fmt::format("the file has no `{}`", name));
    }
  }
  return parts;
}

}  // namespace

auto WholeRecipe::SourceOf(int32_t line) const -> LineSource {
  return line >= 1 && static_cast<size_t>(line) <= sources.size() ? sources[static_cast<size_t>(line) - 1]
                                                                  : LineSource{false, line};
}

auto PutOverBase(const std::string& folder, const std::string& text) -> ErrorOr<WholeRecipe> {
  const auto parts = PartsOf(folder, text);
  if (!parts) {
    return parts.error();
  }
  if (parts->base_line.empty()) {
    return WholeRecipe{text, "", {}};
  }
  WholeRecipe whole{"", parts->file, {}};
  if (Merge(parts->own, parts->base, whole) == 0) {
    return Refused(parts->base_line, "the recipe takes nothing from the file");
  }
  return whole;
}

auto FindRepeated(const std::string& folder, const std::string& text) -> ErrorOr<std::string> {
  const auto parts = PartsOf(folder, text);
  if (!parts) {
    return parts.error();
  }
  for (const Block& block : parts->own) {
    for (size_t i = 1; i < block.lines.size() && !block.is_list; ++i) {
      const Line& line = block.lines[i];
      if (line.key.empty() || block.lines[i - 1].text.starts_with("# ")) {
        continue;
      }
      for (const Block& other : parts->base) {
        if (other.path == block.path && std::ranges::find(other.lines, line.text, &Line::text) != other.lines.end()) {
          return PathOf(block, line.key);
        }
      }
    }
  }
  return std::string();
}

}  // namespace shardc
