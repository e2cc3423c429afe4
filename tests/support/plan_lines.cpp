// Lines of a plan text: taken apart into words with names, found, and put together again. The words of the plan's own
// form stand in schemas/plan_format.md; what a changed text means is left to the plan's own parser.
#include "tests/support/plan_lines.h"

#include <algorithm>
#include <map>

#include "compiler/plan/field_text.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

/// The words without a name that each kind of line has after its first, in order.
auto PlainParts(const std::string& kind) -> const std::vector<std::string>& {
  static const std::map<std::string, std::vector<std::string>> parts{
      {"head", {"name"}},
      {"group", {"name"}},
      {"parameter", {"name", "type", "placement"}},
      {"unit", {"name"}},
      {"sub_vector", {"name"}},
      {"slices", {"sub_vector"}},
      {"scalar", {"name", "kind"}},
      {"arena", {"arena"}},
      {"buffer", {"name", "arena"}},
      {"trigger", {"section", "when"}},
      {"source", {"name"}},
      {"recipe", {"key", "value"}},
      {"seed_tensor", {"name", "type"}},
      // After the view, which is read apart.
      {"value", {"type", "placement"}},
  };
  static const std::vector<std::string> none;
  const auto found = parts.find(kind);
  return found == parts.end() ? none : found->second;
}

/// The roles of values that name things of a table.
auto RolesOf(const std::string& kind) -> std::vector<std::string_view> {
  return kind == "parameter"    ? std::vector<std::string_view>{"parameter", "gradient"}
         : kind == "sub_vector" ? std::vector<std::string_view>{"vector"}
                                : std::vector<std::string_view>{};
}

}  // namespace

auto PlanLines::KeyEnd(std::string_view word) -> size_t {
  const size_t at = word.find_first_of("=\"([{");
  return at == std::string_view::npos || word[at] != '=' || at == 0 ? std::string_view::npos : at;
}

auto PlanLines::SplitWords(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> words(1);
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' && depth == 0 && !quoted) {
      if (!words.back().empty()) {
        words.emplace_back();
      }
      continue;
    }
    words.back() += c;
    if (quoted && c == '\\' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    }
  }
  if (words.back().empty()) {
    words.pop_back();
  }
  return words;
}

