// What the report says of trained and of frozen parameters apart, for people.

#include <fmt/ranges.h>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cost/fold.h"
#include "compiler/report/text_sections.h"

namespace shardc {

/// Returns "280 MiB of gradients and 140 MiB of parameters"; "nothing" of 0 bytes.
static auto SentText(const StateShare& share) -> std::string {
  std::vector<std::string> sent;
  for (const auto& [bytes, of] :
       {std::pair(share.gradients_sent, "gradients"), {share.parameters_sent, "parameters"}}) {
    if (bytes > Bytes{}) {
      sent.push_back(fmt::format("{} of {}", FormatMemory(bytes), of));
    }
  }
  return sent.empty() ? "nothing" : fmt::format("{}", fmt::join(sent, " and "));
}

auto SharesText(const Report& report) -> std::string {
  const StateShare& trained = report.shares.trained;
  const StateShare& frozen = report.shares.frozen;
  if (frozen.num_elements == 0) {
    return "";
  }
  const auto line = [](std::string_view name, const StateShare& share, std::string_view state) {
    return Wrapped(
        fmt::format("{:<12}{}: {} of {} per rank; a step sends {}", name, Counted(share.num_elements, "parameter"),
                    FormatMemory(share.state), state, SentText(share)),
        12);
  };
  std::string text = line("trained", trained, "parameters and moments") + line("frozen", frozen, "parameters");
  for (const AdapterUse& use : report.adapters) {
    text += Wrapped(
        fmt::format("{:<12}{} of rank {} and scale {}: {} of block{} {}", "adapters", Grouped(use.count()),
                    use.sizes.rank, WithShortNumbers(fmt::format("{}", use.sizes.scale)),
                    fmt::join(use.projections, ", "), use.blocks.size() == 1 ? "" : "s", FoldNumbers(use.blocks)),
        12);
  }
  return text;
}

}  // namespace shardc
