// The numbers that a run has of its base: ranks add up what each of them has read, compare it with what the checkpoint
// says of its base, and agree on what the run's own checkpoints leave out.
#include <filesystem>

#include "compiler/base/copied_pieces.h"
#include "compiler/checkpoint/checkpoint_base.h"
#include "compiler/checkpoint/element_sum.h"
#include "compiler/checkpoint/layout.h"
#include "compiler/plan/init_rule.h"
#include "runtime/checkpoint/checkpoint_reader.h"

namespace shardc {

/// Returns true if this rank stores what it owns of the parameter, and ranks that have copies do not.
static auto StoresOwn(const Plan& plan, const Parameter& parameter, int64_t rank) -> bool {
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      if (&plan.parameters[segment.parameter] == &parameter) {
        return Stores(LayoutOf(sub_vector), plan.mesh, rank);
      }
    }
  }
  return false;
}

/// Returns what the checkpoint says of a parameter in its base; nothing if it is in its own files.
static auto InBaseOf(const Manifest& manifest, const std::string& parameter) -> std::optional<TensorInBase> {
  const auto tensor = manifest.tensors.find(parameter);
  return tensor == manifest.tensors.end() ? std::nullopt : tensor->second.in_base;
}

auto CheckpointReader::AddToSum(const Parameter& parameter, const BoxInterval& elements, DType dtype,
                                const std::byte* bytes) -> void {
  const bool is_summed = parameter.in_base || InBaseOf(manifest_, parameter.name);
  const int64_t rank = options_.control == nullptr ? 0 : options_.control->rank();
  if (is_summed && StoresOwn(*options_.plan, parameter, rank)) {
    ReadSum& own = sums_[parameter.name];
    own.num_elements += elements.elements.size();
    own.sum += SumOfElements(elements, dtype, bytes);
  }
}

auto CheckpointReader::SumBase() -> ErrorOr<LeftToBase> {
  const Plan& plan = *options_.plan;
  std::vector<const Parameter*> summed;
  for (const Parameter& parameter : plan.parameters) {
    if (parameter.in_base || InBaseOf(manifest_, parameter.name)) {
      summed.push_back(&parameter);
    }
  }
  // Of each the number of elements, and the halves of the sum, whose sums over ranks no integer is too small for.
  constexpr size_t PerParameter = 3;
  std::vector<int64_t> numbers(PerParameter * summed.size());
  for (size_t i = 0; i < summed.size(); ++i) {
    const auto own = sums_.find(summed[i]->name);
    const auto [num_elements, sum] = own == sums_.end() ? ReadSum{} : own->second;
    numbers[PerParameter * i] = num_elements;
    numbers[PerParameter * i + 1] = static_cast<int64_t>(sum & 0xffffffff);
    numbers[PerParameter * i + 2] = static_cast<int64_t>(sum >> 32);
  }
  if (options_.control != nullptr) {
    constexpr int64_t AtOnce = RankControl::MaxBytes / static_cast<int64_t>(sizeof(int64_t));
    RETURN_IF_ERROR(ForEachPiece(std::ssize(numbers), AtOnce, [&](int64_t begin, int64_t count) {
      return options_.control->Sum(AxisSet::All(), reinterpret_cast<std::byte*>(numbers.data() + begin), count,
                                   DType::I64);
    }));
  }
  LeftToBase left;
  for (size_t i = 0; i < summed.size(); ++i) {
    const Parameter& parameter = *summed[i];
    const uint64_t sum = static_cast<uint64_t>(numbers[PerParameter * i + 1]) +
                         (static_cast<uint64_t>(numbers[PerParameter * i + 2]) << 32);
    const bool is_read = numbers[PerParameter * i] == parameter.num_elements();
    const auto there = InBaseOf(manifest_, parameter.name);
    // What was rounded has a sum of its own.
    const bool has_its_numbers =
        there && (parameter.dtype == DType::F32 || parameter.dtype == manifest_.tensors.at(parameter.name).dtype);
    FAIL_IF(is_read && has_its_numbers && sum != there->sum, ExitCode::Checkpoint, "{}",
            BaseHasChanged(base_->options_.path, there->tensor).message);
    if (!parameter.in_base || !is_read) {
      continue;
    }
    if (there) {
      left.tensors[parameter.name] = {.tensor = there->tensor, .row = there->row, .sum = sum};
    } else if (options_.purpose == ReadPurpose::Seed && !manifest_.base) {
      left.tensors[parameter.name] = {
          .tensor = *LoadedTensorOf(parameter), .row = *RowInBase(plan, parameter), .sum = sum};
    }
  }
  if (!left.tensors.empty()) {
    const std::string& path = base_ == nullptr ? options_.path : base_->options_.path;
    left.base = {.path = std::filesystem::absolute(path).lexically_normal().string(),
                 .digest = manifest_.base ? manifest_.base->digest : digest_};
  }
  return left;
}

}  // namespace shardc
