#include "compiler/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/json_reader.h"
#include "compiler/checkpoint/checked_multiply.h"
#include "compiler/checkpoint/digest.h"

namespace shardc {

using nlohmann::json;

namespace {

constexpr const char* FormatName = "shardc checkpoint";
constexpr size_t DigestDigits = 32;
/// The first line is these two with the digest between them.
constexpr std::string_view FirstLineBegin = "{\"digest\":\"";
constexpr std::string_view FirstLineEnd = "\",\n";

auto IsDigest(std::string_view text) -> bool {
  return text.size() == DigestDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Assigns the value of an ErrorOr, or returns its error.
#define READ(target, expression)      \
  do {                                \
    auto read_ = (expression);        \
    if (!read_) return read_.error(); \
    target = std::move(*read_);       \
  } while (false)

/// What no run can have left. What a plan needs of the state is asked where it is read.
auto CheckState(const Manifest& manifest) -> Status {
  for (const auto& [name, value] : manifest.state) {
    if (!std::isfinite(value)) {
      return Fail(ExitCode::Checkpoint, "\"state\": {} is {}", name, value);
    }
  }
  // Counts are kept as doubles, which hold each whole number up to here.
  constexpr int64_t MaxCount = int64_t{1} << 53;
  const auto step = manifest.state.find("step");
  if (manifest.step > MaxCount || step == manifest.state.end() || step->second != static_cast<double>(manifest.step)) {
    return Fail(ExitCode::Checkpoint, "\"step\" is {}, and in \"state\" it is {}", manifest.step,
                step == manifest.state.end() ? "missing" : fmt::format("{}", step->second));
  }
  const auto updates = manifest.state.find("updates");
  if (updates != manifest.state.end() && (updates->second < 0 || updates->second > static_cast<double>(manifest.step) ||
                                          updates->second != std::floor(updates->second))) {
    return Fail(ExitCode::Checkpoint, "\"state\": updates is {}, which is no number of updates in {} steps",
                updates->second, manifest.step);
  }
  return Success{};
}

auto ReadTensor(const JsonReader& entry, const Manifest& manifest) -> ErrorOr<ManifestTensor> {
  ManifestTensor tensor;
  READ(tensor.dtype, entry.Enum<DType>("dtype"));
  const json* shape = nullptr;
  READ(shape, entry.List("shape"));
  if (shape->size() > Dims::max_size()) {
    return Fail(ExitCode::Checkpoint, "\"shape\" has more than {} numbers", Dims::max_size());
  }
  int64_t size = 1;
  for (const json& item : *shape) {
    int64_t dim = 0;
    READ(dim, JsonCount(item, ExitCode::Checkpoint));
    READ(size, CheckedMultiply(size, dim));
    tensor.shape.push_back(dim);
  }
  const json* pieces = nullptr;
  READ(pieces, entry.List("pieces"));
  for (const json& listed : *pieces) {
    const JsonReader item(listed, ExitCode::Checkpoint);
    Piece piece;
    READ(piece.role, item.Enum<StateRole>("role"));
    READ(piece.elements.begin, item.Count("begin"));
    READ(piece.elements.end, item.Count("end"));
    READ(piece.file, item.String("file"));
    if (item.Has("columns")) {
      const json* columns = nullptr;
      READ(columns, item.List("columns"));
      if (columns->size() != 2 || tensor.shape.size() != 2) {
        return Fail(ExitCode::Checkpoint, "\"columns\" is no pair of numbers, or the tensor no matrix");
      }
      READ(piece.columns.begin, JsonCount((*columns)[0], ExitCode::Checkpoint));
      READ(piece.columns.end, JsonCount((*columns)[1], ExitCode::Checkpoint));
      if (piece.columns.empty() || piece.columns.end > tensor.shape[1]) {
        return Fail(ExitCode::Checkpoint, "a piece of columns [{}, {}) of {}", piece.columns.begin, piece.columns.end,
                    tensor.shape[1]);
      }
    }
    if (piece.elements.begin >= piece.elements.end || piece.elements.end > size) {
      return Fail(ExitCode::Checkpoint, "a piece [{}, {}) of {} elements", piece.elements.begin, piece.elements.end,
                  size);
    }
    if (!manifest.files.contains(piece.file)) {
      return Fail(ExitCode::Checkpoint, "a piece in \"{}\", which \"files\" does not list", piece.file);
    }
    tensor.pieces.push_back(std::move(piece));
  }
  return tensor;
}

auto ReadBody(const JsonReader& body) -> ErrorOr<Manifest> {
  // Version first: another one may have other members.
  std::string format;
  int64_t version = 0;
  READ(format, body.String("format"));
  READ(version, body.Count("version"));
  if (format != FormatName || version != Manifest::Version) {
    return Fail(ExitCode::Checkpoint, "it is \"{}\" version {}; this program reads \"{}\" version {}", format, version,
                FormatName, Manifest::Version);
  }

  Manifest manifest;
  READ(manifest.run_id, body.String("run_id"));
  READ(manifest.step, body.Count("step"));
  READ(manifest.plan_hash, body.String("plan_hash"));
  if (!IsPlainName(manifest.run_id)) {
    return Fail(ExitCode::Checkpoint, "\"run_id\" is no plain name");
  }
  if (!IsDigest(manifest.plan_hash)) {
    return Fail(ExitCode::Checkpoint, "\"plan_hash\" is not {} hex digits", DigestDigits);
  }
  JsonReader object = body;
  READ(object, body.Object("model"));
  for (const auto& item : object.object().items()) {
    READ(manifest.model[item.key()], object.String(item.key().c_str()));
  }
  READ(object, body.Object("mesh"));
  for (int i = 0; i < NumMeshAxes; ++i) {
    int64_t& size = manifest.mesh.sizes[static_cast<size_t>(i)];
    READ(size, object.Count(std::string(ToText(static_cast<Axis>(i))).c_str()));
    if (size < 1) {
      return Fail(ExitCode::Checkpoint, "\"mesh\": {} is {}", ToText(static_cast<Axis>(i)), size);
    }
  }
  if (body.Has("recipe")) {
    READ(object, body.Object("recipe"));
    for (const auto& item : object.object().items()) {
      READ(manifest.recipe[item.key()], object.String(item.key().c_str()));
    }
  }
  if (body.Has("seed")) {
    READ(object, body.Object("seed"));
    READ(manifest.seed.run_id, object.String("run_id"));
    READ(manifest.seed.step, object.Count("step"));
    READ(manifest.seed.digest, object.String("digest"));
    if (!IsDigest(manifest.seed.digest) || !IsPlainName(manifest.seed.run_id)) {
      return Fail(ExitCode::Checkpoint, "\"seed\": its digest has no 32 hex digits, or its run_id is no plain name");
    }
  }
  if (body.Has("optimizer")) {
    READ(manifest.optimizer, body.Enum<Optimizer>("optimizer"));
  }
  READ(object, body.Object("state"));
  for (const auto& [name, value] : object.object().items()) {
    if (!value.is_number()) {
      return Fail(ExitCode::Checkpoint, "\"state\": {} is no number", name);
    }
    manifest.state[name] = value.get<double>();
  }
  RETURN_IF_ERROR(CheckState(manifest));

  READ(object, body.Object("data"));
  READ(manifest.data.fingerprint, object.String("fingerprint"));
  READ(manifest.data.order, object.Enum<SampleOrder>("order"));
  READ(manifest.data.seq, object.Count("seq"));
  READ(manifest.data.eval_tokens, object.Count("eval_tokens"));
  READ(manifest.data.tokens_per_step, object.Count("tokens_per_step"));
  const json* seed = nullptr;
  READ(seed, object.Member("seed"));
  if (!seed->is_number_unsigned()) {
    return Fail(ExitCode::Checkpoint, "\"data\": seed is no whole number");
  }
  manifest.data.seed = seed->get<uint64_t>();

  if (object.Has("sources")) {
    const json* sources = nullptr;
    READ(sources, object.List("sources"));
    for (const json& listed : *sources) {
      const JsonReader item(listed, ExitCode::Checkpoint);
      ManifestSource& source = manifest.data.sources.emplace_back();
      READ(source.name, item.String("name"));
      READ(source.weight, item.String("weight"));
      READ(source.fingerprint, item.String("fingerprint"));
    }
    READ(manifest.data.steps, object.Count("steps"));
    if (manifest.step > manifest.data.steps) {
      return Fail(ExitCode::Checkpoint, "\"step\" is {}, of a run over a mixture that was to have {}", manifest.step,
                  manifest.data.steps);
    }
  }

  READ(object, body.Object("files"));
  for (const auto& [name, entry] : object.object().items()) {
    const JsonReader members(entry, ExitCode::Checkpoint);
    ManifestFile file;
    READ(file.bytes, members.Count("bytes"));
    READ(file.digest, members.String("xxh3_128"));
    if (!IsPlainName(name) || !IsDigest(file.digest)) {
      return Fail(ExitCode::Checkpoint, "\"files\": \"{}\" with digest \"{}\" is no plain name with 32 hex digits",
                  name, file.digest);
    }
    manifest.files[name] = std::move(file);
  }
  READ(object, body.Object("tensors"));
  for (const auto& [name, entry] : object.object().items()) {
    auto tensor = ReadTensor(JsonReader(entry, ExitCode::Checkpoint), manifest);
    if (!IsPlainName(name) || !tensor) {
      return Fail(ExitCode::Checkpoint, "\"tensors\": \"{}\": {}", name,
                  tensor ? "no plain name" : tensor.error().message);
    }
    manifest.tensors[name] = std::move(*tensor);
  }
  return manifest;
}

#undef READ

}  // namespace

auto DescribeData(const Plan& plan, std::string fingerprint, const std::vector<std::string>& fingerprints)
    -> ManifestData {
  ManifestData data{.fingerprint = std::move(fingerprint),
                    .order = plan.data.order,
                    .seed = plan.data.seed,
                    .seq = plan.data.seq,
                    .eval_tokens = plan.data.eval_tokens,
                    .tokens_per_step = plan.run.tokens_per_step,
                    .sources = {},
                    .steps = plan.data.is_mixture() ? plan.run.steps : 0};
  if (plan.data.is_mixture()) {
    CHECK(fingerprints.size() == plan.data.sources.size(), "{} fingerprints of {} sources", fingerprints.size(),
          plan.data.sources.size());
    for (size_t s = 0; s < fingerprints.size(); ++s) {
      data.sources.push_back({plan.data.sources[s].name, plan.data.sources[s].weight, fingerprints[s]});
    }
  }
  return data;
}

static auto JsonOf(const ManifestTensor& tensor) -> json {
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
  return {{"shape", tensor.shape}, {"dtype", std::string(ToText(tensor.dtype))}, {"pieces", std::move(pieces)}};
}

auto ToText(const Manifest& manifest) -> std::string {
  json body;
  body["format"] = FormatName;
  body["version"] = Manifest::Version;
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
    body["seed"] = {{"run_id", manifest.seed.run_id}, {"step", manifest.seed.step}, {"digest", manifest.seed.digest}};
  }
  if (manifest.optimizer != Optimizer::Adamw) {
    body["optimizer"] = std::string(ToText(manifest.optimizer));
  }
  body["state"] = manifest.state;
  body["data"] = {{"fingerprint", manifest.data.fingerprint},
                  {"order", std::string(ToText(manifest.data.order))},
                  {"seed", manifest.data.seed},
                  {"seq", manifest.data.seq},
                  {"eval_tokens", manifest.data.eval_tokens},
                  {"tokens_per_step", manifest.data.tokens_per_step}};
  if (!manifest.data.sources.empty()) {
    json& sources = body["data"]["sources"] = json::array();
    for (const ManifestSource& source : manifest.data.sources) {
      sources.push_back({{"name", source.name}, {"weight", source.weight}, {"fingerprint", source.fingerprint}});
    }
    body["data"]["steps"] = manifest.data.steps;
  }
  body["files"] = json::object();
  for (const auto& [name, file] : manifest.files) {
    body["files"][name] = {{"bytes", file.bytes}, {"xxh3_128", file.digest}};
  }
  // "{\n ...": the digest replaces the brace and its line end. Tensors are a line each, since a large model
  // on many ranks has very many pieces.
  std::string text = body.dump(1, ' ', false, json::error_handler_t::replace).substr(2);
  text.resize(text.rfind('\n'));
  text += ",\n \"tensors\": {";
  const char* separator = "\n";
  for (const auto& [name, tensor] : manifest.tensors) {
    text += fmt::format("{}  {}: {}", separator, json(name).dump(), JsonOf(tensor).dump());
    separator = ",\n";
  }
  text += "\n }\n}\n";
  return fmt::format("{}{}{}{}", FirstLineBegin, DigestOf(text), FirstLineEnd, text);
}

auto ManifestFromText(std::string_view text) -> ErrorOr<Manifest> {
  const size_t first_line = FirstLineBegin.size() + DigestDigits + FirstLineEnd.size();
  const std::string_view digest = text.substr(std::min(text.size(), FirstLineBegin.size()), DigestDigits);
  if (text.size() < first_line || !text.starts_with(FirstLineBegin) || !IsDigest(digest) ||
      !text.substr(0, first_line).ends_with(FirstLineEnd)) {
    return Fail(ExitCode::Checkpoint, "its first line is no digest");
  }
  if (const std::string actual = DigestOf(text.substr(first_line)); actual != digest) {
    return Fail(ExitCode::Checkpoint, "its digest is {}, its first line says {}: it is damaged", actual, digest);
  }
  auto body = ParseJson(text, ExitCode::Checkpoint);
  if (!body) {
    return body.error();
  }
  return ReadBody(JsonReader(*body, ExitCode::Checkpoint));
}

auto DigestInManifest(std::string_view text) -> std::string {
  return std::string(text.substr(FirstLineBegin.size(), DigestDigits));
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
