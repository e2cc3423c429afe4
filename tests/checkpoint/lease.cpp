// Who owns a directory: leases of the living, the dead, the stopped and the unknown.
#include "compiler/checkpoint/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/checkpoint/lease_process.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// The lease of a process of another host, as its text.
auto RemoteLease(int64_t beat = 0) -> LeaseRecord {
  LeaseRecord record = NewLeaseRecord("remote");
  record.process.host = "elsewhere";
  record.process.boot_id = "00000000-0000-0000-0000-000000000000";
  record.beat = beat;
  return record;
}

auto SecondsTo(const std::function<void()>& body) -> double {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Lease, IsMadeCheckedAndGivenBack) {
  const TemporaryFolder folder;
  const std::string dir = folder / "a/b";
  {
    const auto lease = Lease::Acquire(dir, "run-1", Quick());
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    EXPECT_TRUE((*lease)->Check().ok());
    const auto record = LeaseRecordFromText(ReadText(dir + "/lease.json"));
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->token, (*lease)->token());
    EXPECT_EQ(record->run_id, "run-1");
    EXPECT_EQ(record->process, ThisProcess());
    EXPECT_EQ(record->process.pid, getpid());
    EXPECT_GT(record->process.start, 0);
    EXPECT_EQ(NamesIn(dir), std::vector<std::string>{"lease.json"});
  }
  EXPECT_THAT(NamesIn(dir), IsEmpty());
  EXPECT_TRUE(Lease::Acquire(dir, "run-2", Quick()).ok());
  const auto refused = Lease::Acquire(dir, "a/b", Quick());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("plain name"));
}

TEST(Lease, TheCountGoesUpInPlace) {
  const TemporaryFolder folder;
  const auto lease = Lease::Acquire(folder.path(), "run", Quick());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  const std::string first = ReadText(folder / "lease.json");
  int64_t beat = 0;
  while (beat < 3) {
    std::this_thread::sleep_for(Milliseconds(5));
    const std::string text = ReadText(folder / "lease.json");
    const auto record = LeaseRecordFromText(text);
    ASSERT_TRUE(record.has_value()) << text;
    EXPECT_EQ(text.size(), first.size());
    EXPECT_GE(record->beat, beat);
    beat = record->beat;
  }
}

TEST(Lease, ThatOfALivingProcessIsHeldAtOnce) {
  const TemporaryFolder folder;
  const auto owner = Owner(folder.path());
  LeaseOptions options = Quick();
  options.stale_after = Seconds{3600};
  const auto second = Lease::Acquire(folder.path(), "second", options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ExitCode::Environment);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr(fmt::format("checkpoint directory {} is in use by run owner on host ", folder.path())),
                    HasSubstr(fmt::format("(process {}, since 20", owner->pid())), HasSubstr("last sign of life"),
                    HasSubstr("; wait until that has ended, or set `checkpoint.dir` to another folder")));
}

TEST(Lease, ThatOfAKilledProcessIsTakenAtOnce) {
  const TemporaryFolder folder;
  LeaseOptions options = Quick();
  options.stale_after = Seconds{3600};
  for (const bool reaped : {true, false}) {
    const auto owner = Owner(folder.path());
    owner->Kill(SIGKILL);
    if (reaped) {
      owner->Wait();
    }
    const auto lease = Lease::Acquire(folder.path(), "second", options);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    EXPECT_TRUE((*lease)->Check().ok());
    EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"lease.json"});
  }
}

TEST(Lease, ANumberThatAnotherProcessHasNowIsNoSignOfLife) {
  const TemporaryFolder folder;
  LeaseRecord record = NewLeaseRecord("before");
  record.process.start -= 1;
  WriteText(folder / "lease.json", ToText(record));
  LeaseOptions options = Quick();
  options.stale_after = Seconds{3600};
  EXPECT_TRUE(Lease::Acquire(folder.path(), "second", options).ok());
}

