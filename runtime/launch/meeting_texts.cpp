#include "runtime/launch/meeting_texts.h"

#include <charconv>

#include "compiler/base/check.h"

namespace shardc {

// Names and values one after another, each after its length.
static auto Put(std::string& text, std::string_view part) -> void { text += fmt::format("{} {}", part.size(), part); }
static auto Put(std::string& text, int64_t number) -> void { Put(text, std::to_string(number)); }

static auto Take(std::string_view& text) -> std::string {
  size_t size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
  const auto begin = static_cast<size_t>(parsed.ptr - text.data()) + 1;
  CHECK(parsed.ec == std::errc() && begin + size <= text.size(), "a message that no process of this version wrote");
  std::string part(text.substr(begin, size));
  text.remove_prefix(begin + size);
  return part;
}
static auto TakeNumber(std::string_view& text) -> int64_t { return std::stoll(Take(text)); }

auto World::ToText() const -> std::string {
  std::string text;
  Put(text, num_processes);
  Put(text, local_num_processes);
  Put(text, command);
  return text;
}

auto World::FromText(std::string_view text) -> World {
  World world;
  world.num_processes = TakeNumber(text);
  world.local_num_processes = TakeNumber(text);
  world.command = Take(text);
  return world;
}

auto Introduction::ToText() const -> std::string {
  std::string text;
  Put(text, host);
  Put(text, code);
  Put(text, error);
  for (const auto& [name, value] : facts) {
    Put(text, name);
    Put(text, value);
  }
  return text;
}

auto Introduction::FromText(std::string_view text) -> Introduction {
  Introduction introduction;
  introduction.host = Take(text);
  introduction.code = TakeNumber(text);
  introduction.error = Take(text);
  while (!text.empty()) {
    std::string name = Take(text);
    introduction.facts.emplace_back(std::move(name), Take(text));
  }
  return introduction;
}

auto ToldOutcome::ToText() const -> std::string {
  std::string text;
  Put(text, code);
  Put(text, error);
  Put(text, host);
  return text;
}

auto ToldOutcome::FromText(std::string_view text) -> ToldOutcome {
  ToldOutcome outcome;
  outcome.code = TakeNumber(text);
  outcome.error = Take(text);
  outcome.host = Take(text);
  return outcome;
}

}  // namespace shardc
