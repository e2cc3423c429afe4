// The library works on columns: a row-major matrix is the transpose of the column-major one in the same bytes, and
// c^T = op(b)^T op(a)^T. So b is the library's first operand, and neither is transposed again.
#include "runtime/kernels/cuda/cublas/product.h"

#include <cublasLt.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>

#include "compiler/base/mapped.h"

namespace shardc::cuda {

namespace {

auto Check(cublasStatus_t status, const char* what) -> Status {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return Success{};
  }
  return Fail(ExitCode::InternalFault, "cuBLASLt: {}: {}", what, cublasLtGetStatusString(status));
}

/// A handle of the library, which its destructor gives back.
template <class Handle, cublasStatus_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  auto operator=(const Owned&) -> Owned& = delete;
  ~Owned() {
    if (handle_ != nullptr) {
      Destroy(handle_);
    }
  }

  auto get() const -> Handle { return handle_; }
  auto out() -> Handle* { return &handle_; }

 private:
  Handle handle_ = nullptr;
};

using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// Returns the one handle for all products of a rank, which binds its ops on one thread.
auto LibraryOfThread() -> ErrorOr<std::shared_ptr<Library>> {
  static thread_local std::weak_ptr<Library> of_thread;
  std::shared_ptr<Library> library = of_thread.lock();
  if (library == nullptr) {
    library = std::make_shared<Library>();
    RETURN_IF_ERROR(Check(cublasLtCreate(library->out()), "cublasLtCreate"));
    of_thread = library;
  }
  return library;
}

auto TypeOf(DType dtype) -> cudaDataType_t {
  switch (dtype) {
    case DType::F32: return CUDA_R_32F;
    case DType::BF16: return CUDA_R_16BF;
    case DType::F64:
    case DType::I32:
    case DType::I64:
    case DType::F16: break;
  }
  CHECK(false, "no product of {}", ToText(dtype));
}

/// Makes the layout of a row-major matrix as the library sees it.
auto MakeLayout(Layout& layout, DType dtype, int64_t rows, int64_t columns) -> Status {
  return Check(cublasLtMatrixLayoutCreate(layout.out(), TypeOf(dtype), static_cast<uint64_t>(columns),
                                          static_cast<uint64_t>(rows), columns),
               "cublasLtMatrixLayoutCreate");
}

auto Set(Description& description, cublasLtMatmulDescAttributes_t attribute, bool transpose) -> Status {
  const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  return Check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &operation, sizeof operation),
               "cublasLtMatmulDescSetAttribute");
}

