#include "runtime/kernels/cuda/initial_values.h"

#include <array>
#include <bit>
#include <mutex>
#include <span>

#include "compiler/base/mapped.h"
#include "compiler/expr/moments.h"
#include "compiler/ops/cuda/initial_values.h"
#include "compiler/plan/init_rule.h"
#include "runtime/init/draw_launches.h"
#include "runtime/init/drawn.h"
#include "runtime/init/initial_values.h"
#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/cuda/ptx/element_kernels.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/host/owned_parameter.h"

namespace shardc::cuda {

/// Sums of x - m and of its square, where m is a number near the mean.
struct MomentSums {
  double sum;
  double squares;
};

struct AddMomentSums {
  __device__ __forceinline__ auto operator()(const MomentSums& a, const MomentSums& b) const -> MomentSums {
    return {a.sum + b.sum, a.squares + b.squares};
  }
};

/// The beginning of the scratch; the elements come after it.
struct DrawHead {
  static constexpr int Blocks = 1024;
  static constexpr size_t Words = (DrawHeadBytes - (Blocks + 1) * sizeof(MomentSums) - 8) / 8;

  /// By block.
  MomentSums sums[Blocks];
  MomentSums all;
  uint32_t fault;
  uint32_t unused;
  /// Numbers of the program as bits, then its keys.
  uint64_t words[Words];
};
static_assert(sizeof(DrawHead) == DrawHeadBytes);

constexpr int StoreThreads = 256;

/// Stores the kept elements of a launch, of which each block takes a range, and adds their moments to the block's.
template <class T>
static __global__ void __launch_bounds__(StoreThreads)
    StoreDrawn(const float* made, DrawLaunch launch, uint32_t range, double center, T* out, MomentSums* sums) {
  const uint32_t begin = static_cast<uint32_t>(BlockX()) * range;
  const auto kept = static_cast<uint32_t>(launch.kept);
  const uint32_t end = kept - begin < range ? kept : begin + range;
  MomentSums own{0, 0};
  for (uint32_t i = begin + static_cast<uint32_t>(Thread()); i < end; i += StoreThreads) {
    const uint32_t q = i + launch.column;
    const uint32_t row = q / launch.width;
    const T element = FromFloat<T>(made[launch.base + row * launch.row + (q - row * launch.width)]);
    out[i] = element;
    const double off = static_cast<double>(ToFloat(element)) - center;
    own = AddMomentSums{}(own, {off, off * off});
  }
  own = BlockReduce(own, MomentSums{0, 0}, AddMomentSums{});
  if (Thread() == 0) {
    sums[BlockX()] = AddMomentSums{}(sums[BlockX()], own);
  }
}

static __global__ void __launch_bounds__(StoreThreads) FinishDraw(DrawHead* head) {
  MomentSums own{0, 0};
  for (int i = Thread(); i < DrawHead::Blocks; i += StoreThreads) {
    own = AddMomentSums{}(own, head->sums[i]);
  }
  own = BlockReduce(own, MomentSums{0, 0}, AddMomentSums{});
  if (Thread() == 0) {
    head->all = own;
  }
}

/// Returns the kernels that all ops of a process share. They live as long as one of these pointers does.
static auto SharedElementKernels() -> std::shared_ptr<ElementKernels> {
  static std::mutex mutex;
  static std::weak_ptr<ElementKernels> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ElementKernels> kernels = shared.lock();
  if (kernels == nullptr) {
    kernels = std::make_shared<ElementKernels>();
    shared = kernels;
  }
  return kernels;
}

/// Returns the numbers and keys of a program as a DrawHead has them; more words than fit there if they do not.
static auto WordsOf(const ElementProgram& program) -> std::vector<uint64_t> {
  auto words = Mapped<uint64_t>(program.numbers, [&](const double number) { return std::bit_cast<uint64_t>(number); });
  for (const PhiloxKey<uint64_t>& key : program.keys) {
    words.insert(words.end(), key.begin(), key.end());
  }
  return words;
}

/// Makes the elements of one op.
template <class T>
class Draws {
 public:
  Draws(const op::Initialize& op, const OwnedSegment& owned, Binder& of_kernels, Binder& of_host)
      : plan_(of_host.plan()),
        parameter_(plan_.parameters[op.parameter]),
        kernels_(SharedElementKernels()),
        stream_(StreamOf(of_host.queue())),
        memory_(of_host),
        head_(ScratchOf<DrawHead>(op, of_kernels)),
        head_of_host_(ScratchOf<DrawHead>(op, of_host)),
        shard_(Resolve<T>(of_kernels, op.shard)),
        in_slice_(owned.in_slice.begin),
        launches_(DrawLaunches(owned.elements, DrawnAtOnce(of_host.ViewOf(op.shard).num_elements()))),
        range_(RangeOf(DrawnAtOnce(of_host.ViewOf(op.shard).num_elements()))),
        drawn_(of_host.DrawnOf(op.parameter)) {}

