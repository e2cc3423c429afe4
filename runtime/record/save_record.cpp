#include "runtime/record/save_record.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "compiler/base/files.h"
#include "compiler/base/text/split.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Far more than a run saves: 100 bytes a line.
static constexpr int64_t MaxBytes = int64_t{1} << 30;

/// A line, with the run that it is of.
static auto SaveIn(std::string_view line) -> std::optional<std::pair<std::string, SavedStep>> {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  const auto has = [&](const char* name) { return parsed.is_object() && parsed.contains(name); };
  if (!has("run_id") || !parsed["run_id"].is_string() || !has("step") || !parsed["step"].is_number_integer() ||
      !has("path") || !parsed["path"].is_string()) {
    return std::nullopt;
  }
  const bool tells_attempt = has("attempt") && parsed["attempt"].is_number_integer();
  return std::pair(parsed["run_id"].get<std::string>(),
                   SavedStep{.step = parsed["step"].get<int64_t>(),
                             .path = parsed["path"].get<std::string>(),
                             .attempt = tells_attempt ? parsed["attempt"].get<int64_t>() : 0});
}

auto SavesOf(const Descriptor& run_dir, const std::string& run_id) -> ErrorOr<SavesOnRecord> {
  ASSIGN_OR_RETURN(const auto status, StatusAt(run_dir, SaveRecordName));
  SavesOnRecord saves;
  if (status.kind == EntryKind::Missing) {
    return saves;
  }
  ASSIGN_OR_RETURN(const auto text, ReadFileAt(run_dir, SaveRecordName, MaxBytes));
  for (const std::string_view line : SplitLines(text)) {
    auto save = SaveIn(line);
    if (!save) {
      saves.num_unreadable += line.empty() ? 0 : 1;
    } else if (save->first == run_id) {
      saves.last = std::move(save->second);
    }
  }
  return saves;
}

auto PutSaveOnRecord(const Descriptor& run_dir, const std::string& run_id, const SavedStep& saved) -> Status {
  ASSIGN_OR_RETURN(const auto status, StatusAt(run_dir, SaveRecordName));
  std::string text;
  if (status.kind == EntryKind::File) {
    ASSIGN_OR_RETURN(auto before, ReadFileAt(run_dir, SaveRecordName, MaxBytes));
    // A line that was cut short must not swallow this one.
    text = before.empty() || before.ends_with('\n') ? "" : "\n";
    if (status.num_links > 1) {
      // The other name keeps what it has.
      RETURN_IF_ERROR(PutFileAt(run_dir, SaveRecordName, before));
    }
  }
  Json line;
  line["step"] = saved.step;
  line["path"] = saved.path;
  line["run_id"] = run_id;
  line["attempt"] = saved.attempt;
  text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  ASSIGN_OR_RETURN(auto file, OpenForAppendAt(run_dir, SaveRecordName));
  RETURN_IF_ERROR(AppendAll(file, text));
  RETURN_IF_ERROR(file.Fsync());
  RETURN_IF_ERROR(file.Close());
  // The first line made the file. Some file systems cannot sync a folder, and say so; the file is there all the same.
  if (status.kind == EntryKind::Missing) {
    static_cast<void>(run_dir.fs().Fsync(run_dir.get()));
  }
  return Success{};
}

}  // namespace shardc