PlanLines::PlanLines(const Plan& plan) {
  const std::string text = PrintPlan(plan, {.origins = false});
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines_.push_back(Read(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
}

auto PlanLines::Read(std::string_view text) -> Line {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  Line line;
  if (text.ends_with(" {")) {
    text.remove_suffix(2);
    line.tail = " {";
  }
  if (section_.empty() && text.starts_with("section ")) {
    section_ = text.substr(text.find(' ') + 1);
    depth_ = 0;
    line.parts.push_back({"", "", std::string(text), "", false});
    return line;
  }
  if (!section_.empty() && text == "}" && depth_ == 0) {
    section_.clear();
    line.parts.push_back({"", "", "}", "", false});
    return line;
  }
  depth_ += line.tail.empty() ? 0 : 1;
  depth_ -= text.starts_with("}") ? 1 : 0;
  line.kind = section_;
  line.is_op = !section_.empty();
  if (text.starts_with("}")) {
    line.parts.push_back({"mnemonic", "", "}", "", false});
    text.remove_prefix(1);
  }
  ReadWords(line, SplitWords(text));
  return line;
}

auto PlanLines::ReadWords(Line& line, const Words& words) -> void {
  const auto plain = [&](std::string key, std::string before, std::string_view text, std::string after) {
    line.parts.push_back({std::move(key), std::move(before), std::string(text), std::move(after), false});
  };
  size_t next = 0;
  if (!line.is_op && !words.empty()) {
    line.kind = words[next++];
  }
  static const Words op_parts{"stream", "mnemonic"};
  const Words& names = line.is_op ? op_parts : PlainParts(line.kind);
  if (!line.is_op && line.kind == "value" && words.size() >= 5) {
    const std::string& place = words[3];
    const size_t bracket = std::min(place.rfind('['), place.size() - 1);
    plain("name", " ", words[1], " =");
    plain("buffer", " ", std::string_view(place).substr(0, bracket), "");
    plain("offset", "[", std::string_view(place).substr(bracket + 1, place.size() - bracket - 2), "]");
    next = 4;
  }
  size_t position = 0;
  for (; next < words.size(); ++next) {
    const std::string_view word = words[next];
    if (const size_t end = KeyEnd(word); end != std::string_view::npos) {
      // A placement that is left out has its place before the fields.
      if (position < names.size() && names[position] == "placement") {
        plain("placement", " ", "", "");
        ++position;
      }
      line.parts.push_back({std::string(word.substr(0, end)), " " + std::string(word.substr(0, end)) + "=",
                            std::string(word.substr(end + 1)), "", true});
      continue;
    }
    if (position < names.size() && names[position] == "placement" && !word.starts_with("{")) {
      plain("placement", " ", "", "");
      ++position;
    }
    const std::string key = position < names.size() ? names[position++] : "";
    const size_t bracket = word.find('[');
    if (key == "type" && bracket != std::string_view::npos) {
      plain("type", " ", word.substr(0, bracket), "");
      plain("shape", "", word.substr(bracket), "");
    } else {
      plain(key, line.is_op && line.parts.empty() ? "" : " ", word, "");
    }
  }
}

auto PlanLines::Text() const -> std::string {
  std::string text;
  for (const Line& line : lines_) {
    text += line.is_op ? "" : line.kind;
    for (const Part& part : line.parts) {
      if (!part.text.empty()) {
        text += part.before;
        text += part.text;
        text += part.after;
      }
    }
    text += line.tail;
    text += '\n';
  }
  return text;
}

auto PlanLines::SigilOf(const std::string& kind) -> std::optional<std::string_view> {
  static const std::map<std::string, std::string_view> sigils{{"head", Sigil<HeadId>},
                                                              {"group", Sigil<GroupId>},
                                                              {"parameter", Sigil<ParameterId>},
                                                              {"unit", Sigil<UnitId>},
                                                              {"buffer", Sigil<BufferId>},
                                                              {"value", Sigil<ValueId>},
                                                              {"sub_vector", Sigil<SubVectorId>},
                                                              {"scalar", Sigil<ScalarId>}};
  const auto found = sigils.find(kind);
  return found == sigils.end() ? std::nullopt : std::optional(found->second);
}

auto PlanLines::PlainName(const std::string& text) -> std::string {
  if (text == "}") {
    return "end_repeat";
  }
  std::string_view name = text;
  if (name.size() > 1 && name.starts_with('"') && name.ends_with('"')) {
    name = name.substr(1, name.size() - 2);
  }
  const size_t begin = std::min(name.find_first_not_of("!@$"), name.size());
  return std::string(WithoutNumber(name.substr(begin)));
}

auto PlanLines::KindNamedIn(const Part& part) -> std::string {
  const size_t begin = std::min(part.text.find_first_not_of("\"!"), part.text.size());
  const std::string_view text = std::string_view(part.text).substr(begin);
  if (text.starts_with(Sigil<BufferId>) || text.starts_with(Sigil<ScalarId>)) {
    return text.starts_with(Sigil<BufferId>) ? "buffer" : "scalar";
  }
  return SigilOf(part.key) ? part.key : "value";
}

auto PlanLines::Fits(const Line& line, const std::string& word) const -> bool {
  const size_t end = KeyEnd(word);
  const std::string key = end == std::string::npos ? "" : word.substr(0, end);
  const std::string text = end == std::string::npos ? word : word.substr(end + 1);
  return std::any_of(line.parts.begin(), line.parts.end(), [&](const Part& part) {
    return (key.empty() ? !part.has_name : part.key == key) && (part.text == text || PlainName(part.text) == text);
  });
}

auto PlanLines::FindAll(const Words& selector) -> std::vector<size_t> {
  Words words;
  Words chain;
  std::optional<int64_t> number;
  for (const std::string& word : selector) {
    const auto text = Substitute(word);
    if (!text) {
      return {};
    }
    int64_t index = 0;
    if (text->starts_with('.')) {
      chain.push_back(text->substr(1));
    } else if (text->starts_with('#') && FieldParser().Read(text->substr(1), index).empty()) {
      number = index;
    } else {
      words.push_back(*text);
    }
  }
  std::vector<size_t> found;
  for (size_t i = 0; !words.empty() && i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    if (line.kind == words[0] &&
        std::all_of(words.begin() + 1, words.end(), [&](const std::string& word) { return Fits(line, word); })) {
      found.push_back(i);
    }
  }
  if (number) {
    const auto size = static_cast<int64_t>(found.size());
    const int64_t index = *number < 0 ? size + *number : *number;
    found = index >= 0 && index < size ? std::vector<size_t>{found[static_cast<size_t>(index)]} : std::vector<size_t>{};
  }
  if (found.empty()) {
    Wrong("no line `{}{}`", fmt::join(words, " "), number ? fmt::format(" #{}", *number) : "");
    return found;
  }
  for (const std::string& part : chain) {
    const auto named = PartOf(found[0], part);
    const auto line = named ? FindDeclared(*named) : std::nullopt;
    if (!line) {
      return {};
    }
    found = {*line};
  }
  return found;
}

auto PlanLines::Find(const Words& words) -> std::optional<size_t> {
  const std::vector<size_t> found = FindAll(words);
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

auto PlanLines::FindDeclared(const Part& part) -> std::optional<size_t> {
  // A field of an op that is called as a table is may name a value too: `adamw parameter=embed.shard`.
  for (const std::string& kind : {KindNamedIn(part), std::string("value")}) {
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::vector<Part>& parts = lines_[i].parts;
      if (lines_[i].kind == kind && !parts.empty() && parts[0].key == "name" && parts[0].text == part.text) {
        return i;
      }
    }
  }
  Wrong("no {} is named `{}`", KindNamedIn(part), part.text);
  return std::nullopt;
}

auto PlanLines::PartOf(size_t line, const std::string& key) -> std::optional<Part> {
  for (const Part& part : lines_[line].parts) {
    if (part.key == key && !part.text.empty()) {
      return part;
    }
  }
  Wrong("a line `{}` without `{}`", lines_[line].kind, key);
  return std::nullopt;
}

auto PlanLines::FreshName(const std::string& kind, const std::string& name) const -> std::string {
  const std::string sigil(SigilOf(kind).value_or(""));
  const auto is_there = [&](const std::string& text) {
    return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) {
      return line.kind == kind && !line.parts.empty() && line.parts[0].text == text;
    });
  };
  std::string text = sigil + name;
  for (int number = 2; is_there(text); ++number) {
    text = fmt::format("{}{}#{}", sigil, name, number);
  }
  return text;
}

