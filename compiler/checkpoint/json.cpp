#include "compiler/checkpoint/json.h"

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
    return true;
  }
  auto parse_error(std::size_t, const std::string&, const json::exception& error) -> bool override {
    why_ = error.what();
    return false;
  }

 private:
  /// Puts a value where the text is: at the root, after its key, or at the end of a list.
  auto Place(json value) -> json* {
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
    Place(std::move(value));
    return true;
  }
  auto Enter(json value) -> bool {
    if (open_.size() == MaxJsonDepth) {
      why_ = fmt::format("nested more than {} deep", MaxJsonDepth);
      return false;
    }
    // Stays where it is while open: a parent grows only after its last child has ended.
    open_.push_back(Place(std::move(value)));
    return true;
  }
  auto Leave() -> bool {
    open_.pop_back();
    return true;
  }

  json& root_;
  std::vector<json*> open_;
  /// The value of the last key.
  json* member_ = nullptr;
  std::string why_;
};

}  // namespace

auto ParseJson(std::string_view text) -> ErrorOr<json> {
  json root;
  Builder builder(root);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return Fail(ExitCode::Checkpoint, "{}", builder.why());
  }
  return root;
}

auto JsonMember(const json& object, const char* name) -> ErrorOr<const json*> {
  if (!object.is_object()) {
    return Fail(ExitCode::Checkpoint, "an object with \"{}\" was expected", name);
  }
  const auto found = object.find(name);
  if (found == object.end()) {
    return Fail(ExitCode::Checkpoint, "\"{}\" is missing", name);
  }
  return &*found;
}

auto JsonString(const json& object, const char* name) -> ErrorOr<std::string> {
  auto member = JsonMember(object, name);
  if (!member) {
    return member.error();
  }
  if (!(*member)->is_string()) {
    return Fail(ExitCode::Checkpoint, "\"{}\" is no string", name);
  }
  return (*member)->get<std::string>();
}

auto JsonCount(const json& value) -> ErrorOr<int64_t> {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Fail(ExitCode::Checkpoint, "a whole number from 0 to 2^63 - 1 was expected");
  }
  return static_cast<int64_t>(value.get<uint64_t>());
}

auto JsonCount(const json& object, const char* name) -> ErrorOr<int64_t> {
  auto member = JsonMember(object, name);
  if (!member) {
    return member.error();
  }
  auto count = JsonCount(**member);
  if (!count) {
    return Fail(ExitCode::Checkpoint, "\"{}\": {}", name, count.error().message);
  }
  return count;
}

auto CheckedMultiply(int64_t a, int64_t b) -> ErrorOr<int64_t> {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    return Fail(ExitCode::Checkpoint, "{} times {} is more than 2^63 - 1", a, b);
  }
  return result;
}

auto CheckedAdd(int64_t a, int64_t b) -> ErrorOr<int64_t> {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    return Fail(ExitCode::Checkpoint, "{} plus {} is more than 2^63 - 1", a, b);
  }
  return result;
}

}  // namespace shardc
