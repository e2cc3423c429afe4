// Sums over ranks: a thread sums vectors of elements in turn, over the terms of each host and then over the hosts.
#include "runtime/kernels/cuda/fold.h"

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

constexpr int FoldThreads = 512;
/// Multiprocessors that a sum takes at most from the products beside it.
constexpr int64_t MostBlocks = 24;

struct Terms {
  const std::byte* at[MostTerms];
  int count;
  int per_host;
};

__device__ __forceinline__ auto Widened(float term) -> float { return term; }
__device__ __forceinline__ auto Widened(BFloat16 term) -> float { return ToFloat(term); }
__device__ __forceinline__ auto Widened(double term) -> double { return term; }
__device__ __forceinline__ auto Widened(int64_t term) -> int64_t { return term; }

/// Rounded by itself, and not as part of another operation.
__device__ __forceinline__ auto Added(float a, float b) -> float {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
__device__ __forceinline__ auto Added(double a, double b) -> double {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
__device__ __forceinline__ auto Added(int64_t a, int64_t b) -> int64_t { return a + b; }

template <class Out, class Sum>
__device__ __forceinline__ auto Rounded(Sum sum) -> Out {
  if constexpr (std::is_same_v<Out, BFloat16>) {
    return FromFloat<BFloat16>(sum);
  } else {
    return sum;
  }
}

/// Computes sum (+)= term. A sum of bf16 begins at +0.
template <class Term, class Sum, int N>
__device__ __forceinline__ auto AddTerm(const Pack<Term, N>& term, Sum (&sum)[N], bool is_first) -> void {
  constexpr bool BeginsAtZero = std::is_same_v<Term, BFloat16>;
  UNROLL
  for (int i = 0; i < N; ++i) {
    const Sum widened = Widened(term.elements[i]);
    sum[i] = !is_first ? Added(sum[i], widened) : BeginsAtZero ? Added(Sum{0}, widened) : widened;
  }
}

/// Terms that a thread reads before it adds the first: reads of another GPU take microseconds.
constexpr int Ahead = 8;

/// Sums vectors of N elements. `out` may be one of the terms.
template <class Term, class Sum, class Out, int N>
static __global__ void __launch_bounds__(FoldThreads)
    FoldKernel(const Terms terms, Out* out, int64_t packs, int64_t threads, bool accumulate) {
  for (int64_t p = BlockX() * FoldThreads + Thread(); p < packs; p += threads) {
    Sum sum[N] = {};
    Sum of_host[N] = {};
    int number_on_host = 0;
    for (int begin = 0; begin < terms.count; begin += Ahead) {
      Pack<Term, N> ahead[Ahead];
      UNROLL
      for (int k = 0; k < Ahead; ++k) {
        if (begin + k < terms.count) {
          ahead[k] = LoadPack<N>(reinterpret_cast<const Term*>(terms.at[begin + k]) + p * N);
        }
      }
      UNROLL
      for (int k = 0; k < Ahead; ++k) {
        if (begin + k >= terms.count) {
          break;
        }
        AddTerm<Term, Sum, N>(ahead[k], of_host, number_on_host == 0);
        if (++number_on_host == terms.per_host) {
          const bool is_first_host = begin + k < terms.per_host;
          UNROLL
          for (int i = 0; i < N; ++i) {
            sum[i] = is_first_host ? of_host[i] : Added(sum[i], of_host[i]);
          }
          number_on_host = 0;
        }
      }
    }
    Pack<Out, N> result;
    if (accumulate) {
      const Pack<Out, N> before = LoadPack<N>(out + p * N);
      UNROLL
      for (int i = 0; i < N; ++i) {
        result.elements[i] = Rounded<Out>(Added(Widened(before.elements[i]), sum[i]));
      }
    } else {
      UNROLL
      for (int i = 0; i < N; ++i) {
        result.elements[i] = Rounded<Out>(sum[i]);
      }
    }
    StorePack<N>(out + p * N, result);
  }
}

/// Sums elements from `begin` on, in vectors of N.
template <class Term, class Sum, class Out, int N>
static auto LaunchFold(DeviceStream stream, Terms terms, std::byte* out, int64_t begin, int64_t packs, bool accumulate)
    -> Status {
  for (int k = 0; k < terms.count; ++k) {
    terms.at[k] += begin * static_cast<int64_t>(sizeof(Term));
  }
  const int64_t blocks = std::min(MostBlocks, BlocksFor(packs, FoldThreads));
  return Launch(stream, {.grid = {blocks}, .threads = FoldThreads}, FoldKernel<Term, Sum, Out, N>, terms,
                reinterpret_cast<Out*>(out) + begin, packs, blocks * FoldThreads, accumulate);
}

template <class Term, class Sum, class Out>
static auto FoldAs(DeviceStream stream, const Terms& terms, std::byte* out, int64_t num_elements, bool accumulate)
    -> Status {
  constexpr int N = PackSize<Term, Out>;
  const bool aligned = IsAligned<N>(reinterpret_cast<const Out*>(out)) &&
                       std::all_of(terms.at, terms.at + terms.count,
                                   [](auto* term) { return IsAligned<N>(reinterpret_cast<const Term*>(term)); });
  const int64_t packs = aligned ? num_elements / N : 0;
  RETURN_IF_ERROR((LaunchFold<Term, Sum, Out, N>(stream, terms, out, 0, packs, accumulate)));
  return LaunchFold<Term, Sum, Out, 1>(stream, terms, out, packs * N, num_elements - packs * N, accumulate);
}

auto Fold(CUstream_st* stream, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
          int64_t num_elements, ReduceTypes types, bool accumulate) -> Status {
  CHECK(!terms.empty() && terms.size() % per_host == 0, "{} terms of {} per host", terms.size(), per_host);
  FAIL_IF(terms.size() > MostTerms, ExitCode::Environment, "a sum over {} ranks on GPUs; {} at most", terms.size(),
          MostTerms);
  Terms all{.at = {}, .count = static_cast<int>(terms.size()), .per_host = static_cast<int>(per_host)};
  std::ranges::copy(terms, all.at);
  const auto adds = [&](DType of_terms, DType of_sum) { return types.terms == of_terms && types.sum == of_sum; };
  const auto fold = [&](auto function) { return function(stream, all, out, num_elements, accumulate); };
  if (adds(DType::F32, DType::F32)) {
    return fold(FoldAs<float, float, float>);
  }
  if (adds(DType::F32, DType::BF16)) {
    return fold(FoldAs<float, float, BFloat16>);
  }
  if (adds(DType::F64, DType::F64)) {
    return fold(FoldAs<double, double, double>);
  }
  if (adds(DType::I64, DType::I64)) {
    return fold(FoldAs<int64_t, int64_t, int64_t>);
  }
  if (adds(DType::BF16, DType::BF16)) {
    return fold(FoldAs<BFloat16, float, BFloat16>);
  }
  CHECK(adds(DType::BF16, DType::F32), "a sum of {} in {}", ToText(types.terms), ToText(types.sum));
  return fold(FoldAs<BFloat16, float, float>);
}

}  // namespace shardc::cuda
