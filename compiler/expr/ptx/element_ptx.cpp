#include "compiler/expr/ptx/element_ptx.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>

#include <memory>

#include "compiler/base/check.h"
#include "compiler/expr/jit/kernel_ir.h"

// Of the NVPTX target alone; llvm/Support/TargetSelect.h declares those of all that LLVM was built with.
extern "C" {
auto LLVMInitializeNVPTXTargetInfo() -> void;
auto LLVMInitializeNVPTXTarget() -> void;
auto LLVMInitializeNVPTXTargetMC() -> void;
auto LLVMInitializeNVPTXAsmPrinter() -> void;
}

namespace shardc {

auto ElementPtx(const ElementProgram& program, std::string_view processor) -> std::string {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  constexpr const char* Triple = "nvptx64-nvidia-cuda";
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(Triple, error);
  CHECK(target != nullptr, "{}", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      Triple, llvm::StringRef(processor.data(), processor.size()), "", options, llvm::Reloc::PIC_));

  llvm::LLVMContext context;
  llvm::Module module("elements", context);
  module.setTargetTriple(Triple);
  module.setDataLayout(machine->createDataLayout());
  llvm::Function* const kernel = AddKernel(module, "elements", program, program.root, false,
                                           {.lanes = static_cast<int>(ElementsPerThread), .has_threads = true});
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  passes.add(llvm::createEarlyCSEPass());
  CHECK(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile), "no PTX");
  passes.run(module);
  return std::string(text);
}

}  // namespace shardc
