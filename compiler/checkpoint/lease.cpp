#include "compiler/checkpoint/lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "compiler/checkpoint/digest.h"

namespace shardc {

using Nanoseconds = std::chrono::nanoseconds;

static auto DurationOf(Seconds seconds) -> Nanoseconds {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds.value));
}

/// Gives a lease that was moved by mistake its name back, unless there is a new one: then its owner has lost it.
static auto PutBack(const Descriptor& directory, const std::string& from, const std::string& to) -> void {
  const int at = directory.get();
  if (renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE) == 0) {
    return;
  }
  if (errno == EINVAL || errno == ENOSYS) {
    // Not every file system knows it, and not every one has hard links.
    struct stat info {};
    if (linkat(at, from.c_str(), at, to.c_str(), 0) != 0 && errno != EEXIST &&
        fstatat(at, to.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && RenameAt(directory, from, to).ok()) {
      return;
    }
  }
  static_cast<void>(directory.fs().Unlink(at, from.c_str(), false));
}

Lease::Lease(std::string directory, const std::string& run_id, LeaseOptions options)
    : path_(std::move(directory)), options_(std::move(options)), record_(NewLeaseRecord(run_id)) {}

auto Lease::Acquire(const std::string& directory, const std::string& run_id, LeaseOptions options)
    -> ErrorOr<std::unique_ptr<Lease>> {
  FAIL_IF(!IsPlainName(run_id), ExitCode::RecipeRejected,
          "run_id \"{}\" is no plain name (letters, digits, `.`, `_`, `-`)", run_id);
  RETURN_IF_ERROR(MakeDirectories(*options.fs, directory));
  std::unique_ptr<Lease> lease(new Lease(directory, run_id, std::move(options)));
  const LeaseOptions& chosen = lease->options_;
  LeaseWatch watch;
  LeaseWatch claims;
  bool is_noted = false;
  for (;;) {
    ASSIGN_OR_RETURN(const auto opened, OpenDirectory(*chosen.fs, directory));
    ASSIGN_OR_RETURN(auto file, lease->Create(opened, chosen.file_name));
    if (file.is_open()) {
      lease->file_ = std::move(file);
      lease->ClearRemains(opened);
      if (chosen.beats_at_once) {
        RETURN_IF_ERROR(lease->StartBeating());
      }
      return lease;
    }
    ASSIGN_OR_RETURN(const auto seen, LookAtLease(opened, chosen.file_name));
    if (!seen.is_there) {
      continue;
    }
    switch (watch.Judge(seen, chosen.stale_after)) {
      case LeaseVerdict::Held:
        return Fail(ExitCode::Environment, "{} {} is in use by {}; wait until that has ended{}{}", chosen.what,
                    directory, seen.OwnerText(), chosen.remedy.empty() ? "" : ", or ", chosen.remedy);
      case LeaseVerdict::Stale: RETURN_IF_ERROR(lease->TakeAway(opened, seen, claims)); break;
      case LeaseVerdict::Undecided:
        // What is being made or is ending needs no word.
        if (!is_noted && watch.watched() >= chosen.poll * 5.0 && chosen.note) {
          is_noted = true;
          chosen.note(fmt::format("{} {} may be in use by {}; it is taken over if its {} stands still for {:g} s",
                                  chosen.what, directory, seen.OwnerText(), chosen.file_name,
                                  chosen.stale_after.value));
        }
        RETURN_IF_ERROR(lease->Pause());
        break;
    }
  }
}

auto Lease::Pause() const -> Status {
  std::this_thread::sleep_for(DurationOf(options_.poll));
  return options_.while_waiting ? options_.while_waiting() : Status(Success{});
}

auto Lease::Create(const Descriptor& directory, const std::string& name) const -> ErrorOr<Descriptor> {
  Fs& fs = *options_.fs;
  const std::string path = directory.path() + "/" + name;
  const int opened = fs.Open(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (opened < 0) {
    const int code = errno;
    return code == EEXIST ? ErrorOr<Descriptor>(Descriptor())
                          : Fail(ExitCode::Environment, "cannot create {}: {}; {} {} needs an owner", path,
                                 std::strerror(code), options_.what, path_);
  }
  Descriptor file(fs, opened, path);
  const std::string text = ToText(record_);
  Status written = WriteAll(file, text.data(), static_cast<int64_t>(text.size()), 0);
  if (written) {
    written = file.Fsync();
  }
  if (!written) {
    static_cast<void>(fs.Unlink(directory.get(), name.c_str(), false));
    return written.error();
  }
  return file;
}

auto Lease::ClaimName(const LeaseSighting& stale) const -> std::string {
  return fmt::format("{}.claim-{}", options_.file_name, stale.record ? stale.token() : DigestOf(stale.fingerprint));
}

auto Lease::TakeAway(const Descriptor& directory, const LeaseSighting& stale, LeaseWatch& claims) const -> Status {
  Fs& fs = *options_.fs;
  const std::string& name = options_.file_name;
  const std::string claim_name = ClaimName(stale);
  ASSIGN_OR_RETURN(const auto claim, Create(directory, claim_name));
  if (!claim.is_open()) {
    // Another is at it, or was when it was killed.
    ASSIGN_OR_RETURN(const auto other, LookAtLease(directory, claim_name));
    if (other.is_there && claims.Judge(other, options_.stale_after) == LeaseVerdict::Stale) {
      static_cast<void>(fs.Unlink(directory.get(), claim_name.c_str(), false));
      return Success{};
    }
    return Pause();
  }
  const auto take = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto now, LookAtLease(directory, name));
    if (now.fingerprint != stale.fingerprint) {
      return Success{};
    }
    const std::string moved_name = fmt::format("{}.stale-{}", name, record_.token);
    RETURN_IF_ERROR(RenameAt(directory, name, moved_name));
    const auto moved = LookAtLease(directory, moved_name);
    if (!moved || moved->fingerprint != stale.fingerprint) {
      PutBack(directory, moved_name, name);
    } else if (fs.Unlink(directory.get(), moved_name.c_str(), false) != 0) {
      // A directory; with something in it, it stays under its new name.
      static_cast<void>(fs.Unlink(directory.get(), moved_name.c_str(), true));
    }
    return Success{};
  };
  const Status taken = take();
  static_cast<void>(fs.Unlink(directory.get(), claim_name.c_str(), false));
  return taken;
}

