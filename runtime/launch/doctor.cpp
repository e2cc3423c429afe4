#include "runtime/launch/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/base/files.h"
#include "compiler/base/fs.h"
#include "compiler/base/printable.h"
#include "compiler/base/stopwatch.h"
#include "compiler/base/text/table.h"
#include "runtime/launch/host_facts.h"
#include "runtime/launch/shared_folder.h"
#include "runtime/meet/meeting.h"
#include "runtime/net/open_file_limit.h"
#include "runtime/net/peer_group.h"
#include "runtime/record/run_directory.h"

namespace shardc {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* ProbedFile = "doctor.probe";
/// By which latency and bandwidth of links are measured.
constexpr int NumBarriers = 21;
constexpr int NumTransfers = 3;
/// Clocks that differ by more make records and leases hard to read.
constexpr double MostOffset = 5;

/// One process's part in the examination of a launch.
class Examination {
 public:
  Examination(Meeting& meeting, const DoctorOptions& options) : meeting_(meeting), options_(options) {}

  auto Run() -> ErrorOr<ExitCode>;

 private:
  auto ReadClocks() -> Status;
  auto ProbeRunDirectory() -> Status;
  auto MeasureLinks() -> Status;
  auto Judge(const std::vector<Json>& hosts) -> std::vector<std::string>;

  Meeting& meeting_;
  const DoctorOptions& options_;
  Json own_;
};

}  // namespace

/// Reads the clock right after a message that all processes wait for, to compare it with that of process 0. The
/// difference is wrong by as long as the message takes to reach them.
auto Examination::ReadClocks() -> Status {
  const auto met = meeting_.Gather("doctor/clock", "");
  if (!met) {
    return met.error();
  }
  own_["clock"] = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return Success{};
}

auto Examination::ProbeRunDirectory() -> Status {
  if (options_.run_dir.empty()) {
    return Success{};
  }
  std::optional<Seconds> seen;
  const Status all = ProbeSharedFolder(
      meeting_,
      {.what = "run directory", .path = options_.run_dir, .longest_visible = LongestVisible(meeting_, Seconds{30})},
      seen);
  if (all && seen) {
    own_["run_directory_seconds"] = seen->value;
  }
  return all;
}

/// Measures the links between the first processes of all hosts, all at once.
auto Examination::MeasureLinks() -> Status {
  const int64_t hosts = meeting_.place().num_hosts();
  if (hosts == 1 || !meeting_.is_first_of_host()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto group, meeting_.Connect("doctor", meeting_.place().host(), hosts));
  std::vector<double> seconds;
  for (int i = 0; i < NumBarriers; ++i) {
    const Stopwatch watch;
    RETURN_IF_ERROR(group->Barrier());
    seconds.push_back(watch.Elapsed().value);
  }
  std::ranges::nth_element(seconds, seconds.begin() + NumBarriers / 2);
  own_["latency_seconds"] = seconds[NumBarriers / 2];
  constexpr int64_t BytesPerPeer = int64_t{8} << 20;
  std::vector<std::byte> sent(static_cast<size_t>(BytesPerPeer * hosts));
  std::vector<std::byte> received(sent.size());
  double best = 0;
  for (int i = 0; i < NumTransfers; ++i) {
    const Stopwatch watch;
    RETURN_IF_ERROR(group->AllToAll(sent.data(), BytesPerPeer, received.data(), BytesPerPeer));
    best = std::max(best, static_cast<double>(BytesPerPeer * (hosts - 1)) / watch.Elapsed().value);
  }
  own_["bytes_per_second"] = best;
  return Success{};
}

/// Returns the libraries for GPUs of a host as text: "cudart 13.0, cudnn 9.19.0".
static auto LibrariesOf(const Json& host) -> std::string {
  std::string text;
  for (const auto& [name, version] : host["gpu_libraries"].items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version.get<std::string>());
  }
  return text.empty() ? "no libraries" : text;
}

auto Examination::Judge(const std::vector<Json>& hosts) -> std::vector<std::string> {
  std::vector<std::string> reasons;
  for (const Json& host : hosts) {
    const std::string name = host["host"];
    for (const char* version : {"shardc", "libtorch"}) {
      if (host[version] != hosts[0][version]) {
        reasons.push_back(fmt::format("{} has {} {}, and {} has {}", name, version, host[version].get<std::string>(),
                                      hosts[0]["host"].get<std::string>(), hosts[0][version].get<std::string>()));
      }
    }
    if (host["gpu_libraries"] != hosts[0]["gpu_libraries"]) {
      reasons.push_back(fmt::format("{} has {} for GPUs, and {} has {}", name, LibrariesOf(host),
                                    hosts[0]["host"].get<std::string>(), LibrariesOf(hosts[0])));
    }
    if (const double offset = host["clock_offset_seconds"]; std::abs(offset) > MostOffset) {
      reasons.push_back(fmt::format("the clock of {} is {:+.1f} s off that of {}", name, offset,
                                    hosts[0]["host"].get<std::string>()));
    }
  }
  return reasons;
}

