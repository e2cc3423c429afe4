#include "tests/support/whole_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/base/bfloat16.h"
#include "tests/support/owned_intervals.h"

namespace shardc {

auto BitsOf(RankRunner& runner, ValueId value) -> std::vector<uint32_t> {
  const View view = runner.ViewOf(value);
  std::vector<uint32_t> bits(static_cast<size_t>(view.num_elements()));
  HostScratch scratch;
  const auto read =
      runner.binder().device().Read(view.At<const std::byte>({}), view.num_elements() * SizeOf(view.dtype), scratch);
  CHECK(read.ok(), "{}", read.error().message);
  if (view.dtype == DType::BF16) {
    const auto* elements = reinterpret_cast<const BFloat16*>(*read);
    std::transform(elements, elements + bits.size(), bits.begin(),
                   [](BFloat16 element) { return std::bit_cast<uint32_t>(Load(element)); });
  } else {
    CHECK(view.dtype == DType::F32, "elements of type {}", ToText(view.dtype));
    std::memcpy(bits.data(), *read, bits.size() * sizeof(uint32_t));
  }
  return bits;
}

auto WholeState::Take(const Plan& plan, RankRunner& runner, int64_t rank) -> void {
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const StateRole role : StateRoles) {
      if (!HasRole(sub_vector, role)) {
        continue;
      }
      const std::vector<uint32_t> bits = BitsOf(runner, StateOf(sub_vector, role));
      ForEachOwnedInterval(plan, sub_vector, rank,
                           [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t at) {
                             Tensor& tensor = tensors_[fmt::format("{} of {}", ToText(role), parameter.name)];
                             tensor.resize(static_cast<size_t>(parameter.num_elements()));
                             for (int64_t i = begin; i < end; ++i) {
                               Put(tensor[static_cast<size_t>(i)], bits[static_cast<size_t>(at + (i - begin))]);
                             }
                           });
    }
  }
}

auto WholeState::num_missing() const -> int64_t {
  int64_t missing = 0;
  for (const auto& [name, tensor] : tensors_) {
    missing += std::ranges::count_if(tensor, [](const auto& element) { return !element.has_value(); });
  }
  return missing;
}

auto WholeState::DifferenceFrom(const WholeState& other) const -> std::string {
  for (const auto& [name, tensor] : tensors_) {
    if (!other.tensors_.contains(name) || other.tensors_.at(name) != tensor) {
      return name;
    }
  }
  return tensors_.size() == other.tensors_.size() ? "" : "more tensors there";
}

auto WholeState::FarthestFrom(const WholeState& other, StateRole role) const -> Distance {
  const auto number = [](const std::optional<uint32_t>& element) {
    return element ? static_cast<double>(std::bit_cast<float>(*element)) : std::nan("");
  };
  CHECK(tensors_.size() == other.tensors_.size(), "{} tensors, and {} there", tensors_.size(), other.tensors_.size());
  Distance farthest;
  for (const auto& [name, tensor] : tensors_) {
    if (!name.starts_with(fmt::format("{} of ", ToText(role)))) {
      continue;
    }
    const Tensor& expected = other.tensors_.at(name);
    CHECK(tensor.size() == expected.size(), "{} has {} elements, and {} there", name, tensor.size(), expected.size());
    double difference = 0;
    double norm = 0;
    for (size_t i = 0; i < tensor.size(); ++i) {
      difference += std::pow(number(tensor[i]) - number(expected[i]), 2);
      norm += std::pow(number(expected[i]), 2);
    }
    const double relative = difference == 0 ? 0 : std::sqrt(difference / norm);
    // A tensor with NaN is the farthest.
    if (!(relative <= farthest.relative)) {
      farthest = {name, relative};
    }
  }
  return farthest;
}

}  // namespace shardc
