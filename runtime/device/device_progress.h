// How far a device got in what its rank has enqueued, and how the rank waits for it: it asks the device again and
// again, looks meanwhile whether another rank has failed, and gives up if the device gets no further for too long.
//
// After every 64 turns the device leaves a mark in its queue. Marks tell which ops were over when the device failed or
// hung. There are few of them: a rank that is further ahead waits here, before a call of the driver would.
#pragma once

#include <array>
#include <functional>

#include "compiler/base/units.h"
#include "runtime/device/device.h"

namespace shardc {

class DeviceProgress {
 public:
  static constexpr int64_t TurnsPerMark = 64;
  static constexpr size_t NumMarks = 8;

  /// Returns true if the device has come to some place in its queues. Errors: those of the device.
  using Ask = std::function<ErrorOr<bool>()>;

  struct Options {
    /// DevicePlace::look and its timeout.
    std::function<Status()> look;
    Seconds timeout;
    /// The rank waits after each op, whose name is in the error then.
    bool waits_by_op = false;
    /// Asks for the mark in a slot.
    std::function<ErrorOr<bool>(size_t slot)> has_come_to_mark;
  };
  explicit DeviceProgress(Options options) : options_(std::move(options)) {}

  auto LookAlso(const LookBeside& beside) -> void { beside_ = beside; }
  auto BeginSection(const SectionStart& start) -> void;
  /// Forgets the turns, whose names are asked for only until a section ends.
  auto EndSection() -> void;
  /// Notes the turn that comes next.
  auto BeginTurn(const Turns& turns, size_t index) -> void { begun_ = {&turns, index}; }
  /// Notes that all of the turn is enqueued. `leave_mark` leaves the mark of a slot in the queue of the turn. Waits if
  /// there are as many marks before it as there may be.
  auto EndTurn(const std::function<Status(size_t slot)>& leave_mark) -> Status;
  /// Notes that all that was enqueued is over.
  auto NoteAllOver() -> void;

  /// Waits until `is_over` says so. Errors, after which the device is lost: its own, with the ops between which they
  /// came; Environment if it gets no further within the timeout; those of DevicePlace::look.
  auto Wait(const Ask& is_over) -> Status;
  /// Makes an error of the device one with the ops between which it came. The device is lost then.
  auto Lose(const Error& error) -> Error;
  /// Returns true if the device does nothing more for this process, or may never come to an end.
  auto is_lost() const -> bool { return is_lost_; }
  /// Counts the device as lost.
  auto Abandon() -> void { is_lost_ = true; }

 private:
  struct Turn {
    /// Null before the first.
    const Turns* turns = nullptr;
    size_t index = 0;
  };

  /// Takes the marks that the device has passed. Returns true if it has passed one.
  auto PassMarks() -> ErrorOr<bool>;
  auto NameOf(const Turn& turn) const -> std::string;
  /// Returns "section step, step 12".
  auto SectionText() const -> std::string;

  Options options_;
  LookBeside beside_;
  bool is_lost_ = false;
  SectionKind section_ = SectionKind::Constants;
  int64_t step_ = 0;
  /// The last turn that began, and the last one that is known to be over on the device.
  Turn begun_;
  Turn over_;
  int64_t num_turns_ = 0;
  /// By slot: the turn before the mark.
  std::array<Turn, NumMarks> marked_;
  /// Numbers of the first mark that the device has not passed, and of the next one. A mark is in slot number %
  /// NumMarks.
  size_t first_mark_ = 0;
  size_t next_mark_ = 0;
};

}  // namespace shardc
