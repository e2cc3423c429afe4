// Rules of [loss]: the chunks divide the sequence; heads have names of their own, and targets that their files can
// hold.
#include <algorithm>
#include <limits>
#include <map>

#include "compiler/check/check_context.h"
#include "compiler/keys/model_sizes.h"

namespace shardc {

static auto CheckChunks(CheckContext& context) -> void {
  const Located<int64_t>& chunks = context.recipe().loss.chunks;
  const Located<int64_t>& seq = context.recipe().model.seq;
  if (!context.IsSound(chunks, seq) || *seq % *chunks == 0) {
    return;
  }
  // The divisors next to it: each below the root has one above it.
  int64_t below = 1;
  int64_t above = *seq;
  for (int64_t divisor = 1; divisor <= *seq / divisor; ++divisor) {
    for (const int64_t candidate : {divisor, *seq / divisor}) {
      if (*seq % divisor == 0) {
        below = candidate < *chunks ? std::max(below, candidate) : below;
        above = candidate > *chunks ? std::min(above, candidate) : above;
      }
    }
  }
  context.diags()
      .Build(chunks.at, DiagnosticKind::LossChunksNotDivisor, *chunks, *seq)
      .Note(seq.at, "`seq` set here")
      .Help(below == above ? fmt::format("use chunks = {}", below) : fmt::format("use chunks = {} or {}", below, above))
      .Emit();
  context.MarkFaulty(chunks);
}

/// The greatest number that an id of a file can be.
static auto GreatestId(TokenFormat format) -> int64_t {
  switch (format) {
    case TokenFormat::U8: return 255;
    case TokenFormat::Bin:
    case TokenFormat::U16: return 65535;
    case TokenFormat::U32: return 4294967295;
    // Each file says which type its ids have; whoever opens it compares.
    case TokenFormat::Megatron: return std::numeric_limits<int64_t>::max();
  }
  CHECK(false, "format {}", static_cast<int>(format));
}

static auto CheckTargets(CheckContext& context, const Located<std::vector<std::string>>& files,
                         const Located<int64_t>& vocab) -> void {
  if (!context.IsSound(files)) {
    return;
  }
  CheckFiles(context, "targets", files);
  const Located<OneOf<TokenFormat>>& format = context.recipe().data.format;
  if (!context.IsSound(vocab) || !context.IsSound(format)) {
    return;
  }
  const int64_t none = GreatestId(*format);
  if (*vocab > none) {
    context.diags()
        .Build(vocab.at, DiagnosticKind::TargetVocabTooLarge, *vocab, format->text(), none - 1, none)
        .Note(files.at, "`targets` set here")
        .Emit();
  }
}

auto CheckLoss(CheckContext& context) -> void {
  CheckChunks(context);
  const Recipe& recipe = context.recipe();
  if (recipe.data.targets.is_set) {
    CheckTargets(context, recipe.data.targets, recipe.model.vocab);
  }
  std::map<std::string, SourceRange> named;
  for (const LossHead& head : recipe.loss.head) {
    CheckTargets(context, head.targets, head.vocab);
    if (!context.IsSound(head.name)) {
      continue;
    }
    const auto [other, fresh] = named.try_emplace(*head.name, head.name.at);
    if (!IsLowercaseName(*head.name)) {
      context.diags().Report(head.name.at, DiagnosticKind::LossHeadName, *head.name,
                             "a name has letters a to z, digits and _, and begins with a letter");
    } else if (*head.name == OwnHead) {
      context.diags().Report(head.name.at, DiagnosticKind::LossHeadName, *head.name, "it is the model's own");
    } else if (!fresh) {
      context.diags()
          .Build(head.name.at, DiagnosticKind::LossHeadName, *head.name, "another head has this name")
          .Note(other->second, "the other head is here")
          .Emit();
    }
  }
}

}  // namespace shardc
