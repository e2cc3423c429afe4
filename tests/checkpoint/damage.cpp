// Checkpoints that something happened to: each kind of damage is found by those who read it, and said apart.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/checkpoint/digest.h"
#include "runtime/checkpoint/find_newest.h"
#include "tests/checkpoint/world.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

class DamageTest : public testing::Test {
 protected:
  auto SetUp() -> void override {
    const Status saved = SaveSmall(plan_, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
  }
  auto File(const std::string& name) const -> std::string { return folder_ / ("step-00000001/" + name); }
  auto Load() const -> std::string { return LoadSmall(plan_, folder_ / "step-00000001", 1); }
  /// Reads what all ranks own, in one process.
  auto ReadAllPieces() const -> Status {
    ASSIGN_OR_RETURN(const auto reader,
                     CheckpointReader::Open(
                         {.path = folder_ / "step-00000001", .plan = &plan_, .data_fingerprint = SmallFingerprint}));
    for (int64_t rank = 0; rank < plan_.mesh.num_ranks(); ++rank) {
      for (const StoredPiece& piece : StoredPieces(plan_, rank)) {
        std::vector<float> values(static_cast<size_t>(piece.elements.elements.size()));
        RETURN_IF_ERROR(reader->ReadElements(plan_.parameters[piece.parameter].name, piece.role, piece.elements,
                                             DType::F32, values.data()));
      }
    }
    return Success{};
  }

  TemporaryFolder folder_;
  Plan plan_ = SmallPlan(2, folder_.path());
};

const std::vector<std::string> Files{"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors",
                                     "rank-00000.blocks", "rank-00001.blocks"};

TEST_F(DamageTest, EveryFlippedBitIsFound) {
  int64_t num_flips = 0;
  for (const std::string& name : Files) {
    const std::string good = ReadText(File(name));
    for (size_t at = 0; at < good.size(); at += static_cast<size_t>(Stride(7))) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at * 5 + at / 8) % 8));
      WriteText(File(name), bad);
      const Status read = ReadAllPieces();
      ASSERT_FALSE(read.ok()) << name << " byte " << at;
      ASSERT_EQ(read.error().code, ExitCode::Checkpoint);
      ASSERT_NE(read.error().message.find(name), std::string::npos) << read.error().message;
      ++num_flips;
    }
    WriteText(File(name), good);
  }
  EXPECT_EQ(Load(), "");
  EXPECT_GT(num_flips, 10'000 / Stride(7));
}

TEST_F(DamageTest, EveryTruncationIsFound) {
  for (const std::string& name : Files) {
    const std::string good = ReadText(File(name));
    for (size_t size = 0; size < good.size(); size += 1 + good.size() / 50) {
      WriteText(File(name), good.substr(0, size));
      ASSERT_NE(Load().find(name), std::string::npos) << name << " cut to " << size;
    }
    WriteText(File(name), good + "\n");
    EXPECT_NE(Load().find(name), std::string::npos);
    WriteText(File(name), good);
  }
}

TEST_F(DamageTest, DiagnosesAreDistinct) {
  const std::string file = File("rank-00001.safetensors");
  const std::string good = ReadText(file);
  const auto expect = [&](const std::string& says) {
    const std::string text = Load();
    EXPECT_NE(text.find(says), std::string::npos) << text << "\nlacks: " << says;
    std::filesystem::remove(file);
    WriteText(file, good);
    ASSERT_EQ(Load(), "");
  };
  std::filesystem::remove(file);
  expect("rank-00001.safetensors: No such file or directory");
  WriteText(file, "");
  expect("rank-00001.safetensors has 0 bytes, its manifest says " + std::to_string(good.size()));
  WriteText(file, good + "x");
  expect(fmt::format("has {} bytes, its manifest says {}", good.size() + 1, good.size()));
  WriteText(file, std::string(good.size(), '\0'));
  expect("is damaged: the digest of bytes [0, " + std::to_string(good.size()) + "), which hold its header, is ");
  std::filesystem::remove(file);
  std::filesystem::create_symlink(File("rank-00000.safetensors"), file);
  expect("cannot open");
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect("is not a regular file");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  expect("is not a regular file");
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  expect("cannot open");
}

TEST_F(DamageTest, SwappedFilesAreFound) {
  const std::string first = ReadText(File("rank-00000.safetensors"));
  const std::string second = ReadText(File("rank-00001.safetensors"));
  WriteText(File("rank-00000.safetensors"), second);
  WriteText(File("rank-00001.safetensors"), first);
  EXPECT_NE(Load().find("rank-00000.safetensors"), std::string::npos);
}

