// Rows of whole documents over windows, epochs and orders: each document once in each epoch, and the same row whatever
// was asked for before.
#include "compiler/data/packed_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr int64_t Seq = 50;

auto RandomLengths(size_t documents, int64_t longest, uint64_t seed = 1) -> std::vector<int64_t> {
  std::mt19937_64 random(seed);
  std::vector<int64_t> lengths(documents);
  for (int64_t& length : lengths) {
    length = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(longest));
  }
  return lengths;
}

auto TableOf(const std::vector<int64_t>& lengths) -> std::shared_ptr<const DocumentTable> {
  return std::make_shared<const DocumentTable>(DocumentTable::OfLengths("texts.bin", lengths));
}

auto Rule(SampleOrder order = SampleOrder::Shuffled, TooLong too_long = TooLong::Refuse) -> PackRule {
  return {.seq = Seq, .too_long = too_long, .order = order, .seed = 3, .window_documents = 100};
}

auto SplitOf(const std::shared_ptr<const DocumentTable>& table, const PackRule& rule, Interval ids = {})
    -> PackedSplit {
  auto split = PackedSplit::Create(table, ids.empty() ? Interval{0, table->num_ids()} : ids, rule);
  CHECK(split.ok(), "{}", split.error().message);
  return *std::move(split);
}

using Pieces = std::vector<DocumentPiece>;

auto RowsFrom(PackedSplit& split, int64_t begin, int64_t count) -> std::vector<Pieces> {
  std::vector<Pieces> rows;
  for (int64_t row = begin; row < begin + count; ++row) {
    rows.push_back(split.Row(row));
  }
  return rows;
}

TEST(PackedSplit, EpochHasEachDocumentOnce) {
  const auto lengths = RandomLengths(730, Seq);
  const auto table = TableOf(lengths);
  for (const SampleOrder order : {SampleOrder::Shuffled, SampleOrder::Sequential}) {
    PackedSplit split = SplitOf(table, Rule(order));
    int64_t row = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> begins;
      const int64_t rows = split.RowsOfEpoch(epoch);
      for (const Pieces& pieces : RowsFrom(split, row, rows)) {
        int64_t tokens = 0;
        for (const DocumentPiece& piece : pieces) {
          EXPECT_EQ(piece.position, 0);
          EXPECT_EQ(piece.ids, table->IdsOf(table->DocumentOf(piece.ids.begin)));
          tokens += piece.ids.size();
          begins.push_back(piece.ids.begin);
        }
        EXPECT_LE(tokens, Seq);
      }
      row += rows;
      std::ranges::sort(begins);
      std::vector<int64_t> expected(lengths.size());
      std::exclusive_scan(lengths.begin(), lengths.end(), expected.begin(), int64_t{0});
      EXPECT_EQ(begins, expected) << "epoch " << epoch;
    }
  }
}

TEST(PackedSplit, RowDoesNotDependOnOthers) {
  const auto table = TableOf(RandomLengths(450, Seq));
  PackedSplit forward = SplitOf(table, Rule());
  const std::vector<Pieces> rows = RowsFrom(forward, 0, 900);
  std::vector<int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
  order.resize(100);
  for (const int64_t row : order) {
    PackedSplit fresh = SplitOf(table, Rule());
    EXPECT_EQ(fresh.Row(row), rows[static_cast<size_t>(row)]) << row;
    EXPECT_EQ(forward.Row(row), rows[static_cast<size_t>(row)]) << row;
  }
}

TEST(PackedSplit, EpochsAndSeedsDiffer) {
  const auto table = TableOf(RandomLengths(90, Seq));
  // All documents are in one window: each epoch has as many rows, of other documents.
  PackedSplit split = SplitOf(table, Rule());
  const int64_t rows = split.RowsOfEpoch(0);
  EXPECT_EQ(split.RowsOfEpoch(5), rows);
  EXPECT_NE(RowsFrom(split, 0, rows), RowsFrom(split, rows, rows));
  PackRule other = Rule();
  other.seed = 4;
  PackedSplit of_other_seed = SplitOf(table, other);
  EXPECT_NE(RowsFrom(split, 0, rows), RowsFrom(of_other_seed, 0, rows));
}

