#include "compiler/expr/jit/element_jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Pass.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/Scalar.h>

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/jit/kernel_ir.h"

namespace shardc {

template <class T>
static auto Checked(llvm::Expected<T> value) -> T {
  if (!value) {
    const std::string message = llvm::toString(value.takeError());
    CHECK(false, "LLVM: {}", message);
  }
  return std::move(*value);
}

static auto CheckSuccess(llvm::Error error) -> void {
  if (error) {
    const std::string message = llvm::toString(std::move(error));
    CHECK(false, "LLVM: {}", message);
  }
}

/// Describes this processor. No operation is fused, and none may be replaced by one that is not equal to the last bit.
static auto HostMachine() -> llvm::orc::JITTargetMachineBuilder {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    // LLVM sets these for the process alone. Kernels are vector instructions without branches, in the order that is
    // wanted: its scheduler, and the allocator that splits ranges, took an eighth of the time and made nothing faster.
    constexpr std::array Options{"shardc", "-regalloc=basic", "-enable-misched=false"};
    CHECK(llvm::cl::ParseCommandLineOptions(static_cast<int>(Options.size()), Options.data()), "options of LLVM");
  });
  auto machine = Checked(llvm::orc::JITTargetMachineBuilder::detectHost());
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return machine;
}

class ElementJit::State {
 public:
  State() : machine_(HostMachine()), features_(machine_.getFeatures().getString()) {
    jit_ = Checked(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine_).create());
    // The functions of the C library that some processors have instructions for: floor, fma.
    jit_->getMainJITDylib().addGenerator(Checked(
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix())));
  }

  auto Kernel(const ElementProgram& program, int root, bool as_double) -> ElementKernel {
    const std::lock_guard lock(mutex_);
    const auto key = std::pair(program.Shape(), std::pair(root, as_double));
    const auto found = kernels_.find(key);
    return found != kernels_.end() ? found->second : kernels_[key] = Make(program, root, as_double);
  }

  auto num_kernels() const -> int {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(kernels_.size());
  }

 private:
  auto Make(const ElementProgram& program, int root, bool as_double) -> ElementKernel {
    // Draws alone are floats, of which a vector holds twice as many as of doubles, and two at once hide what each waits
    // for. Formulas are long enough without, and take as long to compile as they are wide.
    const bool is_draw = !as_double && program.is_draw();
    const auto lanes = static_cast<int>(is_draw ? MostElementsPerPass : FormulaLanes);
    const std::string name = fmt::format("elements_{}", kernels_.size());
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>(name, *context);
    module->setDataLayout(jit_->getDataLayout());
    module->setTargetTriple(jit_->getTargetTriple().str());
    AddKernel(*module, name, program, root, as_double, {.lanes = lanes});
    AddCalled(*module, &called_);
    // What the functions' templates repeat, and what does not change in the loop; the rest is as wanted already.
    llvm::legacy::FunctionPassManager passes(module.get());
    passes.add(llvm::createEarlyCSEPass());
    passes.add(llvm::createLICMPass());
    for (llvm::Function& function : *module) {
      if (!function.isDeclaration()) {
        function.addFnAttr("prefer-vector-width", "512");
        function.addFnAttr("target-cpu", machine_.getCPU());
        function.addFnAttr("target-features", features_);
        passes.run(function);
      }
    }
    CheckSuccess(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    return {.elements_per_pass = lanes, .run = Checked(jit_->lookup(name)).toPtr<decltype(ElementKernel::run)>()};
  }

  static constexpr int FormulaLanes = 8;

  llvm::orc::JITTargetMachineBuilder machine_;
  std::string features_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  mutable std::mutex mutex_;
  /// By shape, root and whether it makes doubles.
  std::map<std::pair<std::string, std::pair<int, bool>>, ElementKernel> kernels_;
  /// Functions that were added for kernels to call.
  std::set<std::string> called_;
};

ElementJit::ElementJit() : state_(std::make_unique<State>()) {}
ElementJit::~ElementJit() = default;

auto ElementJit::Kernel(const ElementProgram& program) -> ElementKernel {
  return state_->Kernel(program, program.root, false);
}

auto ElementJit::KernelOfDoubles(const ElementProgram& program, int root) -> ElementKernel {
  return state_->Kernel(program, root, true);
}

auto ElementJit::num_kernels() const -> int { return state_->num_kernels(); }

}  // namespace shardc
