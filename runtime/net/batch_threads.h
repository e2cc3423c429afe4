// Threads that have to stay out of the way of the thread that they work for.
#pragma once

#include <sched.h>

namespace shardc {

/// Threads that are started while an object lives are batch jobs to the scheduler (SCHED_BATCH): when one wakes up, it
/// does not interrupt the thread that runs on its core. docs/performance.md says what that is worth. A thread whose
/// class of scheduling was chosen by somebody else hands that class on.
class BatchThreads {
 public:
  BatchThreads() {
    if (sched_getscheduler(0) == SCHED_OTHER) {
      was_set_ = Set(SCHED_BATCH);
    }
  }
  BatchThreads(const BatchThreads&) = delete;
  ~BatchThreads() {
    if (was_set_) {
      Set(SCHED_OTHER);
    }
  }

 private:
  /// Of this thread, and so of those that it starts.
  static auto Set(int policy) -> bool {
    const sched_param priority{.sched_priority = 0};
    return sched_setscheduler(0, policy, &priority) == 0;
  }

  bool was_set_ = false;
};

}  // namespace shardc
