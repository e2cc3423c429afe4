// One line of a plan text as typed words and fields: what the parser of plans is written with. Keeps the first fault
// with its place, and the names that lines have declared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"
#include "compiler/plan/line_reader.h"

namespace shardc {

class LineParser {
 public:
  /// Requires: the lines last as long as the parser.
  LineParser() : fields_(&names_) {}
  LineParser(const LineParser&) = delete;
  auto operator=(const LineParser&) -> LineParser& = delete;

  /// Takes `name=value` words of the line by name. A visitor of VisitLine and, through RowFields, of VisitFields.
  struct LineFields {
    LineParser& parser;
    std::vector<Word> words = {};
    std::vector<bool> used = {};
    /// Names of the fields that were asked for, for messages.
    std::vector<std::string> names = {};

    template <class T>
    auto Field(std::string_view name, T& value) -> void {
      parser.ReadField(*this, name, value, true);
    }
    template <class T>
    auto Default(std::string_view name, T& value, const T& left_out) -> void {
      value = left_out;
      if (const Word* const word = parser.ReadField(*this, name, value, false); word != nullptr && value == left_out) {
        parser.Reject(word->column, "field `{}` has the value of plans without it; leave it out", name);
      }
    }
    auto Path(std::string_view name, std::string& value) -> void { parser.ReadField(*this, name, value, false); }
  };

  auto Begin(int line_number, std::string_view line) -> void {
    line_number_ = line_number;
    line_ = LineReader(line);
  }
  auto error() const -> const std::optional<Error>& { return error_; }
  auto AtEnd() -> bool { return line_.AtEnd(); }
  auto Peek() -> char { return line_.Peek(); }
  /// Returns the column of the next word.
  auto column() -> int {
    static_cast<void>(line_.AtEnd());
    return line_.column();
  }

  /// Keeps the first fault; false.
  template <class... Args>
  auto Reject(int column, fmt::format_string<Args...> format, Args&&... args) -> bool {
    if (!error_) {
      error_ = Fail(ExitCode::RecipeRejected, "{}:{}: {}", line_number_, column,
                    fmt::format(format, std::forward<Args>(args)...));
    }
    return false;
  }

  auto TakeWord(std::string_view what) -> std::optional<Word>;
  auto TakeLiteral(std::string_view token) -> bool;
  auto TakeTypeAndShape(DType& dtype, Dims& shape, bool is_of_seed = false) -> bool;
  /// Takes `$logits[1024]`.
  auto TakeView(BufferId& buffer, RankExpr& offset) -> bool;
  /// Takes `{dp: shard(0)}`, or nothing.
  auto TakePlacement(Placements& placement) -> bool;
  /// Reads `dp:2,tp:4` or `1` from `word`'s value.
  auto ReadMesh(const Word& word, Mesh& mesh) -> bool;
  /// Takes the rest of the line as fields, and `{` after them if `opens` is set.
  auto TakeFields(LineFields& fields, bool opens) -> bool;
  auto ExpectAllUsed(const LineFields& fields) -> bool;
  auto ExpectEnd() -> bool { return AtEnd() || Reject(column(), "nothing more belongs on this line"); }
  /// Reads the comment `recipe:21 key, pass`. One of another form is for people and says nothing.
  auto TakeOrigin(Origin& origin, PassKind* made_by) -> void;

  /// Takes a word that reads as a T.
  template <class T>
  auto Take(std::string_view what, T& value) -> bool {
    const auto word = TakeWord(what);
    return word && ReadText(*word, word->text, value);
  }
  /// Takes the fields of `item`, to the end of the line.
  template <class T>
  auto TakeItem(T& item) -> bool {
    LineFields fields{*this};
    if (!TakeFields(fields, false)) {
      return false;
    }
    VisitLine(item, fields);
    return ExpectAllUsed(fields);
  }
  /// Takes the name that a line of a table declares; `name` is set to that name without its number.
  template <class IdType>
  auto TakeNewName(std::string& name) -> bool {
    const auto word = TakeWord("name");
    if (!word) {
      return false;
    }
    constexpr std::string_view sigil = Sigil<IdType>;
    if (!word->text.starts_with(sigil)) {
      return Reject(word->column, "`{}` stands where a name that begins with {} belongs", Shortened(word->text), sigil);
    }
    const std::string_view text = word->text.substr(sigil.size());
    // What was in quotes goes with its line.
    if (!names_.Declare<IdType>(text, !word->quoted)) {
      return Reject(word->column, "`{}` is declared above already", Shortened(word->text));
    }
    name = WithoutNumber(text);
    return true;
  }
  /// Returns how many events the lines so far have named.
  auto num_events() const -> int32_t { return names_.num_events(); }

  /// Returns at most 60 characters of `text`, without quotes, control characters escaped.
  static auto Shortened(std::string_view text) -> std::string;

 private:
  /// Returns the word of the field; null if the line lacks it.
  template <class T>
  auto ReadField(LineFields& fields, std::string_view name, T& value, bool required) -> const Word* {
    fields.names.emplace_back(name);
    for (size_t i = 0; i < fields.words.size(); ++i) {
      if (!fields.used[i] && fields.words[i].key() == name) {
        fields.used[i] = true;
        ReadText(fields.words[i], fields.words[i].value(), value);
        return &fields.words[i];
      }
    }
    if (required) {
      Reject(line_.column(), "no field `{}`", name);
    }
    return nullptr;
  }
  template <class T>
  auto ReadText(const Word& word, std::string_view text, T& value) -> bool {
    const int at = word.column + static_cast<int>(word.key_length) + (word.key_length > 0 ? 1 : 0);
    const std::string expected = fields_.Read(text, value);
    return expected.empty() || Reject(at, "`{}` stands where {} belongs", Shortened(text), expected);
  }

  DeclaredNames names_;
  FieldParser fields_;
  LineReader line_{{}};
  int line_number_ = 0;
  std::optional<Error> error_;
};

}  // namespace shardc
