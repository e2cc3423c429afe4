// Samples that are made and not read, for runs that need no files: to try a recipe, to measure, to test.
//
// A sample is a pure function of the data seed, the split and the sample's running number, by the counter-based
// generator of the initial values (compiler/expr/random.h). Any rank makes any sample, so the samples are the same on
// every mesh and after every restart. There are no epochs: no sample comes twice, except by chance.
//
// The random word of id j of sample i: word j % 4 of the block with the counter (j / 4, low half of i, high half of i,
// 1) and the key RandomKey(seed, "synthetic train" or "synthetic eval").
// - uniform: word * vocab / 2^32, rounded down.
// - zipf: id k is as likely as 1 / (k + 1), to 2^-32: the first k of which word < 2^32 * H(k + 1) / H(vocab), where
// H(n)
//   is the sum of 1 / m for m from 1 to n.
// - copy: uniform for the first half of the ids, rounded up; then those ids again, from the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/expr/random.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The last word of the counter: what is drawn for. Initial values have 0.
constexpr uint64_t RandomPurposeTokens = 1;

class SyntheticSamples {
 public:
  /// Requires: data.is_synthetic(), a vocabulary of 1 to 2^31 ids.
  explicit SyntheticSamples(const DataSource& data);

  /// Writes seq + 1 ids. Requires: index >= 0. Cost: about 10 ns per id; of zipf, a search in a table besides.
  auto Make(Split split, int64_t index, int32_t* ids) const -> void;
  auto num_eval_samples() const -> int64_t { return num_eval_samples_; }
  /// What the samples depend on besides the seed: "synthetic zipf, vocabulary of 256, samples of 65 ids".
  auto Fingerprint() const -> std::string;

 private:
  auto IdOf(uint64_t word) const -> int32_t;

  Synthetic kind_;
  int64_t vocab_;
  int64_t seq_;
  int64_t num_eval_samples_;
  PhiloxKey<uint64_t> train_key_;
  PhiloxKey<uint64_t> eval_key_;
  /// Of zipf: for all ids but the last, the least word of the ids after it.
  std::vector<uint32_t> ends_;
};

}  // namespace shardc
