// `shardc checkpoint` on checkpoints that ranks of several meshes saved: what it lists and shows, the damage that it
// names, how far two are apart, and what it removes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/find_damage.h"
#include "compiler/checkpoint/lease.h"
#include "compiler/checkpoint/stored_tensor.h"
#include "compiler/driver/command.h"
#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Said {
  ExitCode code = ExitCode::Ok;
  std::string out;
  std::string err;
};

auto Checkpoint(std::vector<std::string> arguments) -> Said {
  arguments.insert(arguments.begin(), {"shardc", "checkpoint"});
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Said said;
  said.code = RunCommandLine(static_cast<int>(argv.size()), argv.data());
  said.out = testing::internal::GetCapturedStdout();
  said.err = testing::internal::GetCapturedStderr();
  return said;
}

/// A run directory whose checkpoints a mesh saved.
class Saved {
 public:
  explicit Saved(const Mesh& mesh, const std::vector<int64_t>& steps = {10}) {
    std::filesystem::create_directories(dir());
    Plan plan = SmallPlan(mesh, dir());
    plan.run.checkpoint_keep = 9;
    for (const int64_t step : steps) {
      const Status status = SaveSmall(plan, step);
      CHECK(status, "{}", status.error().message);
    }
  }
  auto run() const -> std::string { return folder_.path(); }
  auto dir() const -> std::string { return folder_ / "checkpoints"; }
  auto operator/(const std::string& name) const -> std::string { return dir() + "/" + name; }

 private:
  TemporaryFolder folder_;
};

/// Writes bytes over those of a file.
auto Overwrite(const std::string& path, int64_t at, const void* bytes, int64_t size) -> void {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.write(static_cast<const char*>(bytes), size);
  CHECK(file.good(), "{}", path);
}

/// Writes the digests of a file that was changed.
auto Seal(const std::string& checkpoint, const std::string& name) -> void {
  const std::string text = ReadText(checkpoint + "/" + name);
  BlockHasher hasher;
  hasher.Update(reinterpret_cast<const std::byte*>(text.data()), std::ssize(text));
  const std::vector<DigestBytes> digests = hasher.Finish();
  const std::string list(reinterpret_cast<const char*>(digests.data()), digests.size() * sizeof(DigestBytes));
  WriteText(checkpoint + "/" + BlocksName(name), list);
  auto manifest = ManifestFromText(ReadText(checkpoint + "/manifest.json"));
  manifest->files.at(name).digest = DigestOf(list);
  WriteText(checkpoint + "/manifest.json", ToText(*manifest));
}

const Mesh OneRank{{1, 1, 1}};
const Mesh TwoByTwo{{1, 2, 2}};

TEST(CheckpointCommand, ListsWhatIsThere) {
  const Saved saved(TwoByTwo, {10, 20, 30});
  std::filesystem::resize_file(saved / "step-00000030/rank-00002.safetensors", 100);
  std::filesystem::copy(saved / "step-00000010", saved / "step-00000040.tmp-small~0123abcd");
  std::filesystem::copy(saved / "step-00000010", saved / "step-00000010.replaced-1");
  std::filesystem::create_directory(saved / "step-00000050");
  std::filesystem::create_directory(saved / "notes");
  for (const std::string& path : {saved.run(), saved.dir()}) {
    const Said said = Checkpoint({"list", path, "--format", "json"});
    EXPECT_EQ(said.code, ExitCode::Ok) << said.err;
    std::vector<std::string> lines;
    for (const json& entry : json::parse(said.out)) {
      lines.push_back(fmt::format("{} {}{}{}", std::filesystem::path(entry["path"]).filename().string(),
                                  std::string(entry["state"]), entry["newest"].get<bool>() ? " newest" : "",
                                  entry.contains("why") ? ": " + std::string(entry["why"]) : ""));
      EXPECT_LT(entry["age_s"].get<int64_t>(), 600);
    }
    EXPECT_THAT(
        lines, ElementsAre("step-00000010 whole", "step-00000010.replaced-1 aside", "step-00000020 whole newest",
                           StartsWith("step-00000030 damaged: rank-00002.safetensors has 100 bytes, the manifest says"),
                           "step-00000040.tmp-small~0123abcd temporary", StartsWith("step-00000050 damaged: ")));
  }
  const json one = json::parse(Checkpoint({"list", saved / "step-00000010", "--format", "json"}).out);
  ASSERT_EQ(one.size(), 1);
  EXPECT_EQ(one[0]["run_id"], "small");
  EXPECT_EQ(one[0]["step"], 10);
  EXPECT_EQ(one[0]["mesh"]["tp"], 2);
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(saved / "step-00000010")) {
    bytes += static_cast<int64_t>(file.file_size());
  }
  EXPECT_EQ(one[0]["bytes"], bytes);
  const std::string text = Checkpoint({"list", saved.run()}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("small  dp 2, tp 2  newest\n"), HasSubstr("a save that is under way")));
  const TemporaryFolder empty;
  const Said none = Checkpoint({"list", empty.path()});
  EXPECT_EQ(none.code, ExitCode::Checkpoint);
  EXPECT_THAT(none.err, HasSubstr(empty.path() + " has no checkpoint: it has neither manifest.json nor config.json"));
}

