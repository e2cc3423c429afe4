#include "compiler/expr/jit/kernel_ir.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/base/mapped.h"
#include "compiler/expr/evaluate_element.h"
#include "compiler/expr/jit/ir_value.h"

namespace shardc {

/// Returns true for functions of one or a few instructions.
static auto IsShort(ExprFunction function) -> bool {
  switch (function) {
    case ExprFunction::Min:
    case ExprFunction::Max:
    case ExprFunction::Abs:
    case ExprFunction::Floor:
    case ExprFunction::Ceil:
    case ExprFunction::Sqrt: return true;
    case ExprFunction::Pow:
    case ExprFunction::Exp:
    case ExprFunction::Log:
    case ExprFunction::Sin:
    case ExprFunction::Cos:
    case ExprFunction::Tanh:
    case ExprFunction::Erf:
    case ExprFunction::ErfInv: return false;
  }
  CHECK(false, "function {}", static_cast<int>(function));
}

/// Returns 0, 1, 2 ... in the lanes.
static auto Iota(llvm::Type* type, int lanes) -> llvm::Constant* {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes; ++i) {
    numbers.push_back(type->isDoubleTy() ? llvm::ConstantFP::get(type, i)
                                         : llvm::ConstantInt::get(type, static_cast<uint64_t>(i)));
  }
  return llvm::ConstantVector::get(numbers);
}

/// Returns the random words of a block, by a loop over the rounds: written out, the rounds take half the time of a
/// compilation, and are hardly faster.
static auto Words(IrValue block, IrValue draw, const PhiloxKey<IrValue>& stream_key) -> PhiloxBlock<IrValue> {
  llvm::IRBuilderBase& builder = block.builder();
  const IrValue purpose = block.With(builder.getInt64(RandomPurposeInit));
  PhiloxBlock<IrValue> counter{block, HighHalf(block), Spread(draw, block), Spread(purpose, block)};
  PhiloxKey<IrValue> key{Spread(stream_key[0], block), Spread(stream_key[1], block)};
  llvm::BasicBlock* const before = builder.GetInsertBlock();
  auto* const loop = llvm::BasicBlock::Create(builder.getContext(), "rounds", before->getParent());
  auto* const after = llvm::BasicBlock::Create(builder.getContext(), "words", before->getParent());
  builder.CreateBr(loop);
  builder.SetInsertPoint(loop);
  std::vector<llvm::PHINode*> carried;
  const auto carry = [&](IrValue& value) {
    carried.push_back(builder.CreatePHI(value.value()->getType(), 2));
    carried.back()->addIncoming(value.value(), before);
    value = value.With(carried.back());
  };
  IrValue round(builder, builder.getInt32(0));
  carry(round);
  std::for_each(counter.begin(), counter.end(), carry);
  std::for_each(key.begin(), key.end(), carry);
  PhiloxRound(counter, key);
  round = round + 1;
  size_t i = 0;
  const auto close = [&](IrValue value) { carried[i++]->addIncoming(value.value(), loop); };
  close(round);
  std::for_each(counter.begin(), counter.end(), close);
  std::for_each(key.begin(), key.end(), close);
  builder.CreateCondBr((round < PhiloxRounds).value(), loop, after);
  builder.SetInsertPoint(after);
  return {LowHalf(counter[0]), LowHalf(counter[1]), LowHalf(counter[2]), LowHalf(counter[3])};
}

/// Returns the words for the elements of a pass: all four words of each block that they are in, from `first_block` on.
static auto WordsOfPass(IrValue first_block, IrValue draw, const PhiloxKey<IrValue>& key, int lanes) -> IrValue {
  llvm::IRBuilderBase& builder = first_block.builder();
  const int num_blocks = lanes / static_cast<int>(ElementsPerBlock);
  const IrValue blocks =
      first_block.With(builder.CreateVectorSplat(static_cast<unsigned>(num_blocks), first_block.value())) +
      first_block.With(Iota(builder.getInt64Ty(), num_blocks));
  const auto words = Words(blocks, draw, key);
  // Two words in a number of 64 bits, and the two numbers of a block next to each other.
  const IrValue front = words[0] | (words[1] << 32);
  const IrValue back = words[2] | (words[3] << 32);
  std::vector<int> order;
  for (int i = 0; i < num_blocks; ++i) {
    order.insert(order.end(), {i, num_blocks + i});
  }
  llvm::Value* const pairs = builder.CreateShuffleVector(front.value(), back.value(), order);
  return first_block.With(
      builder.CreateBitCast(pairs, llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(lanes))));
}

