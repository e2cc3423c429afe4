#include "tests/support/shuffler.h"

#include <cstring>

#include "runtime/launch/launch.h"
#include "tests/support/in_process.h"

namespace shardc {

auto Shuffler::Run() -> ShuffledRuns {
  const auto code = LaunchThreads(plan_, {.shuffles = true}, [this](RankContext& context) -> ErrorOr<ExitCode> {
    const Status status = RunRank(context);
    if (!status) {
      const std::lock_guard lock(mutex_);
      runs_.error = status.error().message;
      return status.error();
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok(), "{}", code.error().message);
  return runs_;
}

auto Shuffler::RunRank(RankContext& context) -> Status {
  uint64_t order = 0;
  context.execution.wrap = [&order](SectionKind section, size_t index, Kernel kernel) -> Kernel {
    if (section != SectionKind::Step) {
      return kernel;
    }
    return [&order, index, kernel](const Moment& moment) -> Status {
      order = (order ^ (index * 64 + static_cast<size_t>(moment.repeat))) * 0x9e37'79b9'7f4a'7c15;
      return kernel(moment);
    };
  };
  auto made = RankRunner::Create(context);
  if (!made) {
    return made.error();
  }
  RankRunner& runner = **made;
  const auto run = [&](std::optional<uint64_t> seed, Bits& bits) -> Status {
    order = 0;
    bits = {};
    runner.execution().order = seed;
    return RunSteps(runner, context.rank, bits);
  };
  Bits expected;
  RETURN_IF_ERROR(run(std::nullopt, expected));
  const bool leads = context.rank == 0;
  for (uint64_t seed = 1; seed <= num_seeds_; ++seed) {
    Bits bits;
    RETURN_IF_ERROR(run(seed, bits));
    int64_t differs = SameBits(bits, expected) ? 0 : 1;
    RETURN_IF_ERROR(context.control->Sum(AxisSet::All(), reinterpret_cast<std::byte*>(&differs), 1, DType::I64));
    if (leads) {
      runs_.num_tried = seed;
      runs_.orders.insert(order);
      if (differs != 0) {
        runs_.different.push_back(seed);
      }
    }
    if (differs != 0 && stop_at_first_) {
      break;
    }
  }
  return Success{};
}

auto Shuffler::RunSteps(RankRunner& runner, int64_t rank, Bits& bits) const -> Status {
  constexpr int NumSteps = 2;
  for (const ScalarId id : plan_.scalars.ids()) {
    runner.scalars()[id] = 0;
  }
  RETURN_IF_ERROR(runner.RunSection(SectionKind::Constants));
  RETURN_IF_ERROR(runner.RunSection(SectionKind::Init));
  for (int step = 0; step < NumSteps; ++step) {
    const auto halt = runner.Step();
    if (!halt) {
      return halt.error();
    }
    bits.numbers.push_back(runner.scalars()[plan_.ScalarOf(ScalarRole::Loss)]);
    bits.numbers.push_back(runner.scalars()[plan_.ScalarOf(ScalarRole::GradNorm)]);
    if (*halt) {
      break;
    }
  }
  RETURN_IF_ERROR(runner.RunSection(SectionKind::Eval));
  bits.numbers.push_back(runner.scalars()[plan_.ScalarOf(ScalarRole::EvalLoss)]);
  bits.state = OwnedStateOf(plan_, runner, rank);
  return Success{};
}

auto Shuffler::SameBits(const Bits& a, const Bits& b) -> bool {
  return a.state == b.state && a.numbers.size() == b.numbers.size() &&
         std::memcmp(a.numbers.data(), b.numbers.data(), a.numbers.size() * sizeof(double)) == 0;
}

}  // namespace shardc
