#include "runtime/record/save_record.h"

#include <string_view>
#include <utility>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/text/split.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Far more than a run saves: 100 bytes a line.
static constexpr int64_t MaxBytes = int64_t{1} << 30;

/// A line, with the run that it is of.
static auto SaveIn(std::string_view line) -> std::optional<std::pair<std::string, SavedStep>> {
  const auto parsed = ParseJson(line, ExitCode::Environment);
  if (!parsed) {
    return std::nullopt;
  }
  const nlohmann::json& save = *parsed;
  const auto has = [&](const char* name) { return save.is_object() && save.contains(name); };
  if (!has("run_id") || !save["run_id"].is_string() || !has("step") || !save["step"].is_number_integer() ||
      !has("path") || !save["path"].is_string()) {
    return std::nullopt;
  }
  const bool tells_attempt = has("attempt") && save["attempt"].is_number_integer();
  return std::pair(save["run_id"].get<std::string>(),
                   SavedStep{.step = save["step"].get<int64_t>(),
                             .path = save["path"].get<std::string>(),
                             .attempt = tells_attempt ? save["attempt"].get<int64_t>() : 0});
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
