#include "runtime/meet/meeting.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "compiler/base/host_and_time.h"
#include "compiler/base/stopwatch.h"
#include "runtime/meet/compare_facts.h"
#include "runtime/meet/open_store.h"
#include "runtime/meet/tell_launch.h"
#include "runtime/meet/waiting_text.h"
#include "runtime/metrics/run_log.h"
#include "runtime/net/error_text.h"

namespace shardc {

/// Counter that a process raises while the others should wait on.
static constexpr const char* HeldKey = "held";

/// Bytes of an error's text that other processes get, at most.
static constexpr size_t MostToldBytes = 1000;

auto IsHiddenFromOthers(const LaunchPlace& place, const std::string& own_address) -> bool {
  return place.num_hosts() > 1 && IsLoopback(own_address) && !IsLoopback(place.master_host);
}

/// Warns of an address that only the host itself reaches: distributions give such an address to a host's own name.
static auto WarnOfLoopback(const LaunchPlace& place, const std::string& own_address) -> void {
  if (place.process == 0 && IsHiddenFromOthers(place, own_address)) {
    RunLog().Print(
        fmt::format("warning: {} stands for {} on this host, where other hosts do not reach it; set MASTER_ADDR "
                    "to an address of the network between the hosts\n",
                    place.master_host, own_address));
  }
}

/// Warns of a store that listens on every interface: whoever reaches it can end the launch.
static auto WarnOfAnyAddress(const LaunchPlace& place) -> void {
  if (place.process == 0 && IsAnyAddress(place.master_host)) {
    RunLog().Print(fmt::format(
        "warning: MASTER_ADDR={} opens the store of the launch on all interfaces of this host, and whoever reaches it "
        "can end the launch; set MASTER_ADDR=127.0.0.1\n",
        place.master_host));
  }
}

/// Returns why hosts may not find each other by the address of process 0; empty if the address is usable.
static auto WhyAddressMisleads(const LaunchPlace& place) -> std::string {
  return place.num_hosts() > 1 && IsLoopback(place.master_host)
             ? fmt::format(
                   "; MASTER_ADDR is {}, by which each host means itself: set it to a name or address by which "
                   "all hosts reach that of process 0",
                   place.master_host)
             : "";
}

/// Prints whom this process waits for. Only one process of the launch prints it: the first, or, as long as that one has
/// not opened the store, the first of the next host.
static auto TellOfWait(const LaunchPlace& place, const std::vector<std::string>& host_names, JobStore& store,
                       const std::string& key, Seconds waited) -> void {
  constexpr std::string_view Done = "/done";
  const int64_t second = place.num_hosts() > 1 ? place.local_num_processes : 1;
  if (key.empty() && place.process == second) {
    RunLog().Print(fmt::format("waiting for process 0, which has not opened the store at {} for {:.0f} s\n",
                               store.address(), waited.value));
  }
  if (place.process == 0 && key.ends_with(Done)) {
    const auto missing = store.MissingAt(key.substr(0, key.size() - Done.size()), place.num_processes);
    if (missing && !missing->empty()) {
      RunLog().Print(WaitingText(place, *missing, host_names, waited) + "\n");
    }
  }
}

/// Reports that this process stops waiting: others may wait for it.
static auto TellIfStopped(const LaunchPlace& place, const Error& error, bool has_opened_store) -> void {
  if (error.code == ExitCode::Preempted) {
    TellLaunch(place, error, has_opened_store);
  }
}

auto Meeting::Open(const LaunchPlace& place, const Options& options) -> ErrorOr<Meeting> {
  Meeting meeting(place, options);
  meeting.host_name_ = HostName() + options.host_suffix;
  Seat seat{.address = {place.master_host, place.master_port},
            .prefix = PrefixOf(place),
            .place = place,
            .host_name = meeting.host_name_,
            .timeout = options.timeout,
            .longest_silence = options.longest_silence,
            .while_waiting = {.interrupt = options.interrupt, .tell = {}}};
  if (place.process == 0 && options.opens_store) {
    auto server = OpenStore(seat);
    if (!server) {
      TellIfStopped(place, server.error(), false);
      return server.error();
    }
    meeting.server_ = *std::move(server);
  }
  meeting.network_.store = {place.master_host, meeting.server_ ? meeting.server_->port() : place.master_port};
  meeting.network_.prefix = seat.prefix;
  meeting.network_.own_address = options.own_address;
  meeting.network_.host_name = meeting.host_name_;
  if (options.own_address.empty()) {
    ASSIGN_OR_RETURN(meeting.network_.own_address, LocalAddressTowards(place.master_host));
  }
  WarnOfAnyAddress(place);
  WarnOfLoopback(place, meeting.network_.own_address);
  seat.address = meeting.network_.store;
  seat.while_waiting.tell = [place, names = meeting.host_names_](JobStore& store, const std::string& key,
                                                                 Seconds waited) {
    TellOfWait(place, *names, store, key, waited);
  };
  seat.while_waiting.time_left = [last = int64_t{0}](JobStore& store) mutable {
    // A process counts once a second, unless its file system or its core is slow.
    constexpr Seconds UntilNextCount{6};
    const auto held = store.Add(HeldKey, 0);
    return held && *held != 0 && std::exchange(last, *held) != *held ? UntilNextCount : Seconds{};
  };
  auto store = EnterStore(seat);
  if (!store) {
    TellIfStopped(place, store.error(), meeting.server_.has_value());
    Error error = store.error();
    error.message += error.code == ExitCode::Environment ? WhyAddressMisleads(place) : "";
    return error;
  }
  meeting.store_ = *std::move(store);
  if (options.own_address.empty()) {
    // By the kind of address by which all processes have come to the store: peers of two kinds do not understand each
    // other.
    const auto own = LocalAddressTowards(meeting.store_->server_host());
    meeting.network_.own_address = own ? *own : meeting.network_.own_address;
  }
  return meeting;
}

/// Checks that processes that share a host by the launcher's count do share it.
auto Meeting::CheckPlaces(const std::vector<Introduction>& all) const -> Status {
  const auto local = static_cast<size_t>(place_.local_num_processes);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t first = i / local * local;
    FAIL_IF(all[i].host != all[first].host, ExitCode::Environment,
            "processes {} to {} of {} should be on one host, by the {} processes per host that {} tells of, but "
            "process {} is on {} and process {} on {}; have {} put equally many consecutive processes on each "
            "host (srun: --distribution=block, mpirun: --map-by slot)",
            first, first + local - 1, all.size(), local, place_.launcher, first, all[first].host, i, all[i].host,
            place_.launcher);
  }
  return Success{};
}

