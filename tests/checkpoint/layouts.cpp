// Layouts: the pieces that follow from them are those that the ranks own, and they tile each tensor; layouts that no
// save can have stated are refused.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/checkpoint/world.h"
#include "tests/support/plan_samples.h"
#include "tests/support/repository.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;

/// The pieces of each rank as the plan says what it owns, in the same form as Listed.
auto OwnedPieces(const Plan& plan) -> std::map<std::string, ManifestTensor> {
  std::map<std::string, ManifestTensor> tensors;
  for (const StateRole role : StateRoles) {
    for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
      for (const SubVectorId id : plan.sub_vectors.ids()) {
        const SubVector& sub_vector = plan.sub_vectors[id];
        if (!HasRole(sub_vector, role) || plan.mesh.IndexIn(CopyAxes(sub_vector, plan.mesh), rank) != 0) {
          continue;
        }
        for (const OwnedSegment& owned : OwnedSegments(plan, id, rank)) {
          const Parameter& parameter = plan.parameters[owned.parameter];
          ManifestTensor& tensor = tensors[parameter.name];
          tensor.shape = parameter.shape;
          tensor.dtype = parameter.dtype;
          tensor.pieces.push_back({.role = role,
                                   .elements = owned.elements.elements,
                                   .columns = owned.elements.is_whole_rows() ? Interval{} : owned.elements.columns,
                                   .file = RankFileName(rank)});
        }
      }
    }
  }
  for (auto& [name, tensor] : tensors) {
    std::ranges::sort(tensor.pieces, {}, [](const Piece& piece) {
      return std::tuple(piece.role, piece.columns.begin, piece.elements.begin);
    });
  }
  return tensors;
}

TEST(Layouts, PiecesAreWhatTheRanksOwn) {
  std::vector<Plan> plans{CompileSample(), CompileSample({"mesh.tp=2"}),
                          CompileSample({"mesh.replicate=2", "batch.global=16"})};
  for (const Mesh& mesh : {Mesh{{1, 1, 1}}, Mesh{{1, 5, 1}}, Mesh{{2, 2, 2}}, Mesh{{1, 3, 4}}, Mesh{{3, 1, 11}},
                           Mesh{{2, 7, 3}}, Mesh{{1, 64, 6}}}) {
    plans.push_back(SmallPlan(mesh, ""));
  }
  for (const Plan& plan : plans) {
    const Manifest manifest = ManifestFor(plan);
    const Status covered = CheckCover(manifest);
    ASSERT_TRUE(covered.ok()) << covered.error().message;
    const Manifest listed = Listed(manifest);
    const Status tiled = CheckCover(listed);
    ASSERT_TRUE(tiled.ok()) << tiled.error().message;
    EXPECT_TRUE(listed.tensors == OwnedPieces(plan)) << fmt::format("{}", fmt::join(plan.mesh.sizes, " x "));
    for (const std::string& text : {ToText(manifest), ToText(listed)}) {
      const auto again = ManifestFromText(text);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(ToText(*again), text);
      EXPECT_TRUE(Listed(*again).tensors == listed.tensors);
    }
  }
}

