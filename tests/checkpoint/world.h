// A small model, spread over any number of ranks, each a thread: saved by CheckpointWriter, compared element by
// element.
#pragma once

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/plan/plan.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/stored_pieces.h"
#include "runtime/control/rank_control.h"
#include "tests/support/owned_intervals.h"

namespace shardc {

/// The agreements of n threads: each rank lays down its bytes, all wait, each takes what it needs, all wait.
class ThreadGroup {
 public:
  explicit ThreadGroup(int64_t num_ranks) : mine_(static_cast<size_t>(num_ranks)) {}

  auto Meet() -> void {
    std::unique_lock lock(mutex_);
    const int64_t round = round_;
    if (++num_waiting_ == static_cast<int64_t>(mine_.size())) {
      num_waiting_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round; });
    }
  }
  auto mine(int64_t rank) -> const std::byte*& { return mine_[static_cast<size_t>(rank)]; }
  auto size() const -> int64_t { return static_cast<int64_t>(mine_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_waiting_ = 0;
  int64_t round_ = 0;
  std::vector<const std::byte*> mine_;
};

class ThreadControl final : public RankControl {
 public:
  ThreadControl(ThreadGroup& group, const Mesh& mesh, int64_t rank) : group_(group), mesh_(mesh), rank_(rank) {}

  auto rank() const -> int64_t override { return rank_; }
  auto mesh() const -> const Mesh& override { return mesh_; }
  auto Broadcast(AxisSet, std::byte* data, int64_t bytes) -> Status override {
    group_.mine(rank_) = data;
    group_.Meet();
    if (rank_ != 0) {
      std::memcpy(data, group_.mine(0), static_cast<size_t>(bytes));
    }
    group_.Meet();
    return Success{};
  }
  auto Gather(AxisSet, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    CHECK(bytes * group_.size() <= MaxBytes);
    group_.mine(rank_) = mine;
    group_.Meet();
    for (int64_t other = 0; other < group_.size(); ++other) {
      std::memcpy(all + other * bytes, group_.mine(other), static_cast<size_t>(bytes));
    }
    group_.Meet();
    return Success{};
  }
  auto Barrier(AxisSet) -> Status override {
    group_.Meet();
    return Success{};
  }
  auto Sum(AxisSet, std::byte*, int64_t, DType) -> Status override {
    return Fail(ExitCode::InternalFault, "not for checkpoints");
  }
  auto SetPosition(Stream, const Position&) -> void override {}
  auto LeavePosition(Stream) -> void override {}
  auto StopIsRequested() const -> bool override { return false; }
  auto SetCompletedSteps(int64_t) -> void override {}

 private:
  ThreadGroup& group_;
  const Mesh& mesh_;
  int64_t rank_;
};

/// Calls `body` once per rank, on a thread each.
inline auto OnRanks(const Plan& plan, const std::function<void(RankControl&)>& body) -> void {
  ThreadGroup group(plan.mesh.num_ranks());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      ThreadControl control(group, plan.mesh, rank);
      body(control);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

/// Two units of odd sizes, one of them with a parameter smaller than a slice, and a frozen sub-vector without moments.
/// Over tp, rows are dealt out with padding, columns evenly, and vectors not at all.
inline auto SmallPlan(const Mesh& mesh, const std::string& checkpoint_dir, bool with_frozen = true, int64_t vocab = 61)
    -> Plan {
  Plan plan;
  plan.mesh = mesh;
  plan.model = {{"family", "llama"}, {"hidden", "5"}, {"layers", "2"}};
  plan.data.seq = 4;
  plan.data.seed = 18446744073709551615U;
  plan.data.eval_tokens = 9;
  plan.run.run_id = "small";
  plan.run.checkpoint_dir = checkpoint_dir;
  plan.run.checkpoint_keep = 2;
  plan.run.tokens_per_step = 24;
  plan.scalars.Add({.name = "step", .kind = ScalarKind::State, .role = ScalarRole::Step});
  plan.scalars.Add({.name = "updates", .kind = ScalarKind::State, .role = ScalarRole::Updates});
  plan.scalars.Add({.name = "lr", .kind = ScalarKind::Schedule, .expression = "0.1"});

  struct Tensor {
    std::string name;
    Dims shape;
    int64_t cut_dim = -1;
  };
  const AxisSet sharing = Spread(mesh, AxesSharing(Shared::Matrices));
  const auto add_unit = [&](const std::string& name, bool trainable, const std::vector<Tensor>& tensors) {
    const UnitId unit = plan.units.Add({.name = name});
    for (const bool is_whole : {false, true}) {
      SubVector sub_vector;
      sub_vector.unit = unit;
      sub_vector.trainable = trainable;
      sub_vector.cut = is_whole ? AxisSet{} : sharing;
      sub_vector.shard = ValueId{0};
      if (trainable) {
        StateOf(sub_vector, StateRole::ExpAvg) = ValueId{0};
        StateOf(sub_vector, StateRole::ExpAvgSq) = ValueId{0};
      }
      int64_t end = 0;
      for (const Tensor& tensor : tensors) {
        if (is_whole != (sharing != AxisSet{} && tensor.cut_dim < 0)) {
          continue;
        }
        Placements placement;
        if (tensor.cut_dim >= 0) {
          SetPlacement(sharing, Placement::Shard(static_cast<int>(tensor.cut_dim)), placement);
        }
        const int64_t begin = RoundUp(end, SubVectorAlignment);
        const ParameterId id = plan.parameters.Add(
            {.name = tensor.name, .shape = tensor.shape, .trainable = trainable, .placement = placement});
        end = begin + NumElements(LocalShape(plan.parameters[id], mesh));
        sub_vector.segments.push_back({.begin = begin, .end = end, .parameter = id});
      }
      sub_vector.length = RoundUp(end, mesh.size(sub_vector.axes) * SubVectorAlignment);
      if (end > 0) {
        plan.sub_vectors.Add(std::move(sub_vector));
      }
    }
  };
  add_unit("embed", true, {{"model.embed_tokens.weight", {vocab, 5}, 0}});
  add_unit("layers.0", true,
           {{"model.layers.0.mlp.up_proj.weight", {7, 3}, 0},
            {"model.layers.0.input_layernorm.weight", {5}},
            {"model.layers.0.mlp.down_proj.weight", {3, 132}, 1}});
  if (with_frozen) {
    add_unit("frozen", false, {{"model.norm.weight", {5}}});
  }

  std::vector<Op>& save = plan.section(SectionKind::Save).ops;
  save.push_back({.body = op::SaveBegin{}});
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    for (const StateRole role : {StateRole::Parameter, StateRole::ExpAvg, StateRole::ExpAvgSq}) {
      if (role == StateRole::Parameter || plan.sub_vectors[id].trainable) {
        save.push_back({.body = op::SaveShard{.shard = ValueId{0}, .sub_vector = id, .role = role}});
      }
    }
  }
  save.push_back({.body = op::SaveCommit{}});
  return plan;
}

inline auto SmallPlan(int64_t num_ranks, const std::string& checkpoint_dir, bool with_frozen = true) -> Plan {
  return SmallPlan(Mesh{{1, num_ranks, 1}}, checkpoint_dir, with_frozen);
}

/// What element `i` of a state is after `step` steps. The low bits matter.
inline auto StateValue(const std::string& name, StateRole role, int64_t i, int64_t step) -> float {
  const auto hash =
      static_cast<uint32_t>(std::hash<std::string>{}(fmt::format("{} {} {} {}", name, ToText(role), i, step)));
  return static_cast<float>(hash) * 0x1p-33F - 0.25F;
}

/// The slice of a rank, with a mark in the padding.
inline auto SliceOf(const Plan& plan, SubVectorId id, StateRole role, int64_t rank, int64_t step)
    -> std::vector<float> {
  const SubVector& sub_vector = plan.sub_vectors[id];
  const Interval slice = OwnedSlice(sub_vector, plan.mesh, rank);
  std::vector<float> values(static_cast<size_t>(slice.size()), -77.0F);
  ForEachOwnedInterval(plan, sub_vector, rank, [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t at) {
    for (int64_t i = begin; i < end; ++i) {
      values[static_cast<size_t>(at + i - begin)] = StateValue(parameter.name, role, i, step);
    }
  });
  return values;
}

/// `body` (a JSON object) with a digest that is right.
inline auto Sealed(const std::string& body) -> std::string {
  const std::string rest = body.substr(1);
  return fmt::format("{{\"digest\":\"{}\",\n{}", DigestOf(rest), rest);
}

/// What a checkpoint of this plan says of the state, with files of no bytes.
inline auto ManifestFor(const Plan& plan) -> Manifest {
  Manifest manifest;
  manifest.run_id = plan.run.run_id;
  manifest.step = 1;
  manifest.plan_hash = std::string(32, 'a');
  manifest.state = {{"step", 1}};
  DescribeState(plan, {}, manifest);
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    manifest.files[RankFileName(rank)] = {.bytes = 0, .digest = std::string(32, 'a')};
  }
  return manifest;
}

