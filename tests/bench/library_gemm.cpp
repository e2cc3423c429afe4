#include "tests/bench/library_gemm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

namespace shardc {

auto LibraryGemm(DType dtype, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, void* a, void* b,
                 void* c) -> void {
  const c10::InferenceMode inference;
  if (at::get_num_threads() != 1) {
    at::set_num_threads(1);
  }
  const auto type = dtype == DType::BF16 ? at::kBFloat16 : at::kFloat;
  const auto matrix = [&](void* data, int64_t rows, int64_t columns, bool transpose) {
    return transpose ? at::from_blob(data, {columns, rows}, type).t() : at::from_blob(data, {rows, columns}, type);
  };
  at::Tensor out = matrix(c, m, n, false);
  at::mm_out(out, matrix(a, m, k, transpose_a), matrix(b, k, n, transpose_b));
}

}  // namespace shardc
