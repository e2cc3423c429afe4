#include "tests/bench/library_init.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

namespace shardc {

static auto TensorOf(float* out, int64_t size) -> at::Tensor {
  at::set_num_threads(1);
  return at::from_blob(out, {size}, at::kFloat);
}

auto LibraryNormal(float* out, int64_t size, double mean, double std) -> void {
  TensorOf(out, size).normal_(mean, std);
}

auto LibraryTruncNormal(float* out, int64_t size, double mean, double std, double a, double b) -> void {
  const auto cdf = [](double x) { return (1 + std::erf(x * M_SQRT1_2)) / 2; };
  TensorOf(out, size)
      .uniform_(2 * cdf((a - mean) / std) - 1, 2 * cdf((b - mean) / std) - 1)
      .erfinv_()
      .mul_(std * M_SQRT2)
      .add_(mean)
      .clamp_(a, b);
}

}  // namespace shardc
