#include "compiler/checkpoint/compare_checkpoints.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/base/bfloat16.h"
#include "compiler/base/copied_pieces.h"
#include "compiler/base/half.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/stored_tensor.h"

namespace shardc {

/// Elements that are read at once of each of the two.
static constexpr int64_t ElementsAtOnce = int64_t{1} << 18;

template <class Element>
static auto WidenInto(const std::vector<std::byte>& bytes, std::vector<double>& values) -> void {
  const auto* const elements = reinterpret_cast<const Element*>(bytes.data());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(Load(elements[i]));
  }
}

/// Reads elements of a tensor as numbers.
static auto ReadNumbers(StoredTensor& tensor, int64_t begin, int64_t count, std::vector<double>& values) -> Status {
  std::vector<std::byte> bytes(static_cast<size_t>(count * SizeOf(tensor.dtype())));
  RETURN_IF_ERROR(tensor.Read(begin, begin + count, bytes.data()));
  values.resize(static_cast<size_t>(count));
  switch (tensor.dtype()) {
    case DType::F32: WidenInto<float>(bytes, values); return Success{};
    case DType::BF16: WidenInto<BFloat16>(bytes, values); return Success{};
    default: break;
  }
  return Fail(ExitCode::Checkpoint, "a tensor has the type {}", ToText(tensor.dtype()));
}

/// Adds what elements from `begin` on have, where they differ.
static auto AddDifferences(const std::vector<double>& a, const std::vector<double>& b, int64_t begin,
                           TensorDifference& found) -> void {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      continue;
    }
    const double difference = std::abs(a[i] - b[i]);
    // A difference that is NaN counts as the largest.
    if (found.num_different == 0 || (!std::isnan(found.largest) && !(difference <= found.largest))) {
      found.largest = difference;
      found.at = begin + static_cast<int64_t>(i);
      found.a = a[i];
      found.b = b[i];
    }
    ++found.num_different;
  }
}

auto CompareCheckpoints(const OpenCheckpoint& a, const OpenCheckpoint& b, const std::function<void(int64_t)>& progress)
    -> ErrorOr<CheckpointComparison> {
  CheckpointComparison comparison;
  std::set<std::string> names;
  for (const OpenCheckpoint& own : {a, b}) {
    for (const auto& [name, tensor] : own.manifest->tensors) {
      names.insert(name);
    }
  }
  CheckpointFiles files_a(a.directory, a.manifest);
  CheckpointFiles files_b(b.directory, b.manifest);
  RETURN_IF_ERROR(files_a.OpenItsBase());
  RETURN_IF_ERROR(files_b.OpenItsBase());
  std::set<StateRole> roles;
  std::vector<std::pair<StateRole, std::string>> both;
  for (const std::string& name : names) {
    const auto in_a = a.manifest->tensors.find(name);
    const auto in_b = b.manifest->tensors.find(name);
    const bool has_a = in_a != a.manifest->tensors.end();
    const bool has_b = in_b != b.manifest->tensors.end();
    if (!has_a || !has_b || in_a->second.shape != in_b->second.shape) {
      comparison.unlike.push_back(fmt::format("{}: {} and {}", name, has_a ? ToText(in_a->second.shape) : "none",
                                              has_b ? ToText(in_b->second.shape) : "none"));
      continue;
    }
    const std::set<StateRole> roles_a = RolesOf(*a.manifest, in_a->second);
    const std::set<StateRole> roles_b = RolesOf(*b.manifest, in_b->second);
    for (const StateRole role : roles_a) {
      if (roles_b.contains(role)) {
        both.emplace_back(role, name);
      }
    }
    if (roles_a != roles_b) {
      comparison.unlike.push_back(fmt::format("{}: other moments", name));
    }
  }
  std::ranges::sort(both);
  std::vector<double> numbers_a;
  std::vector<double> numbers_b;
  for (const auto& [role, name] : both) {
    StoredTensor tensor_a(&files_a, *a.manifest, name, role);
    StoredTensor tensor_b(&files_b, *b.manifest, name, role);
    TensorDifference found{.name = name, .role = role, .num_elements = tensor_a.num_elements()};
    RETURN_IF_ERROR(ForEachPiece(found.num_elements, ElementsAtOnce, [&](int64_t begin, int64_t count) -> Status {
      RETURN_IF_ERROR(ReadNumbers(tensor_a, begin, count, numbers_a));
      RETURN_IF_ERROR(ReadNumbers(tensor_b, begin, count, numbers_b));
      AddDifferences(numbers_a, numbers_b, begin, found);
      progress(count);
      return Success{};
    }));
    comparison.tensors.push_back(found);
  }
  return comparison;
}

}  // namespace shardc