TEST(Lease, WhatStandsStillIsTakenAfterTheTime) {
  const TemporaryFolder folder;
  const std::string path = folder / "lease.json";
  LeaseRecord no_namespace = RemoteLease();
  no_namespace.process = ThisProcess();
  no_namespace.process.pid_namespace = "pid:[1]";
  const std::string remote = ToText(RemoteLease());
  const std::vector<std::pair<std::string, std::function<void()>>> cases{
      {"of another boot", [&] { WriteText(path, remote); }},
      {"of another pid namespace", [&] { WriteText(path, ToText(no_namespace)); }},
      {"empty", [&] { WriteText(path, ""); }},
      {"half", [&] { WriteText(path, remote.substr(0, remote.size() / 2)); }},
      {"huge", [&] { WriteText(path, std::string(100'000, 'x')); }},
      {"link to a lease",
       [&] {
         WriteText(folder / "elsewhere", ToText(NewLeaseRecord("x")));
         std::filesystem::create_symlink(folder / "elsewhere", path);
       }},
      {"dangling link", [&] { std::filesystem::create_symlink(folder / "absent", path); }},
      {"pipe", [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"directory", [&] { std::filesystem::create_directory(path); }},
  };
  for (const auto& [what, make] : cases) {
    SCOPED_TRACE(what);
    make();
    std::vector<std::string> notes;
    LeaseOptions options = Quick();
    options.stale_after = Seconds{0.4};
    options.note = [&](const std::string& text) { notes.push_back(text); };
    const double seconds = SecondsTo([&] {
      const auto lease = Lease::Acquire(folder.path(), "second", options);
      ASSERT_TRUE(lease.ok()) << lease.error().message;
      EXPECT_TRUE((*lease)->Check().ok());
    });
    EXPECT_GE(seconds, 0.4);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_THAT(notes[0], HasSubstr("it is taken over if its lease.json stands still for 0.4 s"));
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path)));
    EXPECT_FALSE(std::filesystem::exists(folder / "absent"));
  }
  // What a link pointed to is as it was.
  EXPECT_TRUE(LeaseRecordFromText(ReadText(folder / "elsewhere")).has_value());
}

TEST(Lease, ThatOfAnotherHostIsHeldWhenItsCountMoves) {
  const TemporaryFolder folder;
  LeaseRecord record = RemoteLease();
  WriteText(folder / "lease.json", ToText(record));
  std::atomic<bool> stop = false;
  std::thread remote([&] {
    while (!stop) {
      std::this_thread::sleep_for(Milliseconds(100));
      ++record.beat;
      // In place, as owners do.
      std::fstream file(folder / "lease.json", std::ios::in | std::ios::out);
      file << ToText(record);
    }
  });
  const auto lease = Lease::Acquire(folder.path(), "second", Quick());
  stop = true;
  remote.join();
  ASSERT_FALSE(lease.ok());
  EXPECT_THAT(lease.error().message, HasSubstr("run remote on host elsewhere"));
}

TEST(Lease, AWaitThatIsGivenUpEnds) {
  const TemporaryFolder folder;
  WriteText(folder / "lease.json", "");
  LeaseOptions options = Quick();
  options.stale_after = Seconds{3600};
  int looks = 0;
  options.while_waiting = [&]() -> Status {
    return ++looks < 3 ? Status(Success{}) : Status(Fail(ExitCode::Preempted, "stopped"));
  };
  const auto lease = Lease::Acquire(folder.path(), "second", options);
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code, ExitCode::Preempted);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"lease.json"});
}

