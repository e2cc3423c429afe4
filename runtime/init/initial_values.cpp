#include "runtime/init/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

auto SharedInitKernels() -> std::shared_ptr<ElementJit> {
  static std::mutex mutex;
  static std::weak_ptr<ElementJit> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ElementJit> kernels = shared.lock();
  if (kernels == nullptr) {
    kernels = std::make_shared<ElementJit>();
    shared = kernels;
  }
  return kernels;
}

static auto ProgramOf(const ElementSource& parameter, const FindElementSource& find, const FindLoadedShape& find_loaded)
    -> ElementProgram {
  auto program = MakeElementProgram(parameter, find, find_loaded);
  CHECK(program.ok(), "`{}`: {}", parameter.rule.text(), program.errors.front().message);
  return std::move(program.value);
}

auto InitProgram(const Plan& plan, const Parameter& parameter) -> ElementProgram {
  InitSources sources(plan);
  return ProgramOf(
      *sources.Find(parameter.name), [&](std::string_view other) { return sources.Find(other); }, sources.FindLoaded());
}

InitialValues::InitialValues(ElementSource parameter, const FindElementSource& find, const FindLoadedShape& find_loaded,
                             OpenLoadedTensor open)
    : kernels_(SharedInitKernels()),
      parameter_(std::move(parameter)),
      program_(ProgramOf(parameter_, find, find_loaded)),
      open_(std::move(open)) {
  for (const PhiloxKey<uint64_t>& key : program_.keys) {
    key_words_.insert(key_words_.end(), key.begin(), key.end());
  }
}

InitialValues::InitialValues(const Plan& plan, const Parameter& parameter, OpenLoadedTensor open)
    : InitialValues(InitSources(plan), parameter.name, std::move(open)) {}

InitialValues::InitialValues(InitSources sources, std::string_view name, OpenLoadedTensor open)
    : InitialValues(
          *sources.Find(name), [&](std::string_view other) { return sources.Find(other); }, sources.FindLoaded(),
          std::move(open)) {}

auto InitialValues::OpenTensors() -> Status {
  for (size_t i = loaded_.size(); i < program_.loads.size(); ++i) {
    CHECK(open_ != nullptr, "`{}` without a checkpoint", parameter_.rule.text());
    ASSIGN_OR_RETURN(const auto tensor, open_(program_.loads[i].tensor));
    CHECK(tensor->num_elements() == program_.loads[i].num_elements, "{} has {} elements, not {}",
          program_.loads[i].tensor, tensor->num_elements(), program_.loads[i].num_elements);
    loaded_.push_back(tensor);
  }
  return Success{};
}

/// What the loads that are needed read for elements [first, first + count).
auto InitialValues::Gather(const std::vector<bool>& is_needed, int64_t first, int64_t count) -> void {
  gathered_.resize(program_.loads.size() * static_cast<size_t>(count));
  positions_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < program_.loads.size(); ++i) {
    const int op = program_.loads[i].op;
    if (!is_needed[static_cast<size_t>(op)]) {
      continue;
    }
    const LoadedTensor& tensor = *loaded_[i];
    float* const out = gathered_.data() + i * static_cast<size_t>(count);
    const int position = program_.ops[static_cast<size_t>(op)].position;
    if (position < 0) {
      // A pass may reach beyond the last element.
      tensor.Read(first, std::min(count, tensor.num_elements() - first), out);
      continue;
    }
    const ElementKernel& kernel = KernelOfDoubles(position).kernel;
    CHECK(count % kernel.elements_per_pass == 0, "{} elements in passes of {}", count, kernel.elements_per_pass);
    // A fault of a position is one of what needs it, which the kernel of the values finds.
    static_cast<void>(kernel.run(program_.numbers.data(), key_words_.data(), nullptr, first,
                                 count / kernel.elements_per_pass, positions_.data()));
    // Intervals of neighbours at once: they are rows if the copies are not permuted.
    for (int64_t e = 0; e < count;) {
      const int64_t begin = tensor.ElementAt(positions_[static_cast<size_t>(e)]);
      int64_t length = 1;
      while (e + length < count && tensor.ElementAt(positions_[static_cast<size_t>(e + length)]) == begin + length) {
        ++length;
      }
      tensor.Read(begin, length, out + e);
      e += length;
    }
  }
}

/// Returns: whether all elements have values.
auto InitialValues::RunKernel(const NeedingKernel& made, int64_t first, int64_t passes, void* out) -> bool {
  if (!program_.loads.empty()) {
    Gather(made.is_needed, first, passes * made.kernel.elements_per_pass);
  }
  return made.kernel.run(program_.numbers.data(), key_words_.data(), gathered_.data(), first, passes, out) == 0;
}

auto InitialValues::Kernel() -> const NeedingKernel& {
  if (!kernel_) {
    kernel_ = NeedingKernel{kernels_->Kernel(program_), program_.NeededBy(program_.root)};
  }
  return *kernel_;
}

