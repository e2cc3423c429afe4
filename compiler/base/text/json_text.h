// JSON written by hand, for lines and headers that are too small for a tree: what a strict parser reads, whatever the
// names and numbers are. Members keep the order in which they were added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardc {

/// A string in ASCII, with its quotes; bytes that are no UTF-8 become U+FFFD.
auto JsonString(std::string_view text) -> std::string;

/// The shortest text that reads back to the same double; null where the number is not finite, as JSON has no word for
/// it.
auto JsonNumber(double value) -> std::string;

class JsonObject {
 public:
  /// `separator` stands between members; ",\n" puts each on its own line.
  explicit JsonObject(std::string_view separator = ",") : separator_(separator) {}

  auto Text(std::string_view name, std::string_view value) -> JsonObject& { return Json(name, JsonString(value)); }
  auto Number(std::string_view name, double value) -> JsonObject& { return Json(name, JsonNumber(value)); }
  auto Integer(std::string_view name, int64_t value) -> JsonObject& { return Json(name, std::to_string(value)); }
  auto Null(std::string_view name) -> JsonObject& { return Json(name, "null"); }
  /// `value` is JSON already.
  auto Json(std::string_view name, std::string_view value) -> JsonObject&;

  auto text() const -> std::string { return "{" + members_ + "}"; }

 private:
  std::string separator_;
  std::string members_;
};

class JsonList {
 public:
  /// `item` is JSON already.
  auto Json(std::string_view item) -> JsonList&;

  auto text() const -> std::string { return "[" + items_ + "]"; }

 private:
  std::string items_;
};

}  // namespace shardc