auto Meeting::WhyNotMet() const -> std::string {
  if (!host_names_->empty()) {
    return "";
  }
  const std::string address = server_ && server_->address().host != place_.master_host
                                  ? fmt::format("; the store listens at {} alone", server_->address().Text())
                                  : "";
  return fmt::format(
      "; if it did start, its SHARDC_JOB_TOKEN, launch name or restart count differs from ours ({}, {}, {}){}{}",
      place_.token.empty() ? "no token" : "a token", place_.job.empty() ? "no name" : place_.job, place_.restart,
      address, WhyAddressMisleads(place_));
}

/// Compares the number of processes, on each host too, and the command of each.
auto Meeting::CompareWorlds() -> Status {
  World own{place_.num_processes, place_.local_num_processes, options_.command};
  if (is_first()) {
    return store_->Set("world", own.ToText());
  }
  const auto text = store_->Get("world", options_.timeout);
  if (!text) {
    return store_->is_late()
               ? Fail(ExitCode::Environment, "process 0 of {} has not come to the store at {} within {:g} s{}",
                      place_.num_processes, store_->address(), options_.timeout.value, WhyNotMet())
               : text.error();
  }
  const World first = World::FromText(*text);
  FAIL_IF(first.num_processes != own.num_processes, ExitCode::Environment,
          "this process was started as one of {}, and process 0 as one of {}", own.num_processes, first.num_processes);
  FAIL_IF(first.local_num_processes != own.local_num_processes, ExitCode::Environment,
          "this process was started as one of {} on its host, and process 0 as one of {}; start equally many "
          "processes on each host",
          own.local_num_processes, first.local_num_processes);
  return first.command == own.command
             ? Status(Success{})
             : Fail(ExitCode::Environment, "this process was started by `{}`, and process 0 by `{}`", own.command,
                    first.command);
}