/// As version 1 has it: with a list of pieces in place of layouts.
inline auto Listed(const Manifest& manifest) -> Manifest {
  Manifest listed = manifest;
  listed.version = Manifest::ListsPieces;
  listed.layouts.clear();
  for (auto& [name, tensor] : listed.tensors) {
    const ManifestTensor& laid = manifest.tensors.at(name);
    tensor = {.shape = laid.shape, .dtype = laid.dtype};
    for (const StateRole role : RolesOf(manifest, laid)) {
      const std::vector<Piece> pieces = PiecesOf(manifest, laid, role);
      tensor.pieces.insert(tensor.pieces.end(), pieces.begin(), pieces.end());
    }
  }
  return listed;
}

/// What a folder holds, sorted.
inline auto StepsIn(const std::string& dir) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr const char* SmallPlanHash = "0123456789abcdef0123456789abcdef";
constexpr const char* SmallFingerprint = "1 file, 1000 tokens, xxh3-128 00112233445566778899aabbccddeeff";

/// The slice of a rank, as a writer reads it.
inline auto ReadSliceOf(const Plan& plan, SubVectorId id, StateRole role, int64_t rank, int64_t step) -> SliceReader {
  return [slice = SliceOf(plan, id, role, rank, step)](int64_t begin, int64_t) -> ErrorOr<const std::byte*> {
    return reinterpret_cast<const std::byte*>(slice.data()) + begin;
  };
}

