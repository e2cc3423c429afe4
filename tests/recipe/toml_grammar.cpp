// The guard, the TOML parser and our tree, against Python's tomllib: the same texts are accepted, with the same values.
// All of it on a stack of 1 MiB.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "compiler/recipe/text_guard.h"
#include "compiler/recipe/toml_tree.h"
#include "tests/recipe/toml_text.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

/// The form of tests/recipe/tomllib_oracle.py.
auto AddTree(const TomlNode& node, std::string& text) -> void {
  switch (node.kind) {
    case TomlNode::Kind::Text: text += fmt::format("s{}:{}", node.text.size(), node.text); return;
    case TomlNode::Kind::Int: text += fmt::format("i{};", node.integer); return;
    case TomlNode::Kind::Real:
      text += node.real != node.real ? "fnan;" : fmt::format("f{:016x};", std::bit_cast<uint64_t>(node.real));
      return;
    case TomlNode::Kind::Bool: text += node.boolean ? "b1;" : "b0;"; return;
    case TomlNode::Kind::Date: text += "d;"; return;
    case TomlNode::Kind::Array:
      text += fmt::format("a{}[", node.items.size());
      for (const TomlNode& item : node.items) {
        AddTree(item, text);
      }
      return;
    case TomlNode::Kind::Table: break;
  }
  std::map<std::string_view, const TomlNode*> entries;
  for (const TomlEntry& entry : node.entries) {
    entries[entry.key] = &entry.value;
  }
  text += fmt::format("t{}{{", entries.size());
  for (const auto& [key, value] : entries) {
    text += fmt::format("{}:{}", key.size(), key);
    AddTree(*value, text);
  }
}

/// What became of a text.
struct Verdict {
  bool is_accepted = false;
  /// Where the guard refused it.
  std::optional<DiagnosticKind> guard;
  std::string message;
  std::string tree;
};

auto Judge(const std::string& text) -> Verdict {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const int16_t source = sources.Add("a.toml", text);
  Verdict verdict;
  if (!CheckText(sources, source, diagnostics)) {
    verdict.guard = diagnostics.all().front().kind;
    verdict.message = diagnostics.all().front().text;
    return verdict;
  }
  TomlFault fault;
  const auto root = ParseToml(sources, source, fault);
  verdict.is_accepted = root.has_value();
  verdict.message = fault.message;
  if (root) {
    AddTree(*root, verdict.tree);
  }
  return verdict;
}

/// The sanitizers' frames are larger.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t SmallStackBytes = size_t{16} << 20;
#else
constexpr size_t SmallStackBytes = size_t{1} << 20;
#endif

/// Runs `work` on a thread with a stack of 1 MiB.
template <typename Work>
auto OnASmallStack(Work work) -> void {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, SmallStackBytes), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<Work*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

struct Expected {
  bool is_accepted = false;
  int64_t depth = 0;
  bool is_wide = false;
  std::string tree;
};

/// What Python's tomllib makes of all texts, in one process.
auto AskTomllib(const std::vector<std::string>& texts) -> std::vector<Expected> {
  const TemporaryFolder folder;
  std::string all;
  for (const std::string& text : texts) {
    all += fmt::format("{}\n{}", text.size(), text);
  }
  WriteText(folder / "texts", all);
  const std::string command = fmt::format("python3 {}/tests/recipe/tomllib_oracle.py {} {}", SHARDC_SOURCE_DIR,
                                          folder / "texts", folder / "verdicts");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  const std::string verdicts = ReadText(folder / "verdicts");
  std::vector<Expected> result;
  for (size_t at = 0; at < verdicts.size();) {
    Expected& expected = result.emplace_back();
    const size_t line_end = verdicts.find('\n', at);
    if (verdicts[at] == '-') {
      at = line_end + 1;
      continue;
    }
    long depth = 0;
    int is_wide = 0;
    unsigned long length = 0;
    EXPECT_EQ(std::sscanf(verdicts.c_str() + at, "%ld %d %lu", &depth, &is_wide, &length), 3);
    expected = {true, depth, is_wide != 0, verdicts.substr(line_end + 1, length)};
    at = line_end + 1 + length;
  }
  return result;
}

/// A reason why a text may be judged otherwise than by tomllib, and how it is told.
struct Difference {
  std::string_view why;
  bool (*holds)(const std::string& text, const Verdict& ours, const Expected& theirs);
};

constexpr Difference Differences[] = {
    {"our limit of 16 segments: the tree of such a text is deeper than 16",
     [](const std::string&, const Verdict& ours, const Expected& theirs) {
       return ours.guard == DiagnosticKind::KeyTooDeep && theirs.is_accepted && theirs.depth > MaxKeyParts;
     }},
    {"numbers have 64 bits: tomllib makes a wider one, or an infinity of 1e400",
     [](const std::string&, const Verdict& ours, const Expected& theirs) {
       return !ours.is_accepted && !ours.guard && theirs.is_accepted && theirs.is_wide;
     }},
};

