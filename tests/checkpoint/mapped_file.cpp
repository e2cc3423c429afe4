// Files that are cut short while they are mapped: an error with the file's name, and no signal.
#include "runtime/checkpoint/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t FileBytes5 = 5 * 4096 + 100;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() { WriteText(path_, std::string(FileBytes5, 'x')); }
  /// Maps it again.
  auto Map() -> MappedFile& {
    mapped_.reset();
    const auto directory = OpenDirectory(PosixFs(), folder_.path());
    file_ = *OpenFileAt(*directory, "file");
    mapped_ = *MappedFile::Map(file_, FileBytes5);
    return *mapped_;
  }
  static auto SumOf(const MappedFile& file) -> int64_t {
    int64_t sum = 0;
    for (int64_t i = 0; i < FileBytes5; ++i) {
      sum += std::to_integer<int64_t>(file.data()[i]);
    }
    return sum;
  }
  auto Cut(int64_t bytes) const -> void { ASSERT_EQ(truncate(path_.c_str(), bytes), 0); }
  auto Restore() const -> void { WriteText(path_, std::string(FileBytes5, 'x')); }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "file";
  Descriptor file_;
  std::unique_ptr<MappedFile> mapped_;
};

TEST_F(MappedFileTest, ACutIsFoundWhereverItIs) {
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{3 * 4096 + 7}, FileBytes5 - 101, FileBytes5 - 1}) {
    const MappedFile& file = Map();
    EXPECT_TRUE(file.Check().ok());
    EXPECT_EQ(SumOf(file), FileBytes5 * 'x');
    Cut(bytes);
    // What is gone reads as zeros, to the end and from any thread.
    EXPECT_EQ(SumOf(file), bytes * 'x');
    std::thread([&] { EXPECT_EQ(SumOf(file), bytes * 'x'); }).join();
    const Status cut = file.Check();
    ASSERT_FALSE(cut.ok()) << bytes;
    EXPECT_EQ(cut.error().code, ExitCode::Checkpoint);
    EXPECT_EQ(cut.error().message,
              fmt::format("{} was cut short while it was read: it had {} bytes, and has {}", path_, FileBytes5, bytes));
    Restore();
  }
}

TEST_F(MappedFileTest, ACutThatIsMendedIsFoundToo) {
  const MappedFile& file = Map();
  Cut(4096);
  EXPECT_EQ(SumOf(file), 4096 * 'x');
  Restore();
  EXPECT_THAT(file.Check().error().message, HasSubstr("was cut short"));
  const MappedFile& again = Map();
  EXPECT_EQ(SumOf(again), FileBytes5 * 'x');
  EXPECT_TRUE(again.Check().ok());
  // Written over, with nobody having met the cut.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Restore();
  EXPECT_THAT(again.Check().error().message, HasSubstr("was written to while it was read"));
}

TEST_F(MappedFileTest, OneOfAnotherSizeIsNotMapped) {
  const auto directory = OpenDirectory(PosixFs(), folder_.path());
  const auto file = OpenFileAt(*directory, "file");
  for (const int64_t bytes : {FileBytes5 + 1, FileBytes5 - 1, int64_t{0}}) {
    EXPECT_FALSE(MappedFile::Map(*file, bytes).ok());
  }
}

TEST_F(MappedFileTest, ManyAtATimeAreToldApart) {
  std::vector<std::unique_ptr<MappedFile>> others;
  WriteText(folder_ / "other", std::string(FileBytes5, 'y'));
  const auto directory = OpenDirectory(PosixFs(), folder_.path());
  const auto other = OpenFileAt(*directory, "other");
  const MappedFile& file = Map();
  for (int round = 0; round < 3; ++round) {
    others.clear();
    for (int i = 0; i < 20; ++i) {
      others.push_back(*MappedFile::Map(*other, FileBytes5));
    }
  }
  Cut(10);
  EXPECT_EQ(SumOf(file), 10 * 'x');
  for (const auto& mapped : others) {
    EXPECT_EQ(SumOf(*mapped), FileBytes5 * 'y');
    EXPECT_TRUE(mapped->Check().ok());
  }
  EXPECT_FALSE(file.Check().ok());
}

/// How a child ends that does this while the handler is installed.
auto SignalOf(const std::function<void()>& body) -> int {
  const pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(MappedFileTest, OtherBusErrorsAreAsEver) {
  Map();
  // A file that somebody else maps.
  WriteText(folder_ / "other", std::string(FileBytes5, 'y'));
  const auto directory = OpenDirectory(PosixFs(), folder_.path());
  const auto other = OpenFileAt(*directory, "other");
  EXPECT_EQ(SignalOf([&] {
              const auto* const data =
                  static_cast<const volatile char*>(mmap(nullptr, FileBytes5, PROT_READ, MAP_SHARED, other->get(), 0));
              std::filesystem::resize_file(folder_ / "other", 0);
              static_cast<void>(data[4096]);
            }),
            SIGBUS);
  // One that is sent.
  EXPECT_EQ(SignalOf([] { kill(getpid(), SIGBUS); }), SIGBUS);
  EXPECT_EQ(SignalOf([] { raise(SIGBUS); }), SIGBUS);
  // And a file of ours that is not cut is no reason for any.
  EXPECT_EQ(SignalOf([&] { CHECK(SumOf(*mapped_) > 0, "sum"); }), 0);
}

/// The tensors of a checkpoint whose file is cut between two reads.
TEST(Checkpoint, ASeedThatIsCutWhileItIsReadIsAnError) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 1).ok());
  const std::string path = folder / "step-00000001";
  auto reader = CheckpointReader::Open({.path = path, .plan = &plan, .purpose = ReadPurpose::Parameters});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const auto tensor = (*reader)->Map("model.embed_tokens.weight");
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  std::vector<float> values(305);
  (*tensor)->Read(0, 305, values.data());
  EXPECT_EQ(values[304], StateValue("model.embed_tokens.weight", StateRole::Parameter, 304, 1));
  EXPECT_TRUE((*reader)->CheckMapped().ok());
  std::filesystem::resize_file(path + "/rank-00001.safetensors", 0);
  (*tensor)->Read(0, 305, values.data());
  EXPECT_EQ(values[0], StateValue("model.embed_tokens.weight", StateRole::Parameter, 0, 1));
  EXPECT_EQ(values[304], 0);
  const Status cut = (*reader)->CheckMapped();
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, ExitCode::Checkpoint);
  EXPECT_THAT(cut.error().message,
              AllOf(HasSubstr("checkpoint " + path + ": "), HasSubstr("rank-00001.safetensors was cut short")));
}

}  // namespace
}  // namespace shardc