/// One rank's part in a save of the state after `step` steps.
inline auto SaveWith(CheckpointWriter& writer, const Plan& plan, int64_t rank, int64_t step) -> Status {
  RETURN_IF_ERROR(writer.Begin(
      step, {{"step", static_cast<double>(step)}, {"updates", std::floor(static_cast<double>(step) / 2)}}));
  for (const Op& op : plan.section(SectionKind::Save).ops) {
    if (const auto* save = op.As<op::SaveShard>()) {
      writer.AddShard(save->sub_vector, save->role, ReadSliceOf(plan, save->sub_vector, save->role, rank, step));
    }
  }
  return writer.Commit();
}

/// Saves on all ranks. One status per rank; `fs` gives each rank its file system.
inline auto SaveSmall(const Plan& plan, int64_t step, const std::function<Fs&(int64_t)>& fs) -> std::vector<Status> {
  std::vector<Status> statuses(static_cast<size_t>(plan.mesh.num_ranks()), Status(Success{}));
  OnRanks(plan, [&](RankControl& control) {
    const int64_t rank = control.rank();
    CheckpointWriter writer({.plan = &plan,
                             .control = &control,
                             .plan_hash = SmallPlanHash,
                             .data_fingerprint = SmallFingerprint,
                             .fs = &fs(rank)});
    statuses[static_cast<size_t>(rank)] = SaveWith(writer, plan, rank, step);
  });
  return statuses;
}
inline auto SaveSmall(const Plan& plan, int64_t step) -> Status {
  for (const Status& status : SaveSmall(plan, step, [](int64_t) -> Fs& { return PosixFs(); })) {
    RETURN_IF_ERROR(status);
  }
  return Success{};
}

/// Opens a checkpoint on all ranks of `plan` and compares every owned element with what `step` steps make. "" if all is
/// right.
inline auto LoadSmall(const Plan& plan, const std::string& path, int64_t step,
                      ReadPurpose purpose = ReadPurpose::Resume, Fs& fs = PosixFs()) -> std::string {
  std::vector<std::string> texts(static_cast<size_t>(plan.mesh.num_ranks()));
  OnRanks(plan, [&](RankControl& control) {
    std::string& text = texts[static_cast<size_t>(control.rank())];
    auto reader = CheckpointReader::Open({.path = path,
                                          .plan = &plan,
                                          .data_fingerprint = SmallFingerprint,
                                          .purpose = purpose,
                                          .control = &control,
                                          .fs = &fs});
    if (!reader) {
      text = reader.error().message;
      return;
    }
    if ((*reader)->step() != step || *(*reader)->ReadScalar("updates") != std::floor(static_cast<double>(step) / 2)) {
      text = fmt::format("scalars of step {}", (*reader)->step());
    }
    for (const StoredPiece& piece : StoredPieces(plan, control.rank())) {
      if (purpose == ReadPurpose::Parameters && piece.role != StateRole::Parameter) {
        continue;
      }
      const std::string& name = plan.parameters[piece.parameter].name;
      std::vector<float> values(static_cast<size_t>(piece.elements.elements.size()));
      const Status read = (*reader)->ReadElements(name, piece.role, piece.elements, DType::F32, values.data());
      if (!read) {
        text = read.error().message;
        return;
      }
      ForEachMatrixInterval(piece.elements, [&](int64_t begin, int64_t end, int64_t offset) {
        for (int64_t i = begin; i < end; ++i) {
          const float expected = StateValue(name, piece.role, i, step);
          if (std::memcmp(&values[static_cast<size_t>(offset + i - begin)], &expected, sizeof(expected)) != 0) {
            text = fmt::format("{} element {} differs", StoredName(name, piece.role), i);
          }
        }
      });
    }
  });
  for (std::string& text : texts) {
    if (!text.empty()) {
      return text;
    }
  }
  return "";
}

}  // namespace shardc
