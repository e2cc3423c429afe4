#include "compiler/driver/checkpoint_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>

#include "compiler/base/printable.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/pieces.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Tensors, or files, that a line of text names at most.
static constexpr size_t MostNamed = 3;

auto BytesOfFiles(const Manifest& manifest) -> int64_t {
  int64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) {
    bytes += file.bytes;
  }
  return bytes;
}

/// Returns "12 s", "3 min", "4 h", "5 d".
static auto AgeText(int64_t seconds) -> std::string {
  constexpr int64_t Minute = 60;
  constexpr int64_t Hour = 60 * Minute;
  constexpr int64_t Day = 24 * Hour;
  return seconds < 0            ? "in the future"
         : seconds < 2 * Minute ? fmt::format("{} s", seconds)
         : seconds < 2 * Hour   ? fmt::format("{} min", seconds / Minute)
         : seconds < 2 * Day    ? fmt::format("{} h", seconds / Hour)
                                : fmt::format("{} d", seconds / Day);
}

static auto AgeOf(const FoundCheckpoint& own, int64_t now_ns) -> int64_t {
  constexpr int64_t NanosecondsPerSecond = 1'000'000'000;
  return (now_ns - own.written_ns) / NanosecondsPerSecond;
}

/// Returns "dp 2, tp 4"; "1 rank" of a mesh of one.
static auto MeshText(const Mesh& mesh) -> std::string {
  std::vector<std::string> axes;
  for (int i = 0; i < NumMeshAxes; ++i) {
    if (const auto axis = static_cast<Axis>(i); mesh.size(axis) > 1) {
      axes.push_back(fmt::format("{} {}", ToText(axis), mesh.size(axis)));
    }
  }
  return axes.empty() ? "1 rank" : fmt::format("{}", fmt::join(axes, ", "));
}

static auto StateWord(const FoundCheckpoint& own) -> std::string {
  switch (own.state) {
    case CheckpointState::Whole: return own.is_newest ? "newest" : "";
    case CheckpointState::Temporary: return "a save that is under way, or was cut short";
    case CheckpointState::Aside: return "moved aside by a later save";
    case CheckpointState::Damaged: return "damaged: " + own.why;
  }
  CHECK(false, "state {}", static_cast<int>(own.state));
}

auto ListAsText(const std::vector<FoundCheckpoint>& found, int64_t now_ns) -> std::string {
  Table table("");
  table.Row({"checkpoint", "age", "bytes", "run", "mesh", ""});
  for (const FoundCheckpoint& own : found) {
    table.Row({PrintableLine(own.path), AgeText(AgeOf(own, now_ns)), FormatMemory(Bytes{own.bytes}),
               own.manifest ? own.manifest->run_id : "", own.manifest ? MeshText(own.manifest->mesh) : "",
               PrintableLine(StateWord(own))});
  }
  return table.Text();
}

static auto MeshJson(const Mesh& mesh) -> Json {
  Json sizes = Json::object();
  for (int i = 0; i < NumMeshAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    sizes[std::string(ToText(axis))] = mesh.size(axis);
  }
  return sizes;
}

auto ListAsJson(const std::vector<FoundCheckpoint>& found, int64_t now_ns) -> std::string {
  constexpr std::string_view States[] = {"whole", "temporary", "aside", "damaged"};
  Json list = Json::array();
  for (const FoundCheckpoint& own : found) {
    Json& entry = list.emplace_back(Json{{"path", own.path},
                                         {"state", States[static_cast<size_t>(own.state)]},
                                         {"newest", own.is_newest},
                                         {"age_s", AgeOf(own, now_ns)},
                                         {"bytes", own.bytes}});
    if (own.manifest) {
      entry["run_id"] = own.manifest->run_id;
      entry["step"] = own.manifest->step;
      entry["mesh"] = MeshJson(own.manifest->mesh);
    }
    if (!own.why.empty()) {
      entry["why"] = own.why;
    }
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Returns the bytes of a tensor: its elements in its type, and in fp32 of each moment.
static auto BytesOfTensor(const ManifestTensor& tensor, StateRole role) -> int64_t {
  return NumElements(tensor.shape) * SizeOf(role == StateRole::Parameter ? tensor.dtype : DType::F32);
}

static auto RoleNames(const std::set<StateRole>& roles) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const StateRole role : roles) {
    if (role != StateRole::Parameter) {
      names.emplace_back(ToText(role));
    }
  }
  return names;
}

auto BytesInBase(const Manifest& manifest) -> int64_t {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    bytes += tensor.in_base ? BytesOfTensor(tensor, StateRole::Parameter) : 0;
  }
  return bytes;
}

/// Returns ", and 14.9 GiB in its base DIR", if it has one.
static auto AndInBase(const Manifest& manifest) -> std::string {
  return manifest.base ? fmt::format(", and {} in its base {}", FormatMemory(Bytes{BytesInBase(manifest)}),
                                     PrintableLine(manifest.base->path))
                       : "";
}

