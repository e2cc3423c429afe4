#include "runtime/launch/scan_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/base/files.h"
#include "compiler/base/processor.h"
#include "compiler/data/scan.h"
#include "compiler/data/scan_bar.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/op_place.h"
#include "runtime/data/token_reader.h"

namespace shardc {

constexpr int64_t MostRecordBytes = int64_t{1} << 20;
constexpr size_t MostEntries = 64;

/// Returns the entries of the record; none if there is no record, or if it cannot be parsed. Errors: it is not a
/// regular file.
static auto ReadEntries(const Descriptor& folder) -> ErrorOr<std::vector<std::string>> {
  std::vector<std::string> entries;
  const auto status = StatusAt(folder, ScanRecordName);
  if (!status) {
    return status.error();
  }
  if (status->kind == EntryKind::Missing) {
    return entries;
  }
  const auto text = ReadFileAt(folder, ScanRecordName, MostRecordBytes);
  if (!text) {
    return text.error();
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("scanned") && json["scanned"].is_array()) {
    for (const auto& entry : json["scanned"]) {
      if (entry.is_string()) {
        entries.push_back(entry.get<std::string>());
      }
    }
  }
  return entries;
}

/// Returns the lists of the plan, with the places in the recipe that name them.
static auto PlacedLists(const Plan& plan) -> std::vector<FileList> {
  std::vector<FileList> lists = ListFiles(plan.data, plan.heads);
  for (const Op& op : plan.section(SectionKind::Data).ops) {
    const auto load = SampleLoadOf(op);
    if (!load) {
      continue;
    }
    for (size_t i = 0; i < plan.data.sources.size() && load->tokens.valid(); ++i) {
      lists[i].place = OriginText(plan, op.origin);
    }
    if (load->head.valid()) {
      lists[plan.data.sources.size() + static_cast<size_t>(load->head.index)].place = OriginText(plan, op.origin);
    }
  }
  return lists;
}

/// Appends the label that `shardc check --data` gives to a fault of the files.
static auto Named(Error error, DiagnosticKind kind) -> Error {
  if (error.code == ExitCode::RecipeRejected) {
    error.message += fmt::format(" [{}]", RowOf(kind).name);
  }
  return error;
}

/// Opens each file, as compiler/check/data_files.cpp judges them.
static auto CheckEach(const std::vector<FileList>& lists, TokenFormat format) -> Status {
  for (const FileList& list : lists) {
    for (const std::string& path : list.paths) {
      if (const Status sound = CheckFile(list, path, format); !sound) {
        return Named(sound.error(),
                     IsMissing(path) ? DiagnosticKind::TokenFileMissing : DiagnosticKind::TokenFileInvalid);
      }
    }
  }
  return Success{};
}

/// Returns the entry of the record for these files: their fingerprint, and the vocabularies that their ids were
/// compared with.
static auto EntryOf(const Plan& plan) -> ErrorOr<std::string> {
  const auto tokens = TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.steps});
  if (!tokens) {
    return tokens.error();
  }
  std::string entry =
      fmt::format("{}; {}, below {}", (*tokens)->Fingerprint(), ToText(plan.data.format), plan.data.vocab);
  for (const TargetHead& head : plan.heads) {
    entry += fmt::format("; targets of {} below {}", head.name, head.vocab);
  }
  return entry;
}

/// Returns true if the run directory, which need not exist yet, has the entry on record.
static auto IsOnRecord(const std::string& run_dir, const std::string& entry) -> bool {
  const auto folder = OpenDirectory(PosixFs(), run_dir);
  const auto entries = folder ? ReadEntries(*folder) : folder.error();
  return entries.ok() && std::find(entries->begin(), entries->end(), entry) != entries->end();
}

auto ScanTokens(const Plan& plan, const std::string& run_dir, const std::function<Status()>& may_continue,
                const RunLog& log) -> ErrorOr<std::string> {
  if (plan.data.is_synthetic() || plan.run.scan_bytes == 0) {
    return std::string();
  }
  const std::vector<FileList> lists = PlacedLists(plan);
  const auto entry = EntryOf(plan);
  if (!entry) {
    // The reader of the run knows no place.
    const Status sound = CheckEach(lists, plan.data.format);
    return sound ? entry.error() : sound.error();
  }
  if (IsOnRecord(run_dir, *entry)) {
    return std::string();
  }
  if (const int64_t bytes = BytesToScan(lists, plan.data.format); bytes > plan.run.scan_bytes) {
    log.Print(fmt::format(
        "the token ids are not looked at before the run: the files have {} bytes, more than the {} of `data.scan`; "
        "`shardc check --data` looks at files of any size\n",
        bytes, plan.run.scan_bytes));
    return std::string();
  }
  RETURN_IF_ERROR(CheckEach(lists, plan.data.format));
  ScanBar bar(stderr);
  const auto scanned = ScanIds(lists, plan.data.format,
                               {.threads = NumCores(),
                                .tell = [&](int64_t done, int64_t all) { bar.Tell(done, all); },
                                .may_continue = may_continue});
  if (!scanned) {
    return Named(scanned.error(), DiagnosticKind::TokenIdInvalid);
  }
  return *entry;
}

auto RecordScan(const RunDirectory& directory, const std::string& scanned) -> Status {
  if (scanned.empty()) {
    return Success{};
  }
  auto entries = ReadEntries(directory.folder());
  if (!entries) {
    return entries.error();
  }
  entries->push_back(scanned);
  if (entries->size() > MostEntries) {
    entries->erase(entries->begin());
  }
  const nlohmann::ordered_json json{{"format_version", "1.0"}, {"scanned", *entries}};
  return PutFileAt(directory.folder(), ScanRecordName, json.dump(2) + "\n");
}

}  // namespace shardc
