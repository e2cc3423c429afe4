// 1. parse; if that succeeds, done
// 2. find the statement that has the fault: one that is not closed where the next begins, else that of the line
// 3. report the fault, unless the line was changed before
// 4. change the statement so that the rest keeps its meaning: a key loses its value, a header is closed or stands for
//    its section under another name, anything else becomes an empty line; then parse again. Lines keep their numbers

#include "compiler/recipe/toml_recovery.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/toml_faults.h"
#include "compiler/recipe/toml_statements.h"
#include "compiler/recipe/type_help.h"

namespace shardc {

/// Begins the keys of tables that stand for broken headers.
static constexpr char HeaderMark = '\x01';

static auto LinesOf(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

static auto JoinedLines(const std::vector<std::string>& lines) -> std::string {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

static auto IsBoolKey(std::string_view name) -> bool {
  return std::ranges::any_of(RecipeKeyRows(),
                             [&](const RecipeKeyRow& row) { return row.name == name && row.type == "Bool"; });
}

/// A bare word where a value is expected is text without its quotes: quoting it mends the line for certain. Except if
/// the key is true or false.
static auto QuotingHelp(std::string_view key, std::string_view line, const SourceRange& at) -> std::string {
  line.remove_prefix(std::min(line.size(), static_cast<size_t>(at.column - 1)));
  const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./");
  const std::string_view word = line.substr(0, end);
  const std::string_view after = line.substr(word.size());
  const size_t next = after.find_first_not_of(" \t\r");
  if (word.empty() || (next != std::string_view::npos && after[next] != '#')) {
    return "";
  }
  const std::string_view boolean = BoolMeant(std::string(word));
  if (!boolean.empty() && IsBoolKey(key)) {
    return fmt::format("write {} = {}", key, boolean);
  }
  return fmt::format("text stands in quotes: \"{}\"", word);
}

namespace {

class Recovery {
 public:
  Recovery(const SourceSet& sources, int16_t source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics), lines_(LinesOf(sources[source].text)) {
    // So that a last line without its end is told of as others are.
    lines_.resize(std::max<size_t>(1, lines_.size()));
  }

  auto Run(const SourceSet& sources) -> std::optional<TomlNode> {
    TomlFault fault;
    auto root = ParseToml(sources, source_, fault);
    for (int i = 0; !root && i < 2 * MostTomlFaults && num_reported_ < MostTomlFaults; ++i) {
      if (fault.message.find("utf-8") != std::string::npos) {
        // Where its lines end is not known.
        diagnostics_.Build(fault.at, DiagnosticKind::TomlSyntax, "the text is not UTF-8").Emit();
        return std::nullopt;
      }
      Mend(fault);
      SourceSet changed;
      const int16_t text = changed.Add("", JoinedLines(lines_));
      root = ParseToml(changed, text, fault, source_);
    }
    if (!root && num_reported_ >= MostTomlFaults) {
      const std::string more = fmt::format("more than {} faults; the rest of the text was not read", MostTomlFaults);
      diagnostics_.Build(fault.at, DiagnosticKind::TomlSyntax, more).Emit();
    }
    return root;
  }

 private:
  auto Mend(const TomlFault& fault) -> void {
    const size_t line = std::min(static_cast<size_t>(std::max(fault.at.line, 1)) - 1, lines_.size() - 1);
    const TomlStatements statements(lines_);
    std::string text = fault.message;
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (const auto opening = statements.Unclosed(line)) {
      const TomlStatement& statement = *statements.At(opening->line);
      Report(line, RangeAt(opening->line, opening->column, opening->text.size()), UnclosedText(statement, *opening),
             "");
      Change(statements, statement, false);
      return;
    }
    const TomlStatement* statement = statements.At(line);
    if (statement != nullptr && line >= statement->line && !IsOnIts(*statement, line, statements)) {
      statement = nullptr;
    }
    ReportFault(fault, line, statement, statements);
    if (statement == nullptr) {
      lines_[line] = KeyThatLacksItsSign(lines_[line]);
      changes_[line] = lines_[line].empty() ? 2 : 1;
    } else {
      Change(statements, *statement, fault.message.find("cannot ") != std::string::npos);
    }
  }

  /// Of a line such as `layers 4`: the key, with a value that could not be read; empty of another line.
  static auto KeyThatLacksItsSign(std::string_view line) -> std::string {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    const bool is_key = std::ranges::any_of(RecipeKeyRows(), [&](const RecipeKeyRow& row) { return row.name == name; });
    return is_key && name.size() < line.size() ? fmt::format("{} = {}", name, QuoteToml(BrokenValue)) : "";
  }

  /// Is the line one of the statement's, or does it come after the whole of it?
  auto IsOnIts(const TomlStatement& statement, size_t line, const TomlStatements& statements) const -> bool {
    if (line == statement.line) {
      return true;
    }
    // Whatever is open at the end of the line before still belongs to it.
    const std::vector<std::string> until(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(line));
    const TomlStatements shorter(until);
    return statements.EndOf(statement.line) > line && shorter.Unclosed(line).has_value();
  }

  static auto UnclosedText(const TomlStatement& statement, const TomlOpening& opening) -> std::string {
    return fmt::format("the `{}` of `{}` is not closed", opening.text, statement.name);
  }

  auto RangeAt(size_t line, size_t column, size_t length) const -> SourceRange {
    return {source_, static_cast<int32_t>(line) + 1, static_cast<int32_t>(column) + 1,
            std::max(1, static_cast<int32_t>(length))};
  }

  /// Faults of a line that has been changed are of our making.
  auto Report(size_t line, const SourceRange& at, const std::string& message, const std::string& help) -> void {
    if (!changes_.contains(line)) {
      diagnostics_.Build(at, DiagnosticKind::TomlSyntax, message).Help(help).Emit();
      ++num_reported_;
    }
  }

  auto ReportFault(const TomlFault& fault, size_t line, const TomlStatement* statement,
                   const TomlStatements& statements) -> void {
    const std::string_view text = lines_[line];
    const bool is_repeated = fault.message.find("cannot redefine existing") != std::string::npos;
    if (is_repeated && statement != nullptr &&
        (ReportRepeated(*statement, statements) || ReportMadeByKey(*statement, statements))) {
      return;
    }
    if (fault.message.find("control characters") != std::string::npos &&
        fault.at.column > static_cast<int>(text.size())) {
      const size_t quote = OpenQuoteOf(text);
      Report(line, RangeAt(line, quote, text.size() - quote), "the text has no closing quote", "");
      return;
    }
    if (ReportNumber(fault, line, statement, statements)) {
      return;
    }
    std::string library_text = fault.message;
    for (size_t newline = library_text.find('\n'); newline != std::string::npos; newline = library_text.find('\n')) {
      library_text.replace(newline, 1, "\\n");
    }
    const WordedFault worded = WordTomlFault(library_text);
    const std::string quoting = library_text.ends_with("could not determine value type")
                                    ? QuotingHelp(statement == nullptr ? "" : statement->name, text, fault.at)
                                    : "";
    Report(line, fault.at, worded.message, quoting.empty() ? worded.help : quoting);
  }

  /// The last quote of a line that nothing closes.
  static auto OpenQuoteOf(std::string_view line) -> size_t {
    char open = 0;
    size_t at_open = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (open == 0 && (line[i] == '"' || line[i] == '\'')) {
        open = line[i];
        at_open = i;
      } else if (open == '"' && line[i] == '\\') {
        ++i;
      } else if (line[i] == open) {
        open = 0;
      }
    }
    return at_open;
  }

  auto ReportRepeated(const TomlStatement& statement, const TomlStatements& statements) -> bool {
    const TomlStatement& first = statements.FirstOf(statement);
    // Keys that clash otherwise have rows.
    if (&first == &statement || IsList(first) != IsList(statement)) {
      return false;
    }
    const std::string name =
        statement.is_header ? fmt::format("[{}] stands", statement.name) : fmt::format("`{}` is set", statement.name);
    Report(statement.line, RangeAt(statement.line, statement.column, statement.name.size()),
           fmt::format("{} twice; first at line {}", name, first.line + 1),
           statement.is_header ? fmt::format("put the keys of both under one [{}]", statement.name) : "");
    return true;
  }

  /// A header whose section a dotted key has made.
  auto ReportMadeByKey(const TomlStatement& statement, const TomlStatements& statements) -> bool {
    const TomlStatement* const key = statement.is_header ? statements.DottedKeyOf(statement) : nullptr;
    if (key == nullptr) {
      return false;
    }
    Report(
        statement.line, RangeAt(statement.line, statement.column, statement.name.size()),
        fmt::format("[{}] is made already, by `{}` at line {}", statement.name, key->name, key->line + 1),
        fmt::format("put all keys of the section under [{}], or write each as {}.key", statement.name, statement.name));
    return true;
  }

  auto IsList(const TomlStatement& statement) const -> bool {
    return statement.is_header && lines_[statement.line].find("[[") != std::string::npos;
  }

  /// A number without 64 bits, in a key that has a range.
  auto ReportNumber(const TomlFault& fault, size_t line, const TomlStatement* statement,
                    const TomlStatements& statements) -> bool {
    const size_t open = fault.message.find(": '");
    const size_t close = fault.message.rfind('\'');
    if (statement == nullptr || statement->is_header || open == std::string::npos || close < open + 4 ||
        fault.message.find("representable") == std::string::npos) {
      return false;
    }
    const std::string number = fault.message.substr(open + 3, close - open - 3);
    const size_t column = lines_[line].find(number);
    const TomlStatement* const header = statements.HeaderOf(*statement);
    const std::string path = header == nullptr ? statement->name : fmt::format("{}.{}", header->name, statement->name);
    const auto range = RangeOf(path);
    if (column == std::string::npos || !range || changes_.contains(line)) {
      return false;
    }
    diagnostics_
        .Build(RangeAt(line, column, number.size()), DiagnosticKind::OutOfRange, statement->name, number,
               fmt::format("{} to {}", range->low_text, range->high_text))
        .Emit();
    ++num_reported_;
    return true;
  }

  /// The first change of a statement keeps what it is about, the second keeps a section's keys together.
  auto Change(const TomlStatements& statements, const TomlStatement& statement, bool is_repeated) -> void {
    const size_t end = statements.EndOf(statement.line);
    const int change = std::exchange(changes_[statement.line], changes_[statement.line] + 1);
    std::string line;
    if (statement.is_header && change == 0 && !is_repeated) {
      const bool is_list = statement.name.find('.') != std::string::npos;
      line = is_list ? fmt::format("[[{}]]", statement.name) : fmt::format("[{}]", statement.name);
    } else if (statement.is_header && change <= 1) {
      changes_[statement.line] = 2;
      line = fmt::format("[\"\\u{:04X}{}.{}\"]", static_cast<int>(HeaderMark), statement.line, statement.name);
    } else if (!statement.is_header && change == 0 && !is_repeated) {
      line = fmt::format("{} = {}", statement.name, QuoteToml(BrokenValue));
    }
    // What stands after a header is no part of it.
    const size_t past = statement.is_header ? statement.line + 1 : LastLineOf(statement, end);
    for (size_t l = statement.line; l < past; ++l) {
      lines_[l].clear();
      changes_.try_emplace(l, 1);
    }
    lines_[statement.line] = line;
  }

  /// One past it: a value of one line leaves the lines up to the next statement alone.
  auto LastLineOf(const TomlStatement& statement, size_t end) const -> size_t {
    const std::vector<std::string> alone{lines_[statement.line]};
    return TomlStatements(alone).Unclosed(0) ? end : statement.line + 1;
  }

  int16_t source_;
  Diagnostics& diagnostics_;
  std::vector<std::string> lines_;
  /// How often each line was changed.
  std::map<size_t, int> changes_;
  int num_reported_ = 0;
};

}  // namespace

auto ParseSoundToml(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode> {
  return Recovery(sources, source, diagnostics).Run(sources);
}

auto SectionOfBrokenHeader(std::string_view key) -> std::optional<std::string_view> {
  if (key.empty() || key.front() != HeaderMark) {
    return std::nullopt;
  }
  return key.substr(std::min(key.find('.') + 1, key.size()));
}

}  // namespace shardc
