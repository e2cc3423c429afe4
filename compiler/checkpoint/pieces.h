// The pieces of a manifest's tensors, whether the manifest lists them (version 1) or states layouts, from which they
// follow (version 2). No one else asks which version a manifest has.
#pragma once

#include <set>
#include <vector>

#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// The states that are stored of a tensor.
auto RolesOf(const Manifest& manifest, const ManifestTensor& tensor) -> std::set<StateRole>;
/// Returns no piece of a tensor in the base. Requires: the manifest was read, or CheckLayouts accepts it.
auto PiecesOf(const Manifest& manifest, const ManifestTensor& tensor, StateRole role) -> std::vector<Piece>;

/// Proves of a manifest that states layouts that its pieces can be computed and are in its files: each axis and dim is
/// one that can be cut, lengths divide, tensors lie in their vectors, no product is beyond 2^63 - 1, and there is one
/// file per rank. Errors: ExitCode::Checkpoint, naming the layout or the tensor. Cost: linear in the manifest.
auto CheckLayouts(const Manifest& manifest) -> Status;

}  // namespace shardc
