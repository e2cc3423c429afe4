#include "compiler/checkpoint/pieces.h"

#include "compiler/checkpoint/checked_multiply.h"

namespace shardc {

static auto LayoutOfTensor(const Manifest& manifest, const ManifestTensor& tensor) -> const Layout& {
  return manifest.layouts[static_cast<size_t>(tensor.layout)];
}

static auto LaidTensorOf(const Manifest& manifest, const ManifestTensor& tensor) -> LaidTensor {
  return {.tensor = {.shape = tensor.shape,
                     .dim = tensor.cut_dim,
                     .num_ranks = manifest.mesh.size(LayoutOfTensor(manifest, tensor).cut)},
          .begin = tensor.begin};
}

auto RolesOf(const Manifest& manifest, const ManifestTensor& tensor) -> std::set<StateRole> {
  if (tensor.in_base) {
    return {StateRole::Parameter};
  }
  if (tensor.layout >= 0) {
    return LayoutOfTensor(manifest, tensor).roles;
  }
  std::set<StateRole> roles;
  for (const Piece& piece : tensor.pieces) {
    roles.insert(piece.role);
  }
  return roles;
}

auto PiecesOf(const Manifest& manifest, const ManifestTensor& tensor, StateRole role) -> std::vector<Piece> {
  std::vector<Piece> pieces;
  if (tensor.layout < 0) {
    for (const Piece& piece : tensor.pieces) {
      if (piece.role == role) {
        pieces.push_back(piece);
      }
    }
    return pieces;
  }
  const Layout& layout = LayoutOfTensor(manifest, tensor);
  if (!layout.roles.contains(role)) {
    return pieces;
  }
  const LaidTensor laid = LaidTensorOf(manifest, tensor);
  for (const int64_t rank : RanksThatStore(layout, manifest.mesh, laid)) {
    const BoxInterval interval = PieceOf(layout, manifest.mesh, laid, rank)->elements;
    pieces.push_back({.role = role,
                      .elements = interval.elements,
                      .columns = interval.is_whole_rows() ? Interval{} : interval.columns,
                      .file = RankFileName(rank)});
  }
  return pieces;
}

static auto CheckFiles(const Manifest& manifest) -> Status {
  int64_t num_ranks = 1;
  for (const int64_t size : manifest.mesh.sizes) {
    const auto product = CheckedMultiply(num_ranks, size);
    FAIL_IF(!product, ExitCode::Checkpoint, "\"mesh\": {}", product.error().message);
    num_ranks = *product;
  }
  // Before the loop, which is then bounded by the manifest's bytes.
  FAIL_IF(num_ranks != std::ssize(manifest.files), ExitCode::Checkpoint, "\"files\" are {}, of {} ranks in \"mesh\"",
          manifest.files.size(), num_ranks);
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    FAIL_IF(!manifest.files.contains(RankFileName(rank)), ExitCode::Checkpoint, "\"files\" lack {}",
            RankFileName(rank));
  }
  return Success{};
}

static auto CheckLayout(const Layout& layout, const Mesh& mesh) -> Status {
  // A mesh in a manifest says nothing of parts of axes.
  if ((layout.axes | layout.cut).Without(AxisSet::All()) != AxisSet{} || (layout.axes & layout.cut) != AxisSet{}) {
    return Fail(ExitCode::Checkpoint, "slices along {} of a vector that is cut over {}", ToText(layout.axes),
                ToText(layout.cut));
  }
  if (const int64_t num_slices = mesh.size(layout.axes); layout.length < 1 || layout.length % num_slices != 0) {
    return Fail(ExitCode::Checkpoint, "its length {} has no {} equal slices", layout.length, num_slices);
  }
  return Success{};
}

/// Requires: its layout is sound.
static auto CheckTensor(const ManifestTensor& tensor, const Layout& layout, const LaidTensor& laid) -> Status {
  // Counts of ranks may be added to it.
  constexpr int64_t MaxElements = int64_t{1} << 62;
  const int64_t size = NumElements(tensor.shape);
  FAIL_IF(size < 1 || size > MaxElements, ExitCode::Checkpoint, "its shape is {}", ToText(tensor.shape));
  const int64_t num_ranks = laid.tensor.num_ranks;
  FAIL_IF(tensor.cut_dim.has_value() != (num_ranks > 1), ExitCode::Checkpoint,
          "it is cut along {}, and {} ranks share its layout", tensor.cut_dim ? "a dim" : "no dim", num_ranks);
  // Pieces are of rows of any tensor, or of columns of matrices.
  const auto is_sound = [&](size_t dim) {
    return dim < tensor.shape.size() && (dim == 0 || (tensor.shape.size() == 2 && tensor.shape[dim] % num_ranks == 0));
  };
  FAIL_IF(tensor.cut_dim && !is_sound(*tensor.cut_dim), ExitCode::Checkpoint, "its dim {} of {} is cut into {}",
          *tensor.cut_dim, ToText(tensor.shape), num_ranks);
  const int64_t local = NumElements(laid.tensor.LocalShape());
  FAIL_IF(tensor.begin > layout.length || local > layout.length - tensor.begin, ExitCode::Checkpoint,
          "{} elements from {} on of a vector of {}", local, tensor.begin, layout.length);
  return Success{};
}

auto CheckLayouts(const Manifest& manifest) -> Status {
  RETURN_IF_ERROR(CheckFiles(manifest));
  for (size_t l = 0; l < manifest.layouts.size(); ++l) {
    if (const Status sound = CheckLayout(manifest.layouts[l], manifest.mesh); !sound) {
      return Fail(ExitCode::Checkpoint, "\"layouts\": {}: {}", l, sound.error().message);
    }
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    if (tensor.in_base) {
      continue;
    }
    FAIL_IF(tensor.layout < 0 || tensor.layout >= std::ssize(manifest.layouts), ExitCode::Checkpoint,
            "\"tensors\": \"{}\": layout {} of {}", name, tensor.layout, manifest.layouts.size());
    if (const Status sound = CheckTensor(tensor, LayoutOfTensor(manifest, tensor), LaidTensorOf(manifest, tensor));
        !sound) {
      return Fail(ExitCode::Checkpoint, "\"tensors\": \"{}\": {}", name, sound.error().message);
    }
  }
  return Success{};
}

}  // namespace shardc
