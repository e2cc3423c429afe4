#include "compiler/plan/types.h"

#include "compiler/base/text/parse_whole.h"

namespace shardc {

auto ToText(const Dims& shape) -> std::string {
  std::string text = "[";
  for (const int64_t size : shape) {
    text += text.size() > 1 ? ", " : "";
    text += fmt::format_int(size).c_str();
  }
  text += ']';
  return text;
}

auto StreamOf(AxisSet axes) -> Stream {
  constexpr std::array<Stream, NumMeshAxes> Streams{
#define AXIS(Name, name, stream, ...) Stream::stream,
#include "schemas/axes.def"
  };
  const AxisSet related = WithRelated(axes);
  for (size_t i = 0; i < NumMeshAxes; ++i) {
    if (related.Has(static_cast<Axis>(i))) {
      return Streams[i];
    }
  }
  return Streams.front();
}

auto ToText(const Placements& placements) -> std::string {
  std::string text;
  for (int i = 0; i < NumAxes; ++i) {
    const Placement& placement = placements[static_cast<size_t>(i)];
    if (placement.kind == PlacementKind::Replicate) {
      continue;
    }
    text += text.empty() ? "{" : ", ";
    text += ToText(static_cast<Axis>(i));
    if (placement.kind == PlacementKind::Shard) {
      text += ": shard(";
      text += fmt::format_int(placement.dim).c_str();
      text += ')';
    } else {
      text += ": partial(sum)";
    }
  }
  text += text.empty() ? "" : "}";
  return text;
}

/// Returns a dim that is written as it is printed; -1 if it is not.
static auto ReadDim(std::string_view text) -> int {
  const auto dim = ParseWhole<int>(text);
  return dim && fmt::format("{}", *dim) == text ? std::max(*dim, -1) : -1;
}

auto PlacementsFromText(std::string_view text) -> ErrorOr<Placements> {
  const Error malformed = Fail(ExitCode::Usage, "`{}` is not a placement", text);
  Placements placements;
  if (text.empty()) {
    return placements;
  }
  if (!text.starts_with('{') || !text.ends_with('}')) {
    return malformed;
  }
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t colon = text.find(": ");
    const auto axis = FromText<Axis>(text.substr(0, colon));
    if (colon == std::string_view::npos || !axis) {
      return malformed;
    }
    text.remove_prefix(colon + 2);
    const size_t comma = text.find(", ");
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 2);
    Placement& placement = placements[static_cast<size_t>(*axis)];
    const int dim = word.starts_with("shard(") && word.ends_with(')') ? ReadDim(word.substr(6, word.size() - 7)) : -1;
    if (word == "partial(sum)") {
      placement = Placement::Partial();
    } else if (dim >= 0 && dim < 8) {
      placement = Placement::Shard(dim);
    } else {
      return malformed;
    }
  }
  return placements;
}

auto KindOf(ScalarRole role) -> ScalarKind {
  switch (role) {
    case ScalarRole::Step:
    case ScalarRole::Updates: return ScalarKind::State;
    case ScalarRole::Lr: return ScalarKind::Schedule;
    case ScalarRole::Stop:
    case ScalarRole::NonFinite:
    case ScalarRole::BadParameter:
    case ScalarRole::Spike:
    case ScalarRole::LeftOut: return ScalarKind::Flag;
    case ScalarRole::Loss:
    case ScalarRole::GradNorm:
    case ScalarRole::EvalLoss:
    case ScalarRole::TermLoss:
    case ScalarRole::TermEvalLoss:
    case ScalarRole::Targets: return ScalarKind::Metric;
    case ScalarRole::None: break;
  }
  CHECK(false, "no kind of the role {}", static_cast<int>(role));
}

}  // namespace shardc
