#include "runtime/checkpoint/json.h"

#include <unordered_set>
#include <vector>

namespace shardc {

using nlohmann::json;

namespace {

/// Leaves the parser from inside its callback.
struct Refused {
  std::string why;
};

}  // namespace

auto ParseJson(std::string_view text) -> ErrorOr<json> {
  // Keys seen, of each object that is open.
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= MaxJsonDepth) {
          throw Refused{fmt::format("nested more than {} deep", MaxJsonDepth)};
        }
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end: keys.pop_back(); break;
      case json::parse_event_t::key:
        if (!keys.back().insert(parsed.get_ref<const std::string&>()).second) {
          throw Refused{fmt::format("the key \"{}\" appears twice", parsed.get_ref<const std::string&>())};
        }
        break;
      case json::parse_event_t::value: break;
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    return Fail(ExitCode::Checkpoint, "{}", error.what());
  } catch (const Refused& refused) {
    return Fail(ExitCode::Checkpoint, "{}", refused.why);
  }
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
