// Measures products in the arenas of the rank, which hold nothing yet: no memory is taken beside what the plan takes,
// and the operands of any product of the plan fit. Operands are random: a card whose power is limited multiplies zeros
// faster. They lie there in several copies, used in turn, so that the caches hold no more of them than in a step.
#include "runtime/kernels/cuda/product_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "compiler/ops/op_facts.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_error.h"
#include "runtime/kernels/cuda/cublas/product.h"

namespace shardc::cuda {

namespace {

/// The most answers of the heuristic that are measured.
constexpr int MostAlgorithms = 16;
/// Copies of operands that are used in turn take this much together: several times the caches of a GPU.
constexpr int64_t BytesInTurn = int64_t{256} << 20;
constexpr int64_t PatternBytes = int64_t{4} << 20;

/// Returns bf16 numbers of a normal law; two of them are also a number in fp32.
auto RandomPattern() -> std::vector<uint16_t> {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> pattern(PatternBytes / sizeof(uint16_t));
  for (uint16_t& number : pattern) {
    number = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(generator)) >> 16);
  }
  return pattern;
}

class CudaProductBench final : public ProductBench {
 public:
  explicit CudaProductBench(CudaDevice* device)
      : device_(*device), stream_(StreamOf(device->queue(Stream::Compute))), pattern_(RandomPattern()) {
    for (const int64_t bytes : device_.plan().arena_bytes) {
      arena_bytes_ += RoundUp(bytes, ArenaAlignment);
    }
  }
  CudaProductBench(const CudaProductBench&) = delete;
  auto operator=(const CudaProductBench&) -> CudaProductBench& = delete;
  ~CudaProductBench() override {
    for (const cudaEvent_t event : events_) {
      if (event != nullptr && !device_.is_lost()) {
        cudaEventDestroy(event);
      }
    }
  }

