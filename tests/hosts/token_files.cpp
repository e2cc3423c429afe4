// Hosts whose token files differ in bytes that fingerprints do not sample: all bytes are compared, and each host reads
// them once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/hosts/job.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Two folders, a and b, with a token file each. Each process finds its file by its own working directory.
class TokenFiles : public testing::Test {
 protected:
  TokenFiles() : training_({"data.tokens=['/proc/self/cwd/tokens.bin']", "train.steps=2"}) {
    for (const char* folder : {"a", "b"}) {
      std::filesystem::create_directory(training_ / folder);
      Write(folder, {});
    }
  }
  /// Writes the file of a folder, and a space in the place of these tokens.
  auto Write(const std::string& folder, const std::vector<size_t>& changed) -> void {
    std::vector<uint16_t> ids = EasyTokens(400'000);
    for (const size_t token : changed) {
      ids[token] = ids[token] == ' ' ? 'x' : ' ';
    }
    WriteBin(training_ / folder + "/tokens.bin", ids);
  }
  auto InFolder(const std::string& folder, std::vector<std::string> command) const -> std::vector<std::string> {
    const std::string path = training_ / folder;
    command.insert(command.begin(), {"/usr/bin/env", "-C", path});
    return command;
  }
  /// Returns the commands of the processes of two hosts, of which the second one works in folder b.
  auto OnBoth(const Shape& shape, const std::vector<std::string>& command) const
      -> std::vector<std::vector<std::string>> {
    std::vector<std::vector<std::string>> commands(static_cast<size_t>(shape.processes), InFolder("a", command));
    commands.push_back(InFolder("b", command));
    return commands;
  }

  Training training_;
};

/// A token that fingerprints do not sample.
constexpr size_t NotInSamples = 209'000;

TEST_F(TokenFiles, OtherBytesAreRefused) {
  Write("b", {NotInSamples});
  const std::string seed = RepositoryPath(SampleSeed);
  struct Case {
    Shape shape;
    std::vector<std::string> command;
  };
  const Case cases[] = {
      {{.hosts = 2, .processes = 1}, training_.RunCommand("ranks")},
      {{.hosts = 2, .processes = 1}, training_.RunCommand("launchers", {"mesh.dp=4"})},
      {{.hosts = 2, .processes = 2}, training_.RunCommand("four", {"mesh.dp=4"})},
      {{.hosts = 2, .processes = 1}, training_.Command("eval", {"--checkpoint", seed})},
  };
  for (const Case& c : cases) {
    Job job(c.shape, OnBoth(c.shape, c.command));
    const std::vector<Outcome> outcomes = job.Wait();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      EXPECT_TRUE(outcome.all_gone);
    }
    const std::string error = OnlyErrorIn(ErrorsOf(outcomes));
    EXPECT_THAT(error, HasSubstr(fmt::format("process {} (", c.shape.processes)));
    EXPECT_THAT(error, HasSubstr("the files of `data.tokens` hold other bytes than on the host of process 0"));
  }
  for (const char* run : {"ranks", "launchers", "four"}) {
    EXPECT_FALSE(std::filesystem::exists(training_ / run));
  }
}

TEST_F(TokenFiles, CopiesAreReadOnce) {
  const Shape shape{.hosts = 2, .processes = 1};
  for (const char* steps : {"train.steps=2", "train.steps=4"}) {
    Job job(shape, OnBoth(shape, training_.RunCommand("run", {steps})));
    for (const Outcome& outcome : job.Wait()) {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
    }
    // A launch that reads the files again adds a line to the record.
    for (const char* record : {"run/scanned.json", "run/scanned.host1.json"}) {
      const std::string text = ReadText(training_ / record);
      EXPECT_EQ(std::ranges::count(text, '|'), 1) << text;
    }
  }
  Job job(shape, {InFolder("a", training_.RunCommand("shared"))});
  for (const Outcome& outcome : job.Wait()) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_TRUE(std::filesystem::exists(training_ / "shared/scanned.json"));
  EXPECT_FALSE(std::filesystem::exists(training_ / "shared/scanned.host1.json"));
}

TEST_F(TokenFiles, WithoutScanSamplesAreCompared) {
  Write("b", {NotInSamples});
  const Shape shape{.hosts = 2, .processes = 1};
  Job job(shape, OnBoth(shape, training_.RunCommand("run", {"data.scan=0"})));
  const std::vector<Outcome> outcomes = job.Wait();
  EXPECT_EQ(outcomes[0].status, 0) << outcomes[0].err;
  EXPECT_THAT(outcomes[0].err, HasSubstr("the token files are not read before the run (`data.scan` is 0): other hosts "
                                         "and restarts compare their sizes, both ends and 16 blocks of 4 KiB each, and "
                                         "nothing else\n"));
  EXPECT_THAT(outcomes[1].err, Not(HasSubstr("data.scan")));
}

}  // namespace
}  // namespace shardc