static auto LatencyOf(const Json& host) -> std::string {
  if (!host.contains("latency_seconds")) {
    return "-";
  }
  const double seconds = host["latency_seconds"];
  return seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6)
         : seconds < 1  ? fmt::format("{:.1f} ms", seconds * 1e3)
                        : fmt::format("{:.1f} s", seconds);
}

static auto BandwidthOf(const Json& host) -> std::string {
  return host.contains("bytes_per_second")
             ? FormatWire(Bytes{static_cast<int64_t>(host["bytes_per_second"].get<double>())}) + "/s"
             : "-";
}

/// Returns the GPUs of a host as text: "8 NVIDIA H100 80GB HBM3".
static auto GpusOf(const Json& host) -> std::string {
  std::string text;
  const auto models = host["gpus"].get<std::vector<std::string>>();
  for (auto model = models.begin(); model != models.end();) {
    const auto next = std::find_if(model, models.end(), [&](const auto& other) { return other != *model; });
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", next - model, *model);
    model = next;
  }
  return text.empty() ? "0" : text;
}

/// Returns the links of one kind of a host's GPUs as text, once if all have the same. `text_of`: that of one GPU.
static auto LinksOf(const Json& host, std::string (*text_of)(const Json& gpu)) -> std::string {
  std::vector<std::pair<std::string, int>> texts;
  for (const Json& gpu : host.value("gpu_links", Json::object()).value("gpus", Json::array())) {
    const std::string text = text_of(gpu);
    const auto known = std::ranges::find(texts, text, &std::pair<std::string, int>::first);
    ++(known == texts.end() ? texts.emplace_back(text, 0) : *known).second;
  }
  if (texts.size() < 2) {
    return texts.empty() ? "-" : texts.front().first;
  }
  std::string all;
  for (const auto& [text, count] : texts) {
    all += fmt::format("{}{} with {}", all.empty() ? "" : "; ", count, text);
  }
  return all;
}

/// Returns the NVLinks of a GPU as text: "18 of 26.6 GB/s".
static auto NvLinksOf(const Json& gpu) -> std::string {
  const int64_t links = gpu["nvlinks"];
  const int64_t up = gpu["nvlinks_up"];
  const double speed = gpu["nvlink_mb_per_s"].get<double>() / 1e3;
  return up == 0       ? "none"
         : up == links ? fmt::format("{} of {:.1f} GB/s", links, speed)
                       : fmt::format("{} of {:.1f} GB/s, {} down", links, speed, links - up);
}

/// Returns the link of a GPU to the host as text: "gen 5 x16".
static auto PcieOf(const Json& gpu) -> std::string {
  const int64_t lanes = gpu["pcie_lanes"];
  const int64_t up = gpu["pcie_lanes_up"];
  return fmt::format("gen {} x{}{}", gpu["pcie_generation"].get<int64_t>(), up,
                     up == lanes ? "" : fmt::format(" of x{}", lanes));
}

/// Returns how many pairs of a host's GPUs are connected, as text.
static auto PairsOf(const Json& host) -> std::string {
  const Json links = host.value("gpu_links", Json::object());
  const int64_t pairs = links.value("pairs", int64_t{0});
  return pairs == 0 ? "-"
                    : fmt::format("{} by NVLink, {} reach, of {}", links["pairs_by_nvlink"].get<int64_t>(),
                                  links["pairs_that_reach"].get<int64_t>(), pairs);
}

/// Returns a table with one row for each host.
static auto TableOf(const std::vector<Json>& hosts) -> std::string {
  Table table("");
  const bool has_links = std::ranges::any_of(hosts, [](const Json& host) { return host.contains("gpu_links"); });
  const auto row = [&](std::vector<std::string> cells, const std::vector<std::string>& of_links) {
    if (has_links) {
      // After the GPUs.
      cells.insert(cells.begin() + 5, of_links.begin(), of_links.end());
    }
    table.Row(std::move(cells));
  };
  row({"host", "address", "cores", "memory", "GPUs", "open files", "clock", "run directory", "latency", "bandwidth"},
      {"NVLinks", "PCIe", "pairs of GPUs"});
  for (const Json& host : hosts) {
    const int64_t files = host["limits"]["open_files"];
    row({host["host"], host["address"], std::to_string(host["cores"].get<int64_t>()),
         FormatMemory(Bytes{host["memory_available"]}), GpusOf(host), files < 0 ? "unlimited" : std::to_string(files),
         fmt::format("{:+.3f} s", host["clock_offset_seconds"].get<double>()),
         host.contains("run_directory_seconds") ? "seen" : "-", LatencyOf(host), BandwidthOf(host)},
        {LinksOf(host, NvLinksOf), LinksOf(host, PcieOf), PairsOf(host)});
  }
  return table.Text();
}

/// The launcher of a host that is alone.
constexpr const char* NoLauncher = "nobody";

