// Reads manifests, of which it believes nothing.
#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/plan_limits.h"
#include "compiler/checkpoint/checked_multiply.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/element_sum.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/manifest_form.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/plan/header.h"

namespace shardc {

using nlohmann::json;

namespace {

/// Assigns the value of an ErrorOr, or returns its error.
#define READ(target, expression)      \
  do {                                \
    auto read_ = (expression);        \
    if (!read_) return read_.error(); \
    target = std::move(*read_);       \
  } while (false)

/// Spells the rotary frequency as plans do: earlier programs kept the recipe's spelling.
auto SpellFrequency(std::map<std::string, std::string>& model) -> void {
  if (const auto frequency = model.find("rope_frequency"); frequency != model.end()) {
    PlanKeys keys;
    keys.model.rope_frequency = Formula{frequency->second};
    PlanHeader header;
    header.model = model;
    PutKeys(keys, header);
    model = std::move(header.model);
  }
}

/// What no run can have left. What a plan needs of the state is asked where it is read.
auto CheckState(const Manifest& manifest) -> Status {
  for (const auto& [name, value] : manifest.state) {
    FAIL_IF(!std::isfinite(value), ExitCode::Checkpoint, "\"state\": {} is {}", name, value);
  }
  // Counts are kept as doubles, which hold each whole number up to here.
  constexpr int64_t MaxCount = int64_t{1} << 53;
  const auto step = manifest.state.find("step");
  FAIL_IF(
      manifest.step > MaxCount || step == manifest.state.end() || step->second != static_cast<double>(manifest.step),
      ExitCode::Checkpoint, "\"step\" is {}, and in \"state\" it is {}", manifest.step,
      step == manifest.state.end() ? "missing" : fmt::format("{}", step->second));
  const auto updates = manifest.state.find("updates");
  const auto before = static_cast<double>(manifest.seed.updates);
  FAIL_IF(updates != manifest.state.end() &&
              (updates->second < before || updates->second > before + static_cast<double>(manifest.step) ||
               updates->second != std::floor(updates->second)),
          ExitCode::Checkpoint, "\"state\": updates is {}, which is no number of updates in {} steps{}",
          updates->second, manifest.step, before == 0 ? "" : fmt::format(" after {}", before));
  return Success{};
}

/// `size`: elements of the tensor.
auto ReadPieces(const JsonReader& entry, const Manifest& manifest, int64_t size, ManifestTensor& tensor) -> Status {
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
      FAIL_IF(columns->size() != 2 || tensor.shape.size() != 2, ExitCode::Checkpoint,
              "\"columns\" is no pair of numbers, or the tensor no matrix");
      READ(piece.columns.begin, JsonCount((*columns)[0], ExitCode::Checkpoint));
      READ(piece.columns.end, JsonCount((*columns)[1], ExitCode::Checkpoint));
      FAIL_IF(piece.columns.empty() || piece.columns.end > tensor.shape[1], ExitCode::Checkpoint,
              "a piece of columns [{}, {}) of {}", piece.columns.begin, piece.columns.end, tensor.shape[1]);
    }
    FAIL_IF(piece.elements.begin >= piece.elements.end || piece.elements.end > size, ExitCode::Checkpoint,
            "a piece [{}, {}) of {} elements", piece.elements.begin, piece.elements.end, size);
    FAIL_IF(!manifest.files.contains(piece.file), ExitCode::Checkpoint,
            "a piece in \"{}\", which \"files\" does not list", piece.file);
    tensor.pieces.push_back(std::move(piece));
  }
  return Success{};
}

/// Reads what a tensor is in the base.
auto ReadInBase(const JsonReader& entry, const Manifest& manifest) -> ErrorOr<TensorInBase> {
  FAIL_IF(!manifest.base, ExitCode::Checkpoint, "it is in a base, and the manifest names none");
  FAIL_IF(entry.Has("layout"), ExitCode::Checkpoint, "it is in a base and in a layout");
  JsonReader object = entry;
  READ(object, entry.Object("base"));
  TensorInBase in_base;
  std::string sum;
  READ(in_base.tensor, object.String("tensor"));
  READ(in_base.row, object.Count("row"));
  READ(sum, object.String("sum"));
  READ(in_base.sum, SumFromText(sum));
  FAIL_IF(!IsPlainName(in_base.tensor), ExitCode::Checkpoint, "\"base\": \"{}\" is no plain name", in_base.tensor);
  return in_base;
}

