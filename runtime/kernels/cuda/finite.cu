#include "runtime/kernels/cuda/finite.h"

#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

constexpr int FiniteThreads = 256;

/// Writes 1 to `found` if an element is not finite. Threads take vectors of N in turn.
template <class T, int N>
static __global__ void __launch_bounds__(FiniteThreads)
    MarkNonFinite(const T* x, int64_t packs, int64_t threads, uint64_t* found) {
  bool are_finite = true;
  for (int64_t i = BlockX() * FiniteThreads + Thread(); i < packs; i += threads) {
    const Floats<N> elements = LoadFloats<N>(x + i * N);
    UNROLL
    for (int k = 0; k < N; ++k) {
      are_finite = are_finite && isfinite(elements.at[k]);
    }
  }
  if (!are_finite) {
    *found = 1;
  }
}

template <class T, int N>
static auto LaunchFind(DeviceStream stream, const T* x, int64_t count, uint64_t* found) -> Status {
  constexpr int64_t MostBlocks = 2048;
  const int64_t blocks = std::min(MostBlocks, BlocksFor(count / N, FiniteThreads));
  return Launch(stream, {.grid = {blocks}, .threads = FiniteThreads}, MarkNonFinite<T, N>, x, count / N,
                blocks * FiniteThreads, found);
}

template <class T>
static auto Find(DeviceStream stream, const View& view, uint64_t* found) -> Status {
  constexpr int N = PackSize<T>;
  const T* const x = view.At<const T>({});
  const int64_t count = view.num_elements();
  return IsAligned<N>(x) && count % N == 0 ? LaunchFind<T, N>(stream, x, count, found)
                                           : LaunchFind<T, 1>(stream, x, count, found);
}

auto AreFinite(ValueId value, Binder& of_kernels, Binder& of_host) -> ErrorOr<bool> {
  Queue& queue = of_host.device().queue(Stream::Compute);
  const View view = of_kernels.ViewOf(value);
  CHECK(view.dtype == DType::F32 || view.dtype == DType::BF16, "looks for {} that are not finite", ToText(view.dtype));
  const auto found = ClearedWords(queue);
  if (!found) {
    return found.error();
  }
  RETURN_IF_ERROR(view.dtype == DType::F32 ? Find<float>(StreamOf(queue), view, *found)
                                           : Find<BFloat16>(StreamOf(queue), view, *found));
  const auto words = ReadWords(queue);
  if (!words) {
    return words.error();
  }
  return words->front() == 0;
}

}  // namespace shardc::cuda
