// bias_add_backward: dbias = the sum over the rows of dy. dy_NH: N rows, H columns; dbias_H.
#include "runtime/kernels/cuda/column_sums.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

template <class T>
struct RowsOf {
  const T* dy_NH;
  int64_t columns;

  template <int N>
  __device__ __forceinline__ auto At(int64_t row, int column) const -> Floats<N> {
    return LoadFloats<N>(dy_NH + row * columns + column);
  }
};

auto Bind(const op::BiasAddBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    CheckScratch(op, binder.plan());
    return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy),
            dbias = Resolve<float>(binder, op.dbias), scratch = Resolve<float>(binder, op.scratch),
            size = AsMatrix(binder.plan(), op.dy),
            adds = AddsOnto(binder, op.dbias, op.dbias_onto)](const Moment& moment) -> Status {
      constexpr int N = PackSize<T>;
      const T* const dy_NH = dy.At(moment);
      float* const partials_RH = scratch.At(moment);
      const int columns = static_cast<int>(size.columns);
      const int64_t ranges = RangesFor(size.rows, RowsAtOnce);
      const auto launch = [&]<int Width>() {
        return Launch(stream, {.grid = {ranges, BlocksFor(columns, WarpSize * Width)}, .threads = ColumnSumThreads},
                      ColumnSumsKernel<Width, RowsOf<T>>, RowsOf<T>{dy_NH, columns}, size.rows, 0, columns,
                      partials_RH);
      };
      const bool by_vectors = columns % N == 0 && IsAligned<N>(dy_NH);
      RETURN_IF_ERROR(by_vectors ? launch.template operator()<N>() : launch.template operator()<1>());
      return LaunchSumRanges(stream, partials_RH, ranges, columns, adds, dbias.At(moment));
    };
  });
}

}  // namespace shardc::cuda
