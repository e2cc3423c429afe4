// The changes that plan_lines.h names, each on lines that plan_lines.cpp finds.
#include <algorithm>
#include <map>

#include "compiler/plan/field_text.h"
#include "tests/support/plan_lines.h"

namespace shardc {

auto PlanLines::ReadAssignments(const Words& words, size_t first) -> std::optional<std::vector<Assignment>> {
  std::vector<Assignment> assignments;
  for (size_t i = first; i < words.size(); ++i) {
    const size_t end = KeyEnd(words[i]);
    const auto value = end == std::string::npos ? std::nullopt : Substitute(words[i].substr(end + 1));
    if (!value) {
      Wrong("`{}` is no PART=VALUE", words[i]);
      return std::nullopt;
    }
    const char sign = words[i][end - 1];
    const bool adds = sign == '+' || sign == '-';
    assignments.push_back({words[i].substr(0, end - (adds ? 1 : 0)), adds ? sign : '=', *value});
  }
  if (assignments.empty()) {
    Wrong("nothing is set");
    return std::nullopt;
  }
  return assignments;
}

auto PlanLines::Assign(Line& line, const Assignment& assignment) -> bool {
  const auto part =
      std::find_if(line.parts.begin(), line.parts.end(), [&](const Part& own) { return own.key == assignment.part; });
  if (assignment.how != '=') {
    int64_t old = 0;
    int64_t change = 0;
    const FieldParser parser;
    if (part == line.parts.end() || !parser.Read(part->text, old).empty() ||
        !parser.Read(assignment.value, change).empty()) {
      return Wrong("`{}` is no number to change", assignment.part);
    }
    part->text = std::to_string(assignment.how == '+' ? old + change : old - change);
  } else if (assignment.value == "none") {
    if (part == line.parts.end() || (!part->has_name && assignment.part != "placement")) {
      return Wrong("no field `{}`", assignment.part);
    }
    line.parts.erase(part);
  } else if (part != line.parts.end() && part->key == "name") {
    Rename(line, assignment.value);
  } else if (part != line.parts.end()) {
    part->text = assignment.value;
  } else if (line.kind == "value" && assignment.part == "placement") {
    line.parts.push_back({assignment.part, " ", assignment.value, "", false});
  } else {
    line.parts.push_back({assignment.part, " " + assignment.part + "=", assignment.value, "", true});
  }
  return true;
}

auto PlanLines::Drop(const Words& words) -> bool {
  const bool every = words.size() > 1 && words[1] == "every";
  std::vector<size_t> found = FindAll(Words(words.begin() + (every ? 2 : 1), words.end()));
  if (!every && !found.empty()) {
    found.resize(1);
  }
  for (size_t i = found.size(); i-- > 0;) {
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(found[i]));
  }
  return !found.empty();
}

auto PlanLines::Set(const Words& words) -> bool {
  const bool every = words.size() > 1 && words[1] == "every";
  const auto to = std::find(words.begin(), words.end(), "to");
  if (to == words.end()) {
    return Wrong("set LINE to PART=VALUE");
  }
  const auto assignments = ReadAssignments(words, static_cast<size_t>(to - words.begin()) + 1);
  std::vector<size_t> found = assignments ? FindAll(Words(words.begin() + (every ? 2 : 1), to)) : std::vector<size_t>{};
  if (!every && !found.empty()) {
    found.resize(1);
  }
  for (const size_t line : found) {
    for (const Assignment& assignment : *assignments) {
      if (!Assign(lines_[line], assignment)) {
        return false;
      }
    }
  }
  return !found.empty();
}

auto PlanLines::View(const Words& words) -> bool {
  const auto as = std::find(words.begin(), words.end(), "as");
  if (words.size() < 5 || words[2] != "of" || as == words.end()) {
    return Wrong("view FIELD of LINE as PART=VALUE");
  }
  const std::string line = fmt::format("{}", fmt::join(words.begin() + 3, as, " "));
  return Set(SplitWords(
      fmt::format("set {} to {}=({} .{} {})", line, words[1], line, words[1], fmt::join(as, words.end(), " "))));
}

auto PlanLines::Move(const Words& words) -> bool {
  const auto side =
      std::find_if(words.begin(), words.end(), [](const auto& word) { return word == "before" || word == "after"; });
  const auto from = side == words.end() ? std::nullopt : Find(Words(words.begin() + 1, side));
  const auto to = from ? Find(Words(side + 1, words.end())) : std::nullopt;
  if (!to) {
    return Wrong("move LINE before LINE");
  }
  const Line line = lines_[*from];
  const size_t place = *to + (*side == "after" ? 1 : 0);
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(place), line);
  lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(*from + (place <= *from ? 1 : 0)));
  return true;
}

auto PlanLines::Swap(const Words& words) -> bool {
  const auto both = std::find(words.begin(), words.end(), "and");
  const auto a = both == words.end() ? std::nullopt : Find(Words(words.begin() + 1, both));
  const auto b = a ? Find(Words(both + 1, words.end())) : std::nullopt;
  if (!b) {
    return Wrong("swap LINE and LINE");
  }
  std::swap(lines_[*a], lines_[*b]);
  return true;
}

auto PlanLines::Insert(const std::string& text) -> bool {
  const size_t colon = text.find(": ");
  const Words words = SplitWords(std::string_view(text).substr(0, std::min(colon, text.size())));
  if (colon == std::string::npos || words.size() < 3 || (words[1] != "before" && words[1] != "after")) {
    return Wrong("insert before LINE: TEXT");
  }
  const auto fresh = Substitute(std::string_view(text).substr(colon + 2));
  const auto at = fresh ? Find(Words(words.begin() + 2, words.end())) : std::nullopt;
  if (!at) {
    return false;
  }
  section_ = lines_[*at].is_op ? lines_[*at].kind : "";
  depth_ = 1;
  const Line line = Read(*fresh);
  section_.clear();
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(*at + (words[1] == "after" ? 1 : 0)), line);
  return true;
}

auto PlanLines::Add(const std::string& text) -> bool {
  const auto fresh = Substitute(std::string_view(text).substr(4));
  if (!fresh) {
    return false;
  }
  Line line = Read(*fresh);
  if (SigilOf(line.kind) && !line.parts.empty()) {
    line.parts[0].text = FreshName(line.kind, line.parts[0].text);
  }
  InsertLine(std::move(line));
  return true;
}

auto PlanLines::Repeat(const Words& words) -> bool {
  const auto line = Find(Words(words.begin() + 1, words.end()));
  if (line) {
    const Line again = lines_[*line];
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(*line), again);
  }
  return line.has_value();
}

auto PlanLines::Do(const std::string& change) -> bool {
  const Words words = SplitWords(change);
  const std::string verb = words.empty() ? "" : words[0];
  // What they write is taken as it stands.
  if (verb == "insert") {
    return Insert(change);
  }
  if (verb == "add" && words.size() > 1) {
    return Add(change);
  }
  using Verb = bool (PlanLines::*)(const Words& words);
  static const std::map<std::string, Verb> verbs{{"drop", &PlanLines::Drop}, {"repeat", &PlanLines::Repeat},
                                                 {"swap", &PlanLines::Swap}, {"move", &PlanLines::Move},
                                                 {"set", &PlanLines::Set},   {"view", &PlanLines::View}};
  const auto found = verbs.find(verb);
  return found == verbs.end() ? Wrong("`{}` is no change", verb) : (this->*found->second)(words);
}

auto PlanLines::Change(const std::string& change) -> std::string {
  error_.clear();
  if (!Do(change)) {
    Wrong("nothing fits");
  }
  return error_;
}

}  // namespace shardc
