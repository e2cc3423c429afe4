// What is counted of documents before a run, against counts of the samples that a reader gives.
#include "compiler/data/document_facts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/data/scan.h"
#include "runtime/data/document_ends.h"
#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class DocumentFactsTest : public TokenReaderTest {
 protected:
  /// Makes a plan of one file, whose documents end with id 0.
  auto PlanOf(const std::vector<int64_t>& ids, Pack pack, TooLong too_long = TooLong::Refuse) -> Plan {
    Plan plan;
    plan.data = Source({Raw<uint8_t>(ids)});
    plan.data.vocab = 200;
    plan.data.documents = Documents::Split;
    plan.data.pack = pack;
    plan.data.sources.front().document_end = 0;
    plan.data.sources.front().too_long = too_long;
    plan.run.steps = 1;
    SetSamplesPerStep(plan, 2);
    return plan;
  }
  auto SetSamplesPerStep(Plan& plan, int64_t samples) -> void { plan.run.tokens_per_step = samples * plan.data.seq; }
  auto AddTargets(Plan& plan, const std::vector<int64_t>& targets) -> void {
    TokenSource& source = plan.data.sources.front();
    source.targets = {folder_ / fmt::format("{}_targets.data", ++num_sources_)};
    WriteText(source.targets.front(), Raw<uint8_t>(targets));
  }
  auto FactsOf(const Plan& plan) -> DocumentFacts {
    const auto facts = LookAtDocuments(plan, 1);
    CHECK(facts.ok() && facts->sources.size() == 1, "no facts: {}", facts.ok() ? "" : facts.error().message);
    return facts->sources.front();
  }
  /// Counts the targets of a step of the run, as a reader gives them.
  auto TargetsOfStep(const Plan& plan, TokenReader& reader, int64_t step) -> int64_t {
    const int64_t samples = SamplesPerStep(plan);
    int64_t targets = 0;
    for (int64_t i = step * samples; i < (step + 1) * samples; ++i) {
      Sample sample = Read(reader, Split::Train, i);
      std::vector<int32_t> starts(4);
      std::vector<int32_t> positions(4);
      EXPECT_TRUE(reader.ReadDocuments(Split::Train, i, starts.data(), positions.data(), 1).ok());
      TakeTargetsAtEnds(starts.data(), plan.data.seq, 1, sample.targets.data());
      targets += std::ranges::count_if(sample.targets, [](int32_t target) { return target >= 0; });
    }
    return targets;
  }
  /// Compares what is counted before a run with its steps.
  auto ExpectStepsOfReader(const Plan& plan) -> StepTargets {
    const auto documents = LookAtDocuments(plan, 1);
    CHECK(documents.ok() && documents->per_step, "no steps");
    const StepTargets& counted = *documents->per_step;
    const auto reader = *TokenReader::Open(plan.data, {}, {SamplesPerStep(plan), plan.run.schedule_steps()});
    std::vector<int64_t> targets;
    for (int64_t step = 0; step < counted.steps; ++step) {
      targets.push_back(TargetsOfStep(plan, *reader, step));
    }
    EXPECT_EQ(counted.least, std::ranges::min(targets));
    EXPECT_EQ(counted.most, std::ranges::max(targets));
    EXPECT_EQ(counted.without, std::ranges::count(targets, 0));
    const auto sum = static_cast<double>(std::accumulate(targets.begin(), targets.end(), int64_t{0}));
    EXPECT_DOUBLE_EQ(counted.mean, sum / static_cast<double>(counted.steps));
    return counted;
  }
};

TEST_F(DocumentFactsTest, CountsAreThoseOfReader) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> ids(60 + random() % 60);
    std::vector<int64_t> targets;
    for (int64_t& id : ids) {
      id = static_cast<int64_t>(random() % 6);
      targets.push_back(random() % 3 == 0 ? 255 : id);
    }
    ids[30] = 0;
    const bool is_packed = round % 2 == 0;
    const auto too_long = std::vector<TooLong>{TooLong::Cut, TooLong::Drop, TooLong::Split}[random() % 3];
    Plan plan = PlanOf(ids, is_packed ? Pack::BestFit : Pack::Stream, too_long);
    if (round % 3 == 0) {
      AddTargets(plan, targets);
    }
    const DocumentFacts facts = FactsOf(plan);
    auto reader = *TokenReader::Open(plan.data);
    EXPECT_EQ(facts.samples, reader->num_train_samples());
    int64_t tokens = 0;
    int64_t found = 0;
    for (int64_t i = 0; i < facts.samples; ++i) {
      const Sample sample = Read(*reader, Split::Train, i);
      std::vector<int32_t> starts(4);
      std::vector<int32_t> positions(4);
      ASSERT_TRUE(reader->ReadDocuments(Split::Train, i, starts.data(), positions.data(), 1).ok());
      for (size_t s = 0; s < 4; ++s) {
        const bool goes_on = s < 3 && starts[s + 1] != static_cast<int32_t>(s) + 1;
        found += goes_on && sample.targets[s] >= 0 ? 1 : 0;
      }
      tokens += 4;
    }
    EXPECT_EQ(facts.targets, found) << "round " << round;
    // Padding makes the difference.
    EXPECT_LE(facts.tokens, tokens);
    EXPECT_TRUE(is_packed || facts.tokens == tokens);
    EXPECT_EQ(facts.counts.tokens, std::ssize(ids));
  }
}

