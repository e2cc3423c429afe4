#include "runtime/record/attempt.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/base/files.h"
#include "compiler/base/host_and_time.h"
#include "compiler/base/version.h"
#include "compiler/plan/attempts.h"
#include "compiler/plan/text.h"

namespace shardc {

using Json = nlohmann::ordered_json;

static constexpr const char* LogName = "log.txt";
static constexpr const char* VersionsName = "gpu";

static auto TextOf(const Json& json) -> std::string {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static auto Describe(int64_t number, const Plan& plan, const AttemptRequest& request) -> Json {
  Json json;
  json["attempt"] = number;
  json["run_id"] = plan.run.run_id;
  json["began_at"] = UtcNow();
  json["host"] = HostName();
  json["pid"] = getpid();
  json["shardc"] = ProgramVersion();
  json["libtorch"] = request.torch_version;
  json["mesh"] = Json::object();
  for (int i = 0; i < NumMeshAxes; ++i) {
    json["mesh"][std::string(ToText(static_cast<Axis>(i)))] = plan.mesh.sizes[static_cast<size_t>(i)];
  }
  json["ranks"] = plan.mesh.num_ranks();
  json["device"] = ToText(plan.device);
  json["plan_hash"] = PlanHash(plan);
  std::error_code unknown;
  const std::string path =
      request.path.empty() ? "" : std::filesystem::absolute(request.path, unknown).lexically_normal().string();
  json["asked"] = {{request.recipe ? "recipe" : "plan", path}, {"sets", plan.overrides}};
  return json;
}

/// attempt.json as it lies there, which this launch wrote, if nobody else did. Errors: it is no object, or nested
/// deeper than what is written here.
static auto ReadAttempt(const Descriptor& folder) -> ErrorOr<Json> {
  ASSIGN_OR_RETURN(const auto text, ReadFileAt(folder, AttemptFileName, MaxAttemptBytes));
  constexpr int MaxDepth = 8;
  bool is_shallow = true;
  const Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        is_shallow = is_shallow && depth <= MaxDepth;
        return is_shallow;
      },
      false);
  FAIL_IF(!is_shallow || !json.is_object(), ExitCode::Environment, "{}/{} is not as a launch writes it", folder.path(),
          AttemptFileName);
  return json;
}

/// The folder of a new attempt, with the number after the greatest.
static auto MakeNext(const Descriptor& attempts, int64_t number) -> ErrorOr<std::pair<int64_t, Descriptor>> {
  // Whoever makes folders here by hand may be faster, a few times.
  for (const int64_t end = number + 100;; ++number) {
    if (attempts.fs().MakeDirectory(attempts.get(), AttemptName(number).c_str()) == 0) {
      break;
    }
    if (errno != EEXIST || number == end) {
      return SystemError("make directory", attempts.path() + "/" + AttemptName(number));
    }
  }
  // Some file systems cannot sync a folder, and say so.
  static_cast<void>(attempts.fs().Fsync(attempts.get()));
  ASSIGN_OR_RETURN(auto folder, OpenDirectoryAt(attempts, AttemptName(number)));
  return std::pair{number, std::move(folder)};
}

/// Was the launcher of an earlier attempt killed, so that it could not say how it ended?
static auto LacksItsEnd(const Descriptor& attempts, int64_t number) -> bool {
  const auto folder = OpenDirectoryAt(attempts, AttemptName(number));
  if (!folder) {
    return false;
  }
  const auto json = ReadAttempt(*folder);
  return !json || !json->contains("ended_at");
}

auto Attempt::Begin(const Descriptor& run_dir, const Plan& plan, const AttemptRequest& request) -> ErrorOr<Attempt> {
  if (run_dir.fs().MakeDirectory(run_dir.get(), AttemptsName) == 0) {
    static_cast<void>(run_dir.fs().Fsync(run_dir.get()));
  }
  ASSIGN_OR_RETURN(const auto numbers, ListAttempts(run_dir));
  ASSIGN_OR_RETURN(const auto attempts, OpenDirectoryAt(run_dir, AttemptsName));
  ASSIGN_OR_RETURN(auto made, MakeNext(attempts, numbers.empty() ? 1 : numbers.back() + 1));
  auto& [number, folder] = made;
  std::string resolved;
  for (const RecipeEntry& entry : plan.recipe) {
    resolved += fmt::format("{} = {}\n", entry.key, entry.value);
  }
  std::string text = TextOf(Describe(number, plan, request));
  std::vector<std::pair<std::string, std::string>> files;
  if (request.recipe) {
    files.emplace_back("recipe.toml", *request.recipe);
  }
  if (!resolved.empty()) {
    files.emplace_back(ResolvedRecipeName, resolved);
  }
  files.emplace_back("plan.shardc", PrintPlan(plan));
  files.emplace_back(AttemptFileName, text);
  RETURN_IF_ERROR(PutFilesAt(folder, files));
  ASSIGN_OR_RETURN(auto log, OpenForAppendAt(folder, LogName));
  const bool was_killed = !numbers.empty() && LacksItsEnd(attempts, numbers.back());
  const std::string before = numbers.empty() ? "" : AttemptName(numbers.back());
  Attempt attempt(number, std::move(folder), std::move(log), std::move(text));
  if (was_killed) {
    attempt.log_.Print(
        fmt::format("the last launch (attempt {} of run {}) did not end properly: it was killed, its record could not "
                    "be written, or the machine went down\n",
                    before, plan.run.run_id));
  }
  return attempt;
}

