#include "compiler/checkpoint/published_model.h"

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/safetensors.h"

namespace shardc {

using nlohmann::json;

namespace {

constexpr const char* SingleName = "model.safetensors";
constexpr const char* IndexName = "model.safetensors.index.json";

/// The file of each tensor that an index names.
using WeightMap = std::map<std::string, std::string>;

auto ReadIndex(std::string_view text) -> ErrorOr<WeightMap> {
  const auto index = ParseJson(text, ExitCode::Checkpoint);
  FAIL_IF(!index, ExitCode::Checkpoint, "{}: {}", IndexName, index.error().message);
  const JsonReader reader(*index, ExitCode::Checkpoint);
  const auto map = reader.Object("weight_map");
  FAIL_IF(!map, ExitCode::Checkpoint, "{}: {}", IndexName, map.error().message);
  WeightMap weights;
  for (const auto& [tensor, file] : map->object().items()) {
    FAIL_IF(!file.is_string() || !IsPlainName(file.get_ref<const std::string&>()), ExitCode::Checkpoint,
            "{}: the file of {} is {:.80}; expected the plain name of a file beside it", IndexName, tensor,
            file.dump());
    weights[tensor] = file.get<std::string>();
  }
  FAIL_IF(weights.empty(), ExitCode::Checkpoint, "{}: its \"weight_map\" is empty; get the model's files again",
          IndexName);
  return weights;
}

/// Checks that a name of the directory may be opened; a link is not followed, as nothing else of a run is.
auto CheckRegular(const Descriptor& directory, const std::string& name) -> Status {
  ASSIGN_OR_RETURN(const auto status, StatusAt(directory, name));
  FAIL_IF(status.kind == EntryKind::Other || status.kind == EntryKind::Directory, ExitCode::Checkpoint,
          "{}/{} is a link, a FIFO or another thing that is no regular file; put the files themselves in the "
          "directory (`cp -rL` copies what links point to, `hf download --local-dir` makes no links)",
          directory.path(), name);
  return Success{};
}

/// Returns the reason why a directory has no weights that are read.
auto NoWeights(const Descriptor& directory) -> Error {
  for (const char* const old : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    FAIL_IF(HasEntry(directory, old), ExitCode::Checkpoint,
            "its weights are in {}, which is a program of Python and is not read; open it in transformers and save "
            "it by `save_pretrained`, which writes {}",
            old, SingleName);
  }
  return Fail(ExitCode::Checkpoint, "it has {}, and neither {} nor {}; get the rest of the model's files", ConfigName,
              SingleName, IndexName);
}

auto TypeNamed(std::string_view name) -> std::optional<DType> {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    if (SafetensorsTypeOf(dtype) == name) {
      return dtype;
    }
  }
  return std::nullopt;
}

/// Reads the headers into a manifest.
class HeaderReader {
 public:
  HeaderReader(const Descriptor& directory, const WeightMap* weights, Manifest& manifest)
      : directory_(directory), weights_(weights), manifest_(manifest) {}

  auto ReadFile(const std::string& name) -> Status;
  /// Checks that each tensor of the index was found.
  auto CheckIndex() const -> Status;

 private:
  auto AddTensor(const SafetensorsTensor& tensor, const std::string& file) -> Status;

