// The only user of toml++: parses, and copies its tree into ours with columns in bytes. toml++ bounds the nesting of
// arrays and inline tables itself; the length of keys is bounded by text_guard.

// toml++ 3.3 asserts (or, with NDEBUG and clang, assumes) that a table header begins with a key character before it
// reports texts such as `[.]` as errors. Both are switched off, so that its error path is taken in every build.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include "compiler/recipe/toml_tree.h"

#include <toml++/toml.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/base/check.h"

namespace shardc {

namespace {

/// Turns the columns of toml++, which count code points, into columns of bytes. Of long lines it remembers where every
/// 64th point begins: looking up all values of a text takes time by its length, whatever the order.
class ByteColumns {
 public:
  ByteColumns(const SourceSet& sources, int16_t source) : sources_(sources), source_(source) {}

  auto Line(int32_t line) const -> std::string_view { return sources_.Line({source_, line, 1, 1}); }

  /// One column past the end for what lies behind it.
  auto At(int32_t line, uint32_t column) -> int32_t {
    const std::string_view text = Line(line);
    size_t point = 0;
    size_t byte = 0;
    const size_t wanted = column > 1 ? column - 1 : 0;
    if (wanted >= Stride && text.size() > Stride) {
      const std::vector<size_t>& marks = MarksOf(line, text);
      const size_t mark = std::min(wanted / Stride, marks.size() - 1);
      point = mark * Stride;
      byte = marks[mark];
    }
    for (; point < wanted && byte < text.size(); ++point) {
      byte = Next(text, byte);
    }
    return static_cast<int32_t>(byte) + 1;
  }

 private:
  static constexpr size_t Stride = 64;

  /// Element i is the byte at which point i * Stride begins.
  auto MarksOf(int32_t line, std::string_view text) -> const std::vector<size_t>& {
    std::vector<size_t>& marks = marks_[line];
    if (marks.empty()) {
      marks.push_back(0);
      size_t byte = 0;
      for (size_t point = 1; byte < text.size(); ++point) {
        byte = Next(text, byte);
        if (point % Stride == 0) {
          marks.push_back(byte);
        }
      }
    }
    return marks;
  }

  static auto Next(std::string_view text, size_t byte) -> size_t {
    ++byte;
    while (byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xC0) == 0x80) {
      ++byte;
    }
    return byte;
  }

  const SourceSet& sources_;
  int16_t source_;
  std::unordered_map<int32_t, std::vector<size_t>> marks_;
};

class Converter {
 public:
  Converter(const SourceSet& sources, int16_t source) : source_(source), columns_(sources, source) {}

  auto Convert(const toml::node& node) -> TomlNode {
    TomlNode result;
    result.at = RangeOf(node.source());
    if (const auto* text = node.as_string()) {
      result.kind = TomlNode::Kind::Text;
      result.text = text->get();
    } else if (const auto* integer = node.as_integer()) {
      result.kind = TomlNode::Kind::Int;
      result.integer = integer->get();
    } else if (const auto* real = node.as_floating_point()) {
      result.kind = TomlNode::Kind::Real;
      result.real = real->get();
    } else if (const auto* boolean = node.as_boolean()) {
      result.kind = TomlNode::Kind::Bool;
      result.boolean = boolean->get();
    } else if (const auto* array = node.as_array()) {
      result.kind = TomlNode::Kind::Array;
      for (const toml::node& item : *array) {
        result.items.push_back(Convert(item));
      }
    } else if (const auto* table = node.as_table()) {
      result.kind = TomlNode::Kind::Table;
      for (const auto& [key, value] : *table) {
        result.entries.push_back({std::string(key.str()), RangeOf(key.source()), Convert(value)});
      }
      std::stable_sort(result.entries.begin(), result.entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
        return std::pair(a.key_at.line, a.key_at.column) < std::pair(b.key_at.line, b.key_at.column);
      });
    } else {
      result.kind = TomlNode::Kind::Date;
    }
    return result;
  }

  /// toml++ counts columns in code points; ours count bytes. A region of several lines is cut to its first.
  auto RangeOf(const toml::source_region& region) -> SourceRange {
    SourceRange range{source_, static_cast<int32_t>(region.begin.line), 1, 1};
    range.column = columns_.At(range.line, region.begin.column);
    const int32_t end = region.end.line == region.begin.line
                            ? columns_.At(range.line, region.end.column)
                            : static_cast<int32_t>(columns_.Line(range.line).size()) + 1;
    range.length = std::max(1, end - range.column);
    return range;
  }

 private:
  int16_t source_;
  ByteColumns columns_;
};

}  // namespace

static auto MessageOf(std::string_view description) -> std::string {
  for (const std::string_view prefix : {"Error while parsing ", "Encountered "}) {
    if (description.starts_with(prefix)) {
      description.remove_prefix(prefix.size());
      break;
    }
  }
  return std::string(description);
}

auto ParseToml(const SourceSet& sources, int16_t source, TomlFault& fault) -> std::optional<TomlNode> {
  Converter converter(sources, source);
  const toml::parse_result result = toml::parse(std::string_view(sources[source].text), std::string_view());
  if (!result) {
    fault = {converter.RangeOf(result.error().source()), MessageOf(result.error().description())};
    return std::nullopt;
  }
  return converter.Convert(result.table());
}

auto Describe(const TomlNode& node) -> std::string {
  constexpr size_t max_shown = 40;
  switch (node.kind) {
    case TomlNode::Kind::Text:
      return node.text.size() <= max_shown ? fmt::format("the text \"{}\"", node.text)
                                           : fmt::format("the text \"{}...\"", node.text.substr(0, max_shown));
    case TomlNode::Kind::Int: return fmt::format("the whole number {}", node.integer);
    case TomlNode::Kind::Real: return fmt::format("the number {}", node.real);
    case TomlNode::Kind::Bool: return node.boolean ? "true" : "false";
    case TomlNode::Kind::Date: return "a date or time";
    case TomlNode::Kind::Array: return "a list";
    case TomlNode::Kind::Table: return "a table";
  }
  CHECK(false, "kind {}", static_cast<int>(node.kind));
}

auto QuoteToml(std::string_view text) -> std::string {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace shardc
