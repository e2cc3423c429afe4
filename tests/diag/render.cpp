// The exact text and JSON of diagnostics.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/diag/diagnostics.h"

namespace shardc {
namespace {

/// A recipe, a `--set` text and an empty list of diagnostics over both.
struct Fixture {
  explicit Fixture(std::string text) { recipe = sources.Add("recipe.toml", std::move(text)); }

  auto At(int line, int column, int length = 1) const -> SourceRange {
    return {.source = recipe, .line = line, .column = column, .length = length};
  }
  /// The text after one error at this place.
  auto OneError(const SourceRange& at, std::string text = "text") -> std::string {
    diagnostics.Build(at, DiagnosticKind::ExprSyntax, text).Emit();
    return RenderText(diagnostics, {});
  }

  SourceSet sources;
  Diagnostics diagnostics{&sources};
  int16_t recipe = -1;
};

TEST(RenderText, HouseFormat) {
  Fixture fixture("[model]\nheads = 6\n[mesh]\n  tp = 4\n");
  fixture.diagnostics.Build(fixture.At(4, 8), DiagnosticKind::ExprDomain, "heads is 6, mesh.tp is 4")
      .Note(fixture.At(2, 9), "heads set here")
      .Note({}, "no place")
      .Help("use tp = 1, 2, 3 or 6")
      .Emit();
  EXPECT_EQ(RenderText(fixture.diagnostics, {}),
            "recipe.toml:4:8: error: heads is 6, mesh.tp is 4 [expr-domain]\n"
            "    4 |   tp = 4\n"
            "      |        ^\n"
            "recipe.toml:2:9: note: heads set here\n"
            "note: no place\n"
            "help: use tp = 1, 2, 3 or 6\n");
}

TEST(RenderText, LongerValuesAreUnderlinedToTheirEnd) {
  Fixture fixture("policy = \"ful\"\n");
  EXPECT_EQ(fixture.OneError(fixture.At(1, 10, 5)),
            "recipe.toml:1:10: error: text [expr-syntax]\n"
            "    1 | policy = \"ful\"\n"
            "      |          ^~~~~\n");
}

struct QuoteCase {
  std::string_view what;
  std::string_view line;
  int column;
  int length;
  std::string_view quoted;
  std::string_view marks;
};

constexpr QuoteCase QuoteCases[] = {
    {"tabs become spaces", "\ta\t= 1", 6, 1, "    a    = 1", "           ^"},
    {"a tab itself", "a\tb", 2, 1, "a    b", " ^~~~"},
    {"control character", "a\x01 = 1", 6, 1, "a\\u0001 = 1", "          ^"},
    {"escape sequence", "\x1b[31mred = 1", 6, 3, "\\u001b[31mred = 1", "          ^~~"},
    {"right-to-left override", "\xe2\x80\xae = 1", 6, 1, "\\u202e = 1", "        ^"},
    {"on an escaped letter", "n\xc3\xa4m = 1", 2, 2, "n\\u00e4m = 1", " ^~~~~~"},
    {"inside an escaped letter", "n\xc3\xa4m = 1", 3, 1, "n\\u00e4m = 1", "       ^"},
    {"beyond the base plane", "\xf0\x9f\x98\x80 = 1", 8, 1, "\\U0001f600 = 1", "             ^"},
    {"no UTF-8", "\xff\xc0\xaf = 1", 7, 1, "\\xff\\xc0\\xaf = 1", "               ^"},
    {"Windows line end", "a = 1\r", 5, 1, "a = 1", "    ^"},
    {"blanks at the end", "a = 1  ", 5, 1, "a = 1", "    ^"},
    {"past the end of the line", "a =", 4, 1, "a =", "   ^"},
    {"far past the end", "a =", 400, 7, "a =", "   ^"},
    {"length past the end", "a = 1", 5, 90, "a = 1", "    ^"},
    {"column below 1", "a = 1", -3, 1, "a = 1", "^"},
    {"length below 1", "a = 1", 1, -5, "a = 1", "^"},
};

TEST(RenderText, QuotedLinesAreSafeAndTheCaretStaysAligned) {
  for (const QuoteCase& row : QuoteCases) {
    Fixture fixture("\n" + std::string(row.line) + "\nnext\n");
    const std::string expected = fmt::format("recipe.toml:2:{}: error: text [expr-syntax]\n    2 | {}\n      | {}\n",
                                             row.column, row.quoted, row.marks);
    EXPECT_EQ(fixture.OneError(fixture.At(2, row.column, row.length)), expected) << row.what;
  }
}

TEST(RenderText, MessagesAreSafe) {
  Fixture fixture("a = 1\n");
  const std::string text = fixture.OneError({}, "`l\xd0\xb0yers`\nerror: \x1b[2J");
  EXPECT_EQ(text, "error: `l\\u0430yers`\\nerror: \\u001b[2J [expr-syntax]\n");
}

TEST(RenderText, PlacesWithoutATextHaveNoQuote) {
  Fixture blank("a = 1\n   \n");
  EXPECT_EQ(blank.OneError(blank.At(2, 1)), "recipe.toml:2:1: error: text [expr-syntax]\n");
  Fixture past_end("a = 1\n");
  EXPECT_EQ(past_end.OneError(past_end.At(9, 1)), "recipe.toml:9:1: error: text [expr-syntax]\n");
  Fixture whole_file("a = 1\n");
  EXPECT_EQ(whole_file.OneError(whole_file.At(0, 0)), "recipe.toml: error: text [expr-syntax]\n");
  Fixture nowhere("a = 1\n");
  EXPECT_EQ(nowhere.OneError({}), "error: text [expr-syntax]\n");
}

TEST(RenderText, LongLinesAreCutAroundTheCaret) {
  Fixture start("a = " + std::string(1000, 'x'));
  EXPECT_EQ(start.OneError(start.At(1, 5, 1000)),
            "recipe.toml:1:5: error: text [expr-syntax]\n    1 | a = " + std::string(156, 'x') + "...\n      |     ^" +
                std::string(158, '~') + "\n");
  Fixture end(std::string(1000, 'x') + " = 1");
  EXPECT_EQ(end.OneError(end.At(1, 1004)), "recipe.toml:1:1004: error: text [expr-syntax]\n    1 | ..." +
                                               std::string(57, 'x') + " = 1\n      | " + std::string(63, ' ') + "^\n");
}

TEST(RenderText, WideLineNumbersKeepTheRowsAligned) {
  Fixture fixture(std::string(1'234'566, '\n') + "a = 1");
  EXPECT_EQ(fixture.OneError(fixture.At(1'234'567, 5)),
            "recipe.toml:1234567:5: error: text [expr-syntax]\n"
            "1234567 | a = 1\n"
            "        |     ^\n");
}

TEST(RenderText, SortsByPlaceAndKeepsTheOrderOfEquals) {
  Fixture fixture("\n\n\n\n");
  const int16_t set = fixture.sources.Add("--set", "\n");
  fixture.diagnostics.Build({.source = set, .line = 1, .column = 1, .length = 1}, DiagnosticKind::ExprSyntax, "6")
      .Emit();
  fixture.diagnostics.Build(fixture.At(2, 9), DiagnosticKind::ExprSyntax, "5").Emit();
  fixture.diagnostics.Build(fixture.At(2, 1), DiagnosticKind::ExprSyntax, "3").Emit();
  fixture.diagnostics.Build(fixture.At(2, 1), DiagnosticKind::ExprSyntax, "4").Emit();
  fixture.diagnostics.Build(fixture.At(1, 7), DiagnosticKind::ExprSyntax, "2").Emit();
  fixture.diagnostics.Build({}, DiagnosticKind::ExprSyntax, "1").Emit();
  EXPECT_EQ(RenderText(fixture.diagnostics, {}),
            "error: 1 [expr-syntax]\n"
            "recipe.toml:1:7: error: 2 [expr-syntax]\n"
            "recipe.toml:2:1: error: 3 [expr-syntax]\n"
            "recipe.toml:2:1: error: 4 [expr-syntax]\n"
            "recipe.toml:2:9: error: 5 [expr-syntax]\n"
            "--set:1:1: error: 6 [expr-syntax]\n");
}

TEST(RenderText, ErrorsBeyondTheCapAreCounted) {
  Fixture fixture("a = 1\n");
  for (int i = 0; i < 105; ++i) {
    fixture.diagnostics.Build({}, DiagnosticKind::ExprSyntax, i).Emit();
  }
  fixture.diagnostics.Build({}, DiagnosticKind::KeyHasNoEffect, "dp", "it is 1").Emit();
  std::istringstream text(RenderText(fixture.diagnostics, {}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 102U);
  EXPECT_EQ(lines[99], "error: 99 [expr-syntax]");
  EXPECT_EQ(lines[100], "warning: `dp` has no effect: it is 1 [key-has-no-effect]");
  EXPECT_EQ(lines[101],
            "105 errors, 100 shown; `shardc check --format json RECIPE`, with the same options, prints all");
  EXPECT_EQ(RenderText(fixture.diagnostics, {.color = false, .max_errors = 105}).find("shown"), std::string::npos);
}

TEST(RenderText, ColorOnlyWhenAskedFor) {
  Fixture fixture("a = 1\n");
  fixture.diagnostics.Build(fixture.At(1, 5), DiagnosticKind::ExprSyntax, "text")
      .Note(fixture.At(1, 1), "here")
      .Help("remedy")
      .Emit();
  fixture.diagnostics.Build({}, DiagnosticKind::KeyHasNoEffect, "a", "b").Emit();
  EXPECT_EQ(RenderText(fixture.diagnostics, {}).find('\x1b'), std::string::npos);
  EXPECT_EQ(RenderText(fixture.diagnostics, {.color = true, .max_errors = 20}),
            "\x1b[1;35mwarning\x1b[0m: `a` has no effect: b [key-has-no-effect]\n"
            "\x1b[1mrecipe.toml:1:5: \x1b[0m\x1b[1;31merror\x1b[0m: text [expr-syntax]\n"
            "    1 | a = 1\n"
            "      |     \x1b[1;32m^\x1b[0m\n"
            "\x1b[1mrecipe.toml:1:1: \x1b[0m\x1b[1;36mnote\x1b[0m: here\n"
            "\x1b[1;32mhelp\x1b[0m: remedy\n");
}

TEST(RenderText, FileNamesKeepTheirLettersButNoControlCharacters) {
  Fixture fixture("");
  const int16_t named = fixture.sources.Add("r\xc3\xa9\x1b[1m\n.toml", "");
  EXPECT_EQ(fixture.OneError({.source = named, .line = 1, .column = 1, .length = 1}),
            "r\xc3\xa9\\u001b[1m\\n.toml:1:1: error: text [expr-syntax]\n");
}

TEST(Diagnostics, CountsErrorsAndStrictMakesWarningsErrors) {
  Fixture fixture("");
  fixture.diagnostics.Build({}, DiagnosticKind::KeyHasNoEffect, "dp", "it is 1").Emit();
  EXPECT_FALSE(fixture.diagnostics.has_errors());
  fixture.diagnostics.set_strict(true);
  fixture.diagnostics.Build({}, DiagnosticKind::KeyHasNoEffect, "tp", "it is 1").Emit();
  EXPECT_EQ(fixture.diagnostics.num_errors(), 1);
  EXPECT_EQ(RenderText(fixture.diagnostics, {}),
            "warning: `dp` has no effect: it is 1 [key-has-no-effect]\n"
            "error: `tp` has no effect: it is 1 [key-has-no-effect]\n");
}

TEST(Diagnostics, RowsAreInTheOrderOfTheEnumAndWellFormed) {
  std::vector<std::string_view> names;
  for (const DiagnosticRow& row : DiagnosticRows()) {
    EXPECT_EQ(&RowOf(row.kind), &row) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string_view::npos) << row.name;
    EXPECT_FALSE(row.format.ends_with('.')) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_EQ(std::count(names.begin(), names.end(), row.name), 0) << row.name << " stands twice";
    names.push_back(row.name);
  }
}

TEST(RenderJson, OneObjectALine) {
  Fixture fixture("a = 1\n");
  fixture.diagnostics.Build(fixture.At(1, 5, 2), DiagnosticKind::ExprSyntax, "b")
      .Note(fixture.At(1, 1), "here")
      .Note({}, "there")
      .Help("remedy")
      .Emit();
  fixture.diagnostics.Build({}, DiagnosticKind::KeyHasNoEffect, "a", "b").Emit();
  EXPECT_EQ(RenderJson(fixture.diagnostics),
            R"({"severity":"warning","name":"key-has-no-effect","file":null,"line":null,"column":null,"length":null,)"
            R"("message":"`a` has no effect: b","notes":[],"help":null})"
            "\n"
            R"({"severity":"error","name":"expr-syntax","file":"recipe.toml","line":1,"column":5,"length":2,)"
            R"("message":"b","notes":[{"file":"recipe.toml","line":1,"column":1,"length":1,"message":"here"},)"
            R"({"file":null,"line":null,"column":null,"length":null,"message":"there"}],"help":"remedy"})"
            "\n");
}

TEST(RenderJson, AnyBytesMakeJson) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
  }
  bytes += "\"\\\xc3\xa4\xf0\x9f\x98\x80";
  Fixture fixture("");
  fixture.diagnostics.Build({}, DiagnosticKind::ExprSyntax, bytes).Emit();
  const auto parsed = nlohmann::json::parse(RenderJson(fixture.diagnostics));
  const std::string message = parsed["message"];
  EXPECT_TRUE(message.starts_with(bytes.substr(0, 128)));
  EXPECT_TRUE(message.ends_with("\xef\xbf\xbd\"\\\xc3\xa4\xf0\x9f\x98\x80"));
}

}  // namespace
}  // namespace shardc