auto ShowAsText(const std::string& path, const Manifest& manifest) -> std::string {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += Wrapped(PrintableLine(fmt::format("{:<12}{}", name, value)), 12);
  };
  line("checkpoint", path);
  line("run", fmt::format("{}, step {}", manifest.run_id, manifest.step));
  line("plan", manifest.plan_hash);
  line("mesh", MeshText(manifest.mesh));
  line("model", fmt::format("{}", fmt::join(manifest.model | std::views::transform([](const auto& key) {
                                              return fmt::format("{} {}", key.first, key.second);
                                            }),
                                            ", ")));
  line("optimizer", std::string(ToText(manifest.optimizer)));
  line("state", fmt::format("{}", fmt::join(manifest.state | std::views::transform([](const auto& own) {
                                              return fmt::format("{} {}", own.first, own.second);
                                            }),
                                            ", ")));
  const ManifestData& data = manifest.data;
  line("data", fmt::format("{}; {}, seed {}, sequences of {} tokens, {} tokens per step", data.fingerprint,
                           ToText(data.order), data.seed, data.seq, Grouped(data.tokens_per_step)));
  for (const ManifestSource& source : data.sources) {
    line("", fmt::format("source {}: weight {}, {}", source.name, source.weight, source.fingerprint));
  }
  if (!manifest.seed.digest.empty()) {
    line("began from", fmt::format("run {}, step {}", manifest.seed.run_id, manifest.seed.step));
  }
  line("files", fmt::format("{}, {}, of format version {}", Counted(std::ssize(manifest.files), "file"),
                            FormatMemory(Bytes{BytesOfFiles(manifest)}), manifest.version));
  if (manifest.base) {
    line("base", fmt::format("{} of {}, digest {}", FormatMemory(Bytes{BytesInBase(manifest)}), manifest.base->path,
                             manifest.base->digest));
  }
  Table table("  ");
  table.Row({"tensor", "shape", "type", "bytes", "moments", "bytes"});
  int64_t elements = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    elements += NumElements(tensor.shape);
    const std::set<StateRole> roles = RolesOf(manifest, tensor);
    int64_t moments = 0;
    for (const StateRole role : roles) {
      moments += role == StateRole::Parameter ? 0 : BytesOfTensor(tensor, role);
    }
    table.Row({name, ToText(tensor.shape), std::string(ToText(tensor.dtype)),
               tensor.in_base ? "in the base" : Grouped(BytesOfTensor(tensor, StateRole::Parameter)),
               fmt::format("{}", fmt::join(RoleNames(roles), " ")), moments == 0 ? "" : Grouped(moments)});
  }
  line("tensors", fmt::format("{}, {} elements", manifest.tensors.size(), Grouped(elements)));
  return text + table.Text();
}

