#include "compiler/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

auto Length(uint64_t length) -> std::string {
  std::string field(8, '\0');
  std::memcpy(field.data(), &length, sizeof(length));
  return field;
}

/// A file with this header and so many bytes of data.
auto FileText(const std::string& header, size_t data_bytes) -> std::string {
  return Length(header.size()) + header + std::string(data_bytes, 'd');
}

auto ReadHeader(const std::string& content) -> ErrorOr<SafetensorsHeader> {
  const TemporaryFolder folder;
  WriteText(folder / "x.safetensors", content);
  auto directory = OpenDirectory(PosixFs(), folder.path());
  auto file = OpenFileAt(*directory, "x.safetensors");
  CHECK(file.ok(), "{}", file.error().message);
  return ReadSafetensorsHeader(*file);
}

/// One F32 tensor "a" of this shape and these offsets.
auto One(const std::string& shape, const std::string& offsets) -> std::string {
  return "{\"a\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

TEST(Safetensors, WellFormedHeaders) {
  auto header = ReadHeader(FileText(
      "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
      "\"empty\":{\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[16,16]}}   ",
      16));
  ASSERT_TRUE(header.ok()) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[1].name, "b");
  EXPECT_EQ(header->tensors[1].shape, (Dims{2, 3}));
  EXPECT_EQ(header->tensors[1].data, (Interval{4, 16}));
  EXPECT_EQ(header->metadata.at("format"), "pt");
  // What else the package safetensors takes. Sizes that multiply to more than 2^63 - 1 are so many only before a zero.
  for (const std::string& content :
       {FileText("{}", 0), FileText(" \n{}\t", 0), FileText("{\"__metadata__\":null}", 0),
        FileText(One("[4611686018427387904,0]", "[0,0]"), 0),
        FileText("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1),
        FileText("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3),
        FileText("{\"a\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3),
        FileText("{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8)}) {
    const auto read = ReadHeader(content);
    EXPECT_TRUE(read.ok()) << read.error().message;
  }
}

struct HeaderCase {
  std::string content;
  std::string says;
};

TEST(Safetensors, CraftedHeadersAreRefused) {
  const HeaderCase cases[] = {
      {"", "0 bytes are no safetensors file"},
      {"1234567", "7 bytes are no safetensors file"},
      {Length(0) + "{}", "a header of 0 bytes"},
      {Length(3) + "{}", "a header of 3 bytes in a file of 10"},
      {Length(100'000'001) + "{}", "a header of 100000001 bytes; the format allows"},
      {Length(uint64_t{1} << 63) + "{}", "a header of 9223372036854775808 bytes"},
      {Length(~uint64_t{0}) + "{}", "a header of 18446744073709551615 bytes"},
      {FileText("[]", 0), "its header: no object"},
      {FileText(std::string("{}\0", 3), 0), "byte 2 of the text is zero"},
      {FileText("\xef\xbb\xbf{}", 0), "begins with a byte order mark"},
      {FileText("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2), "12 bits are no whole bytes"},
      {FileText("{", 0), "parse error"},
      {FileText("{}x", 0), "parse error"},
      {FileText("{\"a\":1}", 0), "tensor \"a\": an object with \"dtype\" was expected"},
      {FileText("{\"a\":{}}", 0), "\"dtype\" is missing"},
      {FileText("{\"a\":{\"dtype\":5}}", 0), "\"dtype\" is no string"},
      {FileText("{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", 4), "dtype \"F31\" is not known"},
      {FileText("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4), "\"shape\" is missing"},
      {FileText("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4), "\"data_offsets\" is missing"},
      {FileText(One("3", "[0,4]"), 4), "\"shape\" is no list"},
      {FileText(One("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "\"shape\" is no list of at most 8"},
      {FileText(One("[-1]", "[0,4]"), 4), "\"shape\": a whole number"},
      {FileText(One("[1.0]", "[0,4]"), 4), "\"shape\": a whole number"},
      {FileText(One("[18446744073709551615]", "[0,4]"), 4), "\"shape\": a whole number"},
      {FileText(One("[99999999999999999999999]", "[0,4]"), 4), "\"shape\": a whole number"},
      {FileText(One("[4294967296,4294967296]", "[0,4]"), 4), "more than 2^63 - 1"},
      {FileText(One("[4611686018427387904]", "[0,4]"), 4), "more than 2^63 - 1"},
      {FileText(One("[1]", "[0]"), 4), "\"data_offsets\" is no pair"},
      {FileText(One("[1]", "[0,4,8]"), 4), "\"data_offsets\" is no pair"},
      {FileText(One("[1]", "{}"), 4), "\"data_offsets\" is no pair"},
      {FileText(One("[1]", "[-4,0]"), 4), "\"data_offsets\": a whole number"},
      {FileText(One("[1]", "[0.0,4.0]"), 4), "\"data_offsets\": a whole number"},
      {FileText(One("[1]", "[4,0]"), 4), "data_offsets are [4, 0]"},
      {FileText(One("[2]", "[0,4]"), 4), "shape [2] of F32 takes 8 bytes"},
      {FileText(One("[1]", "[0,4]"), 3), "its tensors take 4 bytes, and 3 follow"},
      {FileText(One("[1]", "[0,4]"), 5), "its tensors take 4 bytes, and 5 follow"},
      {FileText("{}", 1), "its tensors take 0 bytes, and 1 follow"},
      {FileText(One("[1]", "[4,8]"), 8), "tensor \"a\" begins at byte 4 of the data, the one before it ends at 0"},
      // A hole, and an overlap.
      {FileText("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
                3),
       "tensor \"b\" begins at byte 2 of the data, the one before it ends at 1"},
      {FileText("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                3),
       "tensor \"b\" begins at byte 1 of the data, the one before it ends at 2"},
      {FileText("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                2),
       "the key \"a\" appears twice"},
      {FileText("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
       "the key \"dtype\" appears twice"},
      {FileText("{\"__metadata__\":[]}", 0), "__metadata__ is no object"},
      {FileText("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__ \"a\" is no string"},
      {FileText("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), "UTF-8"},
      {FileText("{\"a\":" + std::string(100'000, '[') + "}", 0), "nested more than 127 deep"},
      {FileText(
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1" +
               [] {
                 std::string dims;
                 for (int i = 0; i < 100'000; ++i) {
                   dims += ",1";
                 }
                 return dims;
               }() +
               "],\"data_offsets\":[0,1]}}",
           1),
       "\"shape\" is no list of at most 8 numbers"},
  };
  for (const HeaderCase& row : cases) {
    const auto header = ReadHeader(row.content);
    ASSERT_FALSE(header.ok()) << row.says;
    EXPECT_EQ(header.error().code, ExitCode::Checkpoint);
    EXPECT_NE(header.error().message.find("x.safetensors"), std::string::npos) << header.error().message;
    EXPECT_NE(header.error().message.find(row.says), std::string::npos)
        << header.error().message << "\nlacks: " << row.says;
  }
}

/// Reads files, each after the verdict of the package safetensors ('1': taken) and its length in 8 bytes, as
/// tests/parity/transformers/mutants.py writes them. SHARDC_HEADERS names another list than the committed one.
TEST(Safetensors, TakesWhatItsPackageTakes) {
  // What is refused here alone: docs/hugging_face.md.
  constexpr std::array RefusedHereAlone{"appears twice", "is no list of at most 8 numbers", "2^63 - 1",
                                        "an object with \"dtype\" was expected", "\"dtype\" is no string"};
  const char* const other = std::getenv("SHARDC_HEADERS");
  const std::string list = ReadText(other != nullptr ? other : SHARDC_SOURCE_DIR "/tests/checkpoint/headers.bin");
  std::map<std::string_view, int> counts;
  for (size_t at = 0; at < list.size();) {
    uint64_t length = 0;
    std::memcpy(&length, &list.at(at + 1), sizeof(length));
    const bool is_taken = list[at] == '1';
    const std::string content = list.substr(at + 1 + sizeof(length), length);
    at += 1 + sizeof(length) + length;
    const auto header = ReadHeader(content);
    if (header.ok() == is_taken) {
      ++counts[is_taken ? "taken by both" : "refused by both"];
      continue;
    }
    const auto* const reason =
        header.ok() ? RefusedHereAlone.end()
                    : std::find_if(RefusedHereAlone.begin(), RefusedHereAlone.end(), [&](const char* words) {
                        return header.error().message.find(words) != std::string::npos;
                      });
    if (reason == RefusedHereAlone.end()) {
      ADD_FAILURE() << (header.ok() ? "taken here alone" : header.error().message) << ": "
                    << testing::PrintToString(content);
    } else {
      ++counts[*reason];
    }
  }
  EXPECT_GT(counts["taken by both"], 0);
  for (const auto& [what, count] : counts) {
    fmt::print("{}: {}\n", what, count);
  }
}

TEST(Safetensors, NamesThatAreNoTextStayJson) {
  std::vector<SafetensorsTensor> tensors{{.name = "a\"\\\n\x01", .dtype = "F32", .shape = {2}, .data = {}}};
  const auto text = SafetensorsHeaderText(tensors, {{"run_id", "\xff\"\n"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto header = ReadHeader(*text + std::string(8, 'd'));
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->tensors.at(0).name, tensors[0].name);
  EXPECT_EQ(header->metadata.at("run_id"), "\xef\xbf\xbd\"\n");
}

TEST(Safetensors, WrittenHeadersReadBack) {
  std::vector<SafetensorsTensor> tensors;
  for (int64_t i = 0; i < 20'000; ++i) {
    tensors.push_back({.name = fmt::format("tensor.{}", i), .dtype = "F32", .shape = {i % 3}});
  }
  auto text = SafetensorsHeaderText(tensors, {{"quote", "a\"b\n"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->size() % 8, 0U);
  const auto header = ReadHeader(*text + std::string(static_cast<size_t>(tensors.back().data.end), 'x'));
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->data_begin, static_cast<int64_t>(text->size()));
  EXPECT_EQ(header->metadata.at("quote"), "a\"b\n");
  ASSERT_EQ(header->tensors.size(), tensors.size());
  int64_t elements = 0;
  for (const SafetensorsTensor& tensor : header->tensors) {
    elements += NumElements(tensor.shape);
  }
  EXPECT_EQ(elements * 4, tensors.back().data.end);

  tensors.push_back({.name = "tensor.0", .dtype = "F32", .shape = {1}});
  EXPECT_FALSE(SafetensorsHeaderText(tensors, {}).ok());
}

}  // namespace
}  // namespace shardc