// What kernels call has a name with its row and lanes: "function_3_8", "words_0_32".
constexpr llvm::StringLiteral FunctionPrefix = "function_";
constexpr llvm::StringLiteral WordsPrefix = "words_";

static auto Declare(llvm::Module& module, llvm::StringRef prefix, int row, int lanes, llvm::Type* result,
                    const std::vector<llvm::Type*>& arguments) -> llvm::Function* {
  const std::string name = fmt::format("{}{}_{}", prefix.str(), row, lanes);
  llvm::Function* const known = module.getFunction(name);
  return known != nullptr ? known
                          : llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                                                   llvm::Function::ExternalLinkage, name, module);
}

/// Declares (numbers...) -> {value, a bit of fault for each lane}.
static auto DeclareFunction(llvm::Module& module, ExprFunction function, size_t num_arguments, int lanes)
    -> llvm::Function* {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const number = llvm::FixedVectorType::get(llvm::Type::getDoubleTy(context), static_cast<unsigned>(lanes));
  llvm::Type* const faults = llvm::Type::getIntNTy(context, static_cast<unsigned>(lanes));
  return Declare(module, FunctionPrefix, static_cast<int>(function), lanes,
                 llvm::StructType::get(context, {number, faults}), std::vector<llvm::Type*>(num_arguments, number));
}

/// Declares (first block, draw, key...) -> a word for each lane.
static auto DeclareWords(llvm::Module& module, int lanes) -> llvm::Function* {
  llvm::LLVMContext& context = module.getContext();
  return Declare(module, WordsPrefix, 0, lanes,
                 llvm::FixedVectorType::get(llvm::Type::getInt32Ty(context), static_cast<unsigned>(lanes)),
                 std::vector<llvm::Type*>(4, llvm::Type::getInt64Ty(context)));
}

static auto DefineFunction(llvm::Function& made, ExprFunction function, int lanes) -> void {
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(made.getContext(), "entry", &made));
  const auto arguments =
      Mapped<IrValue>(made.args(), [&](llvm::Argument& argument) { return IrValue(builder, &argument); });
  const Computed<IrValue> computed = ComputeFunction<IrValue>(function, arguments);
  llvm::Type* const faults = builder.getIntNTy(static_cast<unsigned>(lanes));
  llvm::Value* const fault = computed.fault.exists() ? builder.CreateBitCast(computed.fault.value(), faults)
                                                     : llvm::ConstantInt::get(faults, 0);
  llvm::Value* result = llvm::PoisonValue::get(made.getReturnType());
  result = builder.CreateInsertValue(result, computed.value.value(), 0);
  builder.CreateRet(builder.CreateInsertValue(result, fault, 1));
}

static auto DefineWords(llvm::Function& made, int lanes) -> void {
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(made.getContext(), "entry", &made));
  const auto argument = [&](unsigned i) { return IrValue(builder, made.getArg(i)); };
  builder.CreateRet(WordsOfPass(argument(0), argument(1), {argument(2), argument(3)}, lanes).value());
}

auto AddCalled(llvm::Module& module, std::set<std::string>* known) -> void {
  for (llvm::Function& function : module) {
    llvm::StringRef name = function.getName();
    const bool is_words = name.consume_front(WordsPrefix);
    int row = 0;
    int lanes = 0;
    const bool is_called = (is_words || name.consume_front(FunctionPrefix)) && !name.consumeInteger(10, row) &&
                           name.consume_front("_") && !name.getAsInteger(10, lanes);
    if (!is_called || !known->insert(function.getName().str()).second) {
      continue;
    }
    if (is_words) {
      DefineWords(function, lanes);
    } else {
      DefineFunction(function, static_cast<ExprFunction>(row), lanes);
    }
  }
}

/// Target of ElementEvaluation that generates code. Numbers and keys are loaded once, before the loop.
struct IrTarget {
  using Number = IrValue;
  using Float = IrValue;

  IrTarget(llvm::IRBuilderBase& builder, llvm::Instruction* before_loop, llvm::Function* function, KernelTarget target)
      : builder(builder),
        before_loop(before_loop),
        function(function),
        num_lanes(target.lanes),
        calls_functions(!target.has_threads) {}