template <class T>
auto Set(Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) -> Status {
  return Check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

/// Returns all that the choice of an algorithm depends on, on one card and with one version of the library:
/// "bf16 8192 x 2048 x 5504 tn, to bf16, aligned to 256 256 256, 33554432 B".
auto TextOf(const ProductRequest& request) -> std::string {
  const GemmProblem& of = request.problem;
  const ProductAlignment& aligned = request.alignment;
  return fmt::format("{} {} x {} x {} {}{}, {} {}, aligned to {} {} {}, {} B", ToText(of.operands), of.m, of.n, of.k,
                     of.transpose_a ? 't' : 'n', of.transpose_b ? 't' : 'n', request.adds ? "added to" : "to",
                     ToText(of.out), aligned.a, aligned.b, aligned.c, request.scratch_bytes);
}

/// Returns the words of an algorithm in hexadecimal digits, "1f-0-...". cublasLt.h: "This structure can be trivially
/// serialized and later restored for use with the same version of cuBLAS library".
auto TextOf(const cublasLtMatmulAlgo_t& algorithm) -> std::string {
  return fmt::format("{:x}", fmt::join(algorithm.data, "-"));
}

/// Returns the algorithm of a text; nothing if the text is of another form.
auto AlgorithmOf(std::string_view text) -> std::optional<cublasLtMatmulAlgo_t> {
  cublasLtMatmulAlgo_t algorithm{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint64_t& word : algorithm.data) {
    at += &word != algorithm.data && at != end && *at == '-' ? 1 : 0;
    const auto [after, error] = std::from_chars(at, end, word, 16);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    at = after;
  }
  return at == end ? std::optional(algorithm) : std::nullopt;
}

class LtProduct : public Product {
 public:
  explicit LtProduct(const ProductRequest& request) : request_(request), text_(TextOf(request)) {}

  auto Prepare(std::map<std::string, std::string>* algorithms) -> Status {
    const ProductRequest& request = request_;
    const GemmProblem& of = request.problem;
    beta_ = request.adds ? 1.0F : 0.0F;
    scratch_bytes_ = static_cast<size_t>(request.scratch_bytes);
    ErrorOr<std::shared_ptr<Library>> library = LibraryOfThread();
    RETURN_IF_ERROR(library);
    library_ = *library;
    RETURN_IF_ERROR(Check(cublasLtMatmulDescCreate(description_.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
                          "cublasLtMatmulDescCreate"));
    RETURN_IF_ERROR(Set(description_, CUBLASLT_MATMUL_DESC_TRANSA, of.transpose_b));
    RETURN_IF_ERROR(Set(description_, CUBLASLT_MATMUL_DESC_TRANSB, of.transpose_a));
    RETURN_IF_ERROR(MakeLayout(a_, of.operands, of.transpose_a ? of.k : of.m, of.transpose_a ? of.m : of.k));
    RETURN_IF_ERROR(MakeLayout(b_, of.operands, of.transpose_b ? of.n : of.k, of.transpose_b ? of.k : of.n));
    RETURN_IF_ERROR(MakeLayout(c_, of.out, of.m, of.n));
    if (algorithms == nullptr) {
      return ChooseAlgorithm();
    }
    std::string& known = (*algorithms)[text_];
    if (!TakeAlgorithm(known)) {
      RETURN_IF_ERROR(ChooseAlgorithm());
      known = TextOf(algorithm_);
    }
    return Success{};
  }

  /// Returns true if the product is computed as one that is made with these algorithms.
  auto Serves(const std::map<std::string, std::string>* algorithms) const -> bool {
    if (algorithms == nullptr) {
      return true;
    }
    const auto known = algorithms->find(text_);
    return known != algorithms->end() && known->second == TextOf(algorithm_);
  }

  auto request() const -> const ProductRequest& override { return request_; }
  auto text() const -> const std::string& override { return text_; }

  auto Algorithms(int most) const -> ErrorOr<std::vector<std::string>> override {
    ASSIGN_OR_RETURN(const auto found, AskHeuristic(most));
    return Mapped<std::string>(found,
                               [](const cublasLtMatmulHeuristicResult_t& result) { return TextOf(result.algo); });
  }

  auto Run(CUstream_st* stream, const void* a, const void* b, const void* x, void* c, void* scratch) const
      -> Status override {
    const float alpha = 1;
    return Check(cublasLtMatmul(library_->get(), description_.get(), &alpha, b, b_.get(), a, a_.get(), &beta_, x,
                                c_.get(), c, c_.get(), &algorithm_, scratch, scratch_bytes_, stream),
                 "cublasLtMatmul");
  }

 private:
  /// Returns true if the text is that of an algorithm by which the library multiplies these operands in this scratch.
  auto TakeAlgorithm(std::string_view text) -> bool {
    const auto algorithm = AlgorithmOf(text);
    cublasLtMatmulHeuristicResult_t result{};
    if (!algorithm || cublasLtMatmulAlgoCheck(library_->get(), description_.get(), b_.get(), a_.get(), c_.get(),
                                              c_.get(), &*algorithm, &result) != CUBLAS_STATUS_SUCCESS) {
      return false;
    }
    algorithm_ = *algorithm;
    return result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= scratch_bytes_;
  }

  auto ChooseAlgorithm() -> Status {
    ASSIGN_OR_RETURN(const auto found, AskHeuristic(1));
    algorithm_ = found.front().algo;
    return Success{};
  }

  /// Returns the answers of the heuristic that can be used, best first, one at least.
  auto AskHeuristic(int most) const -> ErrorOr<std::vector<cublasLtMatmulHeuristicResult_t>> {
    Preference preference;
    RETURN_IF_ERROR(Check(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate"));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(scratch_bytes_)));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                        static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, request_.alignment.b));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, request_.alignment.a));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, request_.alignment.c));
    RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, request_.alignment.c));
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
    int found = 0;
    RETURN_IF_ERROR(
        Check(cublasLtMatmulAlgoGetHeuristic(library_->get(), description_.get(), b_.get(), a_.get(), c_.get(),
                                             c_.get(), preference.get(), most, results.data(), &found),
              "cublasLtMatmulAlgoGetHeuristic"));
    RETURN_IF_ERROR(Check(found > 0 ? results.front().state : CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm"));
    results.resize(static_cast<size_t>(found));
    std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return results;
  }

  ProductRequest request_;
  std::string text_;
  std::shared_ptr<Library> library_;
  Description description_;
  Layout a_;
  Layout b_;
  Layout c_;
  cublasLtMatmulAlgo_t algorithm_{};
  float beta_ = 0;
  size_t scratch_bytes_ = 0;
};

/// Returns the products of a rank, which binds its ops on one thread, by their texts.
auto ProductsOfThread() -> std::map<std::string, std::weak_ptr<const LtProduct>>& {
  static thread_local std::map<std::string, std::weak_ptr<const LtProduct>> products;
  return products;
}

}  // namespace

auto Product::LibraryVersion() -> size_t { return cublasLtGetVersion(); }

auto Product::Make(const ProductRequest& request, std::map<std::string, std::string>* algorithms)
    -> ErrorOr<std::shared_ptr<const Product>> {
  const GemmProblem& of = request.problem;
  auto product = std::make_shared<LtProduct>(request);
  std::weak_ptr<const LtProduct>& of_thread = ProductsOfThread()[product->text()];
  if (const auto held = of_thread.lock(); held != nullptr && held->Serves(algorithms)) {
    return std::shared_ptr<const Product>(held);
  }
  if (const Status status = product->Prepare(algorithms); !status) {
    return Fail(status.error().code, "a product of {} x {} x {}, {} into {}: {}", of.m, of.n, of.k, ToText(of.operands),
                ToText(of.out), status.error().message);
  }
  of_thread = product;
  return std::shared_ptr<const Product>(std::move(product));
}

auto Product::Held() -> std::vector<std::shared_ptr<const Product>> {
  std::vector<std::shared_ptr<const Product>> held;
  for (const auto& [text, of_thread] : ProductsOfThread()) {
    if (auto product = of_thread.lock()) {
      held.push_back(std::move(product));
    }
  }
  return held;
}

}  // namespace shardc::cuda
