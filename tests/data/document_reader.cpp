// Documents in the samples that a reader gives: where they begin, positions in them, and what predicts nothing.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/data/token_reader_fixture.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;
using Numbers = std::vector<int32_t>;

struct Places {
  Numbers starts;
  Numbers positions;
  friend auto operator==(const Places&, const Places&) -> bool = default;
};

auto ReadPlaces(TokenReader& reader, Split split, int64_t index, int64_t seq = 4) -> Places {
  Places places{Numbers(static_cast<size_t>(seq)), Numbers(static_cast<size_t>(seq))};
  const Status read = reader.ReadDocuments(split, index, places.starts.data(), places.positions.data(), 1);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return places;
}

class DocumentReader : public TokenReaderTest {
 protected:
  /// Returns files whose documents end with id 0.
  auto DataOf(const std::vector<std::vector<int64_t>>& files, Pack pack = Pack::Stream) -> DataSource {
    std::vector<std::string> contents;
    for (const std::vector<int64_t>& ids : files) {
      contents.push_back(Raw<uint8_t>(ids));
    }
    DataSource data = Source(contents);
    data.vocab = 200;
    data.documents = Documents::Split;
    data.pack = pack;
    data.sources.front().document_end = 0;
    return data;
  }
  auto Open(const DataSource& data, RunSize run = {}) -> std::unique_ptr<TokenReader> {
    auto reader = TokenReader::Open(data, {}, run);
    CHECK(reader.ok(), "{}", reader.error().message);
    return *std::move(reader);
  }
  /// Names files of targets: 100 more than each id, and 255 ("no target") for ids above 49.
  auto AddTargets(TokenSource& source, const std::vector<int64_t>& ids) -> void {
    std::vector<int64_t> targets;
    for (const int64_t id : ids) {
      targets.push_back(id >= 50 ? 255 : id + 100);
    }
    source.targets.push_back(folder_ / fmt::format("targets_{}.data", num_sources_++));
    WriteText(source.targets.back(), Raw<uint8_t>(targets));
  }
};

// Documents of one token have none, however samples are filled.
TEST_F(DocumentReader, TargetsToEvaluateOnStayWithinDocuments) {
  for (const Pack pack : {Pack::Stream, Pack::BestFit}) {
    DataSource data = DataOf({{1, 2, 3, 4, 5, 0}}, pack);
    data.document_end = 0;
    data.too_long = data.sources.front().too_long = TooLong::Cut;
    const auto holds = [&](const std::vector<int64_t>& ids) {
      data.eval_files = {folder_ / fmt::format("held_out_{}.data", num_sources_++)};
      data.eval_file_tokens = std::ssize(ids);
      data.eval_file_samples = pack == Pack::BestFit ? 2 : 0;
      WriteText(data.eval_files.front(), Raw<uint8_t>(ids));
      return *Open(data)->HoldsEvalTarget();
    };
    EXPECT_FALSE(holds({0, 0, 0, 0, 0}));
    EXPECT_TRUE(holds({0, 0, 1, 0, 0}));
  }
  // Targets of a file too: the only one is that of the first token of a document.
  DataSource data = DataOf({{1, 2, 3, 4, 0, 5, 6, 7, 0, 8, 9, 0}});
  data.eval_tokens = 7;
  AddTargets(data.sources.front(), {1, 2, 3, 4, 0, 50, 50, 50, 50, 8, 50, 50});
  EXPECT_FALSE(*Open(data)->HoldsEvalTarget());
}