TEST(Layouts, VersionOneLoadsOnEveryMesh) {
  // Of mesh 1 x 2 x 2, saved by the last program that wrote version 1.
  const std::string path = RepositoryPath("tests/checkpoint/version_1/step-00000006");
  const TemporaryFolder folder;
  for (const Mesh& mesh :
       {Mesh{{1, 1, 1}}, Mesh{{1, 2, 2}}, Mesh{{2, 2, 2}}, Mesh{{1, 3, 4}}, Mesh{{1, 1, 11}}, Mesh{{1, 5, 1}}}) {
    EXPECT_EQ(LoadSmall(SmallPlan(mesh, folder.path()), path, 6), "")
        << fmt::format("{}", fmt::join(mesh.sizes, " x "));
  }
  const auto manifest = ManifestFromText(ReadText(path + "/manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->version, Manifest::ListsPieces);
  // What the same save says today gives the same pieces, of the same files.
  ASSERT_TRUE(SaveSmall(SmallPlan(Mesh{{1, 2, 2}}, folder.path()), 6).ok());
  const auto today = ManifestFromText(ReadText(folder / "step-00000006/manifest.json"));
  ASSERT_TRUE(today.ok()) << today.error().message;
  EXPECT_EQ(today->version, Manifest::DigestsBlocks);
  for (const auto& [name, file] : manifest->files) {
    EXPECT_EQ(ReadText(folder / ("step-00000006/" + name)), ReadText(path + "/" + name));
  }
  const Manifest listed = Listed(*today);
  for (const auto& [name, tensor] : manifest->tensors) {
    for (const StateRole role : StateRoles) {
      auto pieces = PiecesOf(*manifest, tensor, role);
      std::ranges::sort(pieces, {},
                        [](const Piece& piece) { return std::pair(piece.columns.begin, piece.elements.begin); });
      EXPECT_TRUE(pieces == PiecesOf(listed, listed.tensors.at(name), role)) << StoredName(name, role);
    }
  }
}

// What programs wrote, later ones read; its files are those of version_1.
TEST(Layouts, VersionTwoStaysAsItIs) {
  const std::string text = ReadRepositoryFile("tests/checkpoint/version_2/manifest.json");
  const auto manifest = ManifestFromText(text);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(ToText(*manifest), text);
  const TemporaryFolder folder;
  const std::string path = folder / "step-00000006";
  std::filesystem::copy(RepositoryPath("tests/checkpoint/version_1/step-00000006"), path);
  WriteText(path + "/manifest.json", text);
  const Plan plan = SmallPlan(Mesh{{1, 3, 1}}, folder.path());
  EXPECT_EQ(LoadSmall(plan, path, 6), "");
  // It has digests of whole files, which are compared first.
  const std::string file = path + "/rank-00002.safetensors";
  std::string damaged = ReadText(file);
  damaged.back() ^= 1;
  WriteText(file, damaged);
  EXPECT_NE(LoadSmall(plan, path, 6, ReadPurpose::Parameters).find("is damaged: its digest is"), std::string::npos);
}

struct LayoutCase {
  std::string what;
  std::function<void(json&)> change;
  std::string says;
};

auto BodyOf(const Manifest& manifest) -> json {
  json body = json::parse(ToText(manifest));
  body.erase("digest");
  return body;
}

auto ExpectRefusals(const json& good, const std::vector<LayoutCase>& cases) -> void {
  const auto sound = ManifestFromText(Sealed(good.dump()));
  ASSERT_TRUE(sound.ok()) << sound.error().message;
  for (const LayoutCase& row : cases) {
    json bad = good;
    row.change(bad);
    const auto manifest = ManifestFromText(Sealed(bad.dump()));
    ASSERT_FALSE(manifest.ok()) << row.what;
    EXPECT_EQ(manifest.error().code, ExitCode::Checkpoint);
    EXPECT_NE(manifest.error().message.find(row.says), std::string::npos)
        << row.what << ": " << manifest.error().message;
  }
}

const std::string CutRows = "model.embed_tokens.weight";
const std::string CutColumns = "model.layers.0.mlp.down_proj.weight";
const std::string WholeNorm = "model.norm.weight";

TEST(Layouts, ThoseThatNoSaveStatesAreRefused) {
  // Layouts, in order: rows of the embedding; rows and columns of the block; its norm; the last norm.
  const json good = BodyOf(ManifestFor(SmallPlan(Mesh{{2, 3, 2}}, "")));
  const int64_t max = std::numeric_limits<int64_t>::max();
  ExpectRefusals(
      good,
      {
          {"none", [](json& m) { m.erase("layouts"); }, "\"layouts\" is missing"},
          {"an object", [](json& m) { m["layouts"] = json::object(); }, "\"layouts\""},
          {"of numbers", [](json& m) { m["layouts"][0] = 1; }, "\"layouts\": 0: "},
          {"no length", [](json& m) { m["layouts"][1].erase("length"); }, "\"layouts\": 1: \"length\" is missing"},
          {"length 0", [](json& m) { m["layouts"][1]["length"] = 0; }, "\"layouts\": 1: its length 0"},
          {"uneven", [](json& m) { m["layouts"][1]["length"] = 385; }, "its length 385 has no 3 equal slices"},
          {"negative", [](json& m) { m["layouts"][1]["length"] = -384; }, "\"length\": a whole number"},
          {"short", [](json& m) { m["layouts"][0]["length"] = 3; }, "elements from 0 on of a vector of 3"},
          {"axes", [](json& m) { m["layouts"][0]["axes"] = "pp"; }, "\"axes\": no axis `pp`"},
          {"part", [](json& m) { m["layouts"][0]["axes"] = "dp_inner"; }, "slices along dp_inner"},
          {"both", [](json& m) { m["layouts"][0]["axes"] = "dp+tp"; }, "slices along dp+tp of a vector that is cut"},
          {"no cut", [](json& m) { m["layouts"][0].erase("cut"); }, "\"cut\" is missing"},
          {"cut over none", [](json& m) { m["layouts"][0]["cut"] = "none"; },
           "it is cut along a dim, and 1 ranks share its layout"},
          {"cut over more", [](json& m) { m["layouts"].back()["cut"] = "replicate"; },
           "it is cut along no dim, and 2 ranks share"},
          {"roles",
           [](json& m) {
             m["layouts"][0]["roles"] = {"parameter", "x"};
           },
           "\"roles\" has \"x\""},
          {"roles of numbers", [](json& m) { m["layouts"][0]["roles"] = {1}; }, "\"roles\" has 1"},
          {"unknown layout", [](json& m) { m["tensors"][CutRows]["layout"] = 99; }, "layout 99 of "},
          {"layout beyond", [&](json& m) { m["tensors"][CutRows]["layout"] = max; }, "layout 9223372036854775807 of "},
          {"no layout", [](json& m) { m["tensors"][CutRows].erase("layout"); }, "\"layout\" is missing"},
          {"no begin", [](json& m) { m["tensors"][CutRows].erase("begin"); }, "\"begin\" is missing"},
          {"begins late", [](json& m) { m["tensors"][CutRows]["begin"] = 300; },
           "155 elements from 300 on of a vector of"},
          {"begins beyond", [&](json& m) { m["tensors"][CutRows]["begin"] = max; },
           "elements from 9223372036854775807 on"},
          {"dim", [](json& m) { m["tensors"][CutRows]["cut"] = 2; }, "its dim 2 of [61, 5] is cut into 2"},
          {"dim beyond", [&](json& m) { m["tensors"][CutRows]["cut"] = max; }, "its dim 9223372036854775807 of"},
          {"uneven columns", [](json& m) { m["tensors"][CutRows]["cut"] = 1; }, "its dim 1 of [61, 5] is cut into 2"},
          {"dim of none", [](json& m) { m["tensors"][WholeNorm]["cut"] = 0; }, "it is cut along a dim, and 1 ranks"},
          {"no dim", [](json& m) { m["tensors"][CutColumns].erase("cut"); }, "it is cut along no dim, and 2 ranks"},
          {"three dims",
           [](json& m) {
             m["tensors"][CutColumns]["shape"] = {3, 66, 2};
           },
           "its dim 1 of [3, 66, 2]"},
          {"empty",
           [](json& m) {
             m["tensors"][CutRows]["shape"] = {0, 5};
           },
           "its shape is [0, 5]"},
          {"huge",
           [&](json& m) {
             m["tensors"][CutRows]["shape"] = {max, 1};
           },
           "its shape is [9223372036854775807, 1]"},
          {"many",
           [](json& m) {
             m["tensors"][CutRows]["shape"] = {1LL << 61, 1};
           },
           "elements from 0 on of a vector of"},
          {"overflow",
           [](json& m) {
             m["tensors"][CutRows]["shape"] = {1LL << 40, 1LL << 40};
           },
           "more than 2^63 - 1"},
          {"mesh", [](json& m) { m["mesh"]["dp"] = 4; }, "\"files\" are 12, of 16 ranks in \"mesh\""},
          {"huge mesh", [](json& m) { m["mesh"]["dp"] = 1LL << 40; }, "\"files\" are 12, of "},
          {"mesh that overflows",
           [](json& m) {
             m["mesh"]["dp"] = 1LL << 40;
             m["mesh"]["tp"] = 1LL << 40;
           },
           "\"mesh\": "},
          {"no file", [](json& m) { m["files"].erase("rank-00003.safetensors"); }, "\"files\" are 11, of 12 ranks"},
          {"another file",
           [](json& m) {
             m["files"]["other.safetensors"] = m["files"]["rank-00003.safetensors"];
             m["files"].erase("rank-00003.safetensors");
           },
           "\"files\" lack rank-00003.safetensors"},
      });
}

TEST(Layouts, PiecesThatNoSaveListsAreRefused) {
  const json good = BodyOf(Listed(ManifestFor(SmallPlan(2, ""))));
  const auto piece = [](json& m) -> json& { return m["tensors"][CutRows]["pieces"][0]; };
  ExpectRefusals(good, {
                           {"role", [&](json& m) { piece(m)["role"] = "x"; }, "\"role\" is \"x\""},
                           {"end < begin", [&](json& m) { piece(m)["end"] = 0; }, "a piece [0, 0)"},
                           {"beyond", [&](json& m) { piece(m)["end"] = 999; }, "a piece [0, 999) of 305"},
                           {"unknown file", [&](json& m) { piece(m)["file"] = "rank-00009.safetensors"; },
                            "which \"files\" does not list"},
                           {"columns",
                            [&](json& m) {
                              piece(m)["columns"] = {0, 6};
                            },
                            "a piece of columns [0, 6) of 5"},
                           {"a pair", [&](json& m) { piece(m)["columns"] = {0}; }, "\"columns\" is no pair"},
                           {"none", [](json& m) { m["tensors"][CutRows].erase("pieces"); }, "\"pieces\" is missing"},
                           {"overflow",
                            [](json& m) {
                              m["tensors"][CutRows]["shape"] = {1LL << 40, 1LL << 40};
                            },
                            "more than 2^63 - 1"},
                       });
}

TEST(Layouts, AnUnsavedTensorIsNotCovered) {
  Manifest manifest = ManifestFor(SmallPlan(2, ""));
  ASSERT_TRUE(CheckCover(manifest).ok());
  manifest.layouts[0].roles.erase(StateRole::Parameter);
  EXPECT_EQ(CheckCover(manifest).error().message, CutRows + ": elements [0, 305) are in no file");
  manifest.tensors.at(CutRows).layout = -1;
  EXPECT_NE(CheckCover(manifest).error().message.find("layout -1 of"), std::string::npos);
}

/// Any number of a sound manifest replaced by any number: it is refused, or its pieces tile its tensors.
TEST(Layouts, AnyMutationIsRefusedOrTiles) {
  const json good = BodyOf(ManifestFor(SmallPlan(Mesh{{2, 3, 2}}, "")));
  std::vector<json::json_pointer> places;
  const json flat = good.flatten();
  for (const auto& [key, value] : flat.items()) {
    const bool is_of_state = key.starts_with("/layouts") || key.starts_with("/tensors") || key.starts_with("/mesh");
    if (is_of_state && (value.is_number() || key.ends_with("axes") || key.ends_with("/cut"))) {
      places.emplace_back(key);
    }
  }
  std::mt19937_64 random(20);
  const std::vector<json> words{"none", "dp", "tp", "replicate", "dp+tp", "replicate+dp", "dp_inner", "x"};
  int num_accepted = 0;
  int num_refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    json bad = good;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      json& value = bad[places[random() % places.size()]];
      if (value.is_string()) {
        value = words[random() % words.size()];
      } else if (random() % 3 == 0) {
        value = random() >> random() % 64;
      } else {
        value = value.get<int64_t>() + static_cast<int64_t>(random() % 7) - 3;
      }
    }
    const auto manifest = ManifestFromText(Sealed(bad.dump()));
    if (!manifest.ok()) {
      ++num_refused;
      ASSERT_EQ(manifest.error().code, ExitCode::Checkpoint);
      ASSERT_FALSE(manifest.error().message.empty());
      continue;
    }
    ++num_accepted;
    const Status covered = CheckCover(Listed(*manifest));
    ASSERT_TRUE(covered.ok()) << covered.error().message << "\n" << bad.dump(1);
  }
  EXPECT_GT(num_accepted, 500);
  EXPECT_GT(num_refused, 2'000);
}

}  // namespace
}  // namespace shardc
