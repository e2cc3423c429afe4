#include "tests/support/plan_mutator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"

namespace shardc {

auto PlanMutator::Mutate(std::string text) -> std::string {
  const int edits = 1 + Pick(3);
  for (int i = 0; i < edits; ++i) {
    switch (Pick(7)) {
      case 0:
      case 1: EditNumber(text); break;
      case 2: EditToken(text); break;
      case 3: EditLine(text); break;
      case 4: text[PickIn(text)] = static_cast<char>(Pick(256)); break;
      case 5: SwapNumbers(text); break;
      case 6: CopyValue(text); break;
    }
    if (text.empty()) {
      text = " ";
    }
  }
  return Pick(200) == 0 ? text.substr(0, PickIn(text)) : text;
}

auto PlanMutator::Run(const std::string& text, const char* set) -> std::pair<size_t, size_t> {
  size_t begin = text.find_first_of(set, PickIn(text));
  begin = begin == std::string::npos ? 0 : begin;
  const size_t end = text.find_first_not_of(set, begin);
  return {begin, end == std::string::npos ? text.size() : end};
}

auto PlanMutator::EditNumber(std::string& text) -> void {
  const auto [begin, end] = Run(text, "0123456789");
  const std::string old = text.substr(begin, end - begin);
  static const std::vector<std::string> Numbers{"0",
                                                "-1",
                                                "1",
                                                "2",
                                                "3",
                                                "7",
                                                "64",
                                                "127",
                                                "128",
                                                "2147483647",
                                                "2147483648",
                                                "4294967296",
                                                "999999999999999",
                                                "9007199254740993",
                                                "4611686018427387904",
                                                "9223372036854775807",
                                                "-9223372036854775808",
                                                "18446744073709551615",
                                                "1e300",
                                                "nan",
                                                ""};
  const int choice = Pick(4);
  std::string fresh = Numbers[static_cast<size_t>(Pick(static_cast<int>(Numbers.size())))];
  if (choice != 0 && !old.empty() && old.size() < 18) {
    const int64_t value = std::stoll(old);
    fresh = std::to_string(choice == 1 ? value + 1 : choice == 2 ? value - 1 : value * (1 + Pick(4)));
  }
  text.replace(begin, end - begin, fresh);
}

auto PlanMutator::SwapNumbers(std::string& text) -> void {
  const auto [a, a_end] = Run(text, "0123456789");
  const auto [b, b_end] = Run(text, "0123456789");
  if (a_end <= b) {
    const std::string first = text.substr(a, a_end - a);
    const std::string second = text.substr(b, b_end - b);
    text.replace(b, b_end - b, first);
    text.replace(a, a_end - a, second);
  }
}

auto PlanMutator::CopyValue(std::string& text) -> void {
  const size_t equals = text.find('=', PickIn(text));
  const size_t space = equals == std::string::npos ? equals : text.rfind(' ', equals);
  if (space == std::string::npos) {
    return;
  }
  const std::string key = text.substr(space, equals + 1 - space);
  const auto end_of = [&](size_t begin) { return std::min(text.find_first_of(" \n", begin), text.size()); };
  const size_t next = text.find(key, PickIn(text));
  const size_t other = (next == std::string::npos ? text.find(key) : next) + key.size();
  const std::string copied = text.substr(other, end_of(other) - other);
  text.replace(equals + 1, end_of(equals + 1) - equals - 1, copied);
}

auto PlanMutator::EditToken(std::string& text) -> void {
  const char* set = "abcdefghijklmnopqrstuvwxyz_0123456789.-+*#$@=";
  const auto [begin, end] = Run(text, set);
  const auto [other, other_end] = Run(text, set);
  const std::string replacement = text.substr(other, other_end - other);
  switch (Pick(3)) {
    case 0: text.erase(begin, end - begin); break;
    case 1: text.insert(end, " " + text.substr(begin, end - begin)); break;
    case 2: text.replace(begin, end - begin, replacement); break;
  }
}

auto PlanMutator::EditLine(std::string& text) -> void {
  const auto line_at = [&](size_t at) {
    const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const size_t after = text.find('\n', at);
    return std::pair{begin, after == std::string::npos ? text.size() : after + 1};
  };
  const auto [begin, end] = line_at(PickIn(text));
  const std::string line = text.substr(begin, end - begin);
  switch (Pick(3)) {
    case 0: text.erase(begin, end - begin); break;
    case 1: text.insert(begin, line); break;
    case 2:
      text.erase(begin, end - begin);
      if (!text.empty()) {
        text.insert(line_at(PickIn(text)).first, line);
      }
      break;
  }
}

/// Of the processor's time, which other programs do not lengthen.
static auto ThreadSeconds() -> double {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

auto JudgeMutants(const std::string& text, int num_mutants, uint64_t seed) -> MutantCounts {
  constexpr double MostSeconds = 1;
  PlanMutator mutator(seed);
  MutantCounts counts;
  for (int i = 0; i < num_mutants && !::testing::Test::HasFailure(); ++i) {
    const std::string mutant = mutator.Mutate(text);
    const double begin = ThreadSeconds();
    const auto plan = ParsePlan(mutant);
    const bool accepted = plan.ok() && VerifyPlan(*plan).empty();
    counts.slowest_s = std::max(counts.slowest_s, ThreadSeconds() - begin);
    EXPECT_LT(counts.slowest_s, MostSeconds) << "mutant " << i;
    if (!plan) {
      ++counts.unread;
      EXPECT_THAT(plan.error().message, testing::ContainsRegex("^[0-9]+:[0-9]+: "));
      continue;
    }
    ++(accepted ? counts.accepted : counts.rejected);
    const auto again = ParsePlan(PrintPlan(*plan));
    EXPECT_TRUE(again.ok() && *again == *plan) << "mutant " << i << (again.ok() ? "" : ": " + again.error().message);
  }
  return counts;
}

auto JudgeMutantsOfSample(int num_mutants, uint64_t seed) -> void {
  const std::string text = PrintPlan(
      CompileSample({"model.layers=1", "recompute.policy=\"full\"", "shard.reshard_after_forward=true",
                     "init.scheme=normal", R"(loss.head=[{ name = "image", vocab = 8, targets = ["t.bin"] }])"}));
  const MutantCounts counts = JudgeMutants(text, num_mutants, seed);
  ::testing::Test::RecordProperty("unread", counts.unread);
  ::testing::Test::RecordProperty("rejected", counts.rejected);
  ::testing::Test::RecordProperty("accepted", counts.accepted);
  ::testing::Test::RecordProperty("slowest_us", static_cast<int>(counts.slowest_s * 1e6));
  EXPECT_GT(counts.unread, num_mutants / 4);
  EXPECT_GT(counts.rejected, num_mutants / 8);
}

}  // namespace shardc
