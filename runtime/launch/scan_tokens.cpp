#include "runtime/launch/scan_tokens.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/processor.h"
#include "compiler/checkpoint/digest.h"
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
static auto ReadEntries(const Descriptor& folder, int64_t host) -> ErrorOr<std::vector<std::string>> {
  std::vector<std::string> entries;
  const std::string name = ScanRecordName(host);
  ASSIGN_OR_RETURN(const auto status, StatusAt(folder, name));
  if (status.kind == EntryKind::Missing) {
    return entries;
  }
  ASSIGN_OR_RETURN(const auto text, ReadFileAt(folder, name, MostRecordBytes));
  const auto parsed = ParseJson(text, ExitCode::Environment);
  const nlohmann::json json = parsed ? *parsed : nlohmann::json();
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
  const std::vector<Op>& evaluation = plan.section(SectionKind::Eval).ops;
  if (plan.data.has_eval_files() && !evaluation.empty()) {
    lists.back().place = OriginText(plan, evaluation.front().origin);
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

/// Returns ScannedTokens::files. Errors: the files are not fit for a run.
static auto IdentifyFiles(const Plan& plan, const std::vector<FileList>& lists) -> ErrorOr<std::string> {
  const auto tokens = TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.schedule_steps()});
  ASSIGN_OR_RETURN(const auto identity, tokens ? IdentityOf(lists, plan.data.format) : tokens.error());
  std::string files = fmt::format("{}; {}, below {}", identity, ToText(plan.data.format), plan.data.vocab);
  for (const TargetHead& head : plan.heads) {
    files += fmt::format("; targets of {} below {}", head.name, head.vocab);
  }
  // By which targets are counted.
  if (!plan.heads.empty()) {
    files += fmt::format("; samples of {} tokens, {} tokens held out", plan.data.seq, plan.data.eval_tokens);
  }
  return files;
}

/// Separator between the files and their digests.
static constexpr std::string_view DigestsBegin = " | ";

auto ScannedTokens::ToText() const -> std::string {
  return fmt::format("{}{}{}", files, DigestsBegin, fmt::join(digests, " "));
}

auto ScannedTokens::FromText(std::string_view text) -> ScannedTokens {
  const size_t end = text.find(DigestsBegin);
  ScannedTokens scanned{.files = std::string(text.substr(0, end)), .digests = {}};
  while (text.size() > DigestDigits && IsDigest(text.substr(text.size() - DigestDigits))) {
    scanned.digests.emplace(scanned.digests.begin(), text.substr(text.size() - DigestDigits));
    text.remove_suffix(DigestDigits + 1);
  }
  return scanned;
}

/// Looks the files up in the record of a run directory, which need not exist yet. Returns an empty result if they are
/// not there.
static auto FindOnRecord(const TokenScan& scan, const std::string& files, size_t num_lists) -> ScannedTokens {
  const auto folder = OpenDirectory(PosixFs(), scan.run_dir);
  const auto entries = folder ? ReadEntries(*folder, scan.host) : folder.error();
  for (size_t i = entries ? entries->size() : 0; i-- > 0;) {
    ScannedTokens scanned = ScannedTokens::FromText((*entries)[i]);
    if (scanned.files == files && scanned.digests.size() == num_lists) {
      return scanned;
    }
  }
  return {};
}

/// Text about files without digests.
static constexpr std::string_view Samples =
    "other hosts and restarts compare their sizes, both ends and 16 blocks of 4 KiB each, and nothing else";

