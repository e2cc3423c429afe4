#include "compiler/checkpoint/manifest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/base/check.h"
#include "compiler/base/mapped.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/element_sum.h"
#include "compiler/checkpoint/manifest_form.h"

namespace shardc {

using nlohmann::json;

auto DescribeData(const Plan& plan, std::string fingerprint, const std::vector<std::string>& fingerprints,
                  std::vector<std::string> digests) -> ManifestData {
  ManifestData data{.fingerprint = std::move(fingerprint),
                    .digests = std::move(digests),
                    .order = plan.data.order,
                    .seed = plan.data.seed,
                    .seq = plan.data.seq,
                    .eval_tokens = plan.data.eval_tokens,
                    .tokens_per_step = plan.run.tokens_per_step,
                    .pack = plan.data.pack,
                    .sources = {},
                    .steps = plan.data.is_mixture() ? plan.run.steps : 0,
                    .first_samples = {}};
  if (plan.data.goes_on()) {
    data.first_samples = Mapped<int64_t>(plan.data.sources, &TokenSource::first_sample);
  }
  if (plan.data.is_mixture()) {
    CHECK(fingerprints.size() == plan.data.sources.size(), "{} fingerprints of {} sources", fingerprints.size(),
          plan.data.sources.size());
    for (size_t s = 0; s < fingerprints.size(); ++s) {
      data.sources.push_back({plan.data.sources[s].name, plan.data.sources[s].weight, fingerprints[s]});
    }
  }
  return data;
}

static auto JsonOf(const Layout& layout) -> json {
  const auto roles = Mapped<json>(layout.roles, [&](const StateRole role) { return std::string(ToText(role)); });
  return {{"length", layout.length},
          {"axes", ToText(layout.axes)},
          {"cut", ToText(layout.cut)},
          {"roles", std::move(roles)}};
}

static auto JsonOf(const ManifestFile& file, bool digests_blocks) -> json {
  return {{"bytes", file.bytes}, {FileDigestName(digests_blocks), file.digest}};
}

static auto JsonOfPieces(const ManifestTensor& tensor) -> json {
  json pieces = json::array();
  for (const Piece& piece : tensor.pieces) {
    pieces.push_back({{"role", std::string(ToText(piece.role))},
                      {"begin", piece.elements.begin},
                      {"end", piece.elements.end},
                      {"file", piece.file}});
    if (!piece.columns.empty()) {
      pieces.back()["columns"] = {piece.columns.begin, piece.columns.end};
    }
  }
  return pieces;
}

static auto JsonOf(const ManifestTensor& tensor, int64_t version) -> json {
  json entry{{"shape", tensor.shape}, {"dtype", std::string(ToText(tensor.dtype))}};
  if (version == Manifest::ListsPieces) {
    entry["pieces"] = JsonOfPieces(tensor);
    return entry;
  }
  if (tensor.in_base) {
    entry["base"] = {
        {"tensor", tensor.in_base->tensor}, {"row", tensor.in_base->row}, {"sum", SumText(tensor.in_base->sum)}};
    return entry;
  }
  entry["layout"] = tensor.layout;
  entry["begin"] = tensor.begin;
  if (tensor.first_update > 0) {
    entry["first_update"] = tensor.first_update;
  }
  if (tensor.cut_dim) {
    entry["cut"] = *tensor.cut_dim;
  }
  return entry;
}

/// A line for each of what a large model on many ranks has very many of.
static auto InLines(const char* name, const std::vector<std::string>& lines, char open, char close) -> std::string {
  return fmt::format(",\n \"{}\": {}\n  {}\n {}", name, open, fmt::join(lines, ",\n  "), close);
}

auto ToText(const Manifest& manifest) -> std::string {
  json body;
  body["format"] = ManifestFormat;
  body["version"] = manifest.version;
  body["run_id"] = manifest.run_id;
  body["step"] = manifest.step;
  body["plan_hash"] = manifest.plan_hash;
  body["model"] = manifest.model;
  // How dp is cut is left out: no element of the state lies elsewhere for it.
  for (int i = 0; i < NumMeshAxes; ++i) {
    body["mesh"][std::string(ToText(static_cast<Axis>(i)))] = manifest.mesh.sizes[static_cast<size_t>(i)];
  }
  if (!manifest.recipe.empty()) {
    body["recipe"] = manifest.recipe;
  }
  if (!manifest.seed.digest.empty()) {
    const ManifestSeed& seed = manifest.seed;
    body["seed"] = {{"run_id", seed.run_id}, {"step", seed.step}, {"digest", seed.digest}};
    if (!seed.adapter.empty()) {
      body["seed"]["adapter"] = seed.adapter;
    }
    if (seed.steps_before > 0) {
      body["seed"]["updates"] = seed.updates;
      body["seed"]["first_step"] = seed.first_step;
      body["seed"]["steps_before"] = seed.steps_before;
    }
  }
  if (manifest.base) {
    body["base"] = {{"path", manifest.base->path}, {"digest", manifest.base->digest}};
  }
  if (manifest.optimizer != Optimizer::Adamw) {
    body["optimizer"] = std::string(ToText(manifest.optimizer));
  }
  body["state"] = manifest.state;
  if (!manifest.recent_losses.empty()) {
    body["recent_losses"] = manifest.recent_losses;
  }
  body["data"] = {{"fingerprint", manifest.data.fingerprint},
                  {"order", std::string(ToText(manifest.data.order))},
                  {"seed", manifest.data.seed},
                  {"seq", manifest.data.seq},
                  {"eval_tokens", manifest.data.eval_tokens},
                  {"tokens_per_step", manifest.data.tokens_per_step}};
  if (manifest.data.pack != Pack::Stream) {
    body["data"]["pack"] = std::string(ToText(manifest.data.pack));
  }
  if (!manifest.data.digests.empty()) {
    body["data"]["digests"] = manifest.data.digests;
  }
  if (!manifest.data.sources.empty()) {
    body["data"]["sources"] = Mapped<json>(manifest.data.sources, [&](const ManifestSource& source) {
      return json{{"name", source.name}, {"weight", source.weight}, {"fingerprint", source.fingerprint}};
    });
    body["data"]["steps"] = manifest.data.steps;
  }
  if (!manifest.data.first_samples.empty()) {
    body["data"]["first_samples"] = manifest.data.first_samples;
  }
  if (manifest.published) {
    const PublishedModel& published = *manifest.published;
    body["published"] = {{"config", published.config}, {"index", published.index}, {"copies", published.copies}};
    if (!published.digest_read.empty()) {
      body["published"]["read"] = {
          {"directory", published.directory}, {"bytes", published.bytes_read}, {"xxh3_128", published.digest_read}};
    }
  }
  // "{\n ...": the digest replaces the brace and its line end.
  std::string text = body.dump(1, ' ', false, json::error_handler_t::replace).substr(2);
  text.resize(text.rfind('\n'));

  std::vector<std::string> lines;
  for (const auto& [name, file] : manifest.files) {
    lines.push_back(fmt::format("{}: {}", json(name).dump(), JsonOf(file, manifest.digests_blocks()).dump()));
  }
  text += InLines("files", lines, '{', '}');
  if (manifest.version != Manifest::ListsPieces) {
    lines.clear();
    for (const Layout& layout : manifest.layouts) {
      lines.push_back(JsonOf(layout).dump());
    }
    text += InLines("layouts", lines, '[', ']');
  }
  lines.clear();
  for (const auto& [name, tensor] : manifest.tensors) {
    lines.push_back(fmt::format("{}: {}", json(name).dump(), JsonOf(tensor, manifest.version).dump()));
  }
  text += InLines("tensors", lines, '{', '}') + "\n}\n";
  return fmt::format("{}{}{}{}", FirstLineBegin, DigestOf(text), FirstLineEnd, text);
}

auto StoredName(std::string_view parameter, StateRole role) -> std::string {
  return role == StateRole::Parameter ? std::string(parameter) : fmt::format("{}.{}", parameter, ToText(role));
}

auto RankFileName(int64_t rank) -> std::string { return fmt::format("rank-{:05}.safetensors", rank); }

auto CheckpointName(int64_t step) -> std::string { return fmt::format("step-{:08}", step); }

auto IsCheckpointName(std::string_view name) -> bool {
  constexpr std::string_view Prefix = "step-";
  constexpr size_t MinDigits = 8;
  return name.starts_with(Prefix) && name.size() >= Prefix.size() + MinDigits &&
         name.substr(Prefix.size()).find_first_not_of("0123456789") == std::string_view::npos;
}

// No plain name has this character, so where the run id ends is plain.
static constexpr char TagBegin = '~';
static constexpr size_t TagDigits = 8;

auto TemporaryName(int64_t step, std::string_view run_id, std::string_view tag) -> std::string {
  CHECK(tag.empty() || tag.size() == TagDigits, "tag {}", tag);
  const std::string name = fmt::format("{}.tmp-{}", CheckpointName(step), run_id);
  return tag.empty() ? name : fmt::format("{}{}{}", name, TagBegin, tag);
}

auto IsTemporaryName(std::string_view name, std::string_view run_id) -> bool {
  if (name.size() > TagDigits && name[name.size() - TagDigits - 1] == TagBegin) {
    if (name.substr(name.size() - TagDigits).find_first_not_of("0123456789abcdef") != std::string_view::npos) {
      return false;
    }
    name.remove_suffix(TagDigits + 1);
  }
  const std::string suffix = fmt::format(".tmp-{}", run_id);
  return name.ends_with(suffix) && IsCheckpointName(name.substr(0, name.size() - suffix.size()));
}

auto IsPlainName(std::string_view name) -> bool {
  constexpr size_t MaxLength = 200;
  return !name.empty() && name.size() <= MaxLength && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' || c == '_' ||
                  c == '-';
         });
}

auto ManifestTensor::IntervalOf(const Piece& piece) const -> BoxInterval {
  return piece.columns.empty() ? BoxInterval::Of(piece.elements)
                               : BoxInterval{.elements = piece.elements, .row = shape[1], .columns = piece.columns};
}

}  // namespace shardc