TEST(CheckpointCommand, ListsLinksAndCopies) {
  const Saved saved(TwoByTwo, {10, 20});
  std::filesystem::rename(saved / "step-00000020", saved / "elsewhere");
  std::filesystem::create_directory_symlink(saved / "elsewhere", saved / "step-00000020");
  const auto listed = [](const std::string& path) {
    const Said said = Checkpoint({"list", path, "--format", "json"});
    EXPECT_EQ(said.code, ExitCode::Ok) << said.err;
    std::vector<std::string> lines;
    for (const json& entry : json::parse(said.out)) {
      lines.push_back(fmt::format("{} {} {}", std::filesystem::path(entry["path"]).filename().string(),
                                  std::string(entry["state"]), entry["step"].get<int64_t>()));
    }
    return lines;
  };
  EXPECT_THAT(listed(saved.run()), ElementsAre("step-00000010 whole 10", "step-00000020 whole 20"));
  EXPECT_THAT(listed(saved / "elsewhere"), ElementsAre("elsewhere whole 20"));
  EXPECT_THAT(listed(saved / "elsewhere/"), ElementsAre("elsewhere whole 20"));
  std::filesystem::create_directory_symlink(saved / "step-00000010", saved / "latest");
  EXPECT_THAT(listed(saved / "latest"), ElementsAre("step-00000010 whole 10"));
  for (const char* name : {"elsewhere", "latest"}) {
    const Said said = Checkpoint({"remove", saved / name, "--yes"});
    EXPECT_EQ(said.code, ExitCode::Usage);
    EXPECT_THAT(said.err, HasSubstr(saved / name + " is not removed: no save gives such a name"));
  }
  EXPECT_EQ(Checkpoint({"verify", saved / "latest"}).code, ExitCode::Ok);
  EXPECT_EQ(Checkpoint({"verify", saved / "elsewhere"}).code, ExitCode::Ok);
}

TEST(CheckpointCommand, ShowsWhatOneHolds) {
  const Saved saved(TwoByTwo, {10, 20});
  const Said said = Checkpoint({"show", saved.run()});
  EXPECT_EQ(said.code, ExitCode::Ok) << said.err;
  EXPECT_THAT(
      said.out,
      AllOf(HasSubstr("checkpoint  " + saved / "step-00000020"), HasSubstr("run         small, step 20\n"),
            HasSubstr("mesh        dp 2, tp 2\n"), HasSubstr("optimizer   adamw\n"),
            HasSubstr("state       step 20, updates 10\n"), HasSubstr("tensors     5, 732 elements\n"),
            HasSubstr("  model.layers.0.mlp.down_proj.weight    [3, 132]  f32   1,584  exp_avg exp_avg_sq  3,168\n"),
            HasSubstr("  model.norm.weight                      [5]       f32      20\n")));
  const json shown = json::parse(Checkpoint({"show", saved / "step-00000010", "--format", "json"}).out);
  EXPECT_EQ(shown["step"], 10);
  EXPECT_EQ(shown["state"]["updates"], 5);
  EXPECT_EQ(shown["data"]["seed"], 18446744073709551615U);
  EXPECT_EQ(shown["files"].size(), 4);
  EXPECT_EQ(shown["tensors"][0]["name"], "model.embed_tokens.weight");
  EXPECT_EQ(shown["tensors"][0]["shape"], json({61, 5}));
  EXPECT_EQ(shown["tensors"][0]["bytes"], 61 * 5 * 4);
  EXPECT_EQ(shown["tensors"][0]["moment_bytes"], 2 * 61 * 5 * 4);
}