TEST_F(DocumentFactsTest, StepsHaveTargetsOfReader) {
  std::mt19937_64 random(11);
  int64_t without = 0;
  for (int round = 0; round < 60; ++round) {
    const auto ids_of_source = [&] {
      std::vector<int64_t> ids(60 + random() % 60);
      for (int64_t& id : ids) {
        id = static_cast<int64_t>(random() % 6);
      }
      ids[30] = 0;
      return ids;
    };
    const auto targets_of = [&](std::vector<int64_t> ids) {
      for (int64_t& id : ids) {
        id = random() % 3 == 0 ? id : 255;
      }
      return ids;
    };
    const auto too_long = std::vector<TooLong>{TooLong::Cut, TooLong::Drop, TooLong::Split}[random() % 3];
    const std::vector<int64_t> ids = ids_of_source();
    Plan plan = PlanOf(ids, round % 2 == 0 ? Pack::BestFit : Pack::Stream, too_long);
    plan.data.order = round % 4 < 2 ? SampleOrder::Shuffled : SampleOrder::Sequential;
    plan.data.seed = random();
    if (round % 3 == 0) {
      AddTargets(plan, targets_of(ids));
    }
    // A stage goes on where the one before stopped.
    plan.data.sources.front().first_sample = static_cast<int64_t>(random() % 40);
    const int64_t samples = FactsOf(plan).samples;
    // The last step is longer than an epoch.
    for (const int64_t per_step : {int64_t{1}, int64_t{3}, samples + 2}) {
      SetSamplesPerStep(plan, per_step);
      const StepTargets counted = ExpectStepsOfReader(plan);
      EXPECT_EQ(counted.steps, std::max<int64_t>(samples / per_step, 1));
      without += counted.without;
    }
    const std::vector<int64_t> others = ids_of_source();
    plan.data.sources.push_back(PlanOf(others, Pack::Stream, too_long).data.sources.front());
    plan.data.sources[0].name = "first";
    plan.data.sources[0].weight = "2 + step";
    plan.data.sources[1].name = "second";
    plan.data.sources[1].weight = "3";
    if (round % 3 == 1) {
      plan.data.sources[1].targets = {folder_ / fmt::format("{}_others.data", round)};
      WriteText(plan.data.sources[1].targets.front(), Raw<uint8_t>(targets_of(others)));
    }
    SetSamplesPerStep(plan, 3);
    plan.run.steps = 9;
    EXPECT_EQ(ExpectStepsOfReader(plan).steps,
              std::min<int64_t>(9, (samples + LookAtDocuments(plan, 1)->sources[1].samples) / 3));
  }
  EXPECT_GT(without, 0);
}

TEST_F(DocumentFactsTest, StepsEndWhereWeightsGiveNoShares) {
  Plan plan = PlanOf({1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0}, Pack::BestFit);
  plan.data.sources.front().name = "only";
  plan.data.sources.front().weight = "2 - step";
  plan.run.steps = 4;
  SetSamplesPerStep(plan, 1);
  EXPECT_EQ(ExpectStepsOfReader(plan).steps, 2);
  plan.data.sources.front().weight = "0";
  EXPECT_FALSE(LookAtDocuments(plan, 1)->per_step);
}

TEST_F(DocumentFactsTest, TextSaysWhatIsTrainedOn) {
  Plan plan = PlanOf({1, 2, 0, 3, 4, 5, 6, 7, 0, 8, 0}, Pack::BestFit, TooLong::Cut);
  SetSamplesPerStep(plan, 1);
  EXPECT_EQ(DocumentsText(plan, *LookAtDocuments(plan, 1)),
            "documents: 3 documents of 2 to 6 tokens (mean 3.7); 3 samples in an epoch (0.33 epochs in the run), with "
            "2.0 targets each on average; 25 % padding; longer than a sample: 1 cut, 0 dropped, 0 split, 2 tokens "
            "lost; attention takes 63.3 % of what it would without documents\n"
            "documents: targets per step: 1 at least, 2.0 on average, 3 at most; none in 0 of the first 3 steps\n"
            "documents: about 96 B of each rank's memory, beside what is planned, have their places\n");
  const Plan stream = PlanOf({1, 2, 0, 3, 4, 5, 6, 7, 0, 8, 0}, Pack::Stream);
  EXPECT_EQ(
      DocumentsText(stream, *LookAtDocuments(stream, 1)),
      "documents: 3 documents of 2 to 6 tokens (mean 3.7); 2 samples in an epoch, with 2.5 targets each on average; "
      "attention takes 85 % of what it would without documents\n"
      "documents: targets per step: 5 at least, 5.0 on average, 5 at most; none in 0 of the first 1 step\n"
      "documents: about 24 B of each rank's memory, beside what is planned, have their places\n");
  Plan without = plan;
  without.data.documents = Documents::Stream;
  EXPECT_TRUE(LookAtDocuments(without, 1)->sources.empty());
  EXPECT_EQ(*StreamDocumentsText(without, 1),
            "documents: 3 documents of 2 to 6 tokens (mean 3.7); `data.documents` is \"stream\", so samples run across "
            "them\n");
  EXPECT_EQ(*StreamDocumentsText(plan, 1), "");
  without.data.sources.front().document_end = -1;
  EXPECT_EQ(*StreamDocumentsText(without, 1), "");
}

