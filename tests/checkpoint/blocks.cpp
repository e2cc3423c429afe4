// Digests of blocks: what is read is checked, once, and nothing else; what is damaged is named with its bytes.
#include "compiler/checkpoint/block_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/checkpoint/checkpoint_file.h"
#include "tests/checkpoint/world.h"
#include "tests/support/fault_fs.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* Embedding = "model.embed_tokens.weight";

/// Counts what is read.
class CountingFs final : public ForwardingFs {
 public:
  auto Pread(int descriptor, void* data, size_t bytes, int64_t offset) -> int64_t override {
    num_bytes_ += static_cast<int64_t>(bytes);
    ++num_reads_;
    return PosixFs().Pread(descriptor, data, bytes, offset);
  }
  auto num_bytes() const -> int64_t { return num_bytes_; }
  auto num_reads() const -> int64_t { return num_reads_; }

 private:
  std::atomic<int64_t> num_bytes_ = 0;
  std::atomic<int64_t> num_reads_ = 0;
};

/// A checkpoint of two ranks, whose files have 5 blocks each, the last one short.
class Blocks : public testing::Test {
 protected:
  auto SetUp() -> void override {
    const Status saved = SaveSmall(plan_, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().message;
  }
  static auto PlanOn(const Mesh& mesh, const std::string& dir) -> Plan { return SmallPlan(mesh, dir, true, 40'000); }
  auto path() const -> std::string { return folder_ / "step-00000001"; }
  auto File(const std::string& name) const -> std::string { return path() + "/" + name; }
  auto FileBytes() const -> int64_t {
    int64_t bytes = 0;
    for (const std::string name : {"rank-00000.safetensors", "rank-00001.safetensors"}) {
      bytes += static_cast<int64_t>(std::filesystem::file_size(File(name)));
    }
    return bytes;
  }
  auto Load(ReadPurpose purpose = ReadPurpose::Resume) const -> std::string {
    return LoadSmall(plan_, path(), 1, purpose);
  }
  /// Changes a bit of a file.
  auto Flip(const std::string& name, int64_t byte) const -> void {
    std::string text = ReadText(File(name));
    text.at(static_cast<size_t>(byte)) = static_cast<char>(text.at(static_cast<size_t>(byte)) ^ 16);
    WriteText(File(name), text);
  }
  /// Returns the bytes of the file of rank 1 that hold the embedding.
  auto BytesOf(StateRole role) const -> Interval {
    const auto directory = OpenDirectory(PosixFs(), path());
    const auto header = ReadSafetensorsHeader(*OpenFileAt(*directory, "rank-00001.safetensors"));
    for (const SafetensorsTensor& tensor : header->tensors) {
      if (tensor.name == StoredName(Embedding, role)) {
        return {header->data_begin + tensor.data.begin, header->data_begin + tensor.data.end};
      }
    }
    return {};
  }

  TemporaryFolder folder_;
  Plan plan_ = PlanOn(Mesh{{1, 2, 1}}, folder_.path());
};

TEST_F(Blocks, ListsHoldDigestsOfEach) {
  const Manifest manifest = *ManifestFromText(ReadText(File("manifest.json")));
  for (const auto& [name, file] : manifest.files) {
    const std::string text = ReadText(File(name));
    ASSERT_EQ(file.bytes, std::ssize(text));
    ASSERT_EQ(NumBlocks(file.bytes), 5);
    std::string list;
    for (size_t begin = 0; begin < text.size(); begin += BlockBytes) {
      const std::string block = text.substr(begin, BlockBytes);
      const DigestBytes digest = DigestBytesOf(block.data(), std::ssize(block));
      EXPECT_EQ(ToText(digest), DigestOf(block));
      list.append(reinterpret_cast<const char*>(digest.data()), digest.size());
    }
    EXPECT_EQ(ReadText(File(BlocksName(name))), list);
    EXPECT_EQ(file.digest, DigestOf(list));
  }
}

TEST_F(Blocks, HasherTakesBytesInAnyParts) {
  const std::string text = ReadText(File("rank-00000.safetensors"));
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  BlockHasher whole;
  whole.Update(bytes, std::ssize(text));
  for (const int64_t part : {int64_t{1} << 18, int64_t{1} << 20, int64_t{100'003}, int64_t{262'143}}) {
    BlockHasher hasher;
    for (int64_t at = 0; at < std::ssize(text); at += part) {
      hasher.Update(bytes + at, std::min(part, std::ssize(text) - at));
    }
    EXPECT_EQ(hasher.Finish(), whole.Finish()) << part;
  }
}

TEST_F(Blocks, ResumeReadsEachOnce) {
  CountingFs fs;
  ASSERT_EQ(LoadSmall(plan_, path(), 1, ReadPurpose::Resume, fs), "");
  // And each rank the manifest, and the lists.
  const auto manifest = static_cast<int64_t>(std::filesystem::file_size(File("manifest.json")));
  EXPECT_LE(fs.num_bytes(), FileBytes() + 2 * (manifest + 4 * 5 * 16));
  EXPECT_GE(fs.num_bytes(), FileBytes());
}

TEST_F(Blocks, OtherMeshesReadBordersTwice) {
  for (const Mesh& mesh : {Mesh{{1, 3, 1}}, Mesh{{1, 5, 1}}, Mesh{{1, 1, 1}}, Mesh{{1, 1, 2}}}) {
    CountingFs fs;
    ASSERT_EQ(LoadSmall(PlanOn(mesh, folder_.path()), path(), 1, ReadPurpose::Resume, fs), "");
    // Where two ranks meet, both read a block of each role, and those with headers and with small tensors of both
    // files.
    const int64_t ranks = mesh.num_ranks();
    constexpr int64_t Small = 10'000;
    EXPECT_LE(fs.num_bytes(), FileBytes() + (ranks - 1) * (3 + 4) * BlockBytes + ranks * Small) << ranks;
  }
}

TEST_F(Blocks, ParametersAloneReadTheirBlocks) {
  CountingFs fs;
  ASSERT_EQ(LoadSmall(plan_, path(), 1, ReadPurpose::Parameters, fs), "");
  EXPECT_LE(fs.num_bytes(), 2 * 4 * BlockBytes);
  EXPECT_LE(fs.num_bytes(), FileBytes() * 9 / 10);
}

TEST_F(Blocks, NeighboursCostOneRead) {
  CountingFs fs;
  const auto reader = CheckpointReader::Open({.path = path(),
                                              .plan = &plan_,
                                              .data_fingerprint = SmallFingerprint,
                                              .purpose = ReadPurpose::Resume,
                                              .fs = &fs});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  float value = 0;
  ASSERT_TRUE((*reader)->ReadElements(Embedding, StateRole::ExpAvg, BoxInterval::Of({0, 1}), DType::F32, &value).ok());
  const int64_t before = fs.num_reads();
  for (int64_t i = 1; i < 1000; ++i) {
    ASSERT_TRUE(
        (*reader)->ReadElements(Embedding, StateRole::ExpAvg, BoxInterval::Of({i, i + 1}), DType::F32, &value).ok());
    ASSERT_EQ(value, StateValue(Embedding, StateRole::ExpAvg, i, 1));
  }
  EXPECT_LE(fs.num_reads() - before, 1);
}

TEST_F(Blocks, FilesShareBuffers) {
  const TemporaryFolder folder;
  constexpr int64_t Ranks = 70;
  ASSERT_TRUE(SaveSmall(SmallPlan(Ranks, folder.path()), 1).ok());
  EXPECT_EQ(LoadSmall(SmallPlan(1, folder.path()), folder / "step-00000001", 1), "");
}

TEST_F(Blocks, DamagedOneIsNamed) {
  const std::string name = "rank-00001.safetensors";
  const std::string good = ReadText(File(name));
  const auto size = std::ssize(good);
  struct Case {
    int64_t byte;
    /// A text of the message.
    std::string holds;
    bool is_of_parameters;
  };
  const std::string parameter = Embedding;
  const Interval first = BytesOf(StateRole::Parameter);
  const Interval moment = BytesOf(StateRole::ExpAvg);
  ASSERT_LT(first.begin, BlockBytes);
  ASSERT_GT(moment.end, 2 * BlockBytes);
  const std::vector<Case> cases{
      {10, "which hold its header", true},
      {first.begin + 5, "which hold its header and " + parameter, true},
      {BlockBytes + 5, parameter, true},
      {2 * BlockBytes + 5, parameter + ".exp_avg", false},
      {moment.end - 1, parameter + ".exp_avg", false},
      {size - 1, "model.norm.weight", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.byte);
    Flip(name, c.byte);
    const int64_t begin = c.byte / BlockBytes * BlockBytes;
    const std::string range = fmt::format("[{}, {})", begin, std::min(size, begin + BlockBytes));
    const std::string message = Load();
    if (c.byte == 10) {
      // Nothing is known of a header that is damaged.
      EXPECT_THAT(message, HasSubstr("is damaged: the digest of bytes [0, 262144), which hold its header, is "));
    } else {
      EXPECT_THAT(message, AllOf(HasSubstr(name + " is damaged: the digest of bytes " + range + ", which hold "),
                                 HasSubstr("rank-00001.blocks says "),
                                 HasSubstr("; move this checkpoint away to continue from the one before")));
    }
    if (c.is_of_parameters) {
      EXPECT_NE(Load(ReadPurpose::Parameters), "");
    } else {
      EXPECT_THAT(message, HasSubstr(c.holds));
      // Who does not read it takes no harm.
      EXPECT_EQ(Load(ReadPurpose::Parameters), "");
    }
    WriteText(File(name), good);
    ASSERT_EQ(Load(), "");
  }
}

TEST_F(Blocks, WrongListsAreRefused) {
  const std::string list = File("rank-00001.blocks");
  const std::string good = ReadText(list);
  const std::vector<std::pair<std::string, std::string>> cases{
      {good.substr(0, good.size() - 16), "rank-00001.blocks has 64 bytes, and the digests of 5 blocks have 80"},
      {good.substr(0, good.size() - 1), "has 79 bytes, and"},
      {"", "has 0 bytes, and"},
      {good + good.substr(0, 16), "has 96 bytes, and"},
      {ReadText(File("rank-00000.blocks")), "rank-00001.blocks is damaged: its digest is "},
      {good.substr(16) + good.substr(0, 16), "rank-00001.blocks is damaged: its digest is "},
  };
  for (const auto& [text, says] : cases) {
    WriteText(list, text);
    for (const ReadPurpose purpose : {ReadPurpose::Resume, ReadPurpose::Parameters}) {
      EXPECT_THAT(Load(purpose),
                  AllOf(HasSubstr(says), HasSubstr("; move this checkpoint away to continue from the one before")));
    }
  }
  std::filesystem::remove(list);
  EXPECT_THAT(Load(), HasSubstr("rank-00001.blocks: No such file or directory; move this checkpoint away"));
  WriteText(list, good);
  EXPECT_EQ(Load(), "");
}

TEST_F(Blocks, MappedOnesAreCheckedWhenRead) {
  const auto open = [&] {
    auto reader = CheckpointReader::Open({.path = path(), .plan = &plan_, .purpose = ReadPurpose::Parameters});
    CHECK(reader.ok(), "{}", reader.error().message);
    return *std::move(reader);
  };
  Flip("rank-00001.safetensors", BlockBytes + 5);
  const auto reader = open();
  const auto tensor = reader->Map(Embedding);
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  // The first half of the tensor is in the other file.
  std::vector<float> values(200'000);
  (*tensor)->Read(0, 110'000, values.data());
  EXPECT_EQ(values[3], StateValue(Embedding, StateRole::Parameter, 3, 1));
  EXPECT_TRUE(reader->CheckMapped().ok());
  (*tensor)->Read(199'999, 1, values.data());
  for (int time = 0; time < 2; ++time) {
    const Status damaged = reader->CheckMapped();
    ASSERT_FALSE(damaged.ok());
    EXPECT_EQ(damaged.error().code, ExitCode::Checkpoint);
    EXPECT_THAT(damaged.error().message,
                AllOf(HasSubstr("checkpoint " + path() + ": "), HasSubstr("is damaged: the digest of bytes [262144, "),
                      HasSubstr(Embedding), HasSubstr("; move this checkpoint away")));
    (*tensor)->Read(0, 1, values.data());
  }
}

}  // namespace
}  // namespace shardc