TEST(PackedSplit, FullRowsAreSpreadOut) {
  // Half of the documents fill a row; the rows of the others hold many documents each.
  std::vector<int64_t> lengths(80, Seq);
  lengths.resize(880, 5);
  PackRule rule = Rule();
  rule.window_documents = 1000;
  PackedSplit split = SplitOf(TableOf(lengths), rule);
  ASSERT_EQ(split.RowsOfEpoch(0), 160);
  const auto first = RowsFrom(split, 0, 80);
  const auto full = std::ranges::count_if(first, [](const Pieces& pieces) { return pieces.size() == 1; });
  // 40 are expected of 80 drawn of 160; five standard deviations are 16.
  EXPECT_GT(full, 24);
  EXPECT_LT(full, 56);
}

TEST(PackedSplit, SequentialOrderIsThatOfFiles) {
  PackedSplit split = SplitOf(TableOf({30, 40, 20, 10, 45}), Rule(SampleOrder::Sequential));
  EXPECT_EQ(RowsFrom(split, 0, split.RowsOfEpoch(0)),
            (std::vector<Pieces>{{{{0, 30}}, {{70, 90}}}, {{{30, 70}}, {{90, 100}}}, {{{100, 145}}}}));
  EXPECT_EQ(split.Row(3), split.Row(0));
}

TEST(PackedSplit, LongDocumentsFollowRule) {
  const auto table = TableOf({20, 120, 50, 60});
  const auto rows_of = [&](TooLong too_long) {
    PackedSplit split = SplitOf(table, Rule(SampleOrder::Sequential, too_long));
    return RowsFrom(split, 0, split.RowsOfEpoch(0));
  };
  EXPECT_EQ(rows_of(TooLong::Cut), (std::vector<Pieces>{{{{0, 20}}}, {{{20, 70}}}, {{{140, 190}}}, {{{190, 240}}}}));
  EXPECT_EQ(rows_of(TooLong::Drop), (std::vector<Pieces>{{{{0, 20}}}, {{{140, 190}}}}));
  // Positions go on in the pieces after the first.
  EXPECT_EQ(rows_of(TooLong::Split), (std::vector<Pieces>{{{{0, 20}}, {{120, 140}, 100}, {{240, 250}, 50}},
                                                          {{{20, 70}}},
                                                          {{{70, 120}, 50}},
                                                          {{{140, 190}}},
                                                          {{{190, 240}}}}));
  const auto refused = PackedSplit::Create(table, {0, 250}, Rule());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ExitCode::RecipeRejected);
  EXPECT_THAT(refused.error().message, HasSubstr("token file texts.bin: its document 1, of ids 20 to 139, has 120 "
                                                 "tokens, and a sample 50 (`model.seq`)"));
  const auto nothing = PackedSplit::Create(table, {20, 140}, Rule(SampleOrder::Shuffled, TooLong::Drop));
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message, HasSubstr("no document is left to pack"));
}

TEST(PackedSplit, BorderOfSplitCutsDocument) {
  const auto table = TableOf({30, 40, 20});
  PackedSplit first = SplitOf(table, Rule(SampleOrder::Sequential), {0, 50});
  EXPECT_EQ(RowsFrom(first, 0, first.RowsOfEpoch(0)), (std::vector<Pieces>{{{{0, 30}}, {{30, 50}}}}));
  PackedSplit second = SplitOf(table, Rule(SampleOrder::Sequential), {50, 90});
  EXPECT_EQ(RowsFrom(second, 0, second.RowsOfEpoch(0)), (std::vector<Pieces>{{{{50, 70}}, {{70, 90}}}}));
}

TEST(PackedSplit, CountsWhatIsLost) {
  const auto table = TableOf({20, 120, 50, 60});
  const auto count = [&](std::optional<PackRule> rule) { return CountDocuments(*table, {0, 250}, rule); };
  const DocumentCounts all = count(std::nullopt);
  EXPECT_EQ(all.documents, 4);
  EXPECT_EQ(all.tokens, 250);
  EXPECT_EQ(all.shortest, 20);
  EXPECT_EQ(all.longest, 120);
  EXPECT_EQ(all.cut + all.dropped + all.split + all.lost_tokens, 0);
  const DocumentCounts cut = count(Rule(SampleOrder::Shuffled, TooLong::Cut));
  EXPECT_EQ(cut.cut, 2);
  EXPECT_EQ(cut.lost_tokens, 80);
  const DocumentCounts dropped = count(Rule(SampleOrder::Shuffled, TooLong::Drop));
  EXPECT_EQ(dropped.dropped, 2);
  EXPECT_EQ(dropped.lost_tokens, 180);
  const DocumentCounts split = count(Rule(SampleOrder::Shuffled, TooLong::Split));
  EXPECT_EQ(split.split, 2);
  EXPECT_EQ(split.lost_tokens, 0);
}

}  // namespace
}  // namespace shardc
