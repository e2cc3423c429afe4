#include "compiler/base/json_reader.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace shardc {

using nlohmann::json;

namespace {

/// Builds the value, and stops at what the header file does not allow. (json::parse with a callback takes quadratic
/// time: it looks through an object for each child that ends.)
class Builder final : public nlohmann::json_sax<json> {
 public:
  explicit Builder(json& root) : root_(root) {}

  auto why() const -> const std::string& { return why_; }

  auto null() -> bool override { return Add(nullptr); }
  auto boolean(bool value) -> bool override { return Add(value); }
  auto number_integer(number_integer_t value) -> bool override { return Add(value); }
  auto number_unsigned(number_unsigned_t value) -> bool override { return Add(value); }
  auto number_float(number_float_t value, const string_t&) -> bool override { return Add(value); }
  auto string(string_t& value) -> bool override { return Add(std::move(value)); }
  auto binary(binary_t&) -> bool override { return false; }
  auto start_object(std::size_t) -> bool override { return Enter(json::object()); }
  auto start_array(std::size_t) -> bool override { return Enter(json::array()); }
  auto end_object() -> bool override { return Leave(); }
  auto end_array() -> bool override { return Leave(); }
  auto key(string_t& name) -> bool override {
    const auto [member, added] = open_.back()->emplace(name, nullptr);
    if (!added) {
      why_ = fmt::format("the key \"{}\" appears twice", name);
      return false;
    }
    member_ = &*member;
    name_ = name;
    return true;
  }
  auto parse_error(std::size_t, const std::string& last, const json::exception& error) -> bool override {
    const bool is_no_number = last.ends_with('N') || last.ends_with('I');
    why_ = is_no_number
               ? fmt::format("`{}` is NaN or Infinity, which Python writes and JSON lacks; write a number", name_)
               : error.what();
    return false;
  }

 private:
  /// Puts a value where the text is: at the root, after its key, or at the end of a list.
  auto Insert(json value) -> json* {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }
  auto Add(json value) -> bool {
    Insert(std::move(value));
    return true;
  }
  auto Enter(json value) -> bool {
    if (open_.size() == MaxJsonDepth) {
      why_ = fmt::format("nested more than {} deep", MaxJsonDepth);
      return false;
    }
    // Stays where it is while open: a parent grows only after its last child has ended.
    open_.push_back(Insert(std::move(value)));
    return true;
  }
  auto Leave() -> bool {
    open_.pop_back();
    return true;
  }

  json& root_;
  std::vector<json*> open_;
  /// The value and the name of the last key.
  json* member_ = nullptr;
  std::string name_;
  std::string why_;
};

}  // namespace

auto ParseJson(std::string_view text, ExitCode code) -> ErrorOr<json> {
  // The parser would skip a mark, and would take a zero for the end of the text.
  FAIL_IF(text.starts_with("\xef\xbb\xbf"), code, "the text begins with a byte order mark");
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {
    return Fail(code, "byte {} of the text is zero", at);
  }
  json root;
  Builder builder(root);
  FAIL_IF(!json::sax_parse(text.begin(), text.end(), &builder), code, "{}", builder.why());
  return root;
}

auto JsonCount(const json& value, ExitCode code) -> ErrorOr<int64_t> {
  FAIL_IF(!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX), code,
          "a whole number from 0 to 2^63 - 1 was expected");
  return static_cast<int64_t>(value.get<uint64_t>());
}

auto JsonReader::Member(const char* name) const -> ErrorOr<const json*> {
  FAIL_IF(!object_->is_object(), code_, "an object with \"{}\" was expected", name);
  const auto found = object_->find(name);
  FAIL_IF(found == object_->end(), code_, "\"{}\" is missing", name);
  return &*found;
}

auto JsonReader::String(const char* name) const -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  FAIL_IF(!member->is_string(), code_, "\"{}\" is no string", name);
  return member->get<std::string>();
}

auto JsonReader::Count(const char* name) const -> ErrorOr<int64_t> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  const auto count = JsonCount(*member, code_);
  FAIL_IF(!count, code_, "\"{}\": {}", name, count.error().message);
  return count;
}

auto JsonReader::Unsigned(const char* name) const -> ErrorOr<uint64_t> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  FAIL_IF(!member->is_number_unsigned(), code_, "\"{}\": a whole number from 0 to 2^64 - 1 was expected", name);
  return member->get<uint64_t>();
}

auto JsonReader::Number(const char* name) const -> ErrorOr<double> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  FAIL_IF(!member->is_number(), code_, "\"{}\" is no number", name);
  return member->get<double>();
}

auto JsonReader::Object(const char* name) const -> ErrorOr<JsonReader> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  FAIL_IF(!member->is_object(), code_, "\"{}\" is no object", name);
  return JsonReader(*member, code_);
}

auto JsonReader::List(const char* name) const -> ErrorOr<const json*> {
  ASSIGN_OR_RETURN(const auto member, Member(name));
  FAIL_IF(!member->is_array(), code_, "\"{}\" is no list", name);
  return member;
}

}  // namespace shardc
