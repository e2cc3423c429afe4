// What attention does between its products, a tile of scores at a time. What a row does not see (SeenColumns) counts as
// 0, and so does what fills up an odd row.
#include "runtime/kernels/cpu/loops/exponential.h"
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/lanes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/reductions.h"

namespace shardc::SHARDC_LOOPS {

/// The columns that a row sees.
struct SeenRange {
  int64_t begin;
  int64_t end;
};

[[gnu::always_inline]] static inline auto SeenBy(const SeenColumns& seen, int64_t columns, int64_t row) -> SeenRange {
  const int64_t visible = seen.visible + row < columns ? seen.visible + row : columns;
  const int64_t end = visible > 0 ? visible : 0;
  if (seen.starts_R == nullptr) {
    return {0, end};
  }
  const int64_t hidden = seen.starts_R[row * seen.starts_stride] - seen.position;
  const int64_t begin = hidden > 0 ? hidden : 0;
  return {begin < end ? begin : end, end};
}

#ifdef __AVX512F__

/// Returns which of the 16 columns from `c` on a row sees.
[[gnu::always_inline]] static inline auto MaskOf(const SeenRange& seen, int64_t c) -> __mmask16 {
  const __mmask16 to_end = seen.end > c ? FirstWords(seen.end - c) : 0;
  const __mmask16 hidden = seen.begin > c ? FirstWords(seen.begin - c) : 0;
  return static_cast<__mmask16>(to_end & ~hidden);
}

/// Returns the greatest of the scores that a row sees, of which there are some.
[[gnu::always_inline]] static inline auto MaxOf(const float* scores_C, const SeenRange& seen) -> float {
  const __m512 least = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 greatest = least;
  for (int64_t c = 0; c < seen.end; c += 16) {
    greatest = _mm512_max_ps(greatest, _mm512_mask_loadu_ps(least, MaskOf(seen, c), scores_C + c));
  }
  return _mm512_reduce_max_ps(greatest);
}

/// Sets p to e^(scale scores - maximum) of what a row sees, and to 0 elsewhere up to `width`; returns their sum.
template <class T>
[[gnu::always_inline]] static inline auto ProbabilitiesOf(const float* scores_C, const SeenRange& seen, int64_t width,
                                                          float scale, float maximum, T* p_C) -> float {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t c = 0; c < width; c += 16) {
    const __mmask16 mask = MaskOf(seen, c);
    const __m512 x =
        _mm512_fmsub_ps(_mm512_maskz_loadu_ps(mask, scores_C + c), _mm512_set1_ps(scale), _mm512_set1_ps(maximum));
    const __m512 probabilities = _mm512_maskz_mov_ps(mask, ExpLanes(x));
    sum = _mm512_add_ps(sum, probabilities);
    StoreLanes(p_C + c, FirstWords(width - c), probabilities);
  }
  return _mm512_reduce_add_ps(sum);
}

template <class T>
[[gnu::always_inline]] static inline auto GradientsOf(const float* scores_C, const float* dp_C, const SeenRange& seen,
                                                      int64_t width, float scale, float lse, float delta, T* p_C,
                                                      T* ds_C) -> void {
  for (int64_t c = 0; c < width; c += 16) {
    const __mmask16 mask = MaskOf(seen, c);
    const __m512 x =
        _mm512_fmsub_ps(_mm512_maskz_loadu_ps(mask, scores_C + c), _mm512_set1_ps(scale), _mm512_set1_ps(lse));
    const __m512 probabilities = _mm512_maskz_mov_ps(mask, ExpLanes(x));
    const __m512 difference = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, dp_C + c), _mm512_set1_ps(delta));
    const __mmask16 kept = FirstWords(width - c);
    StoreLanes(p_C + c, kept, probabilities);
    StoreLanes(ds_C + c, kept, _mm512_mul_ps(_mm512_mul_ps(probabilities, _mm512_set1_ps(scale)), difference));
  }
}

#else

[[gnu::always_inline]] static inline auto MaxOf(const float* scores_C, const SeenRange& seen) -> float {
  return Max(scores_C + seen.begin, seen.end - seen.begin);
}