auto Meeting::Compare(const Facts& facts, const Status& own) -> Status {
  RETURN_IF_ERROR(CompareWorlds());
  const Introduction mine{.host = host_name_, .facts = facts, .code = CodeOf(own), .error = TextOf(own, MostToldBytes)};
  ASSIGN_OR_RETURN(const auto texts, Gather("introductions", mine.ToText()));
  std::vector<Introduction> all;
  for (const std::string& text : texts) {
    all.push_back(Introduction::FromText(text));
    host_names_->push_back(all.back().host);
  }
  network_.store_host = all.front().host;
  if (is_first()) {
    RETURN_IF_ERROR(CloseStore(*store_));
  }
  if (Status alike = CheckPlaces(all); !alike || !(alike = CheckFactsAreEqual(all))) {
    return Shared(alike.error());
  }
  return Agree("started", own);
}

auto Meeting::Gather(const std::string& what, const std::string& text) -> ErrorOr<std::vector<std::string>> {
  auto texts = store_->Gather(what, place_.process, place_.num_processes, text, options_.timeout);
  if (texts) {
    return texts;
  }
  const std::vector<int64_t> late = store_->LateAt(what, place_.num_processes);
  return late.empty() ? std::move(texts)
                      : Fail(ExitCode::Environment, "{} (the store is at {}){}",
                             MissingText(place_, late, *host_names_, options_.timeout), store_->address(), WhyNotMet());
}

auto Meeting::Hear(const std::string& key, int64_t from) -> ErrorOr<std::string> {
  auto text = store_->Get(key, options_.timeout);
  return text || !store_->is_late()
             ? std::move(text)
             : Fail(ExitCode::Environment, "{}", MissingText(place_, {from}, *host_names_, options_.timeout));
}

auto Meeting::Hold() -> Status {
  constexpr auto Between = std::chrono::seconds(1);
  const auto now = std::chrono::steady_clock::now();
  if (held_at_ && now - *held_at_ < Between) {
    return Success{};
  }
  held_at_ = now;
  RETURN_IF_ERROR(store_->CheckNotAbandoned());
  const auto held = store_->Add(HeldKey, 1);
  ++num_holds_;
  return held ? Status(Success{}) : held.error();
}

auto Meeting::EndHold() -> Status {
  const auto none = num_holds_ == 0 ? ErrorOr<int64_t>(0) : store_->Add(HeldKey, -std::exchange(num_holds_, 0));
  return none ? Status(Success{}) : none.error();
}

auto Meeting::Connect(const std::string& name, int64_t index, int64_t size) -> ErrorOr<std::unique_ptr<PeerGroup>> {
  return PeerGroup::Create(*store_, {.name = name,
                                     .index = index,
                                     .size = size,
                                     .own_address = network_.own_address,
                                     .host_name = host_name_,
                                     .timeout = options_.timeout});
}

