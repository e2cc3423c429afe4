// Products of row-major matrices, as cuBLASLt multiplies them on a stream. Raw pointers, no views; scratch is the
// caller's. What is asked of the library is decided here: sums are of f32 and in a fixed order, f32 is never rounded to
// TF32, and partial sums never lie in the type of the result.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/ops/cpu/gemm_cut.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc::cuda {

/// Bytes that divide each address of an operand, up to 256: the library chooses by them.
struct ProductAlignment {
  uint32_t a = 256;
  uint32_t b = 256;
  /// Bytes of c and of what is added.
  uint32_t c = 256;
};

struct ProductRequest {
  GemmProblem problem;
  /// c = x + op(a) op(b), with x a matrix of c's type and size. The library chooses an algorithm alike for an x that
  /// is c itself and for one that lies elsewhere: it is not told where.
  bool adds = false;
  ProductAlignment alignment;
  /// Partial sums go there.
  int64_t scratch_bytes = 0;
};

class Product {
 public:
  virtual ~Product() = default;

  /// Takes the algorithm that `algorithms` has for the request, or else the first answer of the library's heuristic for
  /// the device that the caller's thread uses, which is then put there. The text of an algorithm means something to the
  /// same version of the library alone. `algorithms` may be null.
  /// Errors: InternalFault if the library knows no algorithm.
  static auto Make(const ProductRequest& request, std::map<std::string, std::string>* algorithms)
      -> ErrorOr<std::shared_ptr<const Product>>;
  /// Returns the products that kernels of the caller's thread hold, each once: ops with equal requests share one.
  static auto Held() -> std::vector<std::shared_ptr<const Product>>;
  /// Returns the version of the library as one number.
  static auto LibraryVersion() -> size_t;

  virtual auto request() const -> const ProductRequest& = 0;
  /// Returns the text by which `algorithms` has the request.
  virtual auto text() const -> const std::string& = 0;
  /// Returns as many algorithms as the library's heuristic names, `most` at most: the first answer, and then the others
  /// with which the sums are as `Make` asks for them.
  virtual auto Algorithms(int most) const -> ErrorOr<std::vector<std::string>> = 0;
  /// Launches the product; x is c or does not overlap it, and is not read unless the product adds. Requires: `scratch`
  /// has the bytes of the request.
  virtual auto Run(CUstream_st* stream, const void* a, const void* b, const void* x, void* c, void* scratch) const
      -> Status = 0;
};

}  // namespace shardc::cuda
