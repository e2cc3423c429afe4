#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

/// Source: torch/optim/adamw.py of PyTorch 2.11, _single_tensor_adamw, in its order of operations.
template <bool Copies, class T>
[[gnu::always_inline]] inline auto UpdateByMoments(const AdamwFactors& f, const float* gradient_N, int64_t n,
                                                   T* parameter_N, float* exp_avg_N, float* exp_avg_sq_N,
                                                   OtherElement<T>* copy_N) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient_N[i] * f.gradient;
    const float m = exp_avg_N[i] + (g - exp_avg_N[i]) * f.take1;
    const float v = exp_avg_sq_N[i] * f.keep2 + g * g * f.take2;
    const float denominator = __builtin_sqrtf(v) / f.bias2_root + f.eps;
    const float parameter = Load(parameter_N[i]) * f.decay - f.step_size * (m / denominator);
    exp_avg_N[i] = m;
    exp_avg_sq_N[i] = v;
    Store(parameter_N[i], parameter);
    if constexpr (Copies) {
      // The compute copy is made from the stored value, that is, after rounding.
      Store(copy_N[i], Load(parameter_N[i]));
    }
  }
}

template <class T>
auto Adamw(const AdamwFactors& factors, const float* gradient_N, int64_t n, T* parameter_N, float* exp_avg_N,
           float* exp_avg_sq_N, OtherElement<T>* copy_N) -> void {
  // A copy of its own: the loop's stores could write into the caller's.
  const AdamwFactors own = factors;
  if (copy_N != nullptr) {
    UpdateByMoments<true>(own, gradient_N, n, parameter_N, exp_avg_N, exp_avg_sq_N, copy_N);
  } else {
    UpdateByMoments<false>(own, gradient_N, n, parameter_N, exp_avg_N, exp_avg_sq_N, copy_N);
  }
}

INSTANTIATE_ELEMENT_LOOP(Adamw)

enum class Momentum : uint8_t { None, Heavy, Nesterov };

/// Source: torch/optim/sgd.py of PyTorch 2.11, _single_tensor_sgd with dampening 0, in its order of operations. A
/// buffer of zeros gives the first step that torch gives without a buffer.
template <Momentum Kind, bool Copies, class T>
[[gnu::always_inline]] inline auto UpdateByGradient(const SgdFactors& f, const float* gradient_N, int64_t n,
                                                    T* parameter_N, float* momentum_buffer_N, OtherElement<T>* copy_N)
    -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float parameter = Load(parameter_N[i]);
    float g = gradient_N[i] * f.gradient + parameter * f.decay;
    if constexpr (Kind != Momentum::None) {
      const float b = momentum_buffer_N[i] * f.momentum + g;
      momentum_buffer_N[i] = b;
      g = Kind == Momentum::Nesterov ? g + b * f.momentum : b;
    }
    Store(parameter_N[i], parameter - f.lr * g);
    if constexpr (Copies) {
      // The compute copy is made from the stored value, that is, after rounding.
      Store(copy_N[i], Load(parameter_N[i]));
    }
  }
}

template <Momentum Kind, class T>
[[gnu::always_inline]] inline auto UpdateByGradient(const SgdFactors& factors, const float* gradient_N, int64_t n,
                                                    T* parameter_N, float* momentum_buffer_N, OtherElement<T>* copy_N)
    -> void {
  // A copy of its own: the loop's stores could write into the caller's.
  const SgdFactors own = factors;
  if (copy_N != nullptr) {
    UpdateByGradient<Kind, true>(own, gradient_N, n, parameter_N, momentum_buffer_N, copy_N);
  } else {
    UpdateByGradient<Kind, false>(own, gradient_N, n, parameter_N, momentum_buffer_N, copy_N);
  }
}

template <class T>
auto Sgd(const SgdFactors& factors, bool nesterov, const float* gradient_N, int64_t n, T* parameter_N,
         float* momentum_buffer_N, OtherElement<T>* copy_N) -> void {
  if (momentum_buffer_N == nullptr) {
    UpdateByGradient<Momentum::None>(factors, gradient_N, n, parameter_N, momentum_buffer_N, copy_N);
  } else if (nesterov) {
    UpdateByGradient<Momentum::Nesterov>(factors, gradient_N, n, parameter_N, momentum_buffer_N, copy_N);
  } else {
    UpdateByGradient<Momentum::Heavy>(factors, gradient_N, n, parameter_N, momentum_buffer_N, copy_N);
  }
}

INSTANTIATE_ELEMENT_LOOP(Sgd)

auto SumSquares(const float* x_N, int64_t n) -> double {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x_N[i]);
    sum += value * value;
  }
  return sum;
}

}  // namespace shardc::SHARDC_LOOPS
