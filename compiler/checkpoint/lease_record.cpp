#include "compiler/checkpoint/lease_record.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

#include "compiler/base/check.h"
#include "compiler/base/host_and_time.h"
#include "compiler/base/json_reader.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

using nlohmann::json;

static constexpr const char* FormatName = "shardc lease";
static constexpr int64_t FormatVersion = 1;
static constexpr size_t TokenDigits = 32;

/// Returns true for texts of this system: letters, digits, and what times and names of namespaces have.
static auto IsShortText(std::string_view text) -> bool {
  constexpr size_t MaxLength = 256;
  return text.size() <= MaxLength && std::all_of(text.begin(), text.end(), [](char c) {
           return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                  std::string_view("._-:[]").find(c) != std::string_view::npos;
         });
}

auto NewLeaseRecord(std::string run_id) -> LeaseRecord {
  LeaseRecord record{.token = "", .run_id = std::move(run_id), .process = ThisProcess(), .since = ""};
  std::array<unsigned char, TokenDigits / 2> random{};
  CHECK(getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()), "no random bytes");
  for (const unsigned char byte : random) {
    record.token += fmt::format("{:02x}", byte);
  }
  // A host may have any name.
  std::replace_if(
      record.process.host.begin(), record.process.host.end(),
      [](char c) {
        return !IsShortText({&c, 1});
      },
      '_');
  record.since = UtcNow();
  return record;
}

auto ToText(const LeaseRecord& record) -> std::string {
  const json body{{"format", FormatName},
                  {"version", FormatVersion},
                  {"token", record.token},
                  {"run_id", record.run_id},
                  {"host", record.process.host},
                  {"boot_id", record.process.boot_id},
                  {"pid_namespace", record.process.pid_namespace},
                  {"pid", record.process.pid},
                  {"process_start", record.process.start},
                  {"since", record.since}};
  const std::string begin = "{\"beat\":";
  CHECK(static_cast<int64_t>(begin.size()) == LeaseBeatOffset, "the count begins elsewhere");
  return fmt::format("{}{:{}},\n {}\n", begin, record.beat, LeaseBeatWidth,
                     body.dump(1, ' ', false, json::error_handler_t::replace).substr(3));
}

auto LeaseRecordFromText(std::string_view text) -> std::optional<LeaseRecord> {
  const auto body = ParseJson(text, ExitCode::Checkpoint);
  if (!body || !text.ends_with("\n")) {
    return std::nullopt;
  }
  const JsonReader members(*body, ExitCode::Checkpoint);
  const auto format = members.String("format");
  const auto version = members.Count("version");
  const auto beat = members.Count("beat");
  const auto token = members.String("token");
  const auto run_id = members.String("run_id");
  const auto host = members.String("host");
  const auto boot_id = members.String("boot_id");
  const auto pid_namespace = members.String("pid_namespace");
  const auto pid = members.Count("pid");
  const auto start = members.Count("process_start");
  const auto since = members.String("since");
  if (!format || *format != FormatName || !version || *version != FormatVersion || !beat || !token || !run_id ||
      !host || !boot_id || !pid_namespace || !pid || !start || !since) {
    return std::nullopt;
  }
  if (token->size() != TokenDigits || token->find_first_not_of("0123456789abcdef") != std::string::npos ||
      !IsPlainName(*run_id) || !IsShortText(*host) || !IsShortText(*boot_id) || !IsShortText(*pid_namespace) ||
      !IsShortText(*since) || *pid < 1 || *pid > INT32_MAX) {
    return std::nullopt;
  }
  return LeaseRecord{
      .token = *token,
      .run_id = *run_id,
      .process = {.host = *host, .boot_id = *boot_id, .pid_namespace = *pid_namespace, .pid = *pid, .start = *start},
      .since = *since,
      .beat = *beat};
}

}  // namespace shardc
