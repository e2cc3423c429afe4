#include "runtime/device/device_progress.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "compiler/base/waited_time.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

/// A small step takes less, and is not made longer by a sleep.
static constexpr auto SpinTime = std::chrono::milliseconds(2);
/// A wait ends at most so much later than it should, beside what a wake-up takes.
static constexpr auto LongestSleep = std::chrono::microseconds(100);
static constexpr int SleepsPerWait = 64;
static constexpr auto LookEvery = std::chrono::milliseconds(50);

auto DeviceProgress::BeginSection(const SectionStart& start) -> void {
  EndSection();
  section_ = start.section;
  step_ = start.step;
}

auto DeviceProgress::EndSection() -> void {
  begun_ = over_ = {};
  num_turns_ = 0;
  first_mark_ = next_mark_;
}

auto DeviceProgress::NoteAllOver() -> void {
  over_ = begun_;
  first_mark_ = next_mark_;
}

auto DeviceProgress::EndTurn(const std::function<Status(size_t)>& leave_mark) -> Status {
  if (++num_turns_ % TurnsPerMark != 0) {
    return Success{};
  }
  if (next_mark_ - first_mark_ == NumMarks) {
    RETURN_IF_ERROR(Wait([this] { return ErrorOr<bool>(next_mark_ - first_mark_ < NumMarks); }));
  }
  const size_t slot = next_mark_ % NumMarks;
  RETURN_IF_ERROR(leave_mark(slot));
  marked_[slot] = begun_;
  ++next_mark_;
  return Success{};
}

auto DeviceProgress::PassMarks() -> ErrorOr<bool> {
  bool has_passed = false;
  for (; first_mark_ < next_mark_; ++first_mark_) {
    const size_t slot = first_mark_ % NumMarks;
    const auto has_come = options_.has_come_to_mark(slot);
    if (!has_come || !*has_come) {
      return has_come ? ErrorOr<bool>(has_passed) : has_come;
    }
    over_ = marked_[slot];
    has_passed = true;
  }
  return has_passed;
}

auto DeviceProgress::Wait(const Ask& is_over) -> Status {
  const auto begin = Clock::now();
  WaitedTime waited(begin);
  auto looked = begin;
  for (;;) {
    const auto over = is_over();
    if (!over) {
      return Lose(over.error());
    }
    if (*over) {
      return Success{};
    }
    const auto has_passed = PassMarks();
    if (!has_passed) {
      return Lose(has_passed.error());
    }
    if (*has_passed) {
      waited.Restart();
    }
    const auto now = Clock::now();
    if (now - looked >= LookEvery) {
      looked = now;
      if (const Status others = options_.look ? options_.look() : Status(Success{}); !others) {
        is_lost_ = true;
        return others;
      }
      if (const Status also = beside_.look ? beside_.look() : Status(Success{}); !also) {
        return Lose(also.error());
      }
      if (std::chrono::duration<double>(waited.Look(now)).count() >= options_.timeout.value) {
        is_lost_ = true;
        return Fail(ExitCode::Environment, "the GPU did not get beyond {} of {} in {:g} s{}", NameOf(over_),
                    SectionText(), options_.timeout.value, beside_.hint ? beside_.hint() : "");
      }
    }
    if (const auto so_far = now - begin; so_far >= SpinTime) {
      std::this_thread::sleep_for(std::min<Clock::duration>(LongestSleep, so_far / SleepsPerWait));
    }
  }
}

auto DeviceProgress::Lose(const Error& error) -> Error {
  is_lost_ = true;
  if (options_.waits_by_op) {
    return error;
  }
  FAIL_IF(begun_.turns == nullptr, error.code, "{}, after {}", error.message, SectionText());
  return Fail(error.code, "{}, between {} and {} of {}; run.device_checks = true finds the op", error.message,
              NameOf(over_), NameOf(begun_), SectionText());
}

auto DeviceProgress::NameOf(const Turn& turn) const -> std::string {
  return turn.turns == nullptr ? "the beginning" : turn.turns->NameOfTurn(turn.index);
}

auto DeviceProgress::SectionText() const -> std::string {
  return fmt::format("section {}, step {}", ToText(section_), step_);
}

}  // namespace shardc