// Three documents of 3 tokens fill three samples of 4, though there are only 9 tokens.
TEST_F(DocumentFactsTest, TextCountsEpochsOfPackedSamples) {
  Plan plan = PlanOf({1, 2, 0, 3, 4, 0, 5, 6, 0}, Pack::BestFit);
  plan.run.steps = 4;
  EXPECT_THAT(DocumentsText(plan, *LookAtDocuments(plan, 1)),
              HasSubstr("; 3 samples in an epoch (2.67 epochs in the run), with 2.0 targets each"));
}

// Fewer tokens than a sample of a stream takes, and the only target at their end.
TEST_F(DocumentFactsTest, ScanFindsEachTargetOfPackedSamples) {
  Plan plan = PlanOf({1, 0, 3, 0}, Pack::BestFit);
  AddTargets(plan, {255, 255, 255, 0});
  const auto scanned = ScanIds(ListFiles(plan.data, plan.heads), plan.data.format, {});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  const Status judged = CheckHasTargets(plan, *scanned);
  EXPECT_TRUE(judged.ok()) << judged.error().message;
}

TEST_F(DocumentFactsTest, EvalFilesAreCountedAndNeedTargets) {
  for (const Pack pack : {Pack::Stream, Pack::BestFit}) {
    Plan plan = PlanOf({1, 2, 0, 3, 4, 0}, pack, TooLong::Cut);
    plan.data.document_end = 0;
    plan.data.too_long = TooLong::Cut;
    const auto look = [&](const std::vector<int64_t>& held_out) {
      plan.data.eval_files = {folder_ / fmt::format("{}_held_out.data", ++num_sources_)};
      plan.data.eval_file_tokens = std::ssize(held_out);
      WriteText(plan.data.eval_files.front(), Raw<uint8_t>(held_out));
      return *LookAtDocuments(plan, 1);
    };
    const auto sound = look({1, 2, 3, 4, 5, 0});
    ASSERT_EQ(sound.sources.size(), 2U);
    EXPECT_TRUE(CheckKeepsTargets(plan.data, sound.sources[1]).ok());
    // Two samples of training, with two targets each.
    EXPECT_EQ(sound.per_step->most, 4);
    EXPECT_THAT(DocumentsText(plan, sound),
                HasSubstr("\ndocuments: data.eval: 1 document of 6 to 6 tokens (mean 6.0); 1 sample in an evaluation, "
                          "with 3.0 targets each on average"));
    const Status judged = CheckKeepsTargets(plan.data, look({0, 0, 0, 0, 0, 0}).sources[1]);
    ASSERT_FALSE(judged.ok());
    EXPECT_THAT(judged.error().message, HasSubstr("of `data.eval` has a target, so no evaluation would have a loss"));
    EXPECT_THAT(judged.error().message, HasSubstr("name other files, or leave `data.eval` out"));
  }
}

TEST_F(DocumentFactsTest, LostTargetsAreRefused) {
  // The answer of the second document comes after its cut.
  Plan plan = PlanOf({1, 2, 0, 3, 4, 5, 6, 7, 0}, Pack::BestFit, TooLong::Cut);
  AddTargets(plan, {255, 2, 0, 255, 255, 255, 255, 7, 0});
  const DocumentFacts facts = FactsOf(plan);
  EXPECT_EQ(facts.with_targets, 2);
  EXPECT_EQ(facts.lost, 1);
  const Status judged = CheckKeepsTargets(plan.data, facts);
  ASSERT_FALSE(judged.ok());
  EXPECT_EQ(judged.error().code, ExitCode::RecipeRejected);
  EXPECT_THAT(judged.error().message,
              HasSubstr("1 of 2 documents with targets (50 %) lose all of them to `data.too_long`, and `data.max_lost` "
                        "is 1 %; raise `model.seq` (the longest document has 6 tokens)"));
  plan.data.max_lost = 0.5;
  EXPECT_TRUE(CheckKeepsTargets(plan.data, facts).ok());
  plan.data.sources.front().too_long = TooLong::Split;
  EXPECT_EQ(FactsOf(plan).lost, 0);
}

TEST_F(DocumentFactsTest, EpochWithoutTargetIsRefused) {
  const Plan plan = PlanOf({0, 0, 0, 0, 0}, Pack::BestFit);
  const Status judged = CheckKeepsTargets(plan.data, FactsOf(plan));
  ASSERT_FALSE(judged.ok());
  EXPECT_THAT(judged.error().message, HasSubstr("no place of the 2 samples of an epoch has a target"));
}

}  // namespace
}  // namespace shardc
