#include "tests/support/kernel_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "compiler/base/processor.h"
#include "runtime/device/family.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/machine/device.h"
#include "tests/support/warp_order.h"

namespace shardc {

constexpr size_t GuardBytes = 256;
constexpr std::byte Guard{0xA5};
/// Arena of a device that copies; bytes that no test uses are never touched.
constexpr int64_t ArenaBytes = int64_t{1} << 30;
/// So much of an op's scratch on such a device holds ones before it runs.
constexpr int64_t PaintedScratch = int64_t{1} << 20;

auto Backends() -> std::vector<Backend>& {
  static std::vector<Backend> backends = [] {
    std::vector<Backend> all{{Device::CpuPortable, KernelSet::Fused}, {Device::CpuPortable, KernelSet::Reference}};
    if (HasAvx512()) {
      all.push_back({Device::CpuAvx512, KernelSet::Fused});
    }
    if (PartsOf(DeviceFamily::Cuda).make_device != nullptr) {
      all.push_back({Device::CudaSm90, KernelSet::Fused});
    }
    return all;
  }();
  return backends;
}

/// Returns a device that copies, the same one for all fixtures: it takes long to make.
static auto KeptDevice(Device kind) -> std::shared_ptr<RankDevice> {
  struct Kept {
    Plan plan;
    SharedArenas arenas;
    std::shared_ptr<RankDevice> device;
  };
  static std::map<Device, Kept> all;
  Kept& kept = all[kind];
  if (kept.device == nullptr) {
    kept.plan.device = kind;
    kept.plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = ArenaBytes;
    kept.arenas = *SharedArenas::Create({}, {0, 1});
    auto device = MakeDevice(kept.plan, {.arenas = &kept.arenas});
    CHECK(device.ok(), "no device {}: {}", ToText(kind), device.error().message);
    kept.device = *std::move(device);
  }
  return kept.device;
}

KernelFixture::KernelFixture(const Backend& backend, int64_t rank) : rank_(rank) {
  plan_.device = backend.device;
  plan_.kernels = backend.kernels;
  arenas_ = *SharedArenas::Create({}, {0, rank + 1});
  device_ = copies() ? KeptDevice(backend.device) : *MakeDevice(plan_, {.arenas = &arenas_, .rank = rank});
  scalars() = ScalarTable(16);
}

auto KernelFixture::Add(DType dtype, Dims shape) -> ValueId {
  const Bytes bytes{NumElements(shape) * SizeOf(dtype)};
  const BufferId buffer = plan_.buffers.Add({.name = "buffer", .bytes = bytes, .offset = 0});
  AllocateNewBuffers();
  return plan_.values.Add({.buffer = buffer, .offset = {}, .dtype = dtype, .shape = std::move(shape)});
}

auto KernelFixture::AllocateNewBuffers() -> void {
  while (static_cast<int64_t>(memories_.size()) < plan_.buffers.size()) {
    Allocate(plan_.buffers[BufferId{static_cast<int32_t>(memories_.size())}].bytes.value, 0);
  }
}

auto KernelFixture::Allocate(int64_t bytes, int64_t bytes_of_device) -> void {
  Memory memory;
  memory.bytes.assign(static_cast<size_t>(bytes) + 2 * GuardBytes + 64, Guard);
  const size_t first = reinterpret_cast<uintptr_t>(memory.bytes.data());
  memory.begin = (first + GuardBytes + 63) / 64 * 64 - first;
  memory.end = memory.begin + static_cast<size_t>(bytes);
  std::fill(memory.bytes.begin() + static_cast<int64_t>(memory.begin),
            memory.bytes.begin() + static_cast<int64_t>(memory.end), std::byte{0xFF});
  const auto begin = static_cast<int64_t>(memory.begin);
  memory.offset = RoundUp(used_ + begin, 256) - begin;
  memory.bytes_of_device = bytes_of_device;
  used_ = memory.offset + static_cast<int64_t>(memory.bytes.size()) + bytes_of_device;
  CHECK(!copies() || used_ <= ArenaBytes, "operands of {} B", used_);
  memories_.push_back(std::move(memory));
}

auto KernelFixture::AddScratch(Bytes bytes) -> ValueId {
  const BufferId buffer = plan_.buffers.Add({.name = "scratch", .bytes = bytes, .offset = 0});
  Allocate(copies() ? 0 : bytes.value, copies() ? bytes.value : 0);
  return plan_.values.Add(
      {.buffer = buffer, .offset = {}, .dtype = DType::F32, .shape = {bytes.value / SizeOf(DType::F32)}});
}

auto KernelFixture::ScratchOf(Bytes bytes) -> ValueId {
  const auto [of_size, is_new] = scratches_.try_emplace(bytes);
  if (is_new) {
    of_size->second = AddScratch(bytes);
  }
  return of_size->second;
}

namespace {

/// Bytes that both the device and the host have.
struct Both {
  std::byte* on_device = nullptr;
  std::byte* here = nullptr;
  int64_t bytes = 0;