auto Lease::ClearRemains(const Descriptor& directory) const -> void {
  const auto names = ListDirectory(directory);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (!name.starts_with(options_.file_name + ".stale-") && !name.starts_with(options_.file_name + ".claim-")) {
      continue;
    }
    // That of a taker that lives is left to it.
    const auto seen = LookAtLease(directory, name);
    if (seen && seen->record && StateOf(seen->record->process) == ProcessState::Gone) {
      static_cast<void>(directory.fs().Unlink(directory.get(), name.c_str(), false));
    }
  }
}

auto Lease::StartBeating() -> Status {
  // Signals are for the owner's other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started = Success{};
  try {
    beater_ = std::make_unique<Beater>();
    beater_->thread = std::thread([this, &beater = *beater_] {
      std::unique_lock lock(beater.mutex);
      while (!beater.ended.wait_for(lock, DurationOf(options_.beat), [&] { return beater.has_ended; })) {
        lock.unlock();
        Beat();
        lock.lock();
      }
    });
  } catch (const std::system_error& error) {
    beater_.reset();
    started =
        Fail(ExitCode::Environment, "cannot start the thread that keeps {} {}: {}", options_.what, path_, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

auto Lease::Beat() -> void {
  std::array<char, LeaseBeatWidth> text{};
  fmt::format_to_n(text.data(), text.size(), "{:{}}", ++record_.beat, LeaseBeatWidth);
  // A beat that fails is missed by who watches; the owner finds out in Check.
  static_cast<void>(options_.fs->Pwrite(file_.get(), text.data(), text.size(), LeaseBeatOffset));
  static_cast<void>(options_.fs->Fsync(file_.get()));
}

auto Lease::Check() const -> Status {
  constexpr int NumLooks = 5;
  constexpr std::chrono::milliseconds BetweenLooks{50};
  LeaseSighting seen;
  for (int look = 0; look < NumLooks && !seen.record; ++look) {
    if (look > 0) {
      std::this_thread::sleep_for(BetweenLooks);
    }
    const auto directory = OpenDirectory(*options_.fs, path_);
    auto looked = directory ? LookAtLease(*directory, options_.file_name) : directory.error();
    FAIL_IF(!looked, ExitCode::Environment, "{} {} may be another's now: {}", options_.what, path_,
            looked.error().message);
    seen = *std::move(looked);
  }
  if (seen.token() == record_.token) {
    return Success{};
  }
  FAIL_IF(seen.is_there && !seen.record, ExitCode::Environment,
          "{} {} is not this launch's any more: its {} was overwritten, and is no lease now; start again when no "
          "other launch uses it",
          options_.what, path_, options_.file_name);
  FAIL_IF(!seen.is_there, ExitCode::Environment,
          "{} {} is not this launch's any more: its {} was removed; start again when no other launch uses it",
          options_.what, path_, options_.file_name);
  return Fail(ExitCode::Environment, "{} {} was taken over by {}, which saw no sign of life of this launch for {:g} s",
              options_.what, path_, seen.OwnerText(), options_.stale_after.value);
}

auto Lease::Release() -> void {
  const auto directory = OpenDirectory(*options_.fs, path_);
  if (!directory) {
    return;
  }
  const std::string claim_name = ClaimName({.is_there = true, .fingerprint = "", .record = record_});
  const auto claim = Create(*directory, claim_name);
  if (claim.ok() && !claim->is_open()) {
    // A taker is at it.
    return;
  }
  const auto seen = LookAtLease(*directory, options_.file_name);
  if (seen.ok() && seen->token() == record_.token) {
    static_cast<void>(options_.fs->Unlink(directory->get(), options_.file_name.c_str(), false));
  }
  if (claim.ok()) {
    static_cast<void>(options_.fs->Unlink(directory->get(), claim_name.c_str(), false));
  }
}

Lease::~Lease() {
  if (!file_.is_open()) {
    return;
  }
  if (getpid() != record_.process.pid) {
    // The thread is the owner's.
    static_cast<void>(beater_.release());
    return;
  }
  if (beater_ != nullptr) {
    {
      const std::lock_guard lock(beater_->mutex);
      beater_->has_ended = true;
    }
    beater_->ended.notify_all();
    beater_->thread.join();
  }
  Release();
}

}  // namespace shardc