TEST_F(DamageTest, OddManifestFilesAreRefused) {
  const std::string manifest = File("manifest.json");
  const std::string good = ReadText(manifest);
  std::filesystem::remove(manifest);
  ASSERT_EQ(mkfifo(manifest.c_str(), 0600), 0);
  EXPECT_FALSE(FindNewest(folder_.path(), "small").ok());
  std::filesystem::remove(manifest);
  WriteText(folder_ / "elsewhere", good);
  std::filesystem::create_symlink(folder_ / "elsewhere", manifest);
  EXPECT_FALSE(FindNewest(folder_.path(), "small").ok());
  std::filesystem::remove(manifest);
  WriteText(manifest, "");
  std::filesystem::resize_file(manifest, int64_t{1} << 40);
  const auto huge = FindNewest(folder_.path(), "small");
  ASSERT_FALSE(huge.ok());
  EXPECT_NE(huge.error().message.find("at most"), std::string::npos) << huge.error().message;
}

struct ManifestCase {
  std::string what;
  std::function<void(nlohmann::json&)> change;
  std::string says;
};

// The digest is right in these: they are made, not damaged.
TEST_F(DamageTest, CraftedManifestsAreRefused) {
  using nlohmann::json;
  json good = json::parse(ReadText(File("manifest.json")));
  good.erase("digest");
  ASSERT_TRUE(ManifestFromText(Sealed(good.dump())).ok());
  const std::string tensor = "model.embed_tokens.weight";
  const ManifestCase cases[] = {
      {"version", [](json& m) { m["version"] = 5; },
       "version 5; this program reads \"shardc checkpoint\" versions 1 to 4: use the program that wrote it, or a "
       "newer"},
      {"version 0", [](json& m) { m["version"] = 0; }, "version 0; this program reads"},
      {"format", [](json& m) { m["format"] = "x"; }, "it is \"x\" version 3"},
      {"no step", [](json& m) { m.erase("step"); }, "\"step\" is missing"},
      {"negative step", [](json& m) { m["step"] = -5; }, "\"step\": a whole number"},
      {"float step", [](json& m) { m["step"] = 1e30; }, "\"step\": a whole number"},
      {"huge step", [](json& m) { m["step"] = 18446744073709551615U; }, "\"step\": a whole number"},
      {"run id", [](json& m) { m["run_id"] = "../x"; }, "\"run_id\" is no plain name"},
      {"mesh", [](json& m) { m["mesh"]["dp"] = 0; }, "dp is 0"},
      {"state", [](json& m) { m["state"]["step"] = "1"; }, "step is no number"},
      {"a loss",
       [](json& m) {
         m["recent_losses"] = {1.5, "2"};
       },
       "\"recent_losses\": item 1 is no finite number"},
      {"losses", [](json& m) { m["recent_losses"] = 1.5; }, "\"recent_losses\" is no list"},
      {"state is a list", [](json& m) { m["state"] = json::array(); }, "\"state\" is no object"},
      {"recipe",
       [](json& m) {
         m["recipe"] = {{"train.steps", 3}};
       },
       "\"train.steps\" is no string"},
      {"recipe is a list", [](json& m) { m["recipe"] = json::array(); }, "\"recipe\" is no object"},
      {"seed",
       [](json& m) {
         m["seed"] = {{"run_id", "a"}, {"step", 1}};
       },
       "\"digest\" is missing"},
      {"seed's digest",
       [](json& m) {
         m["seed"] = {{"run_id", "a"}, {"step", 1}, {"digest", "x"}};
       },
       "no 32 hex digits"},
      {"seed's run",
       [](json& m) {
         m["seed"] = {{"run_id", "../a"}, {"step", 1}, {"digest", std::string(32, 'a')}};
       },
       "no plain name"},
      {"digest", [](json& m) { m["files"]["rank-00000.safetensors"]["digest"] = "12"; }, "32 hex digits"},
      {"overflow",
       [&](json& m) {
         m["tensors"][tensor]["shape"] = {4294967296, 4294967296};
       },
       "more than 2^63 - 1"},
      {"nine dims", [&](json& m) { m["tensors"][tensor]["shape"] = {1, 1, 1, 1, 1, 1, 1, 1, 305}; },
       "more than 8 numbers"},
      {"tensor name", [](json& m) { m["tensors"]["a/b"] = m["tensors"]["model.norm.weight"]; }, "no plain name"},
  };
  for (const ManifestCase& row : cases) {
    json bad = good;
    row.change(bad);
    const auto manifest = ManifestFromText(Sealed(bad.dump()));
    ASSERT_FALSE(manifest.ok()) << row.what;
    EXPECT_NE(manifest.error().message.find(row.says), std::string::npos)
        << row.what << ": " << manifest.error().message;
  }

  // Names of files that would lead out of the directory.
  for (const std::string& name :
       {std::string("../rank"), std::string("/etc/passwd"), std::string("a/b"), std::string(".."),
        std::string(".hidden"), std::string("nul\0x", 5), std::string(300, 'a'), std::string("")}) {
    json bad = good;
    bad["files"][name] = bad["files"]["rank-00000.safetensors"];
    const auto manifest = ManifestFromText(Sealed(bad.dump()));
    ASSERT_FALSE(manifest.ok()) << name;
    EXPECT_NE(manifest.error().message.find("plain name"), std::string::npos) << manifest.error().message;
  }

  // What is known of the recipe and the seed reads back.
  Manifest known = *ManifestFromText(Sealed(good.dump()));
  known.recipe = {{"optimizer.lr", "\"1 / (step + 1)\""}, {"train.steps", "40"}};
  known.seed = {.run_id = "other", .step = 7, .digest = std::string(32, 'a')};
  const auto again = ManifestFromText(ToText(known));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == known);

  // What a later version adds is passed over.
  json later = good;
  later["later"] = {1, 2, 3};
  EXPECT_TRUE(ManifestFromText(Sealed(later.dump())).ok());

  std::string text = good.dump();
  EXPECT_FALSE(ManifestFromText(Sealed("{\"step\":1," + text.substr(1))).ok());
  EXPECT_FALSE(
      ManifestFromText(Sealed("{\"x\":" + std::string(200, '[') + std::string(200, ']') + "," + text.substr(1))).ok());
  EXPECT_FALSE(ManifestFromText(Sealed("{\"x\":" + std::string(1'000'000, '['))).ok());
  EXPECT_FALSE(ManifestFromText(Sealed("{\"x\":\"\xff\"," + text.substr(1))).ok());
  EXPECT_FALSE(ManifestFromText(text).ok());
  EXPECT_FALSE(ManifestFromText("").ok());
  EXPECT_FALSE(ManifestFromText("{\"digest\":\"").ok());
}

