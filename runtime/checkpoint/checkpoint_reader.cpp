#include "runtime/checkpoint/checkpoint_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "runtime/checkpoint/agree.h"
#include "runtime/checkpoint/cover.h"
#include "runtime/checkpoint/digest.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardc {

static constexpr std::string_view MoveAway = "move this checkpoint away to continue from the one before";

namespace {

/// The folder of the checkpoints; none where it does not exist.
auto OpenIfThere(Fs& fs, const std::string& dir) -> ErrorOr<std::optional<Descriptor>> {
  const int descriptor = fs.Open(AT_FDCWD, dir.c_str(), O_RDONLY | O_DIRECTORY, 0);
  if (descriptor >= 0) {
    return std::optional(Descriptor(fs, descriptor, dir));
  }
  const int code = errno;
  if (code == ENOENT) {
    return std::optional<Descriptor>();
  }
  return Fail(ExitCode::Checkpoint, "cannot open directory {}: {}", dir, std::strerror(code));
}

/// "a, b, c and 7 more".
auto ListOf(const std::vector<std::string>& names) -> std::string {
  constexpr size_t MaxShown = 5;
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), MaxShown), ", "));
  if (names.size() > MaxShown) {
    text += fmt::format(" and {} more", names.size() - MaxShown);
  }
  return text;
}

/// Collects "x is 4 there, 6 here".
class Differences {
 public:
  template <class T>
  auto Compare(std::string_view what, const T& there, const T& here) -> void {
    if (there != here) {
      found_.push_back(fmt::format("{} is {} there, {} here", what, there, here));
    }
  }
  auto empty() const -> bool { return found_.empty(); }
  auto Text() const -> std::string { return fmt::format("{}", fmt::join(found_, "; ")); }

 private:
  std::vector<std::string> found_;
};

/// The states that the plan keeps of each parameter.
auto RolesOf(const Plan& plan, ReadPurpose purpose) -> std::map<std::string, std::set<StateRole>> {
  std::map<std::string, std::set<StateRole>> roles;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      std::set<StateRole>& of_parameter = roles[plan.parameters[segment.parameter].name];
      of_parameter.insert(StateRole::Parameter);
      if (purpose == ReadPurpose::Resume && sub_vector.exp_avg.valid()) {
        of_parameter.insert(StateRole::ExpAvg);
      }
      if (purpose == ReadPurpose::Resume && sub_vector.exp_avg_sq.valid()) {
        of_parameter.insert(StateRole::ExpAvgSq);
      }
    }
  }
  return roles;
}

}  // namespace

auto FindNewest(const std::string& dir, const std::string& run_id, Fs& fs) -> ErrorOr<std::optional<CheckpointInfo>> {
  auto opened = OpenIfThere(fs, dir);
  if (!opened) {
    return opened.error();
  }
  if (!*opened) {
    return std::optional<CheckpointInfo>();
  }
  const Descriptor parent = std::move(**opened);
  auto names = ListDirectory(parent);
  if (!names) {
    return names.error();
  }

  std::optional<CheckpointInfo> newest;
  std::vector<std::string> skipped;
  std::vector<std::string> abandoned;
  for (const std::string& name : *names) {
    if (IsTemporaryName(name, run_id)) {
      abandoned.push_back(name);
      continue;
    }
    if (!IsCheckpointName(name)) {
      continue;
    }
    auto directory = OpenDirectoryAt(parent, name);
    auto manifest = directory ? ReadManifest(*directory) : directory.error();
    if (!manifest) {
      skipped.push_back(fmt::format("{}: {}", name, manifest.error().message));
    } else if (manifest->run_id != run_id) {
      skipped.push_back(fmt::format("{}: it belongs to run {}", name, manifest->run_id));
    } else if (CheckpointName(manifest->step) != name) {
      skipped.push_back(fmt::format("{}: its manifest is of step {}", name, manifest->step));
    } else if (!newest || manifest->step > newest->step) {
      newest = CheckpointInfo{.path = dir + "/" + name,
                              .step = manifest->step,
                              .run_id = manifest->run_id,
                              .plan_hash = manifest->plan_hash};
    }
  }
  if (!newest && !skipped.empty()) {
    return Fail(
        ExitCode::Checkpoint,
        "{} holds no whole checkpoint of run {}, but: {}; to start anew, move them away, or set `checkpoint.dir` to "
        "another folder",
        dir, run_id, fmt::join(skipped, "; "));
  }
  if (newest) {
    newest->skipped = std::move(skipped);
    newest->abandoned = std::move(abandoned);
  }
  return newest;
}

