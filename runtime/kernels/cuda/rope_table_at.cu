// rope_table_at: angles in f64, cosines and sines rounded once. A block has one token, a thread one pair; frequencies
// are parameters of the launch, and wide heads take some launches.
#include "compiler/expr/rotary.h"
#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

constexpr int PairsOfLaunch = 256;

struct PairFrequencies {
  int64_t first = 0;
  int count = 0;
  double of_pair[PairsOfLaunch] = {};
};

static __global__ void __launch_bounds__(PairsOfLaunch)
    WriteRotations(const int32_t* positions_N, PairFrequencies frequencies, int64_t half, float* table_N2D) {
  if (Thread() < frequencies.count) {
    const double angle = static_cast<double>(positions_N[BlockX()]) * frequencies.of_pair[Thread()];
    float* const cosine = table_N2D + BlockX() * 2 * half + frequencies.first + Thread();
    *cosine = static_cast<float>(cos(angle));
    cosine[half] = static_cast<float>(sin(angle));
  }
}

auto Bind(const op::RopeTableAt& op, Binder& binder) -> Kernel {
  const Dims shape = binder.ViewOf(op.table).shape;
  CHECK(shape.size() == 4 && shape[2] == 2, "a rope table of {}", ToText(shape));
  const auto frequency = ReadReducedFrequency(op.frequency);
  CHECK(frequency.has_value(), "the frequency `{}`", op.frequency);
  std::vector<PairFrequencies> launches;
  const std::vector<double> all = RotaryFrequencies(*frequency, shape[3]);
  for (int64_t first = 0; first < shape[3]; first += PairsOfLaunch) {
    PairFrequencies& launch = launches.emplace_back();
    launch.first = first;
    launch.count = static_cast<int>(std::min<int64_t>(PairsOfLaunch, shape[3] - first));
    std::copy_n(all.begin() + first, launch.count, launch.of_pair);
  }
  return [stream = StreamOf(binder.queue()), positions = Resolve<const int32_t>(binder, op.positions),
          table = Resolve<float>(binder, op.table), tokens = shape[0] * shape[1], half = shape[3],
          launches](const Moment& moment) -> Status {
    for (const PairFrequencies& launch : launches) {
      const int threads = (launch.count + WarpSize - 1) / WarpSize * WarpSize;
      RETURN_IF_ERROR(Launch(stream, {.grid = {tokens}, .threads = threads}, WriteRotations, positions.At(moment),
                             launch, half, table.At(moment)));
    }
    return Success{};
  };
}

}  // namespace shardc::cuda