auto PlanLines::Rename(Line& line, const std::string& name) -> void {
  const std::string old = line.parts[0].text;
  const std::string fresh = FreshName(line.kind, name);
  line.parts[0].text = fresh;
  for (Line& other : lines_) {
    for (Part& part : other.parts) {
      if (part.key != "name" && part.text == old && KindNamedIn(part) == line.kind) {
        part.text = fresh;
      }
      for (const std::string_view word : RolesOf(line.kind)) {
        if (part.key == "role" && part.text == fmt::format("{}({})", word, old)) {
          part.text = fmt::format("{}({})", word, fresh);
        }
      }
    }
  }
}

auto PlanLines::InsertLine(Line line) -> void {
  const auto last =
      std::find_if(lines_.rbegin(), lines_.rend(), [&](const Line& other) { return other.kind == line.kind; });
  const auto none = SigilOf(line.kind) ? lines_.begin() + 1 : lines_.end();
  lines_.insert(last == lines_.rend() ? none : last.base(), std::move(line));
}

auto PlanLines::Resolve(const std::string& reference) -> std::optional<std::string> {
  const auto inner = Substitute(reference);
  if (!inner) {
    return std::nullopt;
  }
  Words words = SplitWords(*inner);
  const auto as = std::find(words.begin(), words.end(), "as");
  const Words changes(as == words.end() ? as : as + 1, words.end());
  const bool makes_new = as != words.end();
  words.erase(as, words.end());
  std::string key = "name";
  if (!words.empty() && words.back().starts_with('.')) {
    key = words.back().substr(1);
    words.pop_back();
  }
  const auto line = Find(words);
  const auto part = line ? PartOf(*line, key) : std::nullopt;
  if (!part) {
    return std::nullopt;
  }
  if (!makes_new) {
    return part->text;
  }
  const auto old = key == "name" ? line : FindDeclared(*part);
  const auto assignments = changes == Words{"new"} ? std::vector<Assignment>{} : ReadAssignments(changes, 0);
  if (!old || !assignments) {
    return std::nullopt;
  }
  Line fresh = lines_[*old];
  if (fresh.kind != "value") {
    Wrong("`{}` is no value", part->text);
    return std::nullopt;
  }
  fresh.parts[0].text = FreshName(fresh.kind, PlainName(fresh.parts[0].text));
  for (const Assignment& assignment : *assignments) {
    Assign(fresh, assignment);
  }
  InsertLine(fresh);
  return fresh.parts[0].text;
}

auto PlanLines::Substitute(std::string_view text) -> std::optional<std::string> {
  std::string result;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char before = i == 0 ? ' ' : text[i - 1];
    if (text[i] == '"' && before != '\\') {
      quoted = !quoted;
    }
    if (quoted || text[i] != '(' || (before != ' ' && before != '=' && before != ',' && before != '(')) {
      result += text[i];
      continue;
    }
    const size_t begin = i + 1;
    for (int depth = 1; depth > 0;) {
      if (++i == text.size()) {
        Wrong("a bracket is not closed");
        return std::nullopt;
      }
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    }
    const auto resolved = Resolve(std::string(text.substr(begin, i - begin)));
    if (!resolved) {
      return std::nullopt;
    }
    result += *resolved;
  }
  return result;
}

}  // namespace shardc