auto RemoveAbandoned(const std::string& dir, const std::string& run_id, Fs& fs) -> Status {
  auto opened = OpenIfThere(fs, dir);
  if (!opened) {
    return opened.error();
  }
  if (!*opened) {
    return Success{};
  }
  const Descriptor parent = std::move(**opened);
  auto names = ListDirectory(parent);
  if (!names) {
    return names.error();
  }
  for (const std::string& name : *names) {
    if (IsTemporaryName(name, run_id)) {
      RETURN_IF_ERROR(RemoveDirectoryAt(parent, name));
    }
  }
  return Success{};
}

auto ChooseNewest(const std::string& dir, const std::string& run_id, Communicator& communicator, Fs& fs)
    -> ErrorOr<std::optional<CheckpointInfo>> {
  struct Choice {
    int64_t found = 0;
    int64_t step = 0;
    char plan_hash[128] = {};
  };
  Choice choice;
  std::optional<CheckpointInfo> newest;
  Status looked = Success{};
  if (communicator.rank() == 0) {
    auto found = FindNewest(dir, run_id, fs);
    if (!found) {
      looked = found.error();
    } else {
      newest = std::move(*found);
      // After the look, so that the leftovers are listed. One that cannot be removed does no harm.
      if (const Status removed = RemoveAbandoned(dir, run_id, fs); !removed && newest) {
        newest->skipped.push_back(removed.error().message);
      }
    }
    if (newest) {
      choice.found = 1;
      choice.step = newest->step;
      CHECK(newest->plan_hash.size() < sizeof(choice.plan_hash), "plan hash {}", newest->plan_hash);
      std::copy(newest->plan_hash.begin(), newest->plan_hash.end(), choice.plan_hash);
    }
  }
  RETURN_IF_ERROR(FollowRankZero(communicator, looked));
  RETURN_IF_ERROR(communicator.Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(&choice), sizeof(choice)));
  if (communicator.rank() != 0 && choice.found != 0) {
    newest = CheckpointInfo{.path = dir + "/" + CheckpointName(choice.step),
                            .step = choice.step,
                            .run_id = run_id,
                            .plan_hash = choice.plan_hash};
  }
  return newest;
}

struct CheckpointReader::ShardFile {
  Descriptor file;
  SafetensorsHeader header;
  std::map<std::string_view, const SafetensorsTensor*> tensors;
};

CheckpointReader::CheckpointReader(CheckpointReaderOptions options) : options_(std::move(options)) {
  CHECK(options_.plan != nullptr && options_.fs != nullptr);
}

CheckpointReader::~CheckpointReader() = default;

auto CheckpointReader::Open(CheckpointReaderOptions options) -> ErrorOr<std::unique_ptr<CheckpointReader>> {
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader(std::move(options)));
  Communicator* communicator = reader->options_.communicator;
  Status loaded = reader->Load();
  if (loaded) {
    loaded = reader->CheckAgainstPlan();
  }
  if (loaded) {
    loaded = communicator == nullptr ? reader->CheckFiles(0, 1)
                                     : reader->CheckFiles(communicator->rank(), communicator->mesh().num_ranks());
  }
  if (communicator != nullptr) {
    loaded = AgreeOnStatus(*communicator, loaded);
  }
  if (!loaded) {
    const Error error = loaded.error();
    return Fail(error.code, "checkpoint {}: {}", reader->options_.path, error.message);
  }
  return reader;
}

auto CheckpointReader::Load() -> Status {
  auto directory = OpenDirectory(*options_.fs, options_.path);
  if (!directory) {
    return Fail(ExitCode::Checkpoint, "{}", directory.error().message);
  }
  directory_ = std::move(*directory);
  auto manifest = ReadManifest(directory_);
  if (!manifest) {
    return manifest.error();
  }
  manifest_ = std::move(*manifest);
  return CheckCover(manifest_);
}

