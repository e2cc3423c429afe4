#include "compiler/checkpoint/export.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "compiler/base/bfloat16.h"
#include "compiler/base/files.h"
#include "compiler/base/preset_rows.h"
#include "compiler/base/text/split.h"
#include "compiler/checkpoint/checkpoint_file.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/merged_adapter.h"
#include "compiler/checkpoint/new_directory.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_model.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/checkpoint/stored_tensor.h"
#include "compiler/checkpoint/tokenizer_files.h"
#include "compiler/keys/adapters.h"
#include "compiler/keys/head_parameter.h"

namespace shardc {

namespace {

/// So many that a block stays in the cache between reading and writing.
constexpr int64_t BlockElements = int64_t{1} << 18;

auto Widened(float element) -> float { return element; }
auto Widened(BFloat16 element) -> float { return Load(element); }
auto Widened(_Float16 element) -> float { return static_cast<float>(element); }

/// Writes numbers in another type, rounded to the nearest, ties to even. Returns the index of the first that the type
/// cannot hold, or -1.
template <class To>
auto Convert(const float* from, int64_t count, std::byte* to) -> int64_t {
  for (int64_t i = 0; i < count; ++i) {
    To rounded{};
    if constexpr (std::is_same_v<To, BFloat16>) {
      Store(rounded, from[i]);
    } else {
      rounded = static_cast<To>(from[i]);
    }
    if (std::isinf(Widened(rounded)) && !std::isinf(from[i])) {
      return i;
    }
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &rounded, sizeof(To));
  }
  return -1;
}

/// A tensor as the class has it: parameters one after another along the first dim.
struct Written {
  Dims shape;
  std::vector<std::string> parts;
};

/// The weights of one file, in order.
struct FilePlan {
  std::string name;
  std::vector<SafetensorsTensor> tensors;
};

class Exporter {
 public:
  /// Makes an export of the tensors that `manifest` has of those of the request's.
  Exporter(const ExportRequest& request, const Manifest& manifest, const Descriptor& checkpoint,
           const Descriptor& directory)
      : request_(request), manifest_(manifest), directory_(directory), files_(&checkpoint, request.manifest) {}

  auto Run() -> ErrorOr<ExportResult> {
    RETURN_IF_ERROR(files_.OpenItsBase());
    type_ = request_.type.value_or(manifest_.tensors.begin()->second.dtype);
    for (const auto& [name, tensor] : manifest_.tensors) {
      FAIL_IF(!request_.type && tensor.dtype != type_, ExitCode::Usage,
              "weights are kept in {} and in {}, and a model has one type; choose one by --dtype", ToText(type_),
              ToText(tensor.dtype));
    }
    const auto seed = SeedOfCheckpoint(request_.checkpoint);
    const Manifest* const base = seed && seed->published ? &*seed : nullptr;
    auto model = manifest_.model;
    model["seq"] = std::to_string(LongestSeq(base));
    ASSIGN_OR_RETURN(const auto architecture, ClassOfModel(model, base != nullptr ? base->run_id : ClassOfAdapters()));
    Fuse(architecture);
    const std::vector<FilePlan> plans = PlanFiles();
    std::map<std::string, std::string> special_tokens;
    if (!request_.tokenizer.empty()) {
      const int64_t vocab = std::strtoll(model.at("vocab").c_str(), nullptr, 10);
      RETURN_IF_ERROR(CopyTokenizer(request_.tokenizer, directory_, vocab));
      ASSIGN_OR_RETURN(special_tokens, SpecialTokens(request_.tokenizer, vocab));
    }
    ASSIGN_OR_RETURN(const auto config, ConfigOfModel(architecture, model, type_, special_tokens));
    RETURN_IF_ERROR(Put(ConfigName, config));
    for (FilePlan plan : plans) {
      RETURN_IF_ERROR(WriteFile(plan));
    }
    if (plans.size() > 1) {
      RETURN_IF_ERROR(WriteIndex(plans));
    }
    FAIL_IF(request_.merges && !has_merged_, ExitCode::Usage,
            "`--merge` changes no element of the base in {}: what the adapters add is 0, or too small for that type; "
            "export a later checkpoint, or write --dtype f32",
            ToText(type_));
    RETURN_IF_ERROR(ReadAgain());
    result_.num_tensors = std::ssize(written_as_);
    result_.num_files = std::ssize(plans);
    return result_;
  }

 private:
  /// Returns the tokens of the longest sequence that the model takes: the most of what the run trained with, what the
  /// recipe's preset has, and what the published model takes that the run began from, if there is one.
  auto LongestSeq(const Manifest* base) const -> int64_t {
    int64_t longest = manifest_.data.seq;
    if (const auto name = ReadKeys(manifest_.recipe).keys.model.preset) {
      const PresetRow* const preset = PresetNamed(name->text());
      longest = std::max(longest, preset == nullptr ? 0 : preset->longest_seq);
    }
    return base == nullptr ? longest : std::max(longest, ReadKeys(base->recipe).keys.model.seq.value_or(0));
  }

