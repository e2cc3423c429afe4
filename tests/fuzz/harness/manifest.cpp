// A manifest of any bytes, and the same bytes after a first line that vouches for them: it is refused, or prints and
// reads back the same, and its pieces are asked whether they cover their tensors; those of layouts do. What is in a
// base has no pieces.
#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/pieces.h"

namespace shardc {
namespace {

auto Judge(std::string_view text) -> void {
  const auto manifest = ManifestFromText(text);
  if (!manifest.ok()) {
    CHECK(!manifest.error().message.empty(), "refused without a word");
    return;
  }
  const auto again = ManifestFromText(ToText(*manifest));
  CHECK(again.ok() && *again == *manifest, "what is printed reads back to another manifest");
  static_cast<void>(CheckCover(*manifest));
  // The pieces that follow from layouts tile the tensors.
  for (const auto& [name, tensor] : manifest->tensors) {
    for (const StateRole role : RolesOf(*manifest, tensor)) {
      int64_t elements = 0;
      for (const Piece& piece : PiecesOf(*manifest, tensor, role)) {
        elements += piece.elements.size();
      }
      CHECK(manifest->version == Manifest::ListsPieces || elements == (tensor.in_base ? 0 : NumElements(tensor.shape)),
            "{}: pieces of {} elements", name, elements);
    }
  }
}

}  // namespace
}  // namespace shardc

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Judge(text);
  // The first line of a sound one has another digest; the rest follows as it is.
  const size_t line_end = text.find('\n');
  const std::string_view rest = line_end == std::string_view::npos ? text : text.substr(line_end + 1);
  const std::string first_line_of_none = ToText(Manifest{});
  const size_t first_line_bytes = first_line_of_none.find('\n') + 1;
  std::string vouched = first_line_of_none.substr(0, first_line_bytes);
  const std::string old_digest = DigestInManifest(first_line_of_none);
  vouched.replace(vouched.find(old_digest), old_digest.size(), DigestOf(rest));
  vouched += rest;
  Judge(vouched);
  return 0;
}