auto ReadTensor(const JsonReader& entry, const Manifest& manifest) -> ErrorOr<ManifestTensor> {
  ManifestTensor tensor;
  READ(tensor.dtype, entry.Enum<DType>("dtype"));
  const json* shape = nullptr;
  READ(shape, entry.List("shape"));
  FAIL_IF(shape->size() > Dims::max_size(), ExitCode::Checkpoint, "\"shape\" has more than {} numbers",
          Dims::max_size());
  int64_t size = 1;
  for (const json& item : *shape) {
    int64_t dim = 0;
    READ(dim, JsonCount(item, ExitCode::Checkpoint));
    READ(size, CheckedMultiply(size, dim));
    tensor.shape.push_back(dim);
  }
  if (manifest.version == Manifest::ListsPieces) {
    RETURN_IF_ERROR(ReadPieces(entry, manifest, size, tensor));
    return tensor;
  }
  if (entry.Has("base")) {
    READ(tensor.in_base, ReadInBase(entry, manifest));
    return tensor;
  }
  READ(tensor.layout, entry.Count("layout"));
  READ(tensor.begin, entry.Count("begin"));
  if (entry.Has("first_update")) {
    READ(tensor.first_update, entry.Count("first_update"));
    FAIL_IF(tensor.first_update > manifest.seed.updates, ExitCode::Checkpoint,
            "\"first_update\" is {}, and the run began with {} updates", tensor.first_update, manifest.seed.updates);
  }
  if (entry.Has("cut")) {
    int64_t dim = 0;
    READ(dim, entry.Count("cut"));
    tensor.cut_dim = static_cast<size_t>(dim);
  }
  return tensor;
}

auto ReadAxes(const JsonReader& entry, const char* name) -> ErrorOr<AxisSet> {
  std::string text;
  READ(text, entry.String(name));
  const auto axes = AxisSetFromText(text);
  return axes ? axes : Fail(ExitCode::Checkpoint, "\"{}\": {}", name, axes.error().message);
}

auto ReadLayout(const JsonReader& entry) -> ErrorOr<Layout> {
  Layout layout;
  READ(layout.length, entry.Count("length"));
  READ(layout.axes, ReadAxes(entry, "axes"));
  READ(layout.cut, ReadAxes(entry, "cut"));
  const json* roles = nullptr;
  READ(roles, entry.List("roles"));
  for (const json& item : *roles) {
    const auto role = item.is_string() ? FromText<StateRole>(item.get_ref<const std::string&>()) : std::nullopt;
    FAIL_IF(!role, ExitCode::Checkpoint, "\"roles\" has {:.40}, which is no role", item.dump());
    layout.roles.insert(*role);
  }
  return layout;
}

auto ReadTexts(const JsonReader& object, std::map<std::string, std::string>& texts) -> Status {
  for (const auto& item : object.object().items()) {
    READ(texts[item.key()], object.String(item.key().c_str()));
  }
  return Success{};
}

auto ReadPublished(const JsonReader& entry) -> ErrorOr<PublishedModel> {
  PublishedModel published;
  JsonReader object = entry;
  READ(object, entry.Object("config"));
  RETURN_IF_ERROR(ReadTexts(object, published.config));
  READ(published.index, entry.String("index"));
  READ(object, entry.Object("copies"));
  RETURN_IF_ERROR(ReadTexts(object, published.copies));
  if (entry.Has("read")) {
    READ(object, entry.Object("read"));
    READ(published.directory, object.String("directory"));
    READ(published.bytes_read, object.Count("bytes"));
    READ(published.digest_read, object.String("xxh3_128"));
  }
  return published;
}

auto ReadMesh(const JsonReader& object, Mesh& mesh) -> Status {
  for (int i = 0; i < NumMeshAxes; ++i) {
    int64_t& size = mesh.sizes[static_cast<size_t>(i)];
    READ(size, object.Count(std::string(ToText(static_cast<Axis>(i))).c_str()));
    FAIL_IF(size < 1, ExitCode::Checkpoint, "\"mesh\": {} is {}", ToText(static_cast<Axis>(i)), size);
  }
  return Success{};
}

auto ReadSeed(const JsonReader& object) -> ErrorOr<ManifestSeed> {
  ManifestSeed seed;
  READ(seed.run_id, object.String("run_id"));
  READ(seed.step, object.Count("step"));
  READ(seed.digest, object.String("digest"));
  if (object.Has("adapter")) {
    READ(seed.adapter, object.String("adapter"));
  }
  FAIL_IF(!IsDigest(seed.digest) || !(seed.adapter.empty() || IsDigest(seed.adapter)) || !IsPlainName(seed.run_id),
          ExitCode::Checkpoint, "\"seed\": its digest has no 32 hex digits, or its run_id is no plain name");
  if (object.Has("steps_before")) {
    READ(seed.updates, object.Count("updates"));
    READ(seed.first_step, object.Count("first_step"));
    READ(seed.steps_before, object.Count("steps_before"));
    FAIL_IF(std::max({seed.updates, seed.first_step, seed.steps_before}) > MostCount, ExitCode::Checkpoint,
            "\"seed\": more than {} steps came before", MostCount);
  }
  return seed;
}