TEST(CheckpointCommand, VerifiesEveryByte) {
  const Saved saved(TwoByTwo);
  const std::string step = saved / "step-00000010";
  const Said whole = Checkpoint({"verify", saved.run()});
  EXPECT_EQ(whole.code, ExitCode::Ok) << whole.err;
  EXPECT_THAT(whole.out, AllOf(StartsWith(step + ": whole, "), HasSubstr(" in 4 files\n")));

  const auto directory = OpenDirectory(PosixFs(), step);
  const auto manifest = ManifestFromText(ReadText(step + "/manifest.json"));
  for (const auto& [name, file] : manifest->files) {
    const std::string before = ReadText(step + "/" + name);
    for (int64_t at = 0; at < file.bytes; at += 61) {
      const char other = static_cast<char>(before[static_cast<size_t>(at)] ^ 4);
      Overwrite(step + "/" + name, at, &other, 1);
      std::atomic<int64_t> bytes_read = 0;
      const std::vector<Damage> damage = FindDamage(*directory, *manifest, 2, bytes_read);
      ASSERT_EQ(damage.size(), 1) << name << " at " << at;
      EXPECT_EQ(damage[0].file, name);
      EXPECT_TRUE(damage[0].bytes.begin <= at && at < damage[0].bytes.end);
      EXPECT_FALSE(damage[0].tensors.empty());
      EXPECT_EQ(bytes_read, std::accumulate(manifest->files.begin(), manifest->files.end(), int64_t{0},
                                            [](int64_t sum, const auto& own) { return sum + own.second.bytes; }));
      Overwrite(step + "/" + name, at, &before[static_cast<size_t>(at)], 1);
    }
  }
  EXPECT_EQ(Checkpoint({"verify", step}).code, ExitCode::Ok);
}

TEST(CheckpointCommand, NamesDamagedBlocks) {
  constexpr int64_t Bytes = 5 * BlockBytes / 2;
  const TemporaryFolder folder;
  const std::string text(Bytes, 'x');
  WriteText(folder / "rank-00000.safetensors", text);
  BlockHasher hasher;
  hasher.Update(reinterpret_cast<const std::byte*>(text.data()), Bytes);
  const std::vector<DigestBytes> digests = hasher.Finish();
  const std::string list(reinterpret_cast<const char*>(digests.data()), digests.size() * sizeof(DigestBytes));
  WriteText(folder / "rank-00000.blocks", list);
  Manifest manifest;
  manifest.files["rank-00000.safetensors"] = {.bytes = Bytes, .digest = DigestOf(list)};
  const auto directory = OpenDirectory(PosixFs(), folder.path());
  const auto damage = [&] {
    std::atomic<int64_t> bytes_read = 0;
    std::vector<std::string> lines;
    for (const Damage& own : FindDamage(*directory, manifest, 2, bytes_read)) {
      lines.push_back(fmt::format("{} {} {}", own.file, own.bytes.begin, own.bytes.end));
    }
    return lines;
  };
  EXPECT_THAT(damage(), testing::IsEmpty());
  Overwrite(folder / "rank-00000.safetensors", Bytes - 1, "y", 1);
  EXPECT_THAT(damage(), ElementsAre("rank-00000.safetensors 524288 655360"));
  Overwrite(folder / "rank-00000.safetensors", 0, "y", 1);
  EXPECT_THAT(damage(), ElementsAre("rank-00000.safetensors 0 262144", "rank-00000.safetensors 524288 655360"));
  Overwrite(folder / "rank-00000.safetensors", BlockBytes, "y", 1);
  EXPECT_THAT(damage(), ElementsAre("rank-00000.safetensors 0 655360"));
  Overwrite(folder / "rank-00000.blocks", 20, "zzzz", 4);
  EXPECT_THAT(damage(), ElementsAre("rank-00000.blocks 0 48"));
}