auto JoinAttempt(const Descriptor& run_dir, int64_t number, const std::string& text, std::optional<int64_t> host)
    -> ErrorOr<RunLog> {
  ASSIGN_OR_RETURN(const auto attempts, OpenDirectoryAt(run_dir, AttemptsName));
  ASSIGN_OR_RETURN(const auto folder, OpenDirectoryAt(attempts, AttemptName(number)));
  // A folder of this host alone may have an attempt of the same number, of an earlier launch.
  const auto seen = ReadFileAt(folder, AttemptFileName, static_cast<int64_t>(text.size()) + 1);
  FAIL_IF(!seen || *seen != text, ExitCode::Environment, "{}/{}", folder.path(),
          seen ? "attempt.json is that of another launch" : seen.error().message);
  ASSIGN_OR_RETURN(auto log, OpenForAppendAt(folder, host ? fmt::format("log.host{}.txt", *host) : LogName));
  return RunLog(std::move(log));
}

auto VersionsOfAttempt(const Descriptor& run_dir, int64_t number) -> std::map<std::string, std::string> {
  const auto attempts = OpenDirectoryAt(run_dir, AttemptsName);
  const auto folder = attempts ? OpenDirectoryAt(*attempts, AttemptName(number)) : attempts.error();
  const auto json = folder ? ReadAttempt(*folder) : folder.error();
  std::map<std::string, std::string> versions;
  if (json && json->contains(VersionsName)) {
    for (const auto& [name, version] : (*json)[VersionsName].items()) {
      versions[name] = version.is_string() ? version.get<std::string>() : version.dump();
    }
  }
  return versions;
}

auto Attempt::RecordStart(const AttemptStart& start, const std::map<std::string, std::string>& versions) const
    -> Status {
  ASSIGN_OR_RETURN(auto read, ReadAttempt(folder_));
  Json& json = read;
  if (!versions.empty()) {
    json[VersionsName] = versions;
  }
  Json& from = json["began_from"];
  switch (start.kind) {
    case AttemptStart::Kind::Scratch: from = {{"kind", "scratch"}}; break;
    case AttemptStart::Kind::Seed:
      from = {{"kind", "seed"},
              {"path", start.path},
              {"run_id", start.run_id},
              {"step", start.step},
              {"digest", start.digest}};
      if (start.steps_before > 0) {
        from["steps_before"] = start.steps_before;
      }
      break;
    case AttemptStart::Kind::Checkpoint:
      from = {{"kind", "checkpoint"}, {"path", start.path}, {"step", start.step}};
      break;
  }
  return PutFileAt(folder_, AttemptFileName, TextOf(json));
}

auto Attempt::RecordMemory(const std::map<std::string, int64_t>& bytes) const -> Status {
  ASSIGN_OR_RETURN(auto read, ReadAttempt(folder_));
  read["gpu_memory"] = bytes;
  return PutFileAt(folder_, AttemptFileName, TextOf(read));
}

auto Attempt::FirstErrorInLog() const -> std::string {
  constexpr int64_t MaxLogBytes = int64_t{1} << 30;
  constexpr std::string_view Mark = "error: ";
  const auto text = ReadFileAt(folder_, LogName, MaxLogBytes);
  if (!text) {
    return {};
  }
  const size_t at = text->starts_with(Mark) ? 0 : text->find(fmt::format("\n{}", Mark));
  if (at == std::string::npos) {
    return {};
  }
  const size_t begin = at + (at == 0 ? 0 : 1) + Mark.size();
  return text->substr(begin, text->find('\n', begin) - begin);
}

static auto HowItEnded(int exit_code) -> std::string_view {
  const auto code = static_cast<ExitCode>(exit_code);
  return code == ExitCode::Ok          ? "complete"
         : code == ExitCode::Preempted ? "stopped"
         : code == ExitCode::Diverged  ? "diverged"
                                       : "failed";
}

auto Attempt::RecordEnd(int exit_code, const std::string& error, std::optional<int64_t> last_step) const -> Status {
  ASSIGN_OR_RETURN(auto read, ReadAttempt(folder_));
  Json& json = read;
  if (last_step) {
    json["last_step"] = *last_step;
  }
  json["ended_at"] = UtcNow();
  json["ended"] = HowItEnded(exit_code);
  json["exit_code"] = exit_code;
  if (const std::string first = error.empty() ? FirstErrorInLog() : error; !first.empty()) {
    json["error"] = first;
  }
  return PutFileAt(folder_, AttemptFileName, TextOf(json));
}

}  // namespace shardc
