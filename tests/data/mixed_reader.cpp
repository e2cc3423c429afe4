// Samples of a mixture of sources.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

/// Two sources, weights 2 and 1: tokens 0 to 40 and 100 to 120, 10 and 5 samples; with 13 tokens held out of each, 6
/// and 1, and 3 each for evaluation.
class MixedReaderTest : public TokenReaderTest {
 protected:
  MixedReaderTest() {
    std::vector<int64_t> second = Count(21);
    std::for_each(second.begin(), second.end(), [](int64_t& id) { id += 100; });
    data_ = Source({Raw<uint8_t>(Count(41)), Raw<uint8_t>(second)});
    const std::vector<std::string> files = data_.sources.front().files;
    data_.sources = {{.name = "low", .weight = "2", .files = {files[0]}},
                     {.name = "high", .weight = "1", .files = {files[1]}}};
  }
  auto Open() -> std::unique_ptr<TokenReader> {
    auto reader = TokenReader::Open(data_, {}, {.samples_per_step = 3, .steps = 10});
    CHECK(reader.ok(), "{}", reader.error().message);
    return *std::move(reader);
  }

  DataSource data_;
};

TEST_F(MixedReaderTest, EachSourceHasEpochsOfItsOwn) {
  for (const SampleOrder order : {SampleOrder::Sequential, SampleOrder::Shuffled}) {
    data_.order = order;
    data_.seed = 3;
    const auto reader = Open();
    std::vector<std::vector<int32_t>> epochs;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      // Five steps are an epoch of both.
      std::vector<int32_t>& firsts = epochs.emplace_back();
      for (int64_t i = 0; i < 15; ++i) {
        const Sample sample = Read(*reader, Split::Train, epoch * 15 + i);
        firsts.push_back(sample.tokens[0]);
        for (size_t s = 0; s < 4; ++s) {
          EXPECT_EQ(sample.tokens[s], sample.tokens[0] + static_cast<int32_t>(s));
          EXPECT_EQ(sample.targets[s], sample.tokens[s] + 1);
        }
      }
      std::vector<int32_t> sorted = firsts;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted, (std::vector<int32_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 100, 104, 108, 112, 116}));
    }
    EXPECT_EQ(epochs[0] == epochs[1], order == SampleOrder::Sequential);
  }
}

TEST_F(MixedReaderTest, SequentialReadsEachSourceInOrder) {
  const auto reader = Open();
  std::vector<int32_t> firsts;
  for (int64_t i = 0; i < 9; ++i) {
    firsts.push_back(Read(*reader, Split::Train, i).tokens[0]);
  }
  EXPECT_EQ(firsts, (std::vector<int32_t>{0, 100, 4, 8, 104, 12, 16, 108, 20}));
}

TEST_F(MixedReaderTest, ShufflesByTheNameOfTheSource) {
  data_.order = SampleOrder::Shuffled;
  const auto firsts_of_low = [&] {
    const auto reader = Open();
    std::vector<int32_t> firsts;
    for (int64_t i = 0; i < 15; ++i) {
      const int32_t first = Read(*reader, Split::Train, i).tokens[0];
      if (first < 100) {
        firsts.push_back(first);
      }
    }
    return firsts;
  };
  const std::vector<int32_t> as_low = firsts_of_low();
  data_.sources[0].name = "lower";
  EXPECT_NE(firsts_of_low(), as_low);
}

TEST_F(MixedReaderTest, EvalSplitsStandOneBehindTheOther) {
  data_.eval_tokens = 13;
  const auto reader = Open();
  EXPECT_EQ(reader->num_train_samples(), 7);
  EXPECT_EQ(reader->num_eval_samples(), 6);
  EXPECT_EQ(Read(*reader, Split::Eval, 0), (Sample{{28, 29, 30, 31}, {29, 30, 31, 32}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 2), (Sample{{36, 37, 38, 39}, {37, 38, 39, 40}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 3), (Sample{{108, 109, 110, 111}, {109, 110, 111, 112}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 5), (Sample{{116, 117, 118, 119}, {117, 118, 119, 120}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 6), (Sample{{0, 0, 0, 0}, {-1, -1, -1, -1}}));
}

TEST_F(MixedReaderTest, SaysWhatItIsAndWhatTheRunTakes) {
  const auto reader = Open();
  const std::vector<std::string> fingerprints = reader->SourceFingerprints();
  ASSERT_EQ(fingerprints.size(), 2U);
  EXPECT_NE(fingerprints[0].find("1 file, 41 tokens, xxh3-128 "), std::string::npos) << fingerprints[0];
  EXPECT_EQ(reader->Fingerprint(), "low: " + fingerprints[0] + "; high: " + fingerprints[1]);
  Read(*reader, Split::Train, 17);
  const auto uses = reader->CountRun();
  ASSERT_TRUE(uses.ok()) << uses.error().message;
  ASSERT_EQ(uses->size(), 2U);
  EXPECT_EQ((*uses)[0].samples, 20);
  EXPECT_EQ((*uses)[0].epoch_samples, 10);
  EXPECT_EQ((*uses)[1].name, "high");
  EXPECT_EQ((*uses)[1].samples, 10);
  EXPECT_EQ((*uses)[1].epoch_samples, 5);
  auto plain = TokenReader::Open(Source({Raw<uint8_t>(Count(41))}));
  EXPECT_TRUE((*plain)->CountRun()->empty());
}

TEST_F(MixedReaderTest, FaultsNameTheSource) {
  const auto error_of = [&] {
    const auto reader = TokenReader::Open(data_, {}, {.samples_per_step = 3, .steps = 10});
    return reader.ok() ? std::string("none") : reader.error().message;
  };
  data_.eval_tokens = 20;
  EXPECT_NE(error_of().find("source high: 21 tokens in 1 file, 20 of them held out"), std::string::npos) << error_of();
  data_.eval_tokens = 0;
  data_.sources[1].weight = "2 - step";
  {
    // Found when the step is reached, and before the first step by who counts the run.
    const auto reader = Open();
    EXPECT_FALSE(reader->CountRun().ok());
    std::vector<int32_t> ids(8);
    const Status status = reader->ReadSample(Split::Train, 9, ids.data(), ids.data() + 4, 1);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("the weight of high at step 3 is -1"), std::string::npos)
        << status.error().message;
  }
  data_.sources[1].files = {};
  EXPECT_NE(error_of().find("source high: no token files: `data.source.tokens` is empty"), std::string::npos)
      << error_of();
  data_.sources[1].files = {folder_ / "absent"};
  EXPECT_NE(error_of().find("`data.source.tokens` is relative to the recipe's folder"), std::string::npos)
      << error_of();
}

}  // namespace
}  // namespace shardc
