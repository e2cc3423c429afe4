// Digests: sums, modulo 2^64, of the elements, each mixed with its number. So threads may take them in any order.
#include "runtime/kernels/cuda/digest.h"

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

constexpr int DigestThreads = 256;

/// Maps 64 bits onto 64 bits, so that each bit depends on all. Source: the output function of SplitMix64, Steele, Lea
/// and Flood 2014.
__device__ __forceinline__ auto Mixed(uint64_t bits) -> uint64_t {
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31U);
}

template <class Element>
static __global__ void __launch_bounds__(DigestThreads)
    AddDigestKernel(const Element* x, int64_t count, int64_t threads, uint64_t* words) {
  constexpr uint64_t Step = 0x9E3779B97F4A7C15ULL;
  constexpr uint64_t Other = 0xD1B54A32D192ED03ULL;
  uint64_t first = 0;
  uint64_t second = 0;
  for (int64_t i = BlockX() * DigestThreads + Thread(); i < count; i += threads) {
    const uint64_t bits = x[i] + static_cast<uint64_t>(i) * Step;
    first += Mixed(bits);
    second += Mixed(bits ^ Other);
  }
  first = BlockSum(first);
  second = BlockSum(second);
  if (Thread() == 0) {
    auto* const sums = reinterpret_cast<unsigned long long*>(words);
    atomicAdd(sums, static_cast<unsigned long long>(first));
    atomicAdd(sums + 1, static_cast<unsigned long long>(second));
  }
}

template <class Element>
static auto LaunchDigest(DeviceStream stream, const std::byte* first, int64_t count, uint64_t* words) -> Status {
  constexpr int64_t MostBlocks = 2048;
  const int64_t blocks = std::min(MostBlocks, BlocksFor(count, DigestThreads));
  return Launch(stream, {.grid = {blocks}, .threads = DigestThreads}, AddDigestKernel<Element>,
                reinterpret_cast<const Element*>(first), count, blocks * DigestThreads, words);
}

auto AddDigest(CUstream_st* stream, const std::byte* first, int64_t count, int64_t element_bytes, uint64_t* words)
    -> Status {
  CHECK(element_bytes == 2 || element_bytes == 4, "digests of elements of {} bytes", element_bytes);
  return element_bytes == 2 ? LaunchDigest<uint16_t>(stream, first, count, words)
                            : LaunchDigest<uint32_t>(stream, first, count, words);
}

auto DigestsOf(std::span<const ValuePart> parts, Binder& of_kernels, Binder& of_host)
    -> ErrorOr<std::vector<PartDigest>> {
  // As many at once as there are words.
  constexpr size_t AtOnce = NumLeftWords / 2;
  Queue& queue = of_host.device().queue(Stream::Compute);
  std::vector<PartDigest> digests;
  for (size_t begin = 0; begin < parts.size(); begin += AtOnce) {
    const auto now = parts.subspan(begin, std::min(AtOnce, parts.size() - begin));
    const auto words = ClearedWords(queue);
    if (!words) {
      return words.error();
    }
    for (size_t i = 0; i < now.size(); ++i) {
      const View view = of_kernels.ViewOf(now[i].value);
      const int64_t bytes = SizeOf(view.dtype);
      RETURN_IF_ERROR(AddDigest(StreamOf(queue), view.At<const std::byte>({}) + now[i].elements.begin * bytes,
                                now[i].elements.size(), bytes, *words + 2 * i));
    }
    const auto sums = ReadWords(queue);
    if (!sums) {
      return sums.error();
    }
    for (size_t i = 0; i < now.size(); ++i) {
      digests.push_back({(*sums)[2 * i], (*sums)[2 * i + 1]});
    }
  }
  return digests;
}

}  // namespace shardc::cuda
