#include "compiler/data/undeclared_end.h"

#include <algorithm>
#include <limits>

#include "compiler/base/text/numbers_and_lines.h"

namespace shardc {

static auto ReadIdsOf(const TokenFile& file, int64_t begin, int64_t count, std::vector<int32_t>& ids) -> Status {
  std::vector<uint8_t> raw;
  RETURN_IF_ERROR(ReadRawIds(file, "token", begin, count, raw));
  ids.resize(static_cast<size_t>(count));
  WidenIds(raw.data(), count, file.type, {.vocab = std::numeric_limits<int32_t>::max(), .vocab_name = ""}, ids.data());
  return Success{};
}

/// Returns the id at the first or last place of all files; -1 if they have several.
static auto IdAtEnds(const std::vector<TokenFile>& files, bool last) -> ErrorOr<int64_t> {
  int64_t found = -1;
  std::vector<int32_t> ids;
  for (const TokenFile& file : files) {
    if (file.num_ids == 0) {
      continue;
    }
    RETURN_IF_ERROR(ReadIdsOf(file, last ? file.num_ids - 1 : 0, 1, ids));
    if (found >= 0 && found != ids.front()) {
      return int64_t{-1};
    }
    found = ids.front();
  }
  return found;
}

auto FindUndeclaredEnd(const FileList& list, TokenFormat format) -> ErrorOr<std::optional<UndeclaredEnd>> {
  constexpr int64_t LeastCount = 16;
  constexpr int64_t LeastDistance = 16;
  constexpr int64_t LastLowId = 2;
  constexpr int64_t IdsAtOnce = 256 << 10;
  if (format == TokenFormat::Megatron) {
    return std::optional<UndeclaredEnd>();
  }
  std::vector<TokenFile> files;
  for (const std::string& path : list.paths) {
    ASSIGN_OR_RETURN(auto file, OpenTokenFile(path, format, list.purpose));
    files.push_back(std::move(file));
  }
  std::vector<int32_t> ids;
  for (const bool ends_files : {true, false}) {
    ASSIGN_OR_RETURN(const int64_t id, IdAtEnds(files, ends_files));
    UndeclaredEnd end{.id = id, .ends_files = ends_files};
    int64_t num_ids = 0;
    int32_t greatest = 0;
    for (const TokenFile& file : files) {
      for (int64_t begin = 0; id >= 0 && begin < file.num_ids && (id <= LastLowId || greatest <= id);
           begin += IdsAtOnce) {
        RETURN_IF_ERROR(ReadIdsOf(file, begin, std::min(IdsAtOnce, file.num_ids - begin), ids));
        end.count += std::ranges::count(ids, static_cast<int32_t>(id));
        greatest = std::max(greatest, *std::ranges::max_element(ids));
      }
      num_ids += file.num_ids;
    }
    if (id >= 0 && (id <= LastLowId || greatest == id) && end.count >= LeastCount &&
        num_ids / end.count >= LeastDistance) {
      return std::optional(end);
    }
  }
  return std::optional<UndeclaredEnd>();
}

auto ToText(const UndeclaredEnd& end, const FileList& list) -> std::string {
  const bool is_one = list.paths.size() == 1;
  return fmt::format(
      "id {0} looks like the {1} of documents, and the recipe does not say so: {2} {3} with it, {4}, and it occurs {5} "
      "times; if it is, samples go on from one document into the next, and `data.documents` = \"split\" with "
      "`data.document_end` = {0} keeps them apart",
      end.id, end.ends_files ? "end" : "begin",
      is_one ? fmt::format("{} file {}", list.purpose.noun, list.paths.front())
             : fmt::format("each of {} {} files", list.paths.size(), list.purpose.noun),
      end.ends_files ? "ends" : "begins",
      end.id <= 2 ? "tokenizers have such ids for no text" : "it is the greatest id there", Grouped(end.count));
}

}  // namespace shardc