  auto Literal(int slot) -> IrValue {
    auto& literal = literals[slot];
    if (!literal.exists()) {
      const llvm::IRBuilderBase::InsertPointGuard guard(builder);
      builder.SetInsertPoint(before_loop);
      llvm::Value* const number = Load(0, builder.getDoubleTy(), slot);
      literal = {builder, builder.CreateVectorSplat(static_cast<unsigned>(num_lanes), number)};
    }
    return literal;
  }

  auto Element() -> IrValue {
    if (!element.exists()) {
      // Below 2^53, so that its conversion and the sum are exact.
      const IrValue base = ToNumber(IrValue(builder, first));
      element = base + IrValue(builder, Iota(builder.getDoubleTy(), num_lanes));
    }
    return element;
  }

  /// Returns loaded elements. Those of all passes are stored one load after another; the reader knows where each comes
  /// from.
  auto Loaded(int load, const IrValue*) -> IrValue {
    llvm::Value* const of_load =
        builder.CreateMul(builder.getInt64(static_cast<uint64_t>(load) * static_cast<uint64_t>(num_lanes)), passes);
    llvm::Type* const number = builder.getFloatTy();
    llvm::Value* const address = builder.CreateGEP(number, function->getArg(2), builder.CreateAdd(of_load, offset));
    auto* const lanes = llvm::FixedVectorType::get(number, static_cast<unsigned>(num_lanes));
    return ToDouble(IrValue(builder, builder.CreateAlignedLoad(lanes, address, llvm::Align(alignof(float)))));
  }

  auto Word(int stream, int draw, const IrValue* position) -> IrValue {
    if (position == nullptr) {
      return OwnWords(stream, draw);
    }
    const IrValue number = ToInteger(*position);
    const IrValue draw_number(builder, builder.getInt64(static_cast<uint64_t>(draw)));
    const auto words = Words(number >> 2, draw_number, Key(stream));
    const IrValue is_odd = (number & 1) != 0;
    const IrValue word =
        Select((number & 2) != 0, Select(is_odd, words[3], words[2]), Select(is_odd, words[1], words[0]));
    return {builder, builder.CreateTrunc(word.value(), word.TypeOf(builder.getInt32Ty()))};
  }

  auto Compute(ExprFunction called, std::span<const IrValue> arguments) -> Computed<IrValue> {
    if (!calls_functions || IsShort(called)) {
      return ComputeFunction(called, arguments);
    }
    llvm::Function* const callee = DeclareFunction(*function->getParent(), called, arguments.size(), num_lanes);
    const auto values =
        Mapped<llvm::Value*>(arguments, [&](const IrValue argument) { return Spread(argument, Element()).value(); });
    llvm::Value* const result = builder.CreateCall(callee, values);
    llvm::Type* const mask = llvm::FixedVectorType::get(builder.getInt1Ty(), static_cast<unsigned>(num_lanes));
    return {.value = {builder, builder.CreateExtractValue(result, 0)},
            .fault = {builder, builder.CreateBitCast(builder.CreateExtractValue(result, 1), mask)}};
  }

  llvm::IRBuilderBase& builder;
  /// An instruction of the block before the loop.
  llvm::Instruction* before_loop;
  llvm::Function* function;
  int num_lanes;
  bool calls_functions;
  /// The number of the first element of the pass; an i64.
  llvm::Value* first = nullptr;
  /// How many elements lie between it and the first of all passes, and how many passes there are; i64.
  llvm::Value* offset = nullptr;
  llvm::Value* passes = nullptr;
  std::map<int, IrValue> literals{};
  std::map<int, PhiloxKey<IrValue>> keys{};
  IrValue element{};

 private:
  auto Load(unsigned argument, llvm::Type* type, int index) -> llvm::Value* {
    llvm::Value* const address =
        builder.CreateConstInBoundsGEP1_64(type, function->getArg(argument), static_cast<uint64_t>(index));
    return builder.CreateLoad(type, address);
  }

  auto Key(int stream) -> const PhiloxKey<IrValue>& {
    const auto found = keys.find(stream);
    if (found != keys.end()) {
      return found->second;
    }
    const llvm::IRBuilderBase::InsertPointGuard guard(builder);
    builder.SetInsertPoint(before_loop);
    llvm::Type* const word = builder.getInt64Ty();
    return keys[stream] = {IrValue(builder, Load(1, word, 2 * stream)),
                           IrValue(builder, Load(1, word, 2 * stream + 1))};
  }