auto CheckpointReader::CheckAgainstPlan() const -> Status {
  const Plan& plan = *options_.plan;
  const bool resume = options_.purpose == ReadPurpose::Resume;
  const std::string remedy =
      fmt::format("use the recipe that made it{}",
                  resume ? ", or begin a new run with another `start.run_id` and `checkpoint.dir`" : "");

  Differences model;
  for (const auto& [key, here] : plan.model) {
    const auto there = manifest_.model.find(key);
    model.Compare(key, there == manifest_.model.end() ? "not given" : there->second, here);
  }
  for (const auto& [key, there] : manifest_.model) {
    if (!plan.model.contains(key)) {
      model.Compare(key, there, std::string("not given"));
    }
  }
  if (!model.empty()) {
    return Fail(ExitCode::Checkpoint, "checkpoint of another model: {}; {}", model.Text(), remedy);
  }

  if (resume) {
    Differences data;
    data.Compare("the token stream", manifest_.data.fingerprint, options_.data_fingerprint);
    data.Compare("data.order", ToText(manifest_.data.order), ToText(plan.data.order));
    data.Compare("data.seed", manifest_.data.seed, plan.data.seed);
    data.Compare("data.eval_tokens", manifest_.data.eval_tokens, plan.data.eval_tokens);
    data.Compare("model.seq", manifest_.data.seq, plan.data.seq);
    data.Compare("tokens a step", manifest_.data.tokens_per_step, plan.run.tokens_per_step);
    if (!data.empty()) {
      return Fail(
          ExitCode::Checkpoint,
          "checkpoint of a run over other data: {}; put it back, or begin a new run with another `start.run_id` and "
          "`checkpoint.dir`",
          data.Text());
    }
  }

  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  Differences shapes;
  auto roles_here = RolesOf(plan, options_.purpose);
  for (const Parameter& parameter : plan.parameters) {
    const auto tensor = manifest_.tensors.find(parameter.name);
    if (tensor != manifest_.tensors.end()) {
      shapes.Compare(parameter.name, ToText(tensor->second.shape), ToText(parameter.shape));
      shapes.Compare("dtype of " + parameter.name, ToText(tensor->second.dtype), ToText(parameter.dtype));
    }
    std::set<StateRole> roles_there;
    if (tensor != manifest_.tensors.end()) {
      for (const Piece& piece : tensor->second.pieces) {
        roles_there.insert(piece.role);
      }
    }
    const std::set<StateRole>& roles = roles_here[parameter.name];
    for (size_t i = 0; i < CountOf<StateRole>(); ++i) {
      const auto role = static_cast<StateRole>(i);
      if (roles.contains(role) && !roles_there.contains(role)) {
        missing.push_back(StoredName(parameter.name, role));
      } else if (resume && !roles.contains(role) && roles_there.contains(role)) {
        unexpected.push_back(StoredName(parameter.name, role));
      }
    }
  }
  for (const auto& [name, tensor] : manifest_.tensors) {
    if (!roles_here.contains(name)) {
      unexpected.push_back(name);
    }
  }
  if (resume) {
    std::set<std::string> scalars;
    for (const Scalar& scalar : plan.scalars) {
      if (scalar.kind == ScalarKind::State) {
        scalars.insert(scalar.name);
        if (!manifest_.state.contains(scalar.name)) {
          missing.push_back(fmt::format("scalar {}", scalar.name));
        }
      }
    }
    for (const auto& [name, value] : manifest_.state) {
      if (!scalars.contains(name)) {
        unexpected.push_back(fmt::format("scalar {}", name));
      }
    }
  }
  if (!shapes.empty()) {
    return Fail(ExitCode::Checkpoint, "checkpoint of another model: {}; {}", shapes.Text(), remedy);
  }
  if (!missing.empty() || !unexpected.empty()) {
    std::string text;
    if (!missing.empty()) {
      text = fmt::format("the plan needs, and it lacks: {}", ListOf(missing));
    }
    if (!unexpected.empty()) {
      text +=
          fmt::format("{}it holds, and the plan has no place for: {}", text.empty() ? "" : "; ", ListOf(unexpected));
    }
    return Fail(ExitCode::Checkpoint, "{}", text);
  }
  return Success{};
}

auto CheckpointReader::CheckFiles(int64_t part, int64_t num_parts) -> Status {
  int64_t index = 0;
  for (const auto& [name, expected] : manifest_.files) {
    if (index++ % num_parts == part) {
      RETURN_IF_ERROR(CheckFile(name, expected));
    }
  }
  return Success{};
}