auto Meeting::Agree(const std::string& what, const Status& mine) -> Status {
  const ToldOutcome own{
      .code = CodeOf(mine), .error = TextOf(mine, MostToldBytes), .host = mine.ok() ? "" : host_name_};
  ASSIGN_OR_RETURN(const auto texts, Gather("agree/" + what, own.ToText()));
  constexpr size_t MostShown = 3;
  int64_t code = 0;
  struct OfProcess {
    ToldOutcome told;
    size_t process;
  };
  std::vector<OfProcess> errors;
  for (size_t i = 0; i < texts.size(); ++i) {
    ToldOutcome told = ToldOutcome::FromText(texts[i]);
    code = code == 0 ? told.code : code;
    const bool is_known =
        std::ranges::any_of(errors, [&](const auto& other) { return other.told.error == told.error; });
    if (told.code != 0 && !is_known && errors.size() < MostShown) {
      errors.push_back({std::move(told), i});
    }
  }
  if (errors.empty()) {
    return Success{};
  }
  std::vector<std::string> shown;
  for (const auto& [told, process] : errors) {
    shown.push_back(errors.size() == 1 && process == 0
                        ? told.error
                        : fmt::format("process {} ({}): {}", process, told.host, told.error));
  }
  return Shared(Error{static_cast<ExitCode>(code), fmt::format("{}", fmt::join(shown, "; "))});
}

/// Ends this process's use of the store. Process 0 waits for a while until no process uses it.
auto Meeting::Leave() -> void {
  constexpr Seconds LongestWait{10};
  if (!Connected()) {
    return;
  }
  const auto count = store_->Add("left", 1);
  if (count && *count == place_.num_processes) {
    static_cast<void>(store_->Set("all left", ""));
  }
  if (is_first()) {
    const auto left = store_->Wait("all left", LongestWait);
    all_have_left_ = left.ok() && *left;
  }
}

auto Meeting::Connected() -> bool {
  constexpr Seconds Longest{3};
  if (store_ != nullptr && !store_->is_broken()) {
    store_->WaitOnly();
    return true;
  }
  // Another connection to a store that does not answer would take as long again.
  if (store_ != nullptr && store_->is_silent()) {
    return false;
  }
  auto store = JobStore::Connect(network_.store, network_.prefix, Longest);
  if (store) {
    store_ = *std::move(store);
  }
  return store.ok();
}

auto Meeting::TellOthers(const Error& error) -> void {
  const bool they_told = store_ != nullptr && store_->was_abandoned();
  if (!they_told && Connected()) {
    static_cast<void>(store_->Abandon({error.code, fmt::format("{}: {}", OwnName(), error.message)}));
  }
  // Who comes to a store that is gone waits for a long time.
  const bool may_be_late = they_told || error.code == ExitCode::Preempted;
  const Stopwatch watch;
  while (may_be_late && server_ && host_names_->empty() && Connected() && watch.Elapsed() < StayForTheLate) {
    const auto come = NumCome(*store_);
    if (!come || *come >= place_.num_processes) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

auto Meeting::Disconnect() -> void {
  if (store_ != nullptr) {
    static_cast<void>(store_->Move(place_.process));
  }
  store_.reset();
}

auto Meeting::Shared(Error error) -> Error {
  error_is_shared_ = true;
  return error;
}

auto Meeting::Close(const ErrorOr<ExitCode>& result) -> void {
  // If all processes have come to this result, each one leaves. If one has died, the others were told of it, and it
  // never leaves: nobody waits for it.
  const bool has_lost_some = store_ != nullptr && store_->was_abandoned();
  const bool is_agreed =
      result ? *result == ExitCode::Ok || *result == ExitCode::Preempted || *result == ExitCode::Diverged
             : error_is_shared_ && !has_lost_some;
  if (is_agreed) {
    Leave();
  } else if (!result) {
    TellOthers(result.error());
  }
  if (store_ != nullptr) {
    static_cast<void>(store_->Part(place_.process));
  }
  store_.reset();
  if (server_ && all_have_left_) {
    server_->Stop();
  } else if (server_) {
    server_->LetGo();
  }
}

}  // namespace shardc
