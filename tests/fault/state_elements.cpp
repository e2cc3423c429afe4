#include "tests/fault/state_elements.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "compiler/base/bfloat16.h"
#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/pieces.h"
#include "tests/support/owned_intervals.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

static auto Write(DType dtype, char* at, float value) -> void {
  if (dtype == DType::BF16) {
    BFloat16 rounded{};
    Store(rounded, value);
    std::memcpy(at, &rounded, sizeof(rounded));
  } else {
    std::memcpy(at, &value, sizeof(value));
  }
}

auto SetInMemory(const Plan& plan, RankRunner& runner, int64_t rank, const StateElement& at, float value) -> bool {
  bool owned = false;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (!HasRole(sub_vector, at.role)) {
      continue;
    }
    std::vector<View> views{runner.ViewOf(StateOf(sub_vector, at.role))};
    if (at.role == StateRole::Parameter && sub_vector.compute_copy.valid()) {
      views.push_back(runner.ViewOf(sub_vector.compute_copy));
    }
    ForEachOwnedInterval(
        plan, sub_vector, rank, [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t in_slice) {
          if (parameter.name == at.parameter && begin <= at.element && at.element < end) {
            for (const View& view : views) {
              Write(view.dtype, view.At<char>({}) + (in_slice + at.element - begin) * SizeOf(view.dtype), value);
            }
            owned = true;
          }
        });
  }
  return owned;
}

auto SetInCheckpoint(const std::string& checkpoint, const StateElement& at, float value) -> void {
  auto manifest = ManifestFromText(ReadText(checkpoint + "/manifest.json"));
  CHECK(manifest.ok(), "{}", manifest.error().message);
  const ManifestTensor& tensor = manifest->tensors.at(at.parameter);
  const DType dtype = at.role == StateRole::Parameter ? tensor.dtype : DType::F32;
  for (const Piece& piece : PiecesOf(*manifest, tensor, at.role)) {
    ForEachMatrixInterval(tensor.IntervalOf(piece), [&](int64_t begin, int64_t end, int64_t offset) {
      if (at.element < begin || at.element >= end) {
        return;
      }
      std::string file = ReadText(checkpoint + "/" + piece.file);
      uint64_t header_bytes = 0;
      std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
      const auto header = nlohmann::json::parse(file.substr(sizeof(header_bytes), header_bytes));
      const auto data = header.at(StoredName(at.parameter, at.role)).at("data_offsets").at(0).get<int64_t>();
      Write(dtype,
            file.data() + sizeof(header_bytes) + header_bytes + data + (offset + at.element - begin) * SizeOf(dtype),
            value);
      WriteText(checkpoint + "/" + piece.file, file);
      BlockHasher hasher;
      hasher.Update(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file));
      const std::vector<DigestBytes>& blocks = hasher.Finish();
      const std::string list(reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(DigestBytes));
      WriteText(checkpoint + "/" + BlocksName(piece.file), list);
      manifest->files.at(piece.file).digest = DigestOf(list);
    });
  }
  WriteText(checkpoint + "/manifest.json", ToText(*manifest));
}

}  // namespace shardc