TEST(CheckpointCommand, NamesDamage) {
  const Saved saved(TwoByTwo);
  const std::string step = saved / "step-00000010";
  Overwrite(step + "/rank-00001.safetensors", 3000, "x", 1);
  std::filesystem::resize_file(step + "/rank-00002.safetensors", 100);
  std::filesystem::remove(step + "/rank-00003.safetensors");
  const Said said = Checkpoint({"verify", step});
  EXPECT_EQ(said.code, ExitCode::Checkpoint);
  EXPECT_THAT(said.err, HasSubstr(step + " is damaged; an earlier checkpoint may be whole: shardc checkpoint list " +
                                  saved.dir()));
  EXPECT_THAT(
      said.out,
      AllOf(HasSubstr("rank-00001.safetensors: bytes 0 to "),
            HasSubstr("there are model.embed_tokens.weight, model.embed_tokens.weight.exp_avg, "
                      "model.embed_tokens.weight.exp_avg_sq and "),
            HasSubstr("rank-00002.safetensors: bytes 0 to "), HasSubstr(": it has 100 bytes, the manifest says "),
            HasSubstr("rank-00003.safetensors: bytes 0 to "), HasSubstr("No such file or directory")));
  const json damage = json::parse(Checkpoint({"verify", step, "--format", "json"}).out)["damage"];
  ASSERT_EQ(damage.size(), 3);
  EXPECT_EQ(damage[0]["file"], "rank-00001.safetensors");
  Overwrite(step + "/manifest.json", 200, "x", 1);
  const Said unreadable = Checkpoint({"verify", step});
  EXPECT_EQ(unreadable.code, ExitCode::Checkpoint);
  EXPECT_THAT(unreadable.err, HasSubstr("is no checkpoint: manifest.json: "));
}

TEST(CheckpointCommand, ComparesAnyMeshes) {
  const Saved one(OneRank);
  for (const Mesh& mesh : {OneRank, TwoByTwo, Mesh{{2, 3, 1}}, Mesh{{1, 1, 4}}}) {
    const Saved other(mesh);
    const Said said = Checkpoint({"diff", one.run(), other.run()});
    EXPECT_EQ(said.code, ExitCode::Ok) << said.out << said.err;
    EXPECT_THAT(said.out, AllOf(HasSubstr("parameters: 0 of 5 differ\n"), HasSubstr("moments: 0 of 8 differ\n")));
  }
  const Saved later(TwoByTwo, {20});
  const Said said = Checkpoint({"diff", one.run(), later.run()});
  EXPECT_EQ(said.code, ExitCode::Differs);
  EXPECT_THAT(said.out, AllOf(HasSubstr("parameters: 5 of 5 differ\n"), HasSubstr("moments: 8 of 8 differ\n")));
  // Each largest difference, found again element by element.
  const json found = json::parse(Checkpoint({"diff", one.run(), later.run(), "--format", "json"}).out);
  for (const json& own : found["tensors"]) {
    const StateRole role = *FromText<StateRole>(std::string(own["role"]));
    double largest = 0;
    int64_t num_different = 0;
    for (int64_t i = 0; i < own["elements"].get<int64_t>(); ++i) {
      const double difference = std::abs(static_cast<double>(StateValue(own["name"], role, i, 10)) -
                                         static_cast<double>(StateValue(own["name"], role, i, 20)));
      num_different += difference != 0 ? 1 : 0;
      largest = std::max(largest, difference);
    }
    EXPECT_EQ(own["largest"], largest) << own;
    EXPECT_EQ(own["different"], num_different);
    EXPECT_EQ(own["a"].get<double>(), static_cast<double>(StateValue(own["name"], role, own["at"], 10)));
  }
}

