// Rules of documents in [data]: boundaries that are known, ids that can end one, and keys that act beside others alone.

#include "compiler/check/check_context.h"
#include "compiler/keys/source_name.h"
#include "compiler/plan/run_settings.h"

namespace shardc {

/// Checks that an id which ends documents is one of the vocabulary.
static auto CheckEnd(CheckContext& context, const Located<int64_t>& end) -> void {
  const Located<int64_t>& vocab = context.recipe().model.vocab;
  if (end.is_set && context.IsSound(end, vocab) && *end >= *vocab) {
    context.diags()
        .Build(end.at, DiagnosticKind::DocumentEndOutside, *end, *vocab)
        .Note(vocab.at, "`vocab` set here")
        .Emit();
    context.MarkFaulty(end);
  }
}

/// Checks that something says where the documents of each list of files end.
static auto CheckBoundaries(CheckContext& context) -> void {
  const DataSection& data = context.recipe().data;
  if (MakesTokens(context) || data.document_end.is_set || !context.IsSound(data.format) ||
      *data.format == TokenFormat::Megatron) {
    return;
  }
  const auto report = [&](const std::string& of) {
    context.diags()
        .Build(data.documents.at, DiagnosticKind::DocumentsUnknown, of, data.format->text())
        .Help("set document_end to the id that ends a document, or name files of Megatron's format")
        .Emit();
    context.MarkFaulty(data.documents);
  };
  for (size_t i = 0; i < data.source.size(); ++i) {
    if (!data.source[i].document_end.is_set) {
      report(fmt::format("source {}", SourceName(data.source[i], i)));
      return;
    }
  }
  if (data.source.empty() || data.eval.is_set) {
    report(data.source.empty() ? "the token files" : "the files of `eval`");
  }
}

/// Reports ids that end documents where none is looked for.
static auto ReportEnds(CheckContext& context, std::string_view why) -> void {
  const DataSection& data = context.recipe().data;
  const auto report = [&](const Located<int64_t>& end) {
    if (end.is_set) {
      context.diags().Report(end.at, DiagnosticKind::KeyHasNoEffect, "document_end", why);
    }
  };
  report(data.document_end);
  for (const SourceTable& source : data.source) {
    report(source.document_end);
  }
}

/// Reports keys that act beside `pack` = "best-fit" alone.
static auto ReportPackedKeys(CheckContext& context, std::string_view why) -> void {
  const DataSection& data = context.recipe().data;
  const auto report = [&](const auto& key, std::string_view name) {
    if (key.is_set) {
      context.diags().Report(key.at, DiagnosticKind::KeyHasNoEffect, name, why);
    }
  };
  report(data.too_long, "too_long");
  report(data.max_lost, "max_lost");
  for (const SourceTable& source : data.source) {
    report(source.too_long, "too_long");
  }
}

auto CheckDocuments(CheckContext& context) -> void {
  const DataSection& data = context.recipe().data;
  CheckEnd(context, data.document_end);
  for (const SourceTable& source : data.source) {
    CheckEnd(context, source.document_end);
  }
  if (!context.IsSound(data.documents, data.pack)) {
    return;
  }
  const bool splits = data.documents.is_set && IsSplit(*data.documents);
  const bool packs = data.pack.is_set && IsPacked(*data.pack);
  const bool makes = MakesTokens(context);
  if (splits) {
    CheckBoundaries(context);
  }
  if (makes) {
    ReportEnds(context, "`synthetic` makes samples that are one document each");
  } else if (context.IsSound(data.format) && *data.format == TokenFormat::Megatron) {
    ReportEnds(context, "`format` is \"megatron\", whose index says where documents end");
  }
  if (!packs || makes) {
    ReportPackedKeys(context, makes ? "`synthetic` makes samples that are one document each"
                                    : "`pack` is not \"best-fit\", so a document may be longer than a sample");
  }
  if (!packs) {
    return;
  }
  if (!splits) {
    context.diags()
        .Build(data.pack.at, DiagnosticKind::PackNeedsDocuments)
        .Help("set documents = \"split\", or leave out `pack`")
        .Emit();
  }
  if (makes) {
    context.diags().Report(data.pack.at, DiagnosticKind::KeyHasNoEffect, "pack",
                           "`synthetic` makes samples that are one document each");
  } else if (*data.eval_tokens > 0 && context.IsSound(data.eval_tokens)) {
    context.diags()
        .Build(data.eval_tokens.at, DiagnosticKind::EvalFiles,
               "`pack` is \"best-fit\", and how many samples the tokens of `eval_tokens` fill is known to their files "
               "alone")
        .Note(data.pack.at, "set here")
        .Help("name files to evaluate on in `eval`")
        .Emit();
  }
}

}  // namespace shardc
