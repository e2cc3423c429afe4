// A tensor of a checkpoint, to be read from any element on: pages of the files that hold it, and no memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/expr/loaded_tensor.h"
#include "runtime/checkpoint/mapped_file.h"

namespace shardc {

class MappedTensor : public LoadedTensor {
 public:
  /// A piece, where its first element lies, and the file there.
  struct MappedPiece {
    BoxInterval interval;
    const std::byte* data = nullptr;
    /// Null if nothing is to be checked.
    MappedFile* file = nullptr;
  };

  /// Requires: the pieces hold each element once (CheckCover); a type of seeds; the mappings outlive it.
  MappedTensor(int64_t num_elements, DType dtype, std::vector<MappedPiece> pieces);

  auto num_elements() const -> int64_t override { return num_elements_; }
  auto Read(int64_t begin, int64_t count, float* out) const -> void override;

 private:
  /// The piece that holds the element of this row and column.
  auto PieceWith(int64_t column, int64_t row) const -> const MappedPiece&;

  int64_t num_elements_;
  DType dtype_;
  /// By their columns, then by their elements.
  std::vector<MappedPiece> pieces_;
};

}  // namespace shardc
