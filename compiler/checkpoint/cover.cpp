#include "compiler/checkpoint/cover.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compiler/checkpoint/pieces.h"

namespace shardc {

/// That the pieces of one role and one box of columns tile it. Requires: sorted by their elements.
static auto CheckBox(const std::string& name, const std::vector<const Piece*>& pieces, int64_t size) -> Status {
  const std::string of_columns =
      pieces.front()->columns.empty()
          ? ""
          : fmt::format(" of columns [{}, {})", pieces.front()->columns.begin, pieces.front()->columns.end);
  int64_t covered = 0;
  for (const Piece* piece : pieces) {
    FAIL_IF(piece->elements.begin != covered, ExitCode::Checkpoint, "{}: elements [{}, {}){} are {}", name,
            std::min(covered, piece->elements.begin), std::max(covered, piece->elements.begin), of_columns,
            covered < piece->elements.begin ? "in no file" : "there twice");
    covered = piece->elements.end;
  }
  FAIL_IF(covered != size, ExitCode::Checkpoint, "{}: elements [{}, {}){} are {}", name, std::min(covered, size),
          std::max(covered, size), of_columns, covered < size ? "in no file" : "outside of it");
  return Success{};
}

/// That the pieces of one role tile the tensor.
static auto CheckRole(const std::string& name, const ManifestTensor& tensor, const std::vector<const Piece*>& pieces)
    -> Status {
  const int64_t size = NumElements(tensor.shape);
  std::map<std::pair<int64_t, int64_t>, std::vector<const Piece*>> boxes;
  for (const Piece* piece : pieces) {
    boxes[{piece->columns.begin, piece->columns.end}].push_back(piece);
  }
  const bool whole_rows = boxes.begin()->second.front()->columns.empty();
  const int64_t row = whole_rows ? 1 : tensor.shape[1];
  int64_t covered = 0;
  for (const auto& [columns, of_box] : boxes) {
    const auto& [begin, end] = columns;
    FAIL_IF(!whole_rows && begin != covered, ExitCode::Checkpoint, "{}: columns [{}, {}) are {}", name,
            std::min(covered, begin), std::max(covered, begin), covered < begin ? "in no file" : "there twice");
    FAIL_IF(whole_rows && boxes.size() > 1, ExitCode::Checkpoint,
            "{}: some pieces are of whole rows, and some of columns", name);
    covered = end;
  }
  FAIL_IF(!whole_rows && covered != row, ExitCode::Checkpoint, "{}: columns [{}, {}) are in no file", name, covered,
          row);
  std::set<std::string_view> files;
  for (auto& [columns, of_box] : boxes) {
    std::sort(of_box.begin(), of_box.end(), [](const Piece* a, const Piece* b) {
      return std::pair(a->elements.begin, a->elements.end) < std::pair(b->elements.begin, b->elements.end);
    });
    RETURN_IF_ERROR(CheckBox(name, of_box, whole_rows ? size : size / row * (columns.second - columns.first)));
    for (const Piece* piece : of_box) {
      FAIL_IF(!files.insert(piece->file).second, ExitCode::Checkpoint, "{}: two pieces in {}", name, piece->file);
    }
  }
  return Success{};
}

/// Layouts that are sound tile each tensor of theirs: ranges of one dim do, and slices of a vector.
static auto CheckLayoutsCover(const Manifest& manifest) -> Status {
  RETURN_IF_ERROR(CheckLayouts(manifest));
  for (const auto& [name, tensor] : manifest.tensors) {
    FAIL_IF(!RolesOf(manifest, tensor).contains(StateRole::Parameter), ExitCode::Checkpoint,
            "{}: elements [0, {}) are in no file", name, NumElements(tensor.shape));
  }
  return Success{};
}

auto CheckCover(const Manifest& manifest) -> Status {
  if (manifest.version != Manifest::ListsPieces) {
    return CheckLayoutsCover(manifest);
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    std::map<StateRole, std::vector<const Piece*>> roles;
    for (const Piece& piece : tensor.pieces) {
      roles[piece.role].push_back(&piece);
    }
    if (const int64_t size = NumElements(tensor.shape); size > 0 && !roles.contains(StateRole::Parameter)) {
      return Fail(ExitCode::Checkpoint, "{}: elements [0, {}) are in no file", name, size);
    }
    for (const auto& [role, pieces] : roles) {
      RETURN_IF_ERROR(CheckRole(StoredName(name, role), tensor, pieces));
    }
  }
  return Success{};
}

}  // namespace shardc
