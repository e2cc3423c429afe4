#include "runtime/data/synthetic.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace shardc {

constexpr int64_t WordsPerBlock = 4;

/// The sums are taken in one order and without fused operations, so that they have the same bits on every machine.
static auto ZipfEnds(int64_t vocab) -> std::vector<uint32_t> {
  double all = 0;
  for (int64_t k = 1; k <= vocab; ++k) {
    all += 1.0 / static_cast<double>(k);
  }
  std::vector<uint32_t> ends;
  ends.reserve(static_cast<size_t>(vocab - 1));
  double sum = 0;
  for (int64_t k = 1; k < vocab; ++k) {
    sum += 1.0 / static_cast<double>(k);
    ends.push_back(static_cast<uint32_t>(std::min(sum / all * 0x1p32, 0x1p32 - 1)));
  }
  return ends;
}

SyntheticSamples::SyntheticSamples(const DataSource& data)
    : kind_(data.synthetic),
      vocab_(data.vocab),
      seq_(data.seq),
      num_eval_samples_(data.eval_tokens > 0 ? (data.eval_tokens - 1) / data.seq : 0),
      train_key_(RandomKey(data.seed, "synthetic train")),
      eval_key_(RandomKey(data.seed, "synthetic eval")) {
  CHECK(data.is_synthetic() && 0 < vocab_ && vocab_ <= int64_t{1} << 31, "vocabulary of {}", vocab_);
  if (kind_ == Synthetic::Zipf) {
    ends_ = ZipfEnds(vocab_);
  }
}

auto SyntheticSamples::IdOf(uint64_t word) const -> int32_t {
  switch (kind_) {
    case Synthetic::Zipf:
      return static_cast<int32_t>(std::upper_bound(ends_.begin(), ends_.end(), static_cast<uint32_t>(word)) -
                                  ends_.begin());
    case Synthetic::None:
    case Synthetic::Uniform:
    case Synthetic::Copy: break;
  }
  return static_cast<int32_t>((word * static_cast<uint64_t>(vocab_)) >> 32);
}

auto SyntheticSamples::Make(Split split, int64_t index, int32_t* ids) const -> void {
  CHECK(index >= 0, "sample {}", index);
  const int64_t count = seq_ + 1;
  const int64_t drawn = kind_ == Synthetic::Copy ? (count + 1) / 2 : count;
  const auto sample = static_cast<uint64_t>(index);
  const PhiloxKey<uint64_t>& key = split == Split::Train ? train_key_ : eval_key_;
  for (int64_t begin = 0; begin < drawn; begin += WordsPerBlock) {
    const auto words = Philox4x32(
        {static_cast<uint64_t>(begin / WordsPerBlock), sample & 0xFFFFFFFF, sample >> 32, RandomPurposeTokens}, key);
    for (int64_t j = begin; j < std::min(drawn, begin + WordsPerBlock); ++j) {
      ids[j] = IdOf(words[static_cast<size_t>(j - begin)]);
    }
  }
  std::copy(ids, ids + (count - drawn), ids + drawn);
}

auto SyntheticSamples::Fingerprint() const -> std::string {
  return fmt::format("synthetic {}, vocabulary of {}, samples of {} ids", ToText(kind_), vocab_, seq_ + 1);
}

}  // namespace shardc