auto CheckpointReader::CheckFile(const std::string& name, const ManifestFile& expected) -> Status {
  auto file = OpenFileAt(directory_, name);
  auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    return Fail(ExitCode::Checkpoint, "{}; {}", bytes.error().message, MoveAway);
  }
  if (*bytes != expected.bytes) {
    return Fail(ExitCode::Checkpoint, "{} has {} bytes, its manifest says {}; {}", file->path(), *bytes, expected.bytes,
                MoveAway);
  }
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(ChunkBytes, *bytes)));
  Digest digest;
  for (int64_t offset = 0; offset < *bytes; offset += ChunkBytes) {
    const int64_t size = std::min(ChunkBytes, *bytes - offset);
    if (const Status read = ReadAll(*file, chunk.data(), size, offset); !read) {
      return Fail(ExitCode::Checkpoint, "{}", read.error().message);
    }
    digest.Update(chunk.data(), size);
  }
  if (const std::string actual = digest.Text(); actual != expected.digest) {
    std::string tensors;
    for (const auto& [tensor_name, tensor] : manifest_.tensors) {
      for (const Piece& piece : tensor.pieces) {
        if (piece.file == name && tensors.empty()) {
          tensors = fmt::format(", which holds {} and others,", StoredName(tensor_name, piece.role));
        }
      }
    }
    return Fail(ExitCode::Checkpoint, "{} ({} bytes){} is damaged: its digest is {}, the manifest says {}; {}",
                file->path(), *bytes, tensors, actual, expected.digest, MoveAway);
  }
  return Success{};
}

auto CheckpointReader::FileNamed(const std::string& name) -> ErrorOr<ShardFile*> {
  if (const auto found = files_.find(name); found != files_.end()) {
    return found->second.get();
  }
  auto file = OpenFileAt(directory_, name);
  if (!file) {
    return Fail(ExitCode::Checkpoint, "{}", file.error().message);
  }
  auto shard = std::make_unique<ShardFile>();
  auto header = ReadSafetensorsHeader(*file);
  if (!header) {
    return header.error();
  }
  shard->file = std::move(*file);
  shard->header = std::move(*header);
  for (const SafetensorsTensor& tensor : shard->header.tensors) {
    shard->tensors[tensor.name] = &tensor;
  }
  return (files_[name] = std::move(shard)).get();
}

auto CheckpointReader::ReadScalar(std::string_view name) const -> ErrorOr<double> {
  const auto found = manifest_.state.find(std::string(name));
  if (found == manifest_.state.end()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {} has no scalar {}", options_.path, name);
  }
  return found->second;
}

auto CheckpointReader::ReadSegment(std::string_view name, StateRole role, const BoxRange& wanted, DType dtype,
                                   void* out) -> Status {
  const auto tensor = manifest_.tensors.find(std::string(name));
  if (tensor == manifest_.tensors.end()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {} has no tensor {}", options_.path, name);
  }
  const std::string stored = StoredName(name, role);
  // The pieces are disjoint (CheckCover), so the count proves the cover.
  int64_t covered = 0;
  for (const Piece& piece : tensor->second.pieces) {
    if (piece.role != role) {
      continue;
    }
    Status status = Success{};
    ForEachCommonRun(wanted, tensor->second.RangeOf(piece), [&](int64_t at, int64_t in_piece, int64_t count) {
      if (status.ok()) {
        status = ReadRun(stored, piece, in_piece, count, dtype, static_cast<std::byte*>(out) + at * SizeOf(dtype));
        covered += count;
      }
    });
    RETURN_IF_ERROR(status);
  }
  if (covered != wanted.elements.size()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {}: {} has {} of the {} elements [{}, {})", options_.path, stored,
                covered, wanted.elements.size(), wanted.elements.begin, wanted.elements.end);
  }
  return Success{};
}

auto CheckpointReader::ReadRun(const std::string& stored, const Piece& piece, int64_t begin, int64_t count, DType dtype,
                               void* out) -> Status {
  auto shard = FileNamed(piece.file);
  if (!shard) {
    return shard.error();
  }
  const auto entry = (*shard)->tensors.find(stored);
  if (entry == (*shard)->tensors.end() || entry->second->dtype != SafetensorsTypeOf(dtype) ||
      entry->second->shape != Dims{piece.elements.size()}) {
    return Fail(ExitCode::Checkpoint, "{}: no {} tensor {} of {} elements, as the manifest says", (*shard)->file.path(),
                SafetensorsTypeOf(dtype), stored, piece.elements.size());
  }
  const int64_t offset = (*shard)->header.data_begin + entry->second->data.begin + begin * SizeOf(dtype);
  return ReadAll((*shard)->file, out, count * SizeOf(dtype), offset);
}

}  // namespace shardc
