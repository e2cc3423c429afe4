// Initial values by LibTorch, to compare with: plain pointers, one thread.
#pragma once

#include <cstdint>

namespace shardc {

/// tensor.normal_(mean, std) of `size` elements.
auto LibraryNormal(float* out, int64_t size, double mean, double std) -> void;
/// The ops of torch.nn.init.trunc_normal_. Source: torch/nn/init.py of PyTorch 2.11, _no_grad_trunc_normal_.
auto LibraryTruncNormal(float* out, int64_t size, double mean, double std, double a, double b) -> void;

}  // namespace shardc