auto ReadBase(const JsonReader& object) -> ErrorOr<ManifestBase> {
  ManifestBase base;
  READ(base.path, object.String("path"));
  READ(base.digest, object.String("digest"));
  FAIL_IF(!base.path.starts_with('/') || !IsDigest(base.digest), ExitCode::Checkpoint,
          "\"base\": \"{}\" with digest \"{}\" is no absolute path with 32 hex digits", base.path, base.digest);
  return base;
}

/// Reads the scalars of the state, and the losses before the step.
auto ReadState(const JsonReader& body, Manifest& manifest) -> Status {
  JsonReader object = body;
  READ(object, body.Object("state"));
  for (const auto& [name, value] : object.object().items()) {
    FAIL_IF(!value.is_number(), ExitCode::Checkpoint, "\"state\": {} is no number", name);
    manifest.state[name] = value.get<double>();
  }
  RETURN_IF_ERROR(CheckState(manifest));
  if (body.Has("recent_losses")) {
    const json* losses = nullptr;
    READ(losses, body.List("recent_losses"));
    for (const json& loss : *losses) {
      FAIL_IF(!loss.is_number() || !std::isfinite(loss.get<double>()), ExitCode::Checkpoint,
              "\"recent_losses\": item {} is no finite number", manifest.recent_losses.size());
      manifest.recent_losses.push_back(loss.get<double>());
    }
  }
  return Success{};
}

auto ReadData(const JsonReader& object, Manifest& manifest) -> Status {
  READ(manifest.data.fingerprint, object.String("fingerprint"));
  READ(manifest.data.order, object.Enum<SampleOrder>("order"));
  READ(manifest.data.seq, object.Count("seq"));
  READ(manifest.data.eval_tokens, object.Count("eval_tokens"));
  READ(manifest.data.tokens_per_step, object.Count("tokens_per_step"));
  const json* seed = nullptr;
  READ(seed, object.Member("seed"));
  FAIL_IF(!seed->is_number_unsigned(), ExitCode::Checkpoint, "\"data\": seed is no whole number");
  manifest.data.seed = seed->get<uint64_t>();
  if (object.Has("pack")) {
    READ(manifest.data.pack, object.Enum<Pack>("pack"));
  }
  if (object.Has("digests")) {
    const json* digests = nullptr;
    READ(digests, object.List("digests"));
    for (const json& digest : *digests) {
      FAIL_IF(!digest.is_string() || !IsDigest(digest.get_ref<const std::string&>()), ExitCode::Checkpoint,
              "\"data\": item {} of \"digests\" is not {} hex digits", manifest.data.digests.size(), DigestDigits);
      manifest.data.digests.push_back(digest.get<std::string>());
    }
  }

  if (object.Has("first_samples")) {
    const json* samples = nullptr;
    READ(samples, object.List("first_samples"));
    for (const json& item : *samples) {
      READ(manifest.data.first_samples.emplace_back(), JsonCount(item, ExitCode::Checkpoint));
      FAIL_IF(manifest.data.first_samples.back() > MostCount, ExitCode::Checkpoint,
              "\"data\": item {} of \"first_samples\" is more than {}", manifest.data.first_samples.size() - 1,
              MostCount);
    }
  }
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
    FAIL_IF(manifest.step > manifest.data.steps, ExitCode::Checkpoint,
            "\"step\" is {}, of a run over a mixture that was to have {}", manifest.step, manifest.data.steps);
  }
  return Success{};
}

auto ReadFiles(const JsonReader& object, Manifest& manifest) -> Status {
  for (const auto& [name, entry] : object.object().items()) {
    const JsonReader members(entry, ExitCode::Checkpoint);
    ManifestFile file;
    READ(file.bytes, members.Count("bytes"));
    READ(file.digest, members.String(FileDigestName(manifest.digests_blocks())));
    FAIL_IF(!IsPlainName(name) || !IsDigest(file.digest), ExitCode::Checkpoint,
            "\"files\": \"{}\" with digest \"{}\" is no plain name with 32 hex digits", name, file.digest);
    manifest.files[name] = std::move(file);
  }
  return Success{};
}