  auto end() const -> std::byte* { return on_device + bytes; }
};

auto BytesOf(const std::vector<Both>& span) -> int64_t { return span.back().end() - span.front().on_device; }

}  // namespace

/// Calls copy(span) for all bytes that both have, several buffers at a time: those that lie one after another on the
/// device, which a single copy reaches with what is between them. A GPU takes as long for a few bytes as for many.
template <class Copy>
auto KernelFixture::ForCopies(const Copy& copy) -> Status {
  constexpr int64_t MostBetween = 256;
  std::vector<Both> span;
  const auto add = [&](const Both& both) -> Status {
    if (!span.empty() && both.on_device - span.back().end() > MostBetween) {
      RETURN_IF_ERROR(copy(std::as_const(span)));
      span.clear();
    }
    span.push_back(both);
    return Success{};
  };
  for (Memory& memory : memories_) {
    std::byte* const base = device_->Base(Arena::Transient) + memory.offset;
    const auto before = static_cast<int64_t>(memory.bytes_of_device == 0 ? memory.bytes.size() : memory.end);
    const auto after = static_cast<int64_t>(memory.bytes.size()) - before;
    RETURN_IF_ERROR(add({base, memory.bytes.data(), before}));
    if (after > 0) {
      RETURN_IF_ERROR(add({base + before + memory.bytes_of_device, memory.bytes.data() + before, after}));
    }
  }
  return span.empty() ? Status(Success{}) : copy(std::as_const(span));
}

auto KernelFixture::CopyToDevice() -> Status {
  Queue& queue = device_->queue(Stream::Compute);
  return ForCopies([&](const std::vector<Both>& span) -> Status {
    std::byte* const first = span.front().on_device;
    std::byte* const copied = queue.BeginWrite(first, BytesOf(span), copy_);
    for (const Both& both : span) {
      std::memcpy(copied + (both.on_device - first), both.here, static_cast<size_t>(both.bytes));
    }
    return queue.EndWrite(first, BytesOf(span), copy_);
  });
}

auto KernelFixture::CopyFromDevice() -> Status {
  return ForCopies([&](const std::vector<Both>& span) -> Status {
    const std::byte* const first = span.front().on_device;
    const auto read = device_->Read(first, BytesOf(span), copy_);
    if (!read) {
      return read.error();
    }
    for (const Both& both : span) {
      std::memcpy(both.here, *read + (both.on_device - first), static_cast<size_t>(both.bytes));
    }
    return Success{};
  });
}

auto KernelFixture::PaintScratch() -> Status {
  Queue& queue = device_->queue(Stream::Compute);
  for (const Memory& memory : memories_) {
    std::byte* const to = device_->Base(Arena::Transient) + memory.offset + memory.begin;
    const int64_t bytes = std::min(memory.bytes_of_device, PaintedScratch);
    std::fill_n(queue.BeginWrite(to, bytes, copy_), bytes, std::byte{0xFF});
    RETURN_IF_ERROR(queue.EndWrite(to, bytes, copy_));
  }
  return Success{};
}

template <class T, class Number>
static auto Write(std::byte* to, const std::vector<Number>& elements) -> void {
  for (size_t i = 0; i < elements.size(); ++i) {
    const T element = static_cast<T>(elements[i]);
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }
}

auto KernelFixture::F32(Dims shape, const std::vector<double>& elements) -> ValueId {
  CHECK(NumElements(shape) == static_cast<int64_t>(elements.size()), "{} of {}", elements.size(), ToText(shape));
  const ValueId value = Add(DType::F32, std::move(shape));
  Write<float>(MemoryOf(value), elements);
  return value;
}

auto KernelFixture::BF16(Dims shape, const std::vector<double>& elements) -> ValueId {
  CHECK(NumElements(shape) == static_cast<int64_t>(elements.size()), "{} of {}", elements.size(), ToText(shape));
  const ValueId value = Add(DType::BF16, std::move(shape));
  const std::span<BFloat16> rounded = At<BFloat16>(value);
  for (size_t i = 0; i < elements.size(); ++i) {
    Store(rounded[i], static_cast<float>(elements[i]));
  }
  return value;
}

auto KernelFixture::Floats(DType dtype, Dims shape, const std::vector<double>& elements) -> ValueId {
  return dtype == DType::BF16 ? BF16(std::move(shape), elements) : F32(std::move(shape), elements);
}

auto KernelFixture::F64(const std::vector<double>& elements) -> ValueId {
  const ValueId value = Add(DType::F64, {static_cast<int64_t>(elements.size())});
  Write<double>(MemoryOf(value), elements);
  return value;
}

auto KernelFixture::I32(Dims shape, const std::vector<int32_t>& elements) -> ValueId {
  CHECK(NumElements(shape) == static_cast<int64_t>(elements.size()), "{} of {}", elements.size(), ToText(shape));
  const ValueId value = Add(DType::I32, std::move(shape));
  Write<int32_t>(MemoryOf(value), elements);
  return value;
}

auto KernelFixture::I64(const std::vector<int64_t>& elements) -> ValueId {
  const ValueId value = Add(DType::I64, {static_cast<int64_t>(elements.size())});
  Write<int64_t>(MemoryOf(value), elements);
  return value;
}

auto KernelFixture::Over(ValueId value) -> ValueId {
  const Value copy = plan_.values[value];
  return plan_.values.Add(copy);
}

auto KernelFixture::AddScalar(ScalarKind kind, double number) -> ScalarId {
  const ScalarId scalar = plan_.scalars.Add({.name = "scalar", .kind = kind, .expression = ""});
  CHECK(scalar.index < 16, "more scalars than the fixture can have");
  scalars()[scalar] = number;
  return scalar;
}

auto KernelFixture::BindWithScratch(OpBody body) -> Kernel {
  VisitBody(body, [&](auto& concrete) {
    if constexpr (HasScratch<std::remove_reference_t<decltype(concrete)>>) {
      const Bytes bytes = ScratchBytes(concrete, plan_);
      if (bytes > Bytes{} && !concrete.scratch.valid()) {
        concrete.scratch = ScratchOf(bytes);
      }
    }
  });
  Kernel kernel = BindOp(body, *this);
  if (!copies()) {
    return kernel;
  }
  // An op of the host may count.
  const bool once = VisitBody(body, []<class Body>(const Body&) { return host::HasKernel<Body>; });
  return [this, kernel = std::move(kernel), once](const Moment& moment) -> Status {
    return once ? RunOnDevice(kernel, moment) : RunTwiceOnDevice(kernel, moment);
  };
}

auto KernelFixture::RunOnDevice(const Kernel& kernel, const Moment& moment) -> Status {
  RETURN_IF_ERROR(CopyToDevice());
  RETURN_IF_ERROR(kernel(moment));
  RETURN_IF_ERROR(device_->Finish());
  return CopyFromDevice();
}

auto KernelFixture::RunTwiceOnDevice(const Kernel& kernel, const Moment& moment) -> Status {
  std::vector<std::vector<std::byte>> kept(memories_.size());
  std::ranges::transform(memories_, kept.begin(), &Memory::bytes);
  emulated::warp_order = emulated::WarpOrder::Ascending;
  RETURN_IF_ERROR(PaintScratch());
  RETURN_IF_ERROR(RunOnDevice(kernel, moment));
  // Tests have spans of the bytes. In scratch the second run finds what the first one left.
  for (size_t i = 0; i < kept.size(); ++i) {
    std::ranges::swap_ranges(memories_[i].bytes, kept[i]);
  }
  emulated::warp_order = emulated::WarpOrder::Descending;
  RETURN_IF_ERROR(RunOnDevice(kernel, moment));
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(!plan_.run.deterministic || memories_[i].bytes == kept[i])
        << "another run gave other bits, in buffer " << i;
  }
  return Success{};
}