TEST_F(DocumentReader, StreamGoesOnInDocument) {
  // Documents of 6, 1 and 3 tokens, and one of the next file.
  const DataSource data = DataOf({{1, 2, 3, 4, 5, 0, 0, 6, 7, 0}, {8, 9, 10}});
  const auto reader = Open(data);
  ASSERT_EQ(reader->num_train_samples(), 3);
  EXPECT_EQ(Read(*reader, Split::Train, 0), (Sample{{1, 2, 3, 4}, {2, 3, 4, 5}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 0), (Places{{0, 0, 0, 0}, {0, 1, 2, 3}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 1), (Places{{0, 0, 2, 3}, {4, 5, 0, 0}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 2), (Places{{0, 0, 2, 2}, {1, 2, 0, 1}}));
}

TEST_F(DocumentReader, BorderOfSplitsEndsDocument) {
  DataSource data = DataOf({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0}});
  data.eval_tokens = 9;
  const auto reader = Open(data);
  ASSERT_EQ(reader->num_eval_samples(), 2);
  EXPECT_EQ(Read(*reader, Split::Eval, 0).tokens, (Numbers{6, 7, 8, 9}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Eval, 0), (Places{{0, 0, 0, 0}, {0, 1, 2, 3}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Eval, 1), (Places{{0, 0, 0, 0}, {4, 5, 6, 7}}));
  // Past the end each place is a document of its own.
  EXPECT_EQ(ReadPlaces(*reader, Split::Eval, 2), (Places{{0, 1, 2, 3}, {0, 0, 0, 0}}));
}

TEST_F(DocumentReader, PackedSampleHasWholeDocuments) {
  const DataSource data = DataOf({{1, 2, 0, 3, 4, 5, 0, 0}, {6}}, Pack::BestFit);
  const auto reader = Open(data);
  ASSERT_EQ(reader->num_train_samples(), 3);
  EXPECT_EQ(Read(*reader, Split::Train, 0), (Sample{{1, 2, 0, 0}, {2, 0, -1, -1}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 0), (Places{{0, 0, 0, 3}, {0, 1, 2, 0}}));
  EXPECT_EQ(Read(*reader, Split::Train, 1), (Sample{{3, 4, 5, 0}, {4, 5, 0, -1}}));
  EXPECT_EQ(Read(*reader, Split::Train, 2), (Sample{{6, 0, 0, 0}, {-1, -1, -1, -1}}));
  // The document 6 alone, and three places of padding.
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 2), (Places{{0, 1, 2, 3}, {0, 0, 0, 0}}));
  EXPECT_EQ(Read(*reader, Split::Train, 3), Read(*reader, Split::Train, 0));
}

TEST_F(DocumentReader, LongDocumentIsRefusedOrSplit) {
  DataSource data = DataOf({{1, 2, 3, 4, 5, 6, 0}}, Pack::BestFit);
  const Error error = ErrorOf(data);
  EXPECT_EQ(error.code, ExitCode::RecipeRejected);
  EXPECT_THAT(error.message, HasSubstr("its document 0, of ids 0 to 6, has 7 tokens, and a sample 4 (`model.seq`)"));
  data.sources.front().too_long = TooLong::Split;
  const auto reader = Open(data);
  ASSERT_EQ(reader->num_train_samples(), 2);
  EXPECT_EQ(Read(*reader, Split::Train, 0), (Sample{{1, 2, 3, 4}, {2, 3, 4, -1}}));
  EXPECT_EQ(Read(*reader, Split::Train, 1), (Sample{{5, 6, 0, 0}, {6, 0, -1, -1}}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Train, 1), (Places{{0, 0, 0, 3}, {4, 5, 6, 0}}));
}

TEST_F(DocumentReader, UndeclaredEndIsRefused) {
  DataSource data = DataOf({{1, 2, 0, 3, 4, 5, 0}});
  data.sources.front().document_end = -1;
  EXPECT_THAT(ErrorOf(data).message, HasSubstr("set `data.document_end` to the id that ends each"));
}

TEST_F(DocumentReader, FingerprintHasDocuments) {
  const std::vector<int64_t> ids{1, 2, 0, 3, 4, 5, 0, 6};
  DataSource data = DataOf({ids}, Pack::BestFit);
  const std::string first = Open(data)->Fingerprint();
  EXPECT_THAT(first, HasSubstr("; 3 documents, xxh3-128 "));
  EXPECT_THAT(first, HasSubstr("; longer than a sample: refuse"));
  EXPECT_EQ(Open(data)->Fingerprint(), first);
  // Documents elsewhere are other samples, and so are other rules.
  data.sources.front().document_end = 2;
  data.sources.front().too_long = TooLong::Cut;
  EXPECT_THAT(Open(data)->Fingerprint(), Not(HasSubstr(first.substr(first.find("; 3 documents"), 30))));
  data.sources.front().document_end = 0;
  EXPECT_NE(Open(data)->Fingerprint(), first);
  data.documents = Documents::Stream;
  data.pack = Pack::Stream;
  EXPECT_THAT(Open(data)->Fingerprint(), Not(HasSubstr("document")));
}

TEST_F(DocumentReader, TargetsOfSourceLieAtSamePlaces) {
  const std::vector<int64_t> ids{1, 60, 0, 3, 4, 70, 0};
  for (const Pack pack : {Pack::Stream, Pack::BestFit}) {
    DataSource data = DataOf({ids}, pack);
    AddTargets(data.sources.front(), ids);
    const auto reader = Open(data);
    const bool is_packed = pack == Pack::BestFit;
    EXPECT_EQ(Read(*reader, Split::Train, 0).targets,
              is_packed ? (Numbers{-1, 100, -1, -1}) : (Numbers{-1, 100, 103, 104}));
    if (is_packed) {
      EXPECT_EQ(Read(*reader, Split::Train, 1).targets, (Numbers{104, -1, 100, -1}));
    }
    EXPECT_THAT(reader->Fingerprint(), HasSubstr("; its targets: 1 file, 7 tokens"));
    WriteText(data.sources.front().targets.front(), "abc");
    EXPECT_THAT(ErrorOf(data).message, HasSubstr("hold 3 ids, and the token files 7"));
  }
}

TEST_F(DocumentReader, EvalFilesArePacked) {
  DataSource data = DataOf({Count(40)});
  data.pack = Pack::BestFit;
  data.sources.front().too_long = TooLong::Drop;
  const std::vector<int64_t> ids{1, 2, 0, 3, 4, 5, 0, 6, 0, 0};
  data.eval_files = {folder_ / "eval.data"};
  WriteText(data.eval_files.front(), Raw<uint8_t>(ids));
  data.eval_file_tokens = std::ssize(ids);
  data.eval_file_samples = 3;
  data.document_end = 0;
  const auto reader = Open(data);
  ASSERT_EQ(reader->num_eval_samples(), 3);
  EXPECT_EQ(Read(*reader, Split::Eval, 0).tokens, (Numbers{1, 2, 0, 0}));
  EXPECT_EQ(ReadPlaces(*reader, Split::Eval, 0), (Places{{0, 0, 0, 3}, {0, 1, 2, 0}}));
  EXPECT_EQ(Read(*reader, Split::Eval, 2).tokens, (Numbers{6, 0, 0, 0}));
  data.eval_file_samples = 4;
  EXPECT_THAT(ErrorOf(data).message, HasSubstr("the documents of `data.eval` fill 3 samples, and they filled 4"));
}

TEST_F(DocumentReader, MixtureCountsRows) {
  // One source of answers beside plain text; each is packed by itself, in an order of its own.
  DataSource data = DataOf({{}}, Pack::BestFit);
  data.order = SampleOrder::Shuffled;
  data.sources.clear();
  std::vector<std::vector<int64_t>> files(2);
  for (int64_t document = 0; document < 30; ++document) {
    for (size_t source = 0; source < 2; ++source) {
      for (int64_t i = 0; i < 1 + document % 3; ++i) {
        files[source].push_back(static_cast<int64_t>(source) * 40 + 1 + document);
      }
      files[source].push_back(0);
    }
  }
  for (size_t source = 0; source < 2; ++source) {
    const std::string path = folder_ / fmt::format("mixed{}.data", source);
    WriteText(path, Raw<uint8_t>(files[source]));
    data.sources.push_back({.name = source == 0 ? "answers" : "replay",
                            .weight = source == 0 ? "3" : "1",
                            .files = {path},
                            .document_end = 0});
  }
  AddTargets(data.sources.front(), files[0]);
  const RunSize run{.samples_per_step = 8, .steps = 20};
  const auto reader = Open(data, run);
  int64_t of_answers = 0;
  std::vector<Sample> samples;
  for (int64_t i = 0; i < 64; ++i) {
    const Sample& sample = samples.emplace_back(Read(*reader, Split::Train, i));
    of_answers += sample.tokens.front() <= 30 ? 1 : 0;
    for (const int32_t target : sample.targets) {
      EXPECT_TRUE(target < 0 || (target >= 100) == (sample.tokens.front() <= 30));
    }
  }
  EXPECT_EQ(of_answers, 48);
  // Another reader, which begins later, as after a restart.
  const auto later = Open(data, run);
  for (int64_t i = 63; i >= 40; --i) {
    EXPECT_EQ(Read(*later, Split::Train, i), samples[static_cast<size_t>(i)]);
  }
}

}  // namespace
}  // namespace shardc
