// Manifests that leave tensors to a base: what is read of them, and what no program wrote.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler/base/bfloat16.h"
#include "compiler/checkpoint/checkpoint_base.h"
#include "compiler/checkpoint/element_sum.h"
#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;

class ManifestBaseText : public testing::Test {
 protected:
  /// Makes the manifest of a checkpoint that is its own base, as far as one tensor goes.
  ManifestBaseText() {
    CHECK(SaveSmall(SmallPlan(1, folder_.path()), 10).ok(), "save");
    const std::string text = ReadText(folder_ / "step-00000010/manifest.json");
    good_ = json::parse(text);
    good_.erase("digest");
    good_["version"] = 4;
    good_["base"] = {{"path", folder_ / "step-00000010"}, {"digest", DigestInManifest(text)}};
    json& tensor = good_["tensors"].begin().value();
    tensor = {{"shape", tensor["shape"]},
              {"dtype", tensor["dtype"]},
              {"base", {{"tensor", good_["tensors"].begin().key()}, {"row", 0}, {"sum", "00000000000000ff"}}}};
  }
  static auto Read(const json& body) -> ErrorOr<Manifest> { return ManifestFromText(Sealed(body.dump())); }
  /// Returns why a manifest with this change is refused; empty if it is read.
  auto Says(const std::function<void(json& body, json& tensor)>& change) const -> std::string {
    json bad = good_;
    change(bad, bad["tensors"].begin().value());
    const auto manifest = Read(bad);
    return manifest.ok() ? "" : manifest.error().message;
  }
  auto SaysOpening(const std::function<void(json& body, json& tensor)>& change) const -> std::string {
    json bad = good_;
    change(bad, bad["tensors"].begin().value());
    const auto manifest = Read(bad);
    EXPECT_TRUE(manifest.ok()) << manifest.error().message;
    const auto base = OpenBaseOf(*manifest);
    return base.ok() ? "" : base.error().message;
  }

  TemporaryFolder folder_;
  json good_;
};

TEST_F(ManifestBaseText, ReadsAsWritten) {
  const auto manifest = Read(good_);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  const ManifestTensor& tensor = manifest->tensors.begin()->second;
  EXPECT_EQ(tensor.in_base, (TensorInBase{.tensor = manifest->tensors.begin()->first, .row = 0, .sum = 0xff}));
  EXPECT_EQ(*ManifestFromText(ToText(*manifest)), *manifest);
  EXPECT_TRUE(OpenBaseOf(*manifest).ok());
}

TEST_F(ManifestBaseText, FaultsAreRefused) {
  struct Case {
    std::function<void(json& body, json& tensor)> change;
    std::string words;
  };
  const std::string digest = good_["base"]["digest"];
  for (const Case& c : std::vector<Case>{
           {[](json&body, json&) { body.erase("base"); }, "base"},
           {[](json&body, json&) { body["version"] = 3; }, "it is in a base, and the manifest names none"},
           {[](json&body, json&) { body["version"] = 5; }, "versions 1 to 4"},
           {[](json&body, json&) { body["base"]["path"] = "model"; }, "no absolute path"},
           {[](json&body, json&) { body["base"]["digest"] = "12"; }, "no absolute path with 32 hex digits"},
           {[](json&, json&tensor) { tensor["layout"] = 0; }, "it is in a base and in a layout"},
           {[](json&, json&tensor) { tensor.erase("base"); }, "layout"},
           {[](json&, json&tensor) { tensor["base"].erase("sum"); }, "sum"},
           {[](json&, json&tensor) { tensor["base"]["sum"] = "ff"; }, "16 hex digits"},
           {[](json&, json&tensor) { tensor["base"]["sum"] = "00000000000000FF"; }, "16 hex digits"},
           {[](json&, json&tensor) { tensor["base"]["tensor"] = "../x"; }, "no plain name"},
           {[](json&, json&tensor) { tensor["base"]["row"] = -1; }, "row"}}) {
    EXPECT_NE(Says(c.change).find(c.words), std::string::npos) << c.words << ": " << Says(c.change);
    EXPECT_NE(Says(c.change), "") << c.words;
  }
}