  const Descriptor& directory_;
  /// Null if there is one file.
  const WeightMap* weights_;
  Manifest& manifest_;
  /// The file of each tensor that was found, buffers included.
  WeightMap found_;
};

auto HeaderReader::AddTensor(const SafetensorsTensor& tensor, const std::string& file) -> Status {
  if (const auto [before, is_new] = found_.emplace(tensor.name, file); !is_new) {
    return Fail(ExitCode::Checkpoint, "tensor {} is in {} and in {}; get the model's files again", tensor.name,
                before->second, file);
  }
  if (weights_ != nullptr) {
    const auto listed = weights_->find(tensor.name);
    FAIL_IF(listed == weights_->end() || listed->second != file, ExitCode::Checkpoint,
            "tensor {} is in {}, and {} {}; get the model's files again", tensor.name, file, IndexName,
            listed == weights_->end() ? "does not list it" : fmt::format("says {}", listed->second));
  }
  if (IsPublishedBuffer(tensor.name)) {
    return Success{};
  }
  const auto dtype = TypeNamed(tensor.dtype);
  FAIL_IF(!dtype, ExitCode::Checkpoint,
          "tensor {} in {} is {}; F32, F16 and BF16 are read; take the model whose weights have one of these",
          tensor.name, file, tensor.dtype);
  const int64_t size = NumElements(tensor.shape);
  FAIL_IF(size < 1 || !IsPlainName(tensor.name), ExitCode::Checkpoint,
          "tensor {:.80} in {} is {}; expected a plain name and at least one element", tensor.name, file,
          ToText(tensor.shape));
  manifest_.tensors[tensor.name] = {.shape = tensor.shape,
                                    .dtype = *dtype,
                                    .pieces = {{.role = StateRole::Parameter, .elements = {0, size}, .file = file}}};
  return Success{};
}

auto HeaderReader::ReadFile(const std::string& name) -> Status {
  RETURN_IF_ERROR(CheckRegular(directory_, name));
  FAIL_IF(!HasEntry(directory_, name), ExitCode::Checkpoint,
          "{} lists {}, which is not there; get the rest of the model's files", IndexName, name);
  const auto file = OpenFileAt(directory_, name);
  const auto bytes = file ? FileBytes(*file) : file.error();
  const auto header = bytes ? ReadSafetensorsHeader(*file) : bytes.error();
  FAIL_IF(!header, ExitCode::Checkpoint, "{}; get the file again", header.error().message);
  manifest_.files[name] = {.bytes = *bytes, .digest = header->digest};
  for (const SafetensorsTensor& tensor : header->tensors) {
    RETURN_IF_ERROR(AddTensor(tensor, name));
  }
  return Success{};
}

auto HeaderReader::CheckIndex() const -> Status {
  for (const auto& [tensor, file] : weights_ != nullptr ? *weights_ : WeightMap()) {
    FAIL_IF(!found_.contains(tensor), ExitCode::Checkpoint,
            "{} says that tensor {} is in {}, which has none of this name; get the file again", IndexName, tensor,
            file);
  }
  return Success{};
}

/// Finds tensors that are another one.
auto FindCopies(const PublishedConfig& config, Manifest& manifest) -> Status {
  for (const auto& [name, other] : TiedTensors()) {
    const auto copy = manifest.tensors.find(name);
    const auto of = manifest.tensors.find(other);
    if (copy == manifest.tensors.end()) {
      FAIL_IF(!config.model.tied.value_or(false) && of != manifest.tensors.end(), ExitCode::Checkpoint,
              "it has no tensor {}, and {} does not say `tie_word_embeddings` true; get the rest of the model's "
              "files, or correct the key",
              name, ConfigName);
      continue;
    }
    if (!config.model.tied.value_or(false) || of == manifest.tensors.end()) {
      continue;
    }
    FAIL_IF(copy->second.shape != of->second.shape || copy->second.dtype != of->second.dtype, ExitCode::Checkpoint,
            "{} says `tie_word_embeddings` true, and {} is {}{}, {} {}{}; correct the key, or get the files again",
            ConfigName, name, ToText(copy->second.dtype), ToText(copy->second.shape), other, ToText(of->second.dtype),
            ToText(of->second.shape));
    manifest.published->copies[name] = other;
  }
  return Success{};
}

}  // namespace

auto HasEntry(const Descriptor& directory, const std::string& name) -> bool {
  const auto status = StatusAt(directory, name);
  return status && status->kind != EntryKind::Missing;
}

auto ReadModelText(const Descriptor& directory, const std::string& name) -> ErrorOr<std::string> {
  RETURN_IF_ERROR(CheckRegular(directory, name));
  auto text = ReadFileAt(directory, name, MaxManifestBytes);
  return text ? text : Fail(ExitCode::Checkpoint, "{}", text.error().message);
}

auto AddWeights(const Descriptor& directory, const std::string& name, Manifest& manifest) -> Status {
  return HeaderReader(directory, nullptr, manifest).ReadFile(name);
}

auto ReadPublishedModel(const Descriptor& directory) -> ErrorOr<Manifest> {
  const auto text = ReadModelText(directory, ConfigName);
  ASSIGN_OR_RETURN(auto config, text ? ReadPublishedConfig(*text) : text.error());
  const bool is_single = HasEntry(directory, SingleName);
  if (!is_single && !HasEntry(directory, IndexName)) {
    return NoWeights(directory);
  }
  FAIL_IF(is_single && HasEntry(directory, IndexName), ExitCode::Checkpoint,
          "it has {} and {}; remove the one that is not of this model", SingleName, IndexName);
  Manifest manifest;
  manifest.version = Manifest::ListsPieces;
  manifest.run_id = config.architecture;
  manifest.plan_hash = DigestText(0, 0);
  manifest.state["step"] = 0;
  PlanKeys keys;
  keys.model = config.model;
  for (RecipeEntry& entry : WriteKeys(keys)) {
    manifest.recipe[std::move(entry.key)] = std::move(entry.value);
  }
  manifest.published = PublishedModel{.config = config.read};

  WeightMap weights;
  if (!is_single) {
    const auto index_text = ReadModelText(directory, IndexName);
    ASSIGN_OR_RETURN(weights, index_text ? ReadIndex(*index_text) : index_text.error());
    manifest.published->index = DigestOf(*index_text);
    for (const auto& [tensor, file] : weights) {
      manifest.files[file] = {};
    }
  } else {
    manifest.files[SingleName] = {};
  }
  HeaderReader headers(directory, is_single ? nullptr : &weights, manifest);
  for (const auto& [name, file] : manifest.files) {
    RETURN_IF_ERROR(headers.ReadFile(name));
  }
  RETURN_IF_ERROR(headers.CheckIndex());
  RETURN_IF_ERROR(FindCopies(config, manifest));
  return manifest;
}

}  // namespace shardc