TEST(CheckpointCommand, NamesElementsThatDiffer) {
  const Saved one(OneRank);
  const Saved other(TwoByTwo);
  const std::string path = one / "step-00000010/rank-00000.safetensors";
  const auto directory = OpenDirectory(PosixFs(), one / "step-00000010");
  const auto file = OpenFileAt(*directory, "rank-00000.safetensors");
  const auto header = ReadSafetensorsHeader(*file);
  const auto put = [&](const std::string& name, int64_t element, float value) {
    const auto tensor = std::ranges::find(header->tensors, name, &SafetensorsTensor::name);
    Overwrite(path, header->data_begin + tensor->data.begin + element * 4, &value, sizeof(value));
  };
  put("model.norm.weight", 3, 7.5F);
  put("model.embed_tokens.weight", 100, std::numeric_limits<float>::quiet_NaN());
  put("model.layers.0.mlp.up_proj.weight.exp_avg", 20, -2.0F);
  // What no digest vouches for is not compared.
  EXPECT_EQ(Checkpoint({"diff", one.run(), other.run()}).code, ExitCode::Checkpoint);
  Seal(one / "step-00000010", "rank-00000.safetensors");
  const Said said = Checkpoint({"diff", one.run(), other.run()});
  EXPECT_EQ(said.code, ExitCode::Differs);
  EXPECT_THAT(said.out, AllOf(HasSubstr("parameters: 2 of 5 differ\n  tensor"), HasSubstr("moments: 1 of 8 differ\n")));
  const size_t nan = said.out.find("model.embed_tokens.weight ");
  ASSERT_LT(nan, said.out.find("model.norm.weight ")) << said.out;
  const json found = json::parse(Checkpoint({"diff", one.run(), other.run(), "--format", "json"}).out);
  for (const json& own : found["tensors"]) {
    const bool is_moment = own["role"] == "exp_avg" && own["name"] == "model.layers.0.mlp.up_proj.weight";
    if (own["role"] == "parameter" && own["name"] == "model.norm.weight") {
      EXPECT_EQ(own["at"], 3);
      EXPECT_EQ(own["a"], 7.5);
      EXPECT_EQ(own["b"].get<double>(),
                static_cast<double>(StateValue("model.norm.weight", StateRole::Parameter, 3, 10)));
    } else if (own["role"] == "parameter" && own["name"] == "model.embed_tokens.weight") {
      EXPECT_EQ(own["at"], 100);
      EXPECT_EQ(own["largest"], "nan");
    } else if (is_moment) {
      EXPECT_EQ(own["at"], 20);
      EXPECT_EQ(own["different"], 1);
    } else {
      EXPECT_EQ(own["different"], 0) << own;
    }
  }
}

TEST(CheckpointCommand, ComparesModelsThatDiffer) {
  const Saved one(OneRank);
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSmall(SmallPlan(OneRank, folder.path(), false), 10));
  const Said said = Checkpoint({"diff", one.run(), folder.path()});
  EXPECT_EQ(said.code, ExitCode::Differs);
  EXPECT_THAT(said.out, AllOf(HasSubstr("parameters: 0 of 4 differ\n"),
                              HasSubstr("not compared: model.norm.weight: [5] and none\n")));
}