auto InitialValues::KernelOfDoubles(int instruction) -> const NeedingKernel& {
  const auto [made, is_new] = kernels_of_doubles_.try_emplace(instruction);
  if (is_new) {
    made->second = {kernels_->KernelOfDoubles(program_, instruction), program_.NeededBy(instruction)};
  }
  return made->second;
}

/// Returns: whether all have values. Only whole passes write to `out`; what is left at both ends goes through a buffer.
auto InitialValues::FillFromPasses(Interval elements, float* out) -> bool {
  const NeedingKernel& made = Kernel();
  const int64_t per_pass = made.kernel.elements_per_pass;
  const auto run = [&](int64_t first, int64_t passes, float* to) { return RunKernel(made, first, passes, to); };
  const int64_t most_passes = program_.loads.empty() ? std::numeric_limits<int64_t>::max() : PassElements / per_pass;
  std::array<float, MostElementsPerPass> buffer;
  for (int64_t at = elements.begin; at < elements.end;) {
    const int64_t passes = at % ElementsPerBlock == 0 ? std::min((elements.end - at) / per_pass, most_passes) : 0;
    float* const to = out + (at - elements.begin);
    if (passes > 0) {
      if (!run(at, passes, to)) {
        return false;
      }
      at += passes * per_pass;
      continue;
    }
    const int64_t first = at / ElementsPerBlock * ElementsPerBlock;
    const int64_t end =
        std::min(elements.end, at % ElementsPerBlock == 0 ? first + per_pass : first + ElementsPerBlock);
    // Elements past the end may have no value, and need none.
    if (!run(first, 1, buffer.data())) {
      ElementEvaluator evaluator = Evaluator();
      for (int64_t i = at; i < end; ++i) {
        const auto value = evaluator.At(i);
        if (value.has_fault) {
          return false;
        }
        buffer[static_cast<size_t>(i - first)] = static_cast<float>(value.number);
      }
    }
    std::copy(buffer.begin() + (at - first), buffer.begin() + (end - first), to);
    at = end;
  }
  return true;
}

/// Returns: whether all of the row's elements have values. The sum goes from the row's first element to its last.
auto InitialValues::SetRowNorms(int64_t row) -> bool {
  const Interval elements{row * program_.row_size, (row + 1) * program_.row_size};
  const int64_t first = elements.begin / ElementsPerBlock * ElementsPerBlock;
  for (const RowNorm& norm : program_.row_norms) {
    const NeedingKernel& made = KernelOfDoubles(norm.root);
    const int64_t per_pass = made.kernel.elements_per_pass;
    std::array<double, MostElementsPerPass> values;
    double sum = 0;
    for (int64_t at = first; at < elements.end; at += per_pass) {
      const bool has_fault = !RunKernel(made, at, 1, values.data());
      const int64_t begin = std::max(at, elements.begin);
      const int64_t end = std::min(at + per_pass, elements.end);
      // A fault may be one of the rows beside this one.
      const bool is_whole = begin == at && end == at + per_pass;
      if (has_fault && (is_whole || Evaluator().At(elements.begin).has_fault)) {
        return false;
      }
      for (int64_t i = begin; i < end; ++i) {
        const double value = values[static_cast<size_t>(i - at)];
        sum += value * value;
      }
    }
    program_.numbers[static_cast<size_t>(norm.slot)] = std::sqrt(sum);
  }
  return true;
}

auto InitialValues::Error(Interval elements) const -> Status {
  ElementEvaluator evaluator = Evaluator();
  for (int64_t i = elements.begin; i < elements.end; ++i) {
    FAIL_IF(evaluator.At(i).has_fault, ExitCode::RecipeRejected, "the init rule {}", NoValueText(parameter_, i));
  }
  CHECK(!program_.loads.empty(), "`{}` from {} to {}", parameter_.rule.text(), elements.begin, elements.end);
  return Fail(ExitCode::Checkpoint, "what the init rule `{}` reads has changed while it was read",
              parameter_.rule.text());
}

auto InitialValues::Fill(Interval elements, float* out) -> Status {
  if (program_.ops.size() == 1 && program_.ops[0].kind == ElementOpKind::Number) {
    std::fill_n(out, elements.size(), static_cast<float>(program_.numbers[0]));
    return Success{};
  }
  RETURN_IF_ERROR(OpenTensors());
  if (program_.row_norms.empty()) {
    return FillFromPasses(elements, out) ? Status(Success{}) : Error(elements);
  }
  for (int64_t at = elements.begin; at < elements.end;) {
    const int64_t row = at / program_.row_size;
    const int64_t end = std::min((row + 1) * program_.row_size, elements.end);
    if (!SetRowNorms(row) || !FillFromPasses({at, end}, out + (at - elements.begin))) {
      return Error({at, end});
    }
    at = end;
  }
  return Success{};
}

}  // namespace shardc