auto ShowAsJson(const std::string& path, const Manifest& manifest) -> std::string {
  const ManifestData& data = manifest.data;
  Json json{{"path", path},
            {"version", manifest.version},
            {"run_id", manifest.run_id},
            {"step", manifest.step},
            {"plan_hash", manifest.plan_hash},
            {"mesh", MeshJson(manifest.mesh)},
            {"model", manifest.model},
            {"optimizer", ToText(manifest.optimizer)},
            {"state", manifest.state},
            {"recipe", manifest.recipe},
            {"data",
             {{"fingerprint", data.fingerprint},
              {"digests", data.digests},
              {"order", ToText(data.order)},
              {"seed", data.seed},
              {"seq", data.seq},
              {"eval_tokens", data.eval_tokens},
              {"tokens_per_step", data.tokens_per_step}}}};
  for (const ManifestSource& source : data.sources) {
    json["data"]["sources"].push_back(
        {{"name", source.name}, {"weight", source.weight}, {"fingerprint", source.fingerprint}});
  }
  if (!manifest.seed.digest.empty()) {
    json["seed"] = {{"run_id", manifest.seed.run_id}, {"step", manifest.seed.step}, {"digest", manifest.seed.digest}};
  }
  if (manifest.base) {
    json["base"] = {{"path", manifest.base->path}, {"digest", manifest.base->digest}, {"bytes", BytesInBase(manifest)}};
  }
  json["files"] = Json::array();
  for (const auto& [name, file] : manifest.files) {
    json["files"].push_back({{"name", name}, {"bytes", file.bytes}, {"digest", file.digest}});
  }
  json["tensors"] = Json::array();
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::set<StateRole> roles = RolesOf(manifest, tensor);
    Json& entry = json["tensors"].emplace_back(Json{{"name", name},
                                                    {"shape", tensor.shape},
                                                    {"dtype", ToText(tensor.dtype)},
                                                    {"bytes", BytesOfTensor(tensor, StateRole::Parameter)},
                                                    {"moments", RoleNames(roles)}});
    if (tensor.in_base) {
      entry["in_base"] = tensor.in_base->tensor;
    }
    int64_t moments = 0;
    for (const StateRole role : roles) {
      moments += role == StateRole::Parameter ? 0 : BytesOfTensor(tensor, role);
    }
    entry["moment_bytes"] = moments;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

auto DamageAsText(const std::string& path, const Manifest& manifest, const std::vector<Damage>& damage) -> std::string {
  if (damage.empty()) {
    return fmt::format("{}: whole, {} in {}{}\n", PrintableLine(path), FormatMemory(Bytes{BytesOfFiles(manifest)}),
                       Counted(std::ssize(manifest.files), "file"), AndInBase(manifest));
  }
  std::string text;
  for (const Damage& own : damage) {
    if (own.bytes.empty()) {
      text += fmt::format("{}\n", PrintableLine(own.why));
      continue;
    }
    text += fmt::format("{}: bytes {} to {} are not as they were saved: {}; {}\n", PrintableLine(own.file),
                        own.bytes.begin, own.bytes.end, PrintableLine(own.why),
                        own.tensors.empty() ? "no tensor is there"
                                            : fmt::format("there {} {}", own.tensors.size() == 1 ? "is" : "are",
                                                          Listed(own.tensors, MostNamed)));
  }
  return text;
}

auto DamageAsJson(const std::string& path, const Manifest& manifest, const std::vector<Damage>& damage) -> std::string {
  Json json{{"path", path}, {"bytes", BytesOfFiles(manifest)}, {"damage", Json::array()}};
  for (const Damage& own : damage) {
    json["damage"].push_back({{"file", own.file},
                              {"begin", own.bytes.begin},
                              {"end", own.bytes.end},
                              {"tensors", own.tensors},
                              {"why", own.why}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

auto IsSame(const CheckpointComparison& comparison) -> bool {
  return comparison.unlike.empty() &&
         std::ranges::all_of(comparison.tensors, [](const TensorDifference& own) { return own.num_different == 0; });
}

/// Returns the parameters, or the moments, of a comparison: what differs, by the largest difference.
static auto DifferencesText(std::string_view what, std::vector<TensorDifference> tensors) -> std::string {
  const auto num_tensors = static_cast<int64_t>(tensors.size());
  std::erase_if(tensors, [](const TensorDifference& own) { return own.num_different == 0; });
  // NaN comes first.
  const auto size_of = [](const TensorDifference& own) { return std::isnan(own.largest) ? INFINITY : own.largest; };
  std::ranges::stable_sort(tensors, std::ranges::greater{}, size_of);
  std::string text = fmt::format("{}: {} of {} differ\n", what, tensors.size(), num_tensors);
  if (tensors.empty()) {
    return text;
  }
  Table table("  ");
  table.Row({"tensor", "largest", "at", "a", "b", "differ", "of"});
  for (const TensorDifference& own : tensors) {
    table.Row({StoredName(own.name, own.role), fmt::format("{:.6g}", own.largest), fmt::format("{}", own.at),
               fmt::format("{:.9g}", own.a), fmt::format("{:.9g}", own.b), Grouped(own.num_different),
               Grouped(own.num_elements)});
  }
  return text + table.Text();
}

auto ComparisonAsText(const ComparedCheckpoints& named, const CheckpointComparison& comparison) -> std::string {
  std::string text;
  for (const auto& [name, own] : {std::pair("a", named.a), std::pair("b", named.b)}) {
    text += fmt::format("{}  {}: run {}, step {}, {}\n", name, PrintableLine(own.path), own.manifest->run_id,
                        own.manifest->step, MeshText(own.manifest->mesh));
  }
  std::vector<TensorDifference> parameters;
  std::vector<TensorDifference> moments;
  for (const TensorDifference& own : comparison.tensors) {
    (own.role == StateRole::Parameter ? parameters : moments).push_back(own);
  }
  text += DifferencesText("parameters", std::move(parameters)) + DifferencesText("moments", std::move(moments));
  for (const std::string& own : comparison.unlike) {
    text += fmt::format("not compared: {}\n", own);
  }
  return text;
}

auto ComparisonAsJson(const ComparedCheckpoints& named, const CheckpointComparison& comparison) -> std::string {
  Json json{{"a", named.a.path}, {"b", named.b.path}, {"same", IsSame(comparison)}, {"tensors", Json::array()}};
  // JSON has no NaN.
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); };
  for (const TensorDifference& own : comparison.tensors) {
    Json& entry = json["tensors"].emplace_back(Json{{"name", own.name},
                                                    {"role", ToText(own.role)},
                                                    {"elements", own.num_elements},
                                                    {"different", own.num_different},
                                                    {"largest", number(own.largest)}});
    if (own.num_different > 0) {
      entry["at"] = own.at;
      entry["a"] = number(own.a);
      entry["b"] = number(own.b);
    }
  }
  json["not_compared"] = comparison.unlike;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardc
