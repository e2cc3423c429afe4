#include "runtime/control/fold.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "compiler/base/bfloat16.h"
#include "compiler/base/error_or.h"

namespace shardc {

namespace {

/// Elements that are summed together, so that their sums stay in the first cache.
constexpr int64_t Piece = 1024;

/// Calls `each(i)` for all i below `length`. A constant count makes vectors of the loop at -O2 too.
template <class Function>
auto ForEach(int64_t length, const Function& each) -> void {
  if (length == Piece) {
    for (int64_t i = 0; i < Piece; ++i) {
      each(i);
    }
  } else {
    for (int64_t i = 0; i < length; ++i) {
      each(i);
    }
  }
}

/// Computes sum (+)= term.
template <class Term, class Sum>
auto AddTerm(const Term* term, Sum* sum, int64_t length, bool is_first) -> void {
  if constexpr (std::is_same_v<Term, BFloat16>) {
    if (is_first) {
      std::fill_n(sum, length, 0.0F);
    }
    ForEach(length, [&](int64_t i) { sum[i] += Load(term[i]); });
  } else if (is_first) {
    std::memcpy(sum, term, static_cast<size_t>(length) * sizeof(Term));
  } else {
    ForEach(length, [&](int64_t i) { sum[i] += term[i]; });
  }
}

template <class Sum, class Out>
auto StoreSum(const Sum* sum, Out* out, int64_t length, bool accumulate) -> void {
  if constexpr (std::is_same_v<Out, BFloat16>) {
    ForEach(length, [&](int64_t i) { Store(out[i], accumulate ? Load(out[i]) + sum[i] : sum[i]); });
  } else if (accumulate) {
    ForEach(length, [&](int64_t i) { out[i] += sum[i]; });
  } else {
    std::memcpy(out, sum, static_cast<size_t>(length) * sizeof(Out));
  }
}

template <class Term, class Sum, class Out>
auto FoldAs(const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
            bool accumulate) -> void {
  alignas(64) Sum of_host[Piece];
  alignas(64) Sum sum[Piece];
  for (int64_t begin = 0; begin < num_elements; begin += Piece) {
    const int64_t length = std::min(Piece, num_elements - begin);
    for (size_t k = 0; k < terms.size(); ++k) {
      // The first host's sum needs no place of its own.
      Sum* target = k < per_host ? sum : of_host;
      AddTerm(reinterpret_cast<const Term*>(terms[k]) + begin, target, length, k % per_host == 0);
      if (target == of_host && (k + 1) % per_host == 0) {
        AddTerm<Sum, Sum>(of_host, sum, length, false);
      }
    }
    StoreSum(sum, reinterpret_cast<Out*>(out) + begin, length, accumulate);
  }
}

}  // namespace

auto Fold(const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
          ReduceTypes types, bool accumulate) -> void {
  CHECK(!terms.empty() && terms.size() % per_host == 0, "{} terms of {} per host", terms.size(), per_host);
  const auto are = [&](DType of_terms, DType of_sum) { return types.terms == of_terms && types.sum == of_sum; };
  const auto fold = [&](auto function) { function(terms, per_host, out, num_elements, accumulate); };
  if (are(DType::F32, DType::F32)) {
    fold(FoldAs<float, float, float>);
  } else if (are(DType::F32, DType::BF16)) {
    fold(FoldAs<float, float, BFloat16>);
  } else if (are(DType::F64, DType::F64)) {
    fold(FoldAs<double, double, double>);
  } else if (are(DType::I64, DType::I64)) {
    fold(FoldAs<int64_t, int64_t, int64_t>);
  } else if (are(DType::BF16, DType::BF16)) {
    fold(FoldAs<BFloat16, float, BFloat16>);
  } else if (are(DType::BF16, DType::F32)) {
    fold(FoldAs<BFloat16, float, float>);
  } else {
    CHECK(false, "a sum of {} in {}", ToText(types.terms), ToText(types.sum));
  }
}

}  // namespace shardc
