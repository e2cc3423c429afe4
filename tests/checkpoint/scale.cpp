// The manifest of Llama 3.1 405B on 16,384 ranks, without the data: its size, its pieces, and the commit of as many
// ranks.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "tests/checkpoint/world.h"
#include "tests/support/compile_recipe.h"
#include "tests/support/repository.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

constexpr int64_t RanksOf405B = 16'384;

auto PlanOf405B(const std::vector<std::string>& sets) -> Plan {
  return CompileRecipe("405b.toml", ReadRepositoryFile("recipes/published/llama3_405b.toml"), sets).plan;
}

/// Rank 0 of as many ranks as the mesh has, all of which say what rank 0 says.
class EchoControl final : public RankControl {
 public:
  explicit EchoControl(const Mesh& mesh) : mesh_(mesh) {}

  auto rank() const -> int64_t override { return 0; }
  auto mesh() const -> const Mesh& override { return mesh_; }
  auto Broadcast(AxisSet, std::byte*, int64_t bytes) -> Status override {
    CHECK(bytes <= MaxBytes, "broadcast of {} bytes", bytes);
    return Success{};
  }
  auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    const int64_t size = mesh_.size(axes);
    CHECK(bytes * size <= MaxBytes, "gather of {} x {} bytes", size, bytes);
    for (int64_t i = 0; i < size; ++i) {
      std::memcpy(all + i * bytes, mine, static_cast<size_t>(bytes));
    }
    return Success{};
  }
  auto Barrier(AxisSet) -> Status override { return Success{}; }
  auto Sum(AxisSet, std::byte*, int64_t, DType) -> Status override {
    return Fail(ExitCode::InternalFault, "not for checkpoints");
  }
  auto SetPosition(Stream, const Position&) -> void override {}
  auto LeavePosition(Stream) -> void override {}
  auto StopIsRequested() const -> bool override { return false; }
  auto SetCompletedSteps(int64_t) -> void override {}

 private:
  Mesh mesh_;
};

TEST(CheckpointScale, AManifestOf405BOn16384RanksIsSmallAndQuick) {
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{}, std::vector<std::string>{"mesh.replicate=2", "mesh.dp=1024"}}) {
    const Plan plan = PlanOf405B(sets);
    ASSERT_EQ(plan.mesh.num_ranks(), RanksOf405B);
    EchoControl control(plan.mesh);
    CheckpointWriter writer({.plan = &plan, .control = &control, .plan_hash = SmallPlanHash});
    const Status fits = writer.CheckManifestSize();
    EXPECT_TRUE(fits.ok()) << fits.error().message;

    // Time of the processor, which other work does not lengthen.
    const auto begin = std::clock();
    const Manifest manifest = ManifestFor(plan);
    const std::string text = ToText(manifest);
    const auto written = std::clock();
    const auto read = ManifestFromText(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_TRUE(CheckCover(*read).ok());
    const auto end = std::clock();
    EXPECT_TRUE(*read == manifest);
    EXPECT_LE(text.size(), size_t{4} << 20);
    const double write_s = static_cast<double>(written - begin) / CLOCKS_PER_SEC;
    const double read_s = static_cast<double>(end - written) / CLOCKS_PER_SEC;
    EXPECT_LE(write_s, 2);
    EXPECT_LE(read_s, 2);

    // All pieces of all parameters: each element is in one of them, by count; and of one tensor of each kind, exactly.
    int64_t num_pieces = 0;
    int64_t num_elements = 0;
    Manifest some = Listed(Manifest{});
    some.files = read->files;
    for (const auto& [name, tensor] : read->tensors) {
      std::vector<Piece> pieces = PiecesOf(*read, tensor, StateRole::Parameter);
      num_pieces += std::ssize(pieces);
      for (const Piece& piece : pieces) {
        num_elements += piece.elements.size();
      }
      if (name.find("layers.") == std::string::npos || name.find("layers.7.") != std::string::npos) {
        some.tensors[name] = {.shape = tensor.shape, .dtype = tensor.dtype, .pieces = std::move(pieces)};
      }
    }
    EXPECT_EQ(num_elements, 405'853'388'800);
    EXPECT_GT(num_pieces, 500'000);
    const Status covered = CheckCover(some);
    EXPECT_TRUE(covered.ok()) << covered.error().message;
    fmt::print("  {} ranks, {} pieces of parameters: {} bytes, written in {:.0f} ms, read in {:.0f} ms\n", RanksOf405B,
               num_pieces, text.size(), write_s * 1e3, read_s * 1e3);
  }
}

// What 16,384 ranks tell each other fits into an agreement, and rank 0 puts as many files into the manifest.
TEST(CheckpointScale, ACommitOf16384RanksGoesThrough) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(Mesh{{2, 2048, 4}}, folder.path());
  EchoControl control(plan.mesh);
  CheckpointWriter writer(
      {.plan = &plan, .control = &control, .plan_hash = SmallPlanHash, .data_fingerprint = SmallFingerprint});
  const Status saved = SaveWith(writer, plan, 0, 3);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  const auto manifest = ManifestFromText(ReadText(folder / "step-00000003/manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(std::ssize(manifest->files), RanksOf405B);
  EXPECT_EQ(manifest->files.at(RankFileName(RanksOf405B - 1)), manifest->files.at(RankFileName(0)));
  EXPECT_GT(manifest->files.at(RankFileName(0)).bytes, 0);
}

}  // namespace
}  // namespace shardc