  /// Returns the class whose modules adapter.fused names; empty without such a key.
  auto ClassOfAdapters() const -> std::string_view {
    const AdapterSizes adapters = ResolveAdapters(ReadKeys(manifest_.recipe).keys);
    return adapters.fused.empty() ? std::string_view() : adapters.fused.front().architecture;
  }

  /// Puts the parameters together to the tensors that the class has.
  auto Fuse(std::string_view architecture) -> void {
    const std::vector<FusedModule> modules = FusedModulesOf(architecture);
    for (const auto& [name, tensor] : manifest_.tensors) {
      const std::string fused = FusedWeight(modules, name);
      const auto [found, is_new] = written_as_.try_emplace(fused.empty() ? name : fused);
      Written& written = found->second;
      const Dims before = written.shape;
      written.shape = tensor.shape;
      written.shape[0] += is_new ? 0 : before[0];
      written.parts.push_back(name);
    }
    for (auto& [name, written] : written_as_) {
      std::ranges::sort(written.parts, {}, [&](const std::string& part) { return PlaceInModule(modules, part); });
    }
  }

  auto PlanFiles() -> std::vector<FilePlan> {
    std::vector<FilePlan> plans(1);
    int64_t in_file = 0;
    for (const auto& [name, tensor] : written_as_) {
      const int64_t bytes = NumElements(tensor.shape) * SizeOf(type_);
      if (in_file > 0 && in_file + bytes > request_.max_file) {
        plans.emplace_back();
        in_file = 0;
      }
      plans.back().tensors.push_back(
          {name, std::string(SafetensorsTypeOf(type_)), tensor.shape, {in_file, in_file + bytes}});
      in_file += bytes;
      result_.bytes += bytes;
    }
    for (size_t i = 0; i < plans.size(); ++i) {
      plans[i].name = plans.size() == 1 ? "model.safetensors"
                                        : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, plans.size());
    }
    return plans;
  }

  auto WriteFile(FilePlan& plan) -> Status {
    // Readers ask the metadata whose layout the tensors have.
    ASSIGN_OR_RETURN(const auto header, SafetensorsHeaderText(plan.tensors, {{"format", "pt"}}));
    ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(directory_, plan.name));
    RETURN_IF_ERROR(file.Append(header));
    for (const SafetensorsTensor& tensor : plan.tensors) {
      for (const std::string& part : written_as_.at(tensor.name).parts) {
        RETURN_IF_ERROR(WriteTensor(part, file));
      }
    }
    return file.Commit();
  }

  auto WriteTensor(const std::string& name, AtomicFile& file) -> Status {
    StoredTensor tensor(&files_, manifest_, name);
    MergedAdapter adapter;
    if (request_.merges) {
      ASSIGN_OR_RETURN(adapter, MergedAdapter::Read(&files_, *request_.manifest, name));
      result_.num_merged += adapter.is_set() ? 1 : 0;
    }
    for (int64_t begin = 0; begin < tensor.num_elements(); begin += BlockElements) {
      const int64_t count = std::min(BlockElements, tensor.num_elements() - begin);
      stored_.resize(static_cast<size_t>(count * SizeOf(tensor.dtype())));
      RETURN_IF_ERROR(tensor.Read(begin, begin + count, stored_.data()));
      if (tensor.dtype() == type_ && !adapter.is_set()) {
        RETURN_IF_ERROR(file.Append({reinterpret_cast<const char*>(stored_.data()), stored_.size()}));
        continue;
      }
      Widen(tensor.dtype(), count);
      std::vector<std::byte> of_base;
      if (adapter.is_set()) {
        // Until one element is another one as it is written.
        if (!has_merged_) {
          ConvertBlock(count);
          of_base = written_;
        }
        adapter.AddTo(begin, widened_);
      }
      const int64_t bad = ConvertBlock(count);
      has_merged_ = has_merged_ || (adapter.is_set() && of_base != written_);
      FAIL_IF(bad >= 0, ExitCode::Usage, "element {} of {} is {:g}, which {} does not hold; use {}--dtype f32",
              begin + bad, name, widened_[static_cast<size_t>(bad)], type_ == DType::F16 ? "float16" : "bfloat16",
              type_ == DType::F16 ? "--dtype bf16 or " : "");
      RETURN_IF_ERROR(file.Append({reinterpret_cast<const char*>(written_.data()), written_.size()}));
    }
    return Success{};
  }

  auto Widen(DType from, int64_t count) -> void {
    widened_.resize(static_cast<size_t>(count));
    if (from == DType::BF16) {
      const auto* stored = reinterpret_cast<const BFloat16*>(stored_.data());
      std::transform(stored, stored + count, widened_.begin(), [](BFloat16 element) { return Load(element); });
    } else {
      std::memcpy(widened_.data(), stored_.data(), stored_.size());
    }
  }

  auto ConvertBlock(int64_t count) -> int64_t {
    written_.resize(static_cast<size_t>(count * SizeOf(type_)));
    return type_ == DType::F32    ? Convert<float>(widened_.data(), count, written_.data())
           : type_ == DType::BF16 ? Convert<BFloat16>(widened_.data(), count, written_.data())
                                  : Convert<_Float16>(widened_.data(), count, written_.data());
  }

  auto WriteIndex(const std::vector<FilePlan>& plans) -> Status {
    nlohmann::ordered_json index;
    index["metadata"]["total_size"] = result_.bytes;
    for (const FilePlan& plan : plans) {
      for (const SafetensorsTensor& tensor : plan.tensors) {
        index["weight_map"][tensor.name] = plan.name;
      }
    }
    return Put("model.safetensors.index.json", index.dump(2) + "\n");
  }

  auto Put(const std::string& name, std::string_view text) -> Status {
    ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(directory_, name));
    RETURN_IF_ERROR(file.Append(text));
    return file.Commit();
  }

  /// Reads what was written as a seed would be read, and compares it with what was to be written.
  auto ReadAgain() -> Status {
    const auto written = ReadPublishedModel(directory_);
    FAIL_IF(!written, ExitCode::InternalFault, "the model that was written cannot be read: {}",
            written.error().message);
    for (const auto& [name, tensor] : written_as_) {
      const auto found = written->tensors.find(name);
      FAIL_IF(found == written->tensors.end() || found->second.shape != tensor.shape, ExitCode::InternalFault,
              "{} was written in another shape, or not at all", name);
    }
    return written->tensors.size() == written_as_.size()
               ? Status(Success{})
               : Fail(ExitCode::InternalFault, "{} tensors were written of {}", written->tensors.size(),
                      written_as_.size());
  }

  const ExportRequest& request_;
  const Manifest& manifest_;
  const Descriptor& directory_;
  CheckpointFiles files_;
  DType type_ = DType::F32;
  ExportResult result_;
  std::map<std::string, Written> written_as_;
  bool has_merged_ = false;
  /// Blocks as they are stored, in f32, and as they are written.
  std::vector<std::byte> stored_;
  std::vector<float> widened_;
  std::vector<std::byte> written_;
};

