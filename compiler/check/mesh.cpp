// Rules of [mesh]: which axes this version spreads training over.

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckMesh(CheckContext& context) -> void {
  const MeshSection& mesh = context.recipe().mesh;
  const auto check_axis = [&](std::string_view name, const Located<int64_t>& size) {
    if (context.IsSound(size) && *size != 1) {
      context.diags().Build(size.at, DiagnosticKind::AxisNotSupported, name, *size).Emit();
      context.MarkFaulty(size);
    }
  };
  check_axis("replicate", mesh.replicate);
  check_axis("tp", mesh.tp);
}

}  // namespace shardc
