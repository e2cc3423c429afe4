// Random edits of plan texts: numbers, words, values of fields, characters, lines.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>

namespace shardc {

class PlanMutator {
 public:
  explicit PlanMutator(uint64_t seed) : random_(seed) {}

  /// One to three edits, now and then cut off.
  auto Mutate(std::string text) -> std::string;

 private:
  auto Pick(int n) -> int { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  auto PickIn(const std::string& text) -> size_t { return random_() % text.size(); }
  /// A range [begin, end) of characters that are all of `set`, found from a random character on.
  auto Run(const std::string& text, const char* set) -> std::pair<size_t, size_t>;
  auto EditNumber(std::string& text) -> void;
  auto SwapNumbers(std::string& text) -> void;
  /// What one field holds, for a field of the same name elsewhere: so names stand for things that are there.
  auto CopyValue(std::string& text) -> void;
  auto EditToken(std::string& text) -> void;
  auto EditLine(std::string& text) -> void;

  std::mt19937_64 random_;
};

struct MutantCounts {
  int unread = 0;
  int rejected = 0;
  int accepted = 0;
  double slowest_s = 0;
};

/// Reads and judges `num_mutants` edits of `text`. Fails the test if a mutant takes over a second, is refused without a
/// place, or does not print back as it was read.
auto JudgeMutants(const std::string& text, int num_mutants, uint64_t seed) -> MutantCounts;

/// JudgeMutants on a sample plan, with the counts on record. Fails the test if too few mutants are unread or rejected
/// to tell anything.
auto JudgeMutantsOfSample(int num_mutants, uint64_t seed) -> void;

}  // namespace shardc