auto ReadBody(const JsonReader& body) -> ErrorOr<Manifest> {
  // Version first: another one may have other members.
  std::string format;
  int64_t version = 0;
  READ(format, body.String("format"));
  READ(version, body.Count("version"));
  FAIL_IF(format != ManifestFormat || version < Manifest::ListsPieces || version > Manifest::HasBase,
          ExitCode::Checkpoint, "it is \"{}\" version {}; this program reads \"{}\" versions {} to {}{}", format,
          version, ManifestFormat, Manifest::ListsPieces, Manifest::HasBase,
          version > Manifest::HasBase ? ": use the program that wrote it, or a newer one" : "");

  Manifest manifest;
  manifest.version = version;
  READ(manifest.run_id, body.String("run_id"));
  READ(manifest.step, body.Count("step"));
  READ(manifest.plan_hash, body.String("plan_hash"));
  FAIL_IF(!IsPlainName(manifest.run_id), ExitCode::Checkpoint, "\"run_id\" is no plain name");
  FAIL_IF(!IsDigest(manifest.plan_hash), ExitCode::Checkpoint, "\"plan_hash\" is not {} hex digits", DigestDigits);
  JsonReader object = body;
  READ(object, body.Object("model"));
  RETURN_IF_ERROR(ReadTexts(object, manifest.model));
  SpellFrequency(manifest.model);
  READ(object, body.Object("mesh"));
  RETURN_IF_ERROR(ReadMesh(object, manifest.mesh));
  if (body.Has("recipe")) {
    READ(object, body.Object("recipe"));
    RETURN_IF_ERROR(ReadTexts(object, manifest.recipe));
  }
  if (body.Has("seed")) {
    READ(object, body.Object("seed"));
    READ(manifest.seed, ReadSeed(object));
  }
  if (manifest.version == Manifest::HasBase) {
    READ(object, body.Object("base"));
    READ(manifest.base, ReadBase(object));
  }
  if (body.Has("optimizer")) {
    READ(manifest.optimizer, body.Enum<Optimizer>("optimizer"));
  }
  RETURN_IF_ERROR(ReadState(body, manifest));
  READ(object, body.Object("data"));
  RETURN_IF_ERROR(ReadData(object, manifest));
  READ(object, body.Object("files"));
  RETURN_IF_ERROR(ReadFiles(object, manifest));
  if (manifest.version != Manifest::ListsPieces) {
    const json* layouts = nullptr;
    READ(layouts, body.List("layouts"));
    for (const json& listed : *layouts) {
      auto layout = ReadLayout(JsonReader(listed, ExitCode::Checkpoint));
      FAIL_IF(!layout, ExitCode::Checkpoint, "\"layouts\": {}: {}", manifest.layouts.size(), layout.error().message);
      manifest.layouts.push_back(*std::move(layout));
    }
  }
  READ(object, body.Object("tensors"));
  for (const auto& [name, entry] : object.object().items()) {
    auto tensor = ReadTensor(JsonReader(entry, ExitCode::Checkpoint), manifest);
    FAIL_IF(!IsPlainName(name) || !tensor, ExitCode::Checkpoint, "\"tensors\": \"{}\": {}", name,
            tensor ? "no plain name" : tensor.error().message);
    manifest.tensors[name] = std::move(*tensor);
  }
  if (body.Has("published")) {
    READ(object, body.Object("published"));
    READ(manifest.published, ReadPublished(object));
  }
  if (manifest.version != Manifest::ListsPieces) {
    RETURN_IF_ERROR(CheckLayouts(manifest));
  }
  return manifest;
}

#undef READ

}  // namespace

auto ManifestFromText(std::string_view text) -> ErrorOr<Manifest> {
  const size_t first_line = FirstLineBegin.size() + DigestDigits + FirstLineEnd.size();
  const std::string_view digest = text.substr(std::min(text.size(), FirstLineBegin.size()), DigestDigits);
  FAIL_IF(text.size() < first_line || !text.starts_with(FirstLineBegin) || !IsDigest(digest) ||
              !text.substr(0, first_line).ends_with(FirstLineEnd),
          ExitCode::Checkpoint, "its first line is no digest");
  if (const std::string actual = DigestOf(text.substr(first_line)); actual != digest) {
    return Fail(ExitCode::Checkpoint, "its digest is {}, its first line says {}: it is damaged", actual, digest);
  }
  ASSIGN_OR_RETURN(auto body, ParseJson(text, ExitCode::Checkpoint));
  return ReadBody(JsonReader(body, ExitCode::Checkpoint));
}

auto DigestInManifest(std::string_view text) -> std::string {
  return std::string(text.substr(FirstLineBegin.size(), DigestDigits));
}

}  // namespace shardc