template <class T>
[[gnu::always_inline]] static inline auto ProbabilitiesOf(const float* scores_C, const SeenRange& seen, int64_t width,
                                                          float scale, float maximum, T* p_C) -> float {
  for (int64_t c = 0; c < seen.begin; ++c) {
    Store(p_C[c], 0.0F);
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = seen.begin; c < seen.end; ++c) {
    const float probability = Exp(scale * scores_C[c] - maximum);
    Store(p_C[c], probability);
    sum += probability;
  }
  for (int64_t c = seen.end; c < width; ++c) {
    Store(p_C[c], 0.0F);
  }
  return sum;
}

template <class T>
[[gnu::always_inline]] static inline auto GradientsOf(const float* scores_C, const float* dp_C, const SeenRange& seen,
                                                      int64_t width, float scale, float lse, float delta, T* p_C,
                                                      T* ds_C) -> void {
  for (int64_t c = 0; c < seen.begin; ++c) {
    Store(p_C[c], 0.0F);
    Store(ds_C[c], 0.0F);
  }
#pragma omp simd
  for (int64_t c = seen.begin; c < seen.end; ++c) {
    const float probability = Exp(scale * scores_C[c] - lse);
    const float gradient = scale * probability * (dp_C[c] - delta);
    Store(p_C[c], probability);
    Store(ds_C[c], gradient);
  }
  for (int64_t c = seen.end; c < width; ++c) {
    Store(p_C[c], 0.0F);
    Store(ds_C[c], 0.0F);
  }
}

#endif

/// p = e^(scale scores - maximum); maxima and sums follow, and corrections tell what older sums were multiplied with.
template <class T>
auto SoftmaxTile(const float* scores, int64_t stride, int64_t rows, int64_t columns, const SeenColumns& seen,
                 float scale, float* maxima_R, float* sums_R, float* corrections_R, T* p, int64_t p_stride) -> void {
  const int64_t width = columns + columns % 2;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const scores_C = scores + row * stride;
    const SeenRange range = SeenBy(seen, columns, row);
    const bool sees_any = range.begin < range.end;
    const float before = maxima_R[row];
    const float here = sees_any ? scale * MaxOf(scores_C, range) : before;
    const float maximum = here > before ? here : before;
    const float correction = sees_any ? Exp(before - maximum) : 1.0F;
    maxima_R[row] = maximum;
    corrections_R[row] = correction;
    sums_R[row] =
        sums_R[row] * correction + ProbabilitiesOf(scores_C, range, width, scale, maximum, p + row * p_stride);
  }
}
INSTANTIATE_ELEMENT_LOOP(SoftmaxTile)

/// p = e^(scale scores - lse), ds = scale p (dp - delta).
template <class T>
auto AttentionGradients(const float* scores, const float* dp, int64_t stride, int64_t rows, int64_t columns,
                        const SeenColumns& seen, float scale, const float* lse_R, const float* delta_R, T* p, T* ds,
                        int64_t out_stride) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    GradientsOf(scores + row * stride, dp + row * stride, SeenBy(seen, columns, row), columns + columns % 2, scale,
                lse_R[row], delta_R[row], p + row * out_stride, ds + row * out_stride);
  }
}
INSTANTIATE_ELEMENT_LOOP(AttentionGradients)

auto ScaleRows(const float* factors_R, int64_t rows, int64_t n, float* x, int64_t stride) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = factors_R[row];
    float* const x_N = x + row * stride;
    if (factor == 1.0F) {
      continue;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      x_N[i] *= factor;
    }
  }
}

/// y = x / sum.
template <class T>
auto DivideRows(const float* sums_R, int64_t rows, int64_t n, const float* x, int64_t stride, T* y, int64_t y_stride)
    -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = 1.0F / sums_R[row];
    const float* const x_N = x + row * stride;
    T* const y_N = y + row * y_stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Store(y_N[i], x_N[i] * factor);
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(DivideRows)

/// The sums of a b over each row.
template <class T>
auto RowDots(const T* a, const T* b, int64_t stride, int64_t rows, int64_t n, float* dots_R) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const a_N = a + row * stride;
    const T* const b_N = b + row * stride;
    dots_R[row] = static_cast<float>(Sum(n, [=](int64_t i) { return Load(a_N[i]) * Load(b_N[i]); }));
  }
}
INSTANTIATE_ELEMENT_LOOP(RowDots)

}  // namespace shardc::SHARDC_LOOPS
