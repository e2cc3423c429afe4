// JSON by hand against a strict parser.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/base/text/json_text.h"

namespace shardc {
namespace {

TEST(JsonText, StringsReadBack) {
  std::string controls;
  for (char c = 0; c < 0x20; ++c) {
    controls += c;
  }
  for (const std::string& text :
       {std::string(), std::string("a \"b\" \\ /"), controls, std::string("\x7f"), std::string("\xc3\xa9 \xe2\x80\xae"),
        std::string("\xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf")}) {
    const std::string json = JsonString(text);
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text) << json;
    EXPECT_TRUE(std::ranges::all_of(json, [](char c) { return c >= 0x20 && c < 0x7f; })) << json;
  }
}

TEST(JsonText, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(JsonString("a\xff\xe2\x80z"), "\"a\\ufffd\\ufffd\\ufffdz\"");
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
}

TEST(JsonText, NumbersReadBackToTheSameBits) {
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22, -2.5e-7}) {
    EXPECT_EQ(nlohmann::json::parse(JsonNumber(value)).get<double>(), value);
    // (The parser takes "-0" for a whole number, which has no sign.)
    const double back = std::strtod(JsonNumber(value).c_str(), nullptr);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
  }
}

TEST(JsonText, NumbersThatAreNotFiniteAreNull) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {infinity, -infinity, std::nan("")}) {
    EXPECT_EQ(JsonNumber(value), "null");
  }
}

TEST(JsonText, MembersKeepTheirOrder) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(JsonList().text(), "[]");
  JsonObject object;
  object.Text("z", "\"").Integer("a", -3).Number("n", std::nan("")).Null("m");
  object.Json("list", JsonList().Json("1").Json(JsonString("x")).text());
  EXPECT_EQ(object.text(), R"({"z":"\"","a":-3,"n":null,"m":null,"list":[1,"x"]})");
  EXPECT_EQ(JsonObject(",\n").Integer("a\n", 1).Integer("b", 2).text(), "{\"a\\u000a\":1,\n\"b\":2}");
}

}  // namespace
}  // namespace shardc