  auto MakeEvents() -> Status {
    for (cudaEvent_t& event : events_) {
      RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&event), "making an event"));
    }
    return Success{};
  }

  /// Adds a product with each of its algorithms.
  auto Add(const Product& product) -> Status {
    ASSIGN_OR_RETURN(const auto algorithms, product.Algorithms(MostAlgorithms));
    BenchProduct added{.text = product.text(), .algorithms = {}};
    std::vector<std::shared_ptr<const Product>> by_algorithm;
    for (const std::string& algorithm : algorithms) {
      std::map<std::string, std::string> only{{product.text(), algorithm}};
      ASSIGN_OR_RETURN(auto made, Product::Make(product.request(), &only));
      if (only[product.text()] == algorithm) {
        added.algorithms.push_back(algorithm);
        by_algorithm.push_back(std::move(made));
      }
    }
    CHECK(!by_algorithm.empty(), "no algorithm for {}", product.text());
    products_.push_back(std::move(added));
    by_algorithm_.push_back(std::move(by_algorithm));
    return Success{};
  }

  auto products() const -> const std::vector<BenchProduct>& override { return products_; }

  auto Time(size_t product, size_t algorithm, int64_t repeats) -> ErrorOr<Seconds> override {
    const Product& measured = *by_algorithm_[product][algorithm];
    const Places places = PlacesOf(measured.request());
    RETURN_IF_ERROR(Fill(places.copy_bytes * places.num_copies));
    const auto run = [&](int64_t times) -> Status {
      for (int64_t i = 0; i < times; ++i) {
        std::byte* const copy = device_.memory() + i % places.num_copies * places.copy_bytes;
        RETURN_IF_ERROR(measured.Run(stream_, copy, copy + places.b, copy + places.c, copy + places.c,
                                     device_.memory() + places.num_copies * places.copy_bytes));
      }
      return Success{};
    };
    // The card comes to the clock of this product meanwhile.
    RETURN_IF_ERROR(run(CeilDiv(repeats, 4)));
    RETURN_IF_ERROR(CudaStatus(cudaEventRecord(events_[0], stream_), "recording an event"));
    RETURN_IF_ERROR(run(repeats));
    RETURN_IF_ERROR(CudaStatus(cudaEventRecord(events_[1], stream_), "recording an event"));
    RETURN_IF_ERROR(device_.Finish());
    float ms = 0;
    RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, events_[0], events_[1]), "asking for a time"));
    return Seconds{static_cast<double>(ms) * 1e-3 / static_cast<double>(repeats)};
  }

  auto End() -> Status override {
    RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(device_.memory(), 0, static_cast<size_t>(arena_bytes_), stream_),
                               "clearing memory"));
    return device_.Finish();
  }

 private:
  /// Places of operands: copies one after another, and then the scratch.
  struct Places {
    int64_t b = 0;
    int64_t c = 0;
    int64_t copy_bytes = 0;
    int64_t num_copies = 1;
  };

  auto PlacesOf(const ProductRequest& request) const -> Places {
    const GemmProblem& of = request.problem;
    constexpr int64_t Alignment = 256;
    const auto bytes = [](int64_t rows, int64_t columns, DType dtype) {
      return RoundUp(rows * columns * SizeOf(dtype), Alignment);
    };
    Places places;
    places.b = bytes(of.m, of.k, of.operands);
    places.c = places.b + bytes(of.k, of.n, of.operands);
    places.copy_bytes = places.c + bytes(of.m, of.n, of.out);
    const int64_t most = (arena_bytes_ - request.scratch_bytes) / places.copy_bytes;
    places.num_copies = std::clamp<int64_t>(CeilDiv(BytesInTurn, places.copy_bytes), 1, std::max<int64_t>(most, 1));
    CHECK(most >= 1, "operands of {} B in arenas of {} B", places.copy_bytes, arena_bytes_);
    return places;
  }

  /// Fills the first bytes of the memory with random numbers: with the pattern, and then with copies of what is there.
  auto Fill(int64_t bytes) -> Status {
    const auto copied = [](cudaError_t code) { return CudaStatus(code, "making operands"); };
    const auto first = static_cast<size_t>(std::min(bytes, PatternBytes));
    RETURN_IF_ERROR(copied(cudaMemcpyAsync(device_.memory(), pattern_.data(), first, cudaMemcpyHostToDevice, stream_)));
    for (int64_t begin = PatternBytes; begin < bytes; begin *= 2) {
      RETURN_IF_ERROR(copied(cudaMemcpyAsync(device_.memory() + begin, device_.memory(),
                                             static_cast<size_t>(std::min(begin, bytes - begin)),
                                             cudaMemcpyDeviceToDevice, stream_)));
    }
    return Success{};
  }

  CudaDevice& device_;
  CUstream_st* stream_;
  std::vector<uint16_t> pattern_;
  int64_t arena_bytes_ = 0;
  std::array<cudaEvent_t, 2> events_{};
  std::vector<BenchProduct> products_;
  std::vector<std::vector<std::shared_ptr<const Product>>> by_algorithm_;
};

}  // namespace

auto MakeProductBench(Binder& binder, const std::function<bool(const std::string& product)>& wants)
    -> ErrorOr<std::unique_ptr<ProductBench>> {
  // They hold their products.
  std::vector<Kernel> kernels;
  for (const Section& section : binder.plan().sections) {
    for (const Op& op : section.ops) {
      if (FactsOf(op).work == Work::Product) {
        kernels.push_back(BindOp(op.body, binder));
      }
    }
  }
  auto bench = std::make_unique<CudaProductBench>(&static_cast<CudaDevice&>(binder.device()));
  RETURN_IF_ERROR(bench->MakeEvents());
  for (const auto& product : Product::Held()) {
    if (wants(product->text())) {
      RETURN_IF_ERROR(bench->Add(*product));
    }
  }
  return std::unique_ptr<ProductBench>(std::move(bench));
}

}  // namespace shardc::cuda