TEST_F(ManifestBaseText, BasesThatDoNotFitAreRefused) {
  struct Case {
    std::function<void(json& body, json& tensor)> change;
    std::string words;
  };
  for (const Case& c : std::vector<Case>{
           {[](json&body, json&) { body["base"]["path"] = "/no/such/folder"; }, "its base is gone: /no/such/folder"},
           {[](json&body, json&) { body["base"]["digest"] = std::string(32, '0'); }, "its base is another model now"},
           {[](json&, json&tensor) { tensor["base"]["tensor"] = "nothing"; }, "has no nothing for"},
           {[](json&, json&tensor) { tensor["base"]["row"] = 1; }, "from row 1 on"},
           {[](json&, json&tensor) { tensor["base"]["row"] = INT64_MAX; }, "which does not hold"},
           {[](json&, json&tensor) { tensor["dtype"] = "bf16"; }, "which does not hold"},
           {[](json&, json&tensor) { tensor["shape"].push_back(2); }, "which does not hold"},
           {[](json&, json&tensor) { tensor["shape"][0] = 0; }, "which does not hold"},
           {[](json&, json&tensor) { tensor["shape"] = json::array(); }, "which does not hold"}}) {
    const std::string said = SaysOpening(c.change);
    EXPECT_NE(said.find(c.words), std::string::npos) << c.words << ": " << said;
  }
}

TEST_F(ManifestBaseText, BaseHasNoBase) {
  const std::string text = Sealed(good_.dump());
  std::filesystem::create_directory(folder_ / "step-00000011");
  WriteText(folder_ / "step-00000011/manifest.json", text);
  json above = good_;
  above["base"] = {{"path", folder_ / "step-00000011"}, {"digest", DigestInManifest(text)}};
  const auto manifest = Read(above);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  const auto base = OpenBaseOf(*manifest);
  ASSERT_FALSE(base.ok());
  EXPECT_NE(base.error().message.find("has no " + manifest->tensors.begin()->first), std::string::npos)
      << base.error().message;
}

TEST(ElementSum, IsThatOfAnyCutOrderAndType) {
  constexpr int64_t Rows = 300;
  constexpr int64_t Columns = 70;
  std::mt19937 random(5);
  std::vector<BFloat16> narrow(Rows * Columns);
  std::vector<float> wide;
  for (BFloat16& element : narrow) {
    Store(element, std::normal_distribution<float>()(random));
    wide.push_back(Load(element));
  }
  const auto of = [](const auto& elements, const BoxInterval& interval) {
    std::vector<std::decay_t<decltype(elements[0])>> own;
    ForEachMatrixInterval(interval, [&](int64_t begin, int64_t end, int64_t) {
      own.insert(own.end(), elements.begin() + begin, elements.begin() + end);
    });
    return SumOfElements(interval, sizeof(own[0]) == 2 ? DType::BF16 : DType::F32,
                         reinterpret_cast<const std::byte*>(own.data()));
  };
  const uint64_t all = of(narrow, BoxInterval::Of({0, Rows * Columns}));
  EXPECT_EQ(of(wide, BoxInterval::Of({0, Rows * Columns})), all);
  EXPECT_EQ(of(wide, BoxInterval::Of({5001, Rows * Columns})) + of(wide, BoxInterval::Of({0, 5001})), all);
  uint64_t boxes = 0;
  for (const Interval columns : {Interval{0, 33}, Interval{33, 70}}) {
    const int64_t size = Rows * columns.size();
    for (const Interval elements : {Interval{0, 100}, Interval{100, size}}) {
      boxes += of(narrow, {.elements = elements, .row = Columns, .columns = columns});
    }
  }
  EXPECT_EQ(boxes, all);
  for (int change = 0; change < 100; ++change) {
    std::vector<float> other = wide;
    const size_t at = random() % other.size();
    other[at] = std::bit_cast<float>(std::bit_cast<uint32_t>(other[at]) ^ (1U << (random() % 32)));
    EXPECT_NE(of(other, BoxInterval::Of({0, Rows * Columns})), all) << at;
  }
  std::vector<float> swapped = wide;
  std::swap(swapped[10], swapped[11]);
  EXPECT_NE(of(swapped, BoxInterval::Of({0, Rows * Columns})), all);
}

}  // namespace
}  // namespace shardc