auto KernelFixture::TryRun(OpBody body) -> Status {
  const Kernel kernel = BindWithScratch(std::move(body));
  Status status = kernel(Moment{});
  EXPECT_TRUE(GuardsHold()) << "the kernel wrote outside its operands";
  return status;
}

auto KernelFixture::Run(OpBody body) -> void {
  const Status status = TryRun(std::move(body));
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

auto KernelFixture::ViewOf(ValueId value) -> View {
  const Value& described = plan_.values[value];
  const Memory& memory = memories_[static_cast<size_t>(described.buffer.index)];
  std::byte* const on_device =
      copies() ? device_->Base(Arena::Transient) + memory.offset + memory.begin : MemoryOf(value);
  return {.base = on_device, .dtype = described.dtype, .shape = described.shape};
}

auto KernelFixture::Numbers(ValueId value) -> std::vector<double> {
  const auto widened = [&]<class T>(std::span<const T> elements) {
    std::vector<double> numbers;
    for (const T& element : elements) {
      if constexpr (std::is_same_v<T, BFloat16>) {
        numbers.push_back(static_cast<double>(Load(element)));
      } else {
        numbers.push_back(static_cast<double>(element));
      }
    }
    return numbers;
  };
  switch (plan_.values[value].dtype) {
    case DType::F32: return widened(std::span<const float>(At<float>(value)));
    case DType::BF16: return widened(std::span<const BFloat16>(At<BFloat16>(value)));
    case DType::F64: return widened(std::span<const double>(At<double>(value)));
    case DType::I32: return widened(std::span<const int32_t>(At<int32_t>(value)));
    case DType::I64: return widened(std::span<const int64_t>(At<int64_t>(value)));
    case DType::F16: break;
  }
  CHECK(false, "numbers of a type that is none");
}

auto KernelFixture::MemoryOf(ValueId value) -> std::byte* {
  Memory& memory = memories_[static_cast<size_t>(plan_.values[value].buffer.index)];
  return memory.bytes.data() + memory.begin;
}

auto KernelFixture::GuardsHold() const -> bool {
  return std::all_of(memories_.begin(), memories_.end(), [](const Memory& memory) {
    const auto is_guard = [](std::byte byte) { return byte == Guard; };
    const auto first = memory.bytes.begin();
    return std::all_of(first, first + static_cast<int64_t>(memory.begin), is_guard) &&
           std::all_of(first + static_cast<int64_t>(memory.end), memory.bytes.end(), is_guard);
  });
}

auto KernelFixture::communicator() -> Communicator& { CHECK(false, "a kernel test has no communicator"); }
auto KernelFixture::control() -> RankControl& { CHECK(false, "a kernel test has no control"); }
auto KernelFixture::tokens() -> TokenReader& { CHECK(false, "a kernel test has no token reader"); }
auto KernelFixture::writer() -> CheckpointWriter& { CHECK(false, "a kernel test has no checkpoint writer"); }
auto KernelFixture::reader() -> CheckpointReader& { CHECK(false, "a kernel test has no checkpoint reader"); }

auto RandomNumbers(int64_t count, uint64_t seed, double spread) -> std::vector<double> {
  std::mt19937_64 bits(seed);
  std::vector<double> numbers(static_cast<size_t>(count));
  for (double& number : numbers) {
    // The sum of four uniform numbers has variance 1/3.
    double sum = -2;
    for (int i = 0; i < 4; ++i) {
      sum += static_cast<double>(bits() >> 11) * 0x1p-53;
    }
    number = static_cast<double>(static_cast<float>(sum * std::sqrt(3.0) * spread));
  }
  return numbers;
}

auto RoundedTo(DType dtype, std::vector<double> numbers) -> std::vector<double> {
  for (double& number : numbers) {
    const auto single = static_cast<float>(number);
    BFloat16 half{};
    Store(half, single);
    number = static_cast<double>(dtype == DType::BF16 ? Load(half) : single);
  }
  return numbers;
}

auto RandomNumbers(DType dtype, int64_t count, uint64_t seed, double spread) -> std::vector<double> {
  return RoundedTo(dtype, RandomNumbers(count, seed, spread));
}

auto RandomTokens(int64_t count, uint64_t seed, int64_t vocabulary) -> std::vector<int32_t> {
  std::mt19937_64 bits(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) {
    token = static_cast<int32_t>(bits() % static_cast<uint64_t>(vocabulary));
  }
  return tokens;
}

}  // namespace shardc
