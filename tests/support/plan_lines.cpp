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
      {"head", {"id", "name"}},
      {"group", {"id", "name"}},
      {"parameter", {"id", "name", "type", "placement"}},
      {"unit", {"id", "name"}},
      {"sub_vector", {"id"}},
      {"scalar", {"id", "name", "kind"}},
      {"arena", {"arena"}},
      {"buffer", {"id", "arena", "name"}},
      {"trigger", {"section", "when"}},
      {"source", {"name"}},
      {"seed_tensor", {"name", "type"}},
      {"events", {"count"}},
      // Behind the place, which is read apart.
      {"value", {"type", "placement", "name"}},
  };
  static const std::vector<std::string> none;
  const auto found = parts.find(kind);
  return found == parts.end() ? none : found->second;
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
  for (const Line& line : lines_) {
    if (!line.parts.empty() && line.parts[0].key == "id") {
      for (const Part& part : line.parts) {
        if (part.key == "name") {
          names_[line.parts[0].text] = part.text;
        }
      }
    }
  }
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    names_[fmt::format("v{}", id.index)] = shardc::NameOf(plan, plan.sub_vectors[id]);
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
    const size_t bracket = std::min(place.find('['), place.size() - 1);
    plain("id", " ", words[1], " =");
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

auto PlanLines::NameOf(const std::string& text) const -> std::string {
  if (text == "}") {
    return "end_repeat";
  }
  if (text.starts_with("@")) {
    return text.substr(1);
  }
  const auto found = names_.find(text);
  return found == names_.end() ? text : found->second;
}

auto PlanLines::Fits(const Line& line, const std::string& word) const -> bool {
  const size_t end = KeyEnd(word);
  const std::string key = end == std::string::npos ? "" : word.substr(0, end);
  const std::string text = end == std::string::npos ? word : word.substr(end + 1);
  return std::any_of(line.parts.begin(), line.parts.end(), [&](const Part& part) {
    return (key.empty() ? !part.has_name : part.key == key) && (part.text == text || NameOf(part.text) == text);
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
    } else if (text->starts_with('#') && FieldParser(Plan()).Read(text->substr(1), index).empty()) {
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
    const auto id = PartOf(found[0], part);
    const auto line = id ? FindId(*id) : std::nullopt;
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

auto PlanLines::FindId(const std::string& id) -> std::optional<size_t> {
  for (size_t i = 0; i < lines_.size(); ++i) {
    const std::vector<Part>& parts = lines_[i].parts;
    if (!parts.empty() && parts[0].key == "id" &&
        (parts[0].text == id || (lines_[i].kind == "scalar" && "@" + parts[1].text == id))) {
      return i;
    }
  }
  Wrong("`{}` is no id of the plan", id);
  return std::nullopt;
}

auto PlanLines::PartOf(size_t line, const std::string& key) -> std::optional<std::string> {
  for (const Part& part : lines_[line].parts) {
    if (part.key == key && !part.text.empty()) {
      return part.text;
    }
  }
  Wrong("a line `{}` without `{}`", lines_[line].kind, key);
  return std::nullopt;
}

auto PlanLines::NextId(const std::string& kind) const -> std::string {
  static const std::map<std::string, char> prefixes{{"head", IdPrefix<HeadId>},
                                                    {"group", IdPrefix<GroupId>},
                                                    {"parameter", IdPrefix<ParameterId>},
                                                    {"unit", IdPrefix<UnitId>},
                                                    {"buffer", IdPrefix<BufferId>},
                                                    {"value", IdPrefix<ValueId>},
                                                    {"sub_vector", IdPrefix<SubVectorId>},
                                                    {"scalar", '@'}};
  const auto prefix = prefixes.find(kind);
  const auto count = std::count_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.kind == kind; });
  return prefix == prefixes.end() ? "" : fmt::format("{}{}", prefix->second, count);
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
  std::string key = "id";
  if (!words.empty() && words.back().starts_with('.')) {
    key = words.back().substr(1);
    words.pop_back();
  }
  const auto line = Find(words);
  const auto text = line ? PartOf(*line, key) : std::nullopt;
  if (!text || !makes_new) {
    return text;
  }
  const auto old = FindId(*text);
  const auto assignments = changes == Words{"new"} ? std::vector<Assignment>{} : ReadAssignments(changes, 0);
  if (!old || !assignments) {
    return std::nullopt;
  }
  Line fresh = lines_[*old];
  if (fresh.kind != "value") {
    Wrong("`{}` is no value", *text);
    return std::nullopt;
  }
  fresh.parts[0].text = NextId("value");
  for (const Assignment& assignment : *assignments) {
    Assign(fresh, assignment);
  }
  lines_.push_back(fresh);
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