  /// Returns false if the host has to make the elements.
  auto operator()(const Moment& moment) -> ErrorOr<bool> {
    // Here and not when the plan is bound: a restart draws nothing.
    const ElementProgram program = InitProgram(plan_, parameter_);
    const std::vector<uint64_t> words = WordsOf(program);
    if (!program.loads.empty() || !program.row_norms.empty() || program.ops.size() > MostOperations ||
        words.size() > DrawHead::Words) {
      return false;
    }
    const auto found = kernels_->Find(program);
    if (!found) {
      return found.error();
    }
    if (drawn_ != nullptr) {
      drawn_->load_time += found->load_time;
    }
    if (!found->launch) {
      return false;
    }
    DrawHead* const at = head_of_host_.At(moment);
    RETURN_IF_ERROR(WriteHead(at, words));
    RETURN_IF_ERROR(Launch(found->launch, program.numbers.size(), moment));
    const auto result = memory_.Read(reinterpret_cast<const std::byte*>(&at->all), sizeof(at->all) + sizeof(at->fault));
    if (!result) {
      return result.error();
    }
    uint32_t fault = 0;
    std::memcpy(&fault, *result + sizeof(at->all), sizeof(fault));
    if (fault == 0 && drawn_ != nullptr) {
      MomentSums sums{};
      std::memcpy(&sums, *result, sizeof(sums));
      drawn_->sum += sums.sum;
      drawn_->squares += sums.squares;
      for (const DrawLaunch& launch : launches_) {
        drawn_->count += launch.kept;
      }
    }
    return fault == 0;
  }

 private:
  /// A longer program takes longer to be compiled than the host takes to run it.
  static constexpr size_t MostOperations = 256;

  /// Returns the elements that a block takes: a multiple of its threads.
  static auto RangeOf(int64_t at_once) -> int64_t {
    constexpr int64_t Least = 4 * StoreThreads;
    return BlocksFor(BlocksFor(at_once, DrawHead::Blocks), Least) * Least;
  }

  /// Writes all of the head before the last words: sums of 0, and no fault.
  auto WriteHead(DrawHead* at, const std::vector<uint64_t>& words) -> Status {
    constexpr size_t Before = offsetof(DrawHead, words);
    const std::span bytes = std::as_bytes(std::span(words));
    return memory_.Write(reinterpret_cast<std::byte*>(at), static_cast<int64_t>(Before + bytes.size()),
                         [&](std::byte* to) -> Status {
                           std::memset(to, 0, Before);
                           std::ranges::copy(bytes, to + Before);
                           return Success{};
                         });
  }

  auto Launch(const LaunchElements& launch_elements, size_t num_numbers, const Moment& moment) -> Status {
    DrawHead* const head = head_.At(moment);
    auto* const made = reinterpret_cast<float*>(head + 1);
    const auto distribution = InitDistribution(parameter_);
    const double center = distribution ? MomentsOf(*distribution).mean : 0;
    for (const DrawLaunch& launch : launches_) {
      RETURN_IF_ERROR(launch_elements(stream_, {.numbers = reinterpret_cast<const double*>(head->words),
                                                .keys = head->words + num_numbers,
                                                .first = launch.first,
                                                .count = launch.made,
                                                .out = made,
                                                .fault = &head->fault}));
      RETURN_IF_ERROR(cuda::Launch(stream_, {.grid = {BlocksFor(launch.kept, range_)}, .threads = StoreThreads},
                                   StoreDrawn<T>, made, launch, static_cast<uint32_t>(range_), center,
                                   shard_.At(moment) + in_slice_ + launch.offset, head->sums));
    }
    return cuda::Launch(stream_, {.threads = StoreThreads}, FinishDraw, head);
  }

  const Plan& plan_;
  const Parameter& parameter_;
  std::shared_ptr<ElementKernels> kernels_;
  DeviceStream stream_;
  HostMemory memory_;
  Operand<DrawHead> head_;
  /// The head's address for the host's reads and writes.
  Operand<DrawHead> head_of_host_;
  Operand<T> shard_;
  int64_t in_slice_;
  std::vector<DrawLaunch> launches_;
  int64_t range_;
  Drawn* drawn_;
};

auto BindInitialize(const op::Initialize& op, Binder& of_kernels, Binder& of_host)
    -> std::function<ErrorOr<bool>(const Moment&)> {
  const auto owned = OwnedParameter(of_host, op.sub_vector, op.parameter, of_host.ViewOf(op.shard));
  if (!owned) {
    return [](const Moment&) -> ErrorOr<bool> { return true; };
  }
  switch (of_host.ViewOf(op.shard).dtype) {
    case DType::F32: return Draws<float>(op, *owned, of_kernels, of_host);
    case DType::BF16: return Draws<BFloat16>(op, *owned, of_kernels, of_host);
    case DType::F64:
    case DType::I32:
    case DType::I64:
    case DType::F16: break;
  }
  CHECK(false, "a parameter of {}", ToText(of_host.ViewOf(op.shard).dtype));
}

}  // namespace shardc::cuda
