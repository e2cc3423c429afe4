// Where documents lie in samples, and the targets that loads take away because a document ends: of the tokens
// themselves, and of a head.
#include <gtest/gtest.h>

#include "runtime/data/token_reader.h"
#include "tests/support/kernel_fixture.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

constexpr int64_t Sequence = 4;
constexpr int64_t Batch = 2;
const Dims Shape{Sequence, Batch};

/// A fixture whose ops read two files: tokens 10, 11, ..., whose first document ends with 12, and targets 110, 111, ...
/// in their places.
class LoadFixture : public KernelFixture {
 public:
  explicit LoadFixture(const Backend& backend) : KernelFixture(backend) {
    DataSource data;
    TokenSource& source = data.sources.emplace_back();
    source.files = {Write("tokens.bin", 10)};
    source.document_end = 12;
    data.documents = Documents::Split;
    data.format = TokenFormat::U16;
    data.order = SampleOrder::Sequential;
    data.vocab = 200;
    data.seq = Sequence;
    TokenReader::Heads heads;
    head_ = heads.Add({.name = "image", .vocab = 200, .files = {Write("targets.bin", 110)}});
    auto made = TokenReader::Open(data, heads);
    CHECK(made.ok(), "{}", made.error().message);
    reader_ = std::move(*made);
    mutable_plan().data = data;
    mutable_plan().heads = heads;
  }

  auto tokens() -> TokenReader& override { return *reader_; }
  auto head() const -> HeadId { return head_; }

 private:
  auto Write(const std::string& name, int64_t first) -> std::string {
    std::string bytes;
    for (int64_t id = first; id < first + 9; ++id) {
      bytes += {static_cast<char>(id), '\0'};
    }
    WriteText(folder_ / name, bytes);
    return folder_ / name;
  }

  TemporaryFolder folder_;
  std::unique_ptr<TokenReader> reader_;
  HeadId head_;
};

auto Ints(KernelFixture& fixture, ValueId value) -> std::vector<int32_t> {
  const auto ints = fixture.At<int32_t>(value);
  return {ints.begin(), ints.end()};
}

TEST(DocumentLoads, LastTokensHaveNoTarget) {
  ForBackends([](const Backend& backend) {
    LoadFixture fixture(backend);
    // Of the first sample the tokens 0 to 1, 2, and 3, which goes on elsewhere; the second is one document.
    const ValueId starts = fixture.I32(Shape, {0, 0, 0, 0, 2, 0, 3, 0});
    const ValueId tokens = fixture.Add(DType::I32, Shape);
    const ValueId targets = fixture.Add(DType::I32, Shape);
    fixture.Run(op::LoadTokens{
        .starts = starts, .tokens = tokens, .targets = targets, .split = Split::Train, .sample = {}, .head = {}});
    EXPECT_EQ(Ints(fixture, tokens), (std::vector<int32_t>{10, 14, 11, 15, 12, 16, 13, 17}));
    EXPECT_EQ(Ints(fixture, targets), (std::vector<int32_t>{11, 15, -1, 16, -1, 17, -1, -1}));
    fixture.Run(op::LoadTargets{
        .starts = starts, .targets = targets, .split = Split::Train, .sample = {}, .head = fixture.head()});
    EXPECT_EQ(Ints(fixture, targets), (std::vector<int32_t>{111, 115, -1, 116, -1, 117, -1, -1}));
    fixture.Run(op::LoadTargets{.targets = targets, .split = Split::Train, .sample = {}, .head = fixture.head()});
    EXPECT_EQ(Ints(fixture, targets), (std::vector<int32_t>{111, 115, 112, 116, 113, 117, 114, 118}));
  });
}

TEST(DocumentLoads, SamplesHaveStartsAndPositions) {
  ForBackends([](const Backend& backend) {
    LoadFixture fixture(backend);
    const ValueId starts = fixture.Add(DType::I32, Shape);
    const ValueId positions = fixture.Add(DType::I32, Shape);
    fixture.Run(op::LoadDocuments{.starts = starts, .positions = positions, .split = Split::Train, .sample = {}});
    // The second document begins at the last place of the first sample, and goes on in the second.
    EXPECT_EQ(Ints(fixture, starts), (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 3, 0}));
    EXPECT_EQ(Ints(fixture, positions), (std::vector<int32_t>{0, 1, 1, 2, 2, 3, 0, 4}));
  });
}

}  // namespace
}  // namespace shardc
