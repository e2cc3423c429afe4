#include "compiler/passes/loss_terms.h"

#include "compiler/keys/model_sizes.h"
#include "compiler/passes/pass.h"

namespace shardc {

auto OriginOfTokens(const Recipe& recipe) -> Origin {
  if (*recipe.data.synthetic != Synthetic::None) {
    return OriginOf(recipe.data.synthetic, "data.synthetic");
  }
  return recipe.data.source.empty() ? OriginOf(recipe.data.tokens, "data.tokens")
                                    : OriginOf(recipe.data.source.front().tokens, "data.source");
}

auto LossTermsOf(const Recipe& recipe) -> std::vector<LossTerm> {
  // The header has them in this order.
  HeadId next{0};
  const auto take = [&] { return HeadId{next.index++}; };
  std::vector<LossTerm> terms;
  terms.push_back({.head = recipe.data.targets.is_set ? take() : HeadId{},
                   .name = std::string(OwnHead),
                   .prefix = "",
                   .weight = 1,
                   .origin = OriginOfTokens(recipe),
                   .files = OriginOfTokens(recipe)});
  for (const LossHead& head : recipe.loss.head) {
    terms.push_back({.head = take(),
                     .name = *head.name,
                     .prefix = *head.name + ".",
                     .weight = *head.weight,
                     .origin = OriginOf(head.name, "loss.head"),
                     .files = OriginOf(head.targets, "loss.head.targets")});
  }
  return terms;
}

}  // namespace shardc
