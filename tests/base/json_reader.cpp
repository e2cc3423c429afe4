// Reading JSON that nobody vouches for: faults have the reader's exit code and name the member.
#include "compiler/base/json_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace shardc {
namespace {

enum class Fruit : uint8_t { Apple, Pear };

}  // namespace

template <>
struct EnumNames<Fruit> {
  static constexpr std::array<std::string_view, 2> names{"apple", "pear"};
};

namespace {

template <class T>
auto FaultOf(const ErrorOr<T>& read) -> std::string {
  EXPECT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ExitCode::Usage);
  return read.error().message;
}

TEST(JsonReader, GivesMembersByTheirTypes) {
  const auto json = ParseJson(R"({"text": "a", "count": 3, "seed": 18446744073709551615, "half": 0.5, "in": {"b": []},
                                  "fruit": "pear"})",
                              ExitCode::Usage);
  ASSERT_TRUE(json.ok()) << json.error().message;
  const JsonReader reader(*json, ExitCode::Usage);
  EXPECT_EQ(reader.String("text").value(), "a");
  EXPECT_EQ(reader.Count("count").value(), 3);
  EXPECT_EQ(reader.Unsigned("seed").value(), UINT64_MAX);
  EXPECT_EQ(reader.Number("half").value(), 0.5);
  EXPECT_EQ(reader.Enum<Fruit>("fruit").value(), Fruit::Pear);
  ASSERT_TRUE(reader.Object("in").ok());
  EXPECT_TRUE(reader.Object("in")->List("b").value()->empty());
  EXPECT_TRUE(reader.Has("in"));
  EXPECT_FALSE(reader.Has("b"));
}

TEST(JsonReader, FaultsNameTheMember) {
  const auto json =
      ParseJson(R"({"text": "a", "seed": 18446744073709551615, "less": -1, "half": 0.5})", ExitCode::Usage);
  ASSERT_TRUE(json.ok()) << json.error().message;
  const JsonReader reader(*json, ExitCode::Usage);
  EXPECT_EQ(FaultOf(reader.String("other")), "\"other\" is missing");
  EXPECT_EQ(FaultOf(reader.String("half")), "\"half\" is no string");
  EXPECT_EQ(FaultOf(reader.Number("text")), "\"text\" is no number");
  EXPECT_EQ(FaultOf(reader.Object("text")), "\"text\" is no object");
  EXPECT_EQ(FaultOf(reader.List("text")), "\"text\" is no list");
  EXPECT_EQ(FaultOf(reader.Enum<Fruit>("text")), "\"text\" is \"a\", which is not known");
  EXPECT_EQ(FaultOf(reader.Count("seed")), "\"seed\": a whole number from 0 to 2^63 - 1 was expected");
  EXPECT_EQ(FaultOf(reader.Count("half")), "\"half\": a whole number from 0 to 2^63 - 1 was expected");
  EXPECT_EQ(FaultOf(reader.Unsigned("less")), "\"less\": a whole number from 0 to 2^64 - 1 was expected");
  const JsonReader text(json->at("text"), ExitCode::Usage);
  EXPECT_EQ(FaultOf(text.String("b")), "an object with \"b\" was expected");
  EXPECT_FALSE(text.Has("b"));
}

TEST(ParseJson, RefusesKeysThatAppearTwiceAndDeepTexts) {
  EXPECT_EQ(FaultOf(ParseJson(R"({"a": 1, "a": 2})", ExitCode::Usage)), "the key \"a\" appears twice");
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(ParseJson(nested(MaxJsonDepth), ExitCode::Usage).ok());
  EXPECT_EQ(FaultOf(ParseJson(nested(MaxJsonDepth + 1), ExitCode::Usage)), "nested more than 127 deep");
  EXPECT_NE(FaultOf(ParseJson("{", ExitCode::Usage)), "");
  EXPECT_EQ(FaultOf(ParseJson(std::string_view("{}\0", 3), ExitCode::Usage)), "byte 2 of the text is zero");
  EXPECT_EQ(FaultOf(ParseJson("\xef\xbb\xbf{}", ExitCode::Usage)), "the text begins with a byte order mark");
}

}  // namespace
}  // namespace shardc
