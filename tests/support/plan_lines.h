// A plan's text as lines whose words have names, so that a test can change one thing of it.
//
// A change is one of
//
//   drop LINE                           drop every LINE: all that fit
//   repeat LINE                         the line stands twice, one after the other
//   swap LINE and LINE                  the two lines take each other's place
//   move LINE before LINE               or after
//   insert before LINE: TEXT            or after; TEXT is a line of a plan
//   add TEXT                            a line outside of the sections, after those of its kind; that of a table with
//                                       its name alone, which gets a number where it is there already
//   set LINE to PART=VALUE ...          other values; += and -= for numbers; `none` takes a field away
//   set every LINE to PART=VALUE ...
//   view FIELD of LINE as PART=VALUE .. the op's operand is another view: a new value, with these parts changed
//
// and LINE, the first line that fits, is
//
//   KIND WORD ... PART=VALUE ... [#N] [.PART ...]
//
// KIND is the section of an op, else the word that the line begins with: `step matmul`, `parameter lm_head.weight`. A
// WORD is one that has no name in the plan (stream, mnemonic, arena, kind; the name of a thing), PART=VALUE a field.
// The name of a thing fits without its sigil, and without its number. #N is the N-th of those that fit, from 0; #-1 the
// last. Each .PART leads on to the line that declares what this part names: `step rope .x` is a value's line, `step
// rope .x .buffer` a buffer's.
//
// In a VALUE or a TEXT, that of a LINE too, (LINE .PART) stands for what this part holds, (LINE) for the name that the
// line declares, and (LINE .PART as PART=VALUE ...) for a new value, which is like the one in that part save for the
// parts given; `as new` changes none. The parts of a value's line are name, buffer, offset, type, shape, placement;
// those of other lines have the names that schemas/plan_format.md gives them. A name that is set is another name of the
// same thing: lines that name it follow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

class PlanLines {
 public:
  explicit PlanLines(const Plan& plan);

  /// Splits at spaces outside of quotes and brackets.
  static auto SplitWords(std::string_view text) -> std::vector<std::string>;
  /// Makes one change; what is wrong with it, or "". A change that names what is not there is wrong.
  auto Change(const std::string& change) -> std::string;
  /// The text of the plan as it is now.
  auto Text() const -> std::string;

 private:
  /// A word of a line: what stands before it (a space, ` name=`), its text, what stands after it.
  struct Part {
    std::string key;
    std::string before;
    std::string text;
    std::string after;
    bool has_name = false;
  };
  struct Line {
    /// The section of an op, else the first word.
    std::string kind;
    bool is_op = false;
    std::vector<Part> parts = {};
    std::string tail = {};
  };
  using Words = std::vector<std::string>;
  struct Assignment {
    std::string part;
    /// '=', '+' or '-'.
    char how = '=';
    std::string value;
  };

  auto Read(std::string_view text) -> Line;
  auto ReadWords(Line& line, const Words& words) -> void;

  auto Do(const std::string& change) -> bool;
  auto Drop(const Words& words) -> bool;
  auto Repeat(const Words& words) -> bool;
  auto Set(const Words& words) -> bool;
  auto View(const Words& words) -> bool;
  auto Move(const Words& words) -> bool;
  auto Swap(const Words& words) -> bool;
  auto Insert(const std::string& text) -> bool;
  auto Add(const std::string& text) -> bool;

  auto Fits(const Line& line, const std::string& word) const -> bool;
  /// What stands before the names that lines of this kind declare; none for lines that declare none.
  static auto SigilOf(const std::string& kind) -> std::optional<std::string_view>;
  /// A name without sigil, quotes and number.
  static auto PlainName(const std::string& text) -> std::string;
  /// The kind of line that declares what stands in a part.
  static auto KindNamedIn(const Part& part) -> std::string;
  auto FindAll(const Words& selector) -> std::vector<size_t>;
  auto Find(const Words& words) -> std::optional<size_t>;
  /// The line that declares what `part` names.
  auto FindDeclared(const Part& part) -> std::optional<size_t>;
  /// What a reference, without its brackets, stands for.
  auto Resolve(const std::string& reference) -> std::optional<std::string>;
  /// `text` with all references replaced by what they stand for.
  auto Substitute(std::string_view text) -> std::optional<std::string>;
  auto ReadAssignments(const Words& words, size_t first) -> std::optional<std::vector<Assignment>>;
  auto Assign(Line& line, const Assignment& assignment) -> bool;
  auto PartOf(size_t line, const std::string& key) -> std::optional<Part>;
  /// `name` as the text of a new line of a table spells it, with a number where one stands there already.
  auto FreshName(const std::string& kind, const std::string& name) const -> std::string;
  auto Rename(Line& line, const std::string& name) -> void;
  /// After the last of its kind, as what names it stands below.
  auto InsertLine(Line line) -> void;
  /// The end of a word's name: where its `=` stands, if no quote and no bracket comes before it.
  static auto KeyEnd(std::string_view word) -> size_t;

  template <class... Args>
  auto Wrong(fmt::format_string<Args...> format, Args&&... args) -> bool {
    if (error_.empty()) {
      error_ = fmt::format(format, std::forward<Args>(args)...);
    }
    return false;
  }

  std::vector<Line> lines_;
  /// While lines are read: the section that they belong to, and how many of its repeats are open.
  std::string section_;
  int depth_ = 0;
  std::string error_;
};

}  // namespace shardc