TEST(Lease, AStoppedOwnerLosesItAndTouchesNothingWhenItWakesUp) {
  const TemporaryFolder folder;
  Child owner([&] {
    const auto lease = Lease::Acquire(folder.path(), "owner", Quick());
    WriteText(folder / "ready", "");
    while (!std::filesystem::exists(folder / "go")) {
      std::this_thread::sleep_for(Milliseconds(5));
    }
    const Status status = (*lease)->Check();
    WriteText(folder / "said", status.ok() ? "still ours" : status.error().message);
    return 0;
  });
  while (!std::filesystem::exists(folder / "ready")) {
    std::this_thread::sleep_for(Milliseconds(1));
  }
  owner.Stop();
  const auto lease = Lease::Acquire(folder.path(), "taker", Quick());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  owner.Kill(SIGCONT);
  std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_TRUE((*lease)->Check().ok());
  WriteText(folder / "go", "");
  EXPECT_EQ(owner.Wait(), 0);
  EXPECT_THAT(ReadText(folder / "said"),
              AllOf(HasSubstr("was taken over by run taker on host "), HasSubstr(fmt::format("process {}", getpid()))));
  // Its destructor has run, too.
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST(Lease, AStoppedOwnerThatWakesUpInTimeKeepsIt) {
  const TemporaryFolder folder;
  const auto owner = Owner(folder.path());
  owner->Stop();
  std::thread waker([&] {
    std::this_thread::sleep_for(Milliseconds(150));
    owner->Kill(SIGCONT);
  });
  const auto lease = Lease::Acquire(folder.path(), "taker", Quick());
  waker.join();
  ASSERT_FALSE(lease.ok());
  EXPECT_THAT(lease.error().message, HasSubstr("in use by run owner"));
}

TEST(Lease, OneThatIsRemovedIsNoticed) {
  const TemporaryFolder folder;
  const auto lease = Lease::Acquire(folder.path(), "run", Quick());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  std::filesystem::rename(folder / "lease.json", folder / "aside");
  std::thread back([&] {
    std::this_thread::sleep_for(Milliseconds(80));
    std::filesystem::rename(folder / "aside", folder / "lease.json");
  });
  EXPECT_TRUE((*lease)->Check().ok()) << "a taker may put it back";
  back.join();
  std::filesystem::remove(folder / "lease.json");
  const Status gone = (*lease)->Check();
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ExitCode::Environment);
  EXPECT_THAT(gone.error().message, HasSubstr("lease.json was removed"));
  WriteText(folder / "lease.json", ToText(RemoteLease()));
  EXPECT_THAT((*lease)->Check().error().message, HasSubstr("taken over by run remote on host elsewhere"));
  std::filesystem::remove_all(folder.path());
  EXPECT_FALSE((*lease)->Check().ok());
  std::filesystem::create_directory(folder.path());
}

TEST(Lease, OneThatDoesNotBeatYetIsHeldAndGivenBack) {
  const TemporaryFolder folder;
  LeaseOptions options = Quick();
  options.beats_at_once = false;
  {
    const auto lease = Lease::Acquire(folder.path(), "run", options);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    const std::string first = ReadText(folder / "lease.json");
    std::this_thread::sleep_for(Milliseconds(50));
    EXPECT_EQ(ReadText(folder / "lease.json"), first);
    EXPECT_FALSE(Lease::Acquire(folder.path(), "other", Quick()).ok());
    ASSERT_TRUE((*lease)->StartBeating().ok());
    while (ReadText(folder / "lease.json") == first) {
      std::this_thread::sleep_for(Milliseconds(5));
    }
  }
  EXPECT_THAT(NamesIn(folder.path()), IsEmpty());
  {
    const auto lease = Lease::Acquire(folder.path(), "run", options);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
  }
  EXPECT_THAT(NamesIn(folder.path()), IsEmpty()) << "it never beat";
}

TEST(Lease, AForkedCopyGivesNothingBack) {
  const TemporaryFolder folder;
  auto lease = Lease::Acquire(folder.path(), "run", Quick());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  Child child([&] {
    lease->reset();
    return 0;
  });
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST(Lease, TwoNamesInOneDirectoryAreTwoLeases) {
  const TemporaryFolder folder;
  const auto first = Lease::Acquire(folder.path(), "run", Quick());
  LeaseOptions options = Quick();
  options.file_name = "run.lease";
  const auto second = Lease::Acquire(folder.path(), "run", options);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE((*first)->Check().ok());
  EXPECT_TRUE((*second)->Check().ok());
}

TEST(Lease, DamagedTextsAreNoLeases) {
  const std::string good = ToText(RemoteLease(7));
  ASSERT_TRUE(LeaseRecordFromText(good).has_value());
  EXPECT_EQ(LeaseRecordFromText(good)->beat, 7);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(LeaseRecordFromText(good.substr(0, size)).has_value()) << size;
  }
  // Whatever reads can be printed.
  for (const char* field : {"run_id", "host", "boot_id", "pid_namespace", "since", "token"}) {
    std::string bad = good;
    bad.insert(bad.find(':', bad.find(fmt::format("\"{}\"", field))) + 2, "\\u001b]0;");
    EXPECT_FALSE(LeaseRecordFromText(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace shardc
