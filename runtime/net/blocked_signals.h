// Threads that libraries start take no signals: those are for the threads that know what to do with them.
#pragma once

#include <csignal>

namespace shardc {

/// While an object lives, its thread takes no signal. Threads that it starts meanwhile never do.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace shardc
