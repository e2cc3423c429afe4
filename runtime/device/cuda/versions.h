// The card of a rank, and the versions of its driver and of the CUDA runtime.
#pragma once

#include <map>
#include <string>

namespace shardc {

/// Returns "card", "cudart" and "driver". Requires: the caller's thread uses the card. A version that cannot be found
/// is left out.
auto CudaVersions() -> std::map<std::string, std::string>;

/// Returns the text of a version that a library of NVIDIA gives as one number: 91900 as "9.19.0".
auto LibraryVersionText(size_t version) -> std::string;

}  // namespace shardc