TEST_F(DamageTest, CoverMustBeExact) {
  const auto good = ManifestFromText(ReadText(File("manifest.json")));
  ASSERT_TRUE(good.ok() && CheckCover(*good).ok());
  const auto says = [&](const std::function<void(std::vector<Piece>&)>& change) {
    Manifest manifest = Listed(*good);
    change(manifest.tensors["model.embed_tokens.weight"].pieces);
    const Status status = CheckCover(manifest);
    return status.ok() ? "" : status.error().message;
  };
  const std::string name = "model.embed_tokens.weight";
  // Two ranks of 256 elements each: [0, 256) and [256, 305).
  EXPECT_EQ(says([](auto&) {}), "");
  EXPECT_EQ(says([](auto& pieces) { pieces[0].elements.end = 200; }), name + ": elements [200, 256) are in no file");
  EXPECT_EQ(says([](auto& pieces) { pieces[0].elements.end = 300; }), name + ": elements [256, 300) are there twice");
  EXPECT_EQ(says([](auto& pieces) { pieces[0].elements.begin = 3; }), name + ": elements [0, 3) are in no file");
  EXPECT_EQ(says([](auto& pieces) { pieces.pop_back(); }), name + ".exp_avg_sq: elements [256, 305) are in no file");
  EXPECT_EQ(says([](auto& pieces) { pieces.push_back(pieces[0]); }), name + ": elements [0, 256) are there twice");
  EXPECT_EQ(says([](auto& pieces) { pieces.clear(); }), name + ": elements [0, 305) are in no file");
  EXPECT_EQ(says([](auto& pieces) {
              pieces[0].elements.end = 100;
              pieces.push_back({StateRole::Parameter, {100, 256}, {}, pieces[0].file});
            }),
            name + ": two pieces in rank-00000.safetensors");
}

TEST(PlainName, AllowList) {
  for (const std::string_view good :
       {"rank-00000.safetensors", "a", "A_b-c.9", "model.layers.0.self_attn.q_proj.weight"}) {
    EXPECT_TRUE(IsPlainName(good)) << good;
  }
  for (const std::string_view bad : {"", ".", "..", ".a", "a/b", "/a", "a b", "a\n", "\xc3\xa4", "a\\b", "a:b"}) {
    EXPECT_FALSE(IsPlainName(bad)) << bad;
  }
  EXPECT_TRUE(IsPlainName(std::string(200, 'a')));
  EXPECT_FALSE(IsPlainName(std::string(201, 'a')));
}

}  // namespace
}  // namespace shardc