auto ScanTokens(const Plan& plan, const TokenScan& scan, const ScannedTokens& known) -> ErrorOr<ScannedTokens> {
  if (plan.data.is_synthetic()) {
    return ScannedTokens{};
  }
  if (plan.run.scan_bytes == 0) {
    scan.log->Print(fmt::format("the token files are not read before the run (`data.scan` is 0): {}\n", Samples));
    return ScannedTokens{};
  }
  const std::vector<FileList> lists = PlacedLists(plan);
  const auto files = IdentifyFiles(plan, lists);
  if (!files) {
    // The reader of the run knows no place.
    const Status sound = CheckEach(lists, plan.data.format);
    return sound ? files.error() : sound.error();
  }
  if (known.files == *files) {
    return known;
  }
  if (ScannedTokens found = FindOnRecord(scan, *files, lists.size()); !found.files.empty()) {
    return found;
  }
  if (const int64_t bytes = BytesToScan(lists, plan.data.format); bytes > plan.run.scan_bytes) {
    scan.log->Print(fmt::format(
        "the token ids are not looked at before the run: the files have {} bytes, more than the {} of `data.scan`; {}; "
        "`shardc check --data` looks at the ids of files of any size\n",
        bytes, plan.run.scan_bytes, Samples));
    return ScannedTokens{};
  }
  RETURN_IF_ERROR(CheckEach(lists, plan.data.format));
  ScanBar bar(stderr);
  const auto scanned = ScanIds(lists, plan.data.format,
                               {.threads = NumCores(),
                                .tell = [&](int64_t done, int64_t all) { bar.Tell(done, all); },
                                .may_continue = scan.may_continue});
  if (!scanned) {
    return Named(scanned.error(), DiagnosticKind::TokenIdInvalid);
  }
  if (const Status targets = scan.trains ? CheckHasTargets(plan, *scanned) : Success{}; !targets) {
    return Named(targets.error(), DiagnosticKind::TokenFileInvalid);
  }
  ScannedTokens result{.files = *files, .digests = {}, .is_new = true};
  for (const ScannedList& list : scanned->lists) {
    result.digests.push_back(list.digest);
  }
  return result;
}

/// Checks that the files have the bytes of those of process 0. Errors: ExitCode::Environment.
static auto CompareDigests(const Plan& plan, const ScannedTokens& first, const ScannedTokens& own) -> Status {
  const std::vector<FileList> lists = ListFiles(plan.data, plan.heads);
  for (size_t i = 0; i < std::min({lists.size(), first.digests.size(), own.digests.size()}); ++i) {
    if (first.digests[i] != own.digests[i]) {
      const FileList& list = lists[i];
      return Fail(ExitCode::Environment,
                  "the files of `{}`{} hold other bytes than on the host of process 0: the digest of all bytes is {} "
                  "there, {} here; copy them again",
                  list.purpose.key, list.name.empty() ? "" : " of " + list.name, first.digests[i], own.digests[i]);
    }
  }
  return Success{};
}

auto ScanTokensTogether(const Plan& plan, const TokenScan& scan, Meeting& meeting) -> ErrorOr<ScannedTokens> {
  const std::string key = "token files";
  ErrorOr<ScannedTokens> own = ScannedTokens{};
  Status alike = Success{};
  if (meeting.is_first()) {
    own = ScanTokens(plan, scan);
    RETURN_IF_ERROR(own ? meeting.EndHold() : Status(Success{}));
    RETURN_IF_ERROR(meeting.Tell(key, own ? own->ToText() : ""));
  } else {
    ASSIGN_OR_RETURN(const auto told, meeting.Hear(key, 0));
    const ScannedTokens first = ScannedTokens::FromText(told);
    own = first;
    if (meeting.is_first_of_host() && !first.digests.empty()) {
      own = ScanTokens(plan, scan, first);
      RETURN_IF_ERROR(own ? meeting.EndHold() : Status(Success{}));
      alike = own ? CompareDigests(plan, first, *own) : Status(Success{});
    }
  }
  RETURN_IF_ERROR(meeting.Agree(key, own ? alike : own.error()));
  return own;
}

auto ScanRecordName(int64_t host) -> std::string {
  return host == 0 ? "scanned.json" : fmt::format("scanned.host{}.json", host);
}

auto RecordScan(const RunDirectory& directory, int64_t host, const ScannedTokens& scanned) -> Status {
  if (!scanned.is_new) {
    return Success{};
  }
  ASSIGN_OR_RETURN(auto entries, ReadEntries(directory.folder(), host));
  entries.push_back(scanned.ToText());
  if (entries.size() > MostEntries) {
    entries.erase(entries.begin());
  }
  const nlohmann::ordered_json json{{"format_version", "1.0"}, {"scanned", entries}};
  return PutFileAt(directory.folder(), ScanRecordName(host), json.dump(2) + "\n");
}

}  // namespace shardc