TEST(CheckpointCommand, RemovesWithYesAlone) {
  const Saved saved(TwoByTwo, {10, 20});
  std::filesystem::copy(saved / "step-00000010", saved / "step-00000040.tmp-small~0123abcd");
  std::filesystem::create_directory(saved / "notes");
  const std::vector<std::string> all = StepsIn(saved.dir());
  const Said asked = Checkpoint({"remove", saved.run()});
  EXPECT_EQ(asked.code, ExitCode::Usage);
  EXPECT_THAT(asked.out, AllOf(StartsWith("would remove:\n  " + saved / "step-00000010"), HasSubstr("step-00000020"),
                               HasSubstr("step-00000040.tmp-small~0123abcd")));
  EXPECT_THAT(asked.err, HasSubstr("nothing was removed; to remove 3 checkpoints, "));
  EXPECT_EQ(StepsIn(saved.dir()), all);

  EXPECT_EQ(Checkpoint({"remove", saved / "step-00000010", "--yes"}).code, ExitCode::Ok);
  EXPECT_THAT(StepsIn(saved.dir()), ElementsAre("notes", "step-00000020", "step-00000040.tmp-small~0123abcd"));
  const Said said = Checkpoint({"remove", saved.run(), "--yes"});
  EXPECT_EQ(said.code, ExitCode::Ok) << said.err;
  EXPECT_THAT(said.out, StartsWith("removed 2 checkpoints, "));
  EXPECT_THAT(StepsIn(saved.dir()), ElementsAre("notes"));
}

TEST(CheckpointCommand, RemovesNothingOfAnOwner) {
  const Saved saved(TwoByTwo, {10});
  const auto lease = Lease::Acquire(saved.dir(), "small", {});
  ASSERT_TRUE(lease) << lease.error().message;
  const std::vector<std::string> all = StepsIn(saved.dir());
  const Said said = Checkpoint({"remove", saved.run(), "--yes"});
  EXPECT_EQ(said.code, ExitCode::Environment);
  EXPECT_THAT(said.err, HasSubstr("checkpoint directory " + saved.dir() + " is in use by run small on host "));
  EXPECT_EQ(StepsIn(saved.dir()), all);
  EXPECT_EQ(Checkpoint({"verify", saved.run()}).code, ExitCode::Ok);
}

TEST(CheckpointCommand, RemovesNothingOfTheUsers) {
  const Saved saved(TwoByTwo, {10, 20});
  std::filesystem::copy(saved / "step-00000010", saved / "step-00000010.mybackup");
  std::filesystem::copy(saved / "step-00000010", saved / "step-00000030");
  WriteText(saved / "step-00000030/notes.txt", "mine");
  const std::vector<std::string> all = StepsIn(saved.dir());
  const Said said = Checkpoint({"remove", saved.run(), "--yes"});
  EXPECT_EQ(said.code, ExitCode::Checkpoint);
  EXPECT_THAT(said.err, HasSubstr("step-00000030 is not removed: it holds notes.txt, which no save wrote; move that "
                                  "away; nothing was removed"));
  EXPECT_EQ(StepsIn(saved.dir()), all);
  // Nor is a link followed.
  std::filesystem::rename(saved / "step-00000030", saved / "elsewhere");
  std::filesystem::create_directory_symlink(saved / "elsewhere", saved / "step-00000030");
  EXPECT_EQ(Checkpoint({"remove", saved.run(), "--yes"}).code, ExitCode::Checkpoint);
  std::filesystem::remove(saved / "step-00000030");
  EXPECT_EQ(Checkpoint({"remove", saved.run(), "--yes"}).code, ExitCode::Ok);
  EXPECT_THAT(StepsIn(saved.dir()), ElementsAre("elsewhere", "step-00000010.mybackup"));
}

TEST(CheckpointCommand, RefusesOtherUse) {
  const Saved saved(OneRank);
  const auto why = [](const std::vector<std::string>& arguments) {
    const Said said = Checkpoint(arguments);
    EXPECT_EQ(said.code, ExitCode::Usage);
    return said.err;
  };
  EXPECT_EQ(why({"lst", saved.run()}),
            "error: `lst` is none of list, show, verify, diff, remove; did you mean `list`?\n");
  EXPECT_EQ(why({"diff", saved.run()}), "error: `diff` takes two: RUN_OR_DIR RUN_OR_DIR, and one is given\n");
  EXPECT_EQ(why({"show", saved.run(), saved.run()}), "error: `show` takes one RUN_OR_DIR, and 2 are given\n");
  EXPECT_EQ(why({"verify", saved.run(), "--yes"}), "error: --yes is for remove alone\n");
  EXPECT_EQ(why({"remove", saved.run(), "--format", "json"}), "error: remove has no --format json\n");
}

}  // namespace
}  // namespace shardc