TEST(TomlGrammar, AcceptsWhatTomllibAccepts) {
  constexpr int NumTexts = 50000;
  std::vector<std::string> texts;
  TomlText maker(1);
  for (int i = 0; i < NumTexts; ++i) {
    texts.push_back(maker.Make());
  }
  std::vector<Verdict> verdicts;
  OnASmallStack([&] { std::transform(texts.begin(), texts.end(), std::back_inserter(verdicts), Judge); });
  const std::vector<Expected> expected = AskTomllib(texts);
  ASSERT_EQ(expected.size(), texts.size());
  int64_t num_accepted = 0;
  int64_t num_unexplained = 0;
  std::map<std::string_view, int64_t> explained;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Verdict& ours = verdicts[i];
    const Expected& theirs = expected[i];
    num_accepted += ours.is_accepted ? 1 : 0;
    if (ours.is_accepted == theirs.is_accepted && ours.tree == theirs.tree) {
      continue;
    }
    const auto* reason =
        std::find_if(std::begin(Differences), std::end(Differences),
                     [&](const Difference& difference) { return difference.holds(texts[i], ours, theirs); });
    if (reason != std::end(Differences)) {
      ++explained[reason->why];
      continue;
    }
    if (++num_unexplained <= 20) {
      ADD_FAILURE() << "text " << i << ", accepted by us " << ours.is_accepted << " (" << ours.message
                    << "), by tomllib " << theirs.is_accepted << "\n"
                    << testing::PrintToString(texts[i]) << "\n"
                    << ours.tree << "\n"
                    << theirs.tree;
    }
  }
  EXPECT_EQ(num_unexplained, 0);
  // The texts are worth something: many are accepted, many refused, and each reason is met.
  EXPECT_GT(num_accepted, NumTexts / 4);
  EXPECT_LT(num_accepted, NumTexts * 3 / 4);
  for (const Difference& difference : Differences) {
    EXPECT_GT(explained[difference.why], 0) << difference.why;
  }
}

auto DeepKey(int64_t num_segments) -> std::string {
  std::string key = "a";
  for (int64_t i = 1; i < num_segments; ++i) {
    key += ".a";
  }
  return key;
}

TEST(TomlGrammar, NoStringHidesADeepKey) {
  TomlText maker(2);
  std::vector<std::string> begins{"z = ['''a'''', ", "z = [\"\"\"\"a\"\"\"\"\", "};
  for (int i = 0; i < 5000; ++i) {
    begins.push_back(maker.MakeBeginOfList(false));
  }
  OnASmallStack([&] {
    for (const std::string& begin : begins) {
      const Verdict deep = Judge(begin + "{" + DeepKey(MaxKeyParts + 1) + "=1}]\n");
      EXPECT_EQ(deep.guard, DiagnosticKind::KeyTooDeep) << testing::PrintToString(begin) << "\n" << deep.message;
      const Verdict sound = Judge(begin + "{" + DeepKey(MaxKeyParts) + "=1}]\n");
      EXPECT_TRUE(sound.is_accepted) << testing::PrintToString(begin) << "\n" << sound.message;
    }
  });
}

// 30,000 segments that are not refused would take some 11 MB of stack.
TEST(TomlGrammar, NoDamageLetsADeepKeyThrough) {
  TomlText maker(3);
  const std::string deep = "{" + DeepKey(30000) + "=1}]\n";
  int64_t num_refused = 0;
  OnASmallStack([&] {
    EXPECT_EQ(Judge("z = ['''a'''', " + deep).guard, DiagnosticKind::KeyTooDeep);
    EXPECT_EQ(Judge("z = [\"\"\"\"a\"\"\"\"\", " + deep).guard, DiagnosticKind::KeyTooDeep);
    for (int i = 0; i < 5000; ++i) {
      num_refused += Judge(maker.MakeBeginOfList(true) + deep).guard == DiagnosticKind::KeyTooDeep ? 1 : 0;
    }
  });
  EXPECT_GT(num_refused, 1000);
}

auto Nested(const std::string& open, const std::string& close, int64_t times) -> std::string {
  std::string text = "z = ";
  for (int64_t i = 0; i < times; ++i) {
    text += open;
  }
  text += "1";
  for (int64_t i = 0; i < times; ++i) {
    text += close;
  }
  return text;
}

TEST(TomlGrammar, DepthIsBounded) {
  OnASmallStack([] {
    // The first key and its two brackets; then the key, the list and the table of each. The last key opens nothing.
    const std::string open = "[{" + DeepKey(MaxKeyParts) + "=";
    const int64_t most = 1 + (MaxDepth - 3) / (MaxKeyParts + 2);
    EXPECT_TRUE(Judge(Nested(open, "}]", most)).is_accepted);
    EXPECT_EQ(Judge(Nested(open, "}]", most + 1)).guard, DiagnosticKind::ValueTooDeep);
    EXPECT_EQ(Judge(Nested("[\n", "]\n", 200000)).guard, DiagnosticKind::ValueTooDeep);
    // The parser has a limit of its own for brackets.
    EXPECT_TRUE(Judge(Nested("[", "]", 255)).is_accepted);
    EXPECT_TRUE(Judge(Nested("{a=", "}", 255)).is_accepted);
    EXPECT_EQ(Judge(Nested("[", "]", 257)).message,
              "value: exceeded maximum nested value depth of 256 (TOML_MAX_NESTED_VALUES)");
    // Lists and tables beside each other are not deep.
    std::string flat = "z = [";
    for (int i = 0; i < 3000; ++i) {
      flat += "{a.b={c=[1]}},";
    }
    EXPECT_TRUE(Judge(flat + "]").is_accepted);
  });
}

}  // namespace
}  // namespace shardc