/// Returns the interfaces of each host, and the facts that all hosts share.
static auto DetailsOf(const std::vector<Json>& hosts) -> std::string {
  const Json& first = hosts[0];
  const std::string launcher = first["launcher"].get<std::string>();
  std::string text = fmt::format("shardc {}, LibTorch {}, {} host{}, {}\n", first["shardc"].get<std::string>(),
                                 first["libtorch"].get<std::string>(), hosts.size(), hosts.size() == 1 ? "" : "s",
                                 launcher == NoLauncher ? "not started by a launcher" : "launched by " + launcher);
  for (const Json& host : hosts) {
    std::string interfaces;
    for (const auto& [name, addresses] : host["interfaces"].items()) {
      interfaces += fmt::format("{}{} {}", interfaces.empty() ? "" : ", ", name, addresses[0].get<std::string>());
    }
    const std::string driver = host["nvidia_driver"];
    text += fmt::format("{}: kernel {}, {}interfaces {}\n", host["host"].get<std::string>(),
                        host["kernel"].get<std::string>(),
                        driver.empty() ? "" : fmt::format("driver of NVIDIA {}, {}, ", driver, LibrariesOf(host)),
                        interfaces.empty() ? "none but loopback" : interfaces);
  }
  return text;
}

static auto Print(const std::vector<Json>& hosts, const std::vector<std::string>& reasons, bool as_json) -> ExitCode {
  if (as_json) {
    const Json json{{"hosts", hosts}, {"reasons", reasons}};
    std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    std::cout << Printable(DetailsOf(hosts) + TableOf(hosts));
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "error: cannot write to stdout\n";
    return ExitCode::Environment;
  }
  for (const std::string& reason : reasons) {
    std::cerr << Printable("error: " + reason) << "\n";
  }
  return reasons.empty() ? ExitCode::Ok : ExitCode::Environment;
}

auto Examination::Run() -> ErrorOr<ExitCode> {
  own_ = HostFacts(options_.torch_version, meeting_.place().launcher, meeting_.network().own_address);
  std::vector<std::string> reasons;
  const auto keep = [&](const Status& status) {
    if (!status && std::ranges::find(reasons, status.error().message) == reasons.end()) {
      reasons.push_back(status.error().message);
    }
  };
  const Status alike = meeting_.Compare({}, Success{});
  if (!alike && !meeting_.error_is_shared()) {
    return alike.error();
  }
  keep(alike);
  keep(meeting_.Agree("doctor/open files", CheckOpenFileLimit(meeting_.place().num_processes)));
  RETURN_IF_ERROR(ReadClocks());
  keep(ProbeRunDirectory());
  keep(meeting_.Agree("doctor/links", MeasureLinks()));
  ASSIGN_OR_RETURN(const auto texts, meeting_.Gather("doctor/hosts", meeting_.is_first_of_host() ? own_.dump() : ""));
  std::vector<Json> hosts;
  for (const std::string& text : texts) {
    if (!text.empty()) {
      Json host = Json::parse(text);
      const double first = hosts.empty() ? host["clock"].get<double>() : hosts[0]["clock"].get<double>();
      host["clock_offset_seconds"] = host["clock"].get<double>() - first;
      hosts.push_back(std::move(host));
    }
  }
  const std::vector<std::string> judged = Judge(hosts);
  reasons.insert(reasons.end(), judged.begin(), judged.end());
  const ExitCode code = reasons.empty() ? ExitCode::Ok : ExitCode::Environment;
  return meeting_.is_first() ? Print(hosts, reasons, options_.json) : code;
}

/// Examines a host that is alone: its facts, and whether its run directory can be written.
static auto ExamineThisHost(const DoctorOptions& options) -> ExitCode {
  Json host = HostFacts(options.torch_version, NoLauncher, "-");
  host["clock_offset_seconds"] = 0.0;
  std::vector<std::string> reasons;
  if (!options.run_dir.empty()) {
    const auto directory = RunDirectory::Open(options.run_dir);
    const Status written = directory ? PutFileAt(directory->folder(), ProbedFile, "probe") : Status(directory.error());
    if (written) {
      host["run_directory_seconds"] = 0.0;
      unlink(fmt::format("{}/{}", options.run_dir, ProbedFile).c_str());
    } else {
      reasons.push_back(written.error().message);
    }
  }
  return Print({host}, reasons, options.json);
}

auto RunDoctor(const std::optional<LaunchPlace>& place, const DoctorOptions& options) -> ErrorOr<ExitCode> {
  RaiseOpenFileLimit();
  if (!place) {
    return ExamineThisHost(options);
  }
  // While links are measured, nobody asks the store anything: each exchange may take as long as the timeout.
  constexpr double Exchanges = NumBarriers + NumTransfers + 1;
  ASSIGN_OR_RETURN(auto meeting, Meeting::Open(*place, {.own_address = options.own_address,
                                                        .timeout = options.timeout,
                                                        .longest_silence = Seconds{Exchanges * options.timeout.value},
                                                        .command = "shardc doctor"}));
  auto result = Examination(meeting, options).Run();
  meeting.Close(result && *result == ExitCode::Environment ? ErrorOr<ExitCode>(ExitCode::Ok) : result);
  return result;
}

}  // namespace shardc