  /// Returns the words for the elements of the pass.
  auto OwnWords(int stream, int draw) -> IrValue {
    const IrValue first_block = IrValue(builder, first) >> 2;
    const IrValue draw_number(builder, builder.getInt64(static_cast<uint64_t>(draw)));
    const PhiloxKey<IrValue>& key = Key(stream);
    if (!calls_functions) {
      return WordsOfPass(first_block, draw_number, key, num_lanes);
    }
    llvm::Function* const callee = DeclareWords(*function->getParent(), num_lanes);
    return {builder,
            builder.CreateCall(callee, {first_block.value(), draw_number.value(), key[0].value(), key[1].value()})};
  }
};

auto AddKernel(llvm::Module& module, const std::string& name, const ElementProgram& program, int root, bool as_double,
               KernelTarget target) -> llvm::Function* {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* const pointer = builder.getPtrTy();
  llvm::Type* const word = builder.getInt64Ty();
  std::vector<llvm::Type*> arguments{pointer, pointer, pointer, word, word, pointer};
  if (target.has_threads) {
    arguments.push_back(pointer);
  }
  llvm::Function* const function =
      llvm::Function::Create(llvm::FunctionType::get(target.has_threads ? builder.getVoidTy() : word, arguments, false),
                             llvm::Function::ExternalLinkage, name, module);
  for (const unsigned i : {0U, 1U, 2U, 5U}) {
    function->addParamAttr(i, llvm::Attribute::NoAlias);
  }
  llvm::Argument* const first = function->getArg(3);
  llvm::Argument* const passes = function->getArg(4);

  auto* const entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* const loop = llvm::BasicBlock::Create(context, "loop", function);
  auto* const done = llvm::BasicBlock::Create(context, "done", function);
  builder.SetInsertPoint(entry);
  llvm::Value* begin = builder.getInt64(0);
  if (target.has_threads) {
    const auto read = [&](llvm::Intrinsic::ID id) {
      return builder.CreateZExt(builder.CreateIntrinsic(id, {}, {}), word);
    };
    begin = builder.CreateAdd(builder.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                                                read(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x)),
                              read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
  }
  llvm::Instruction* const enter = builder.CreateCondBr(builder.CreateICmpSLT(begin, passes), loop, done);
  builder.SetInsertPoint(loop);
  llvm::Value* pass = begin;
  llvm::Value* faults_before = builder.getFalse();
  // Of the loop; a thread makes one pass.
  std::vector<llvm::PHINode*> carried;
  if (!target.has_threads) {
    for (llvm::Value** const value : {&pass, &faults_before}) {
      carried.push_back(builder.CreatePHI((*value)->getType(), 2));
      carried.back()->addIncoming(*value, entry);
      *value = carried.back();
    }
  }

  IrTarget ir(builder, enter, function, target);
  llvm::Value* const offset = builder.CreateMul(pass, builder.getInt64(static_cast<uint64_t>(target.lanes)));
  ir.first = builder.CreateAdd(first, offset);
  ir.offset = offset;
  ir.passes = passes;
  const auto value = ElementEvaluation<IrTarget>(program, ir).Run(root);
  const IrValue number = Spread(value.number, ir.Element());
  const IrValue stored = as_double ? number : ToFloat(number);
  const IrValue fault = Either(value.fault, Not(IsFinite(stored)));
  builder.CreateAlignedStore(stored.value(), builder.CreateGEP(stored.element_type(), function->getArg(5), offset),
                             llvm::Align(as_double ? alignof(double) : alignof(float)));
  llvm::Value* const faults = builder.CreateOr(faults_before, InAnyLane(fault));
  if (target.has_threads) {
    auto* const report = llvm::BasicBlock::Create(context, "report", function);
    builder.CreateCondBr(faults, report, done);
    builder.SetInsertPoint(report);
    builder.CreateStore(builder.getInt32(1), function->getArg(6));
    builder.CreateBr(done);
    builder.SetInsertPoint(done);
    builder.CreateRetVoid();
    return function;
  }
  llvm::Value* const next = builder.CreateAdd(pass, builder.getInt64(1));
  llvm::BasicBlock* const end = builder.GetInsertBlock();
  carried[0]->addIncoming(next, end);
  carried[1]->addIncoming(faults, end);
  builder.CreateCondBr(builder.CreateICmpSLT(next, passes), loop, done);
  builder.SetInsertPoint(done);
  llvm::PHINode* const result = builder.CreatePHI(builder.getInt1Ty(), 2);
  result->addIncoming(builder.getFalse(), entry);
  result->addIncoming(faults, end);
  builder.CreateRet(builder.CreateZExt(result, word));
  return function;
}

}  // namespace shardc
