#include "runtime/record/save_record.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "compiler/base/files.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Far more than a run saves: 100 bytes a line.
static constexpr int64_t MaxBytes = int64_t{1} << 30;

static auto SaveIn(std::string_view line, const std::string& run_id) -> std::optional<SavedStep> {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("run_id") || parsed["run_id"] != run_id || !parsed.contains("step") ||
      !parsed["step"].is_number_integer() || !parsed.contains("path") || !parsed["path"].is_string()) {
    return std::nullopt;
  }
  return SavedStep{.step = parsed["step"].get<int64_t>(), .path = parsed["path"].get<std::string>()};
}

auto LastSaveOnRecord(const Descriptor& run_dir, const std::string& run_id) -> ErrorOr<std::optional<SavedStep>> {
  const auto status = StatusAt(run_dir, SaveRecordName);
  if (!status) {
    return status.error();
  }
  if (status->kind == EntryKind::Missing) {
    return std::optional<SavedStep>();
  }
  const auto text = ReadFileAt(run_dir, SaveRecordName, MaxBytes);
  if (!text) {
    return text.error();
  }
  // From the end: the last line of this run decides.
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t begin = rest.find_last_of('\n', rest.size() - 1);
    const std::string_view line = begin == std::string_view::npos ? rest : rest.substr(begin + 1);
    if (auto saved = SaveIn(line, run_id)) {
      return saved;
    }
    rest = begin == std::string_view::npos ? std::string_view{} : rest.substr(0, begin);
  }
  return std::optional<SavedStep>();
}

auto PutSaveOnRecord(const Descriptor& run_dir, const std::string& run_id, const SavedStep& saved) -> Status {
  const auto status = StatusAt(run_dir, SaveRecordName);
  if (!status) {
    return status.error();
  }
  std::string text;
  if (status->kind == EntryKind::File) {
    auto before = ReadFileAt(run_dir, SaveRecordName, MaxBytes);
    if (!before) {
      return before.error();
    }
    // A line that was cut short must not swallow this one.
    text = before->empty() || before->ends_with('\n') ? "" : "\n";
    if (status->num_links > 1) {
      // The other name keeps what it has.
      RETURN_IF_ERROR(PutFileAt(run_dir, SaveRecordName, *before));
    }
  }
  Json line;
  line["step"] = saved.step;
  line["path"] = saved.path;
  line["run_id"] = run_id;
  line["attempt"] = saved.attempt;
  text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  auto file = OpenForAppendAt(run_dir, SaveRecordName);
  if (!file) {
    return file.error();
  }
  RETURN_IF_ERROR(AppendAll(*file, text));
  RETURN_IF_ERROR(file->Fsync());
  RETURN_IF_ERROR(file->Close());
  // The first line made the file. Some file systems cannot sync a folder, and say so; the file is there all the same.
  if (status->kind == EntryKind::Missing) {
    static_cast<void>(run_dir.fs().Fsync(run_dir.get()));
  }
  return Success{};
}

}  // namespace shardc