/// Checks the files of a checkpoint: all bytes of each, unless its blocks are checked as they are read.
auto CheckFiles(const Descriptor& directory, const Manifest& manifest) -> Status {
  for (const auto& [name, file] : manifest.files) {
    RETURN_IF_ERROR(CheckCheckpointFile(directory, manifest, name));
  }
  return Success{};
}

/// Takes the heads of [[loss.head]] out of a manifest. Returns their names.
auto TakeHeads(Manifest& manifest) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const std::string_view head : SplitWords(manifest.model["loss_heads"], ",")) {
    names.emplace_back(head.substr(0, head.find(':')));
    manifest.tensors.erase(HeadParameter(names.back()));
  }
  manifest.model.erase("loss_heads");
  return names;
}

}  // namespace

auto ExportModel(const ExportRequest& request) -> ErrorOr<ExportResult> {
  const auto checkpoint = OpenDirectory(PosixFs(), request.checkpoint);
  if (!checkpoint) {
    return Error{ExitCode::Checkpoint, checkpoint.error().message};
  }
  const Manifest& manifest = *request.manifest;
  const bool has_adapters = HasAdapters(manifest);
  FAIL_IF(has_adapters && !request.merges, ExitCode::Usage,
          "{} holds adapters beside their base; `--merge` writes the sum of both, `--adapter` the adapters alone",
          request.checkpoint);
  FAIL_IF(!has_adapters && request.merges, ExitCode::Usage, "{} has no adapters; leave out --merge",
          request.checkpoint);
  RETURN_IF_ERROR(CheckCover(manifest));
  RETURN_IF_ERROR(CheckAdapters(manifest));
  FAIL_IF(manifest.tensors.empty(), ExitCode::Checkpoint, "{} holds no tensor", request.checkpoint);
  ASSIGN_OR_RETURN(auto output, NewDirectory::Make(request.output));
  // A damaged file is reported before what its damage led to.
  auto checked = std::async(std::launch::async, [&] { return CheckFiles(*checkpoint, manifest); });
  Manifest exported = manifest;
  std::vector<std::string> heads = TakeHeads(exported);
  std::erase_if(exported.tensors, [](const auto& tensor) { return !AdaptedBy(tensor.first).empty(); });
  auto result = Exporter(request, exported, *checkpoint, output.directory()).Run();
  RETURN_IF_ERROR(checked.get());
  if (result) {
    result->heads_left_out = std::move(heads);
    RETURN_IF_ERROR(output.Commit());
  }
  return result;
}

}  // namespace shardc
