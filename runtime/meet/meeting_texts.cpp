#include "runtime/meet/meeting_texts.h"

#include <charconv>
#include <tuple>

#include "compiler/base/check.h"

namespace shardc {

// Names and values one after another, each after its length.
static auto Put(std::string& text, std::string_view part) -> void { text += fmt::format("{} {}", part.size(), part); }
static auto Put(std::string& text, int64_t number) -> void { Put(text, std::to_string(number)); }
static auto Put(std::string& text, const Facts& facts) -> void {
  for (const auto& [name, value] : facts) {
    Put(text, name);
    Put(text, value);
  }
}

static auto Take(std::string_view& text) -> std::string {
  size_t size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
  const auto begin = static_cast<size_t>(parsed.ptr - text.data()) + 1;
  CHECK(parsed.ec == std::errc() && begin + size <= text.size(), "a message that no process of this version wrote");
  std::string part(text.substr(begin, size));
  text.remove_prefix(begin + size);
  return part;
}
static auto Take(std::string_view& text, std::string& part) -> void { part = Take(text); }
static auto Take(std::string_view& text, int64_t& number) -> void { number = std::stoll(Take(text)); }
/// Takes all facts that are left.
static auto Take(std::string_view& text, Facts& facts) -> void {
  while (!text.empty()) {
    std::string name = Take(text);
    facts.emplace_back(std::move(name), Take(text));
  }
}

// The members of each message, in the order in which they are told.
static constexpr std::tuple WorldMembers{&World::num_processes, &World::local_num_processes, &World::command};
static constexpr std::tuple IntroductionMembers{&Introduction::host, &Introduction::code, &Introduction::error,
                                                &Introduction::facts};
static constexpr std::tuple OutcomeMembers{&ToldOutcome::code, &ToldOutcome::error, &ToldOutcome::host};

template <class Told>
static auto WriteMembers(const Told& told, const auto& members) -> std::string {
  std::string text;
  std::apply([&](auto... member) { (Put(text, told.*member), ...); }, members);
  return text;
}

template <class Told>
static auto ReadMembers(std::string_view text, const auto& members) -> Told {
  Told told;
  std::apply([&](auto... member) { (Take(text, told.*member), ...); }, members);
  return told;
}

auto World::ToText() const -> std::string { return WriteMembers(*this, WorldMembers); }
auto World::FromText(std::string_view text) -> World { return ReadMembers<World>(text, WorldMembers); }

auto Introduction::ToText() const -> std::string { return WriteMembers(*this, IntroductionMembers); }
auto Introduction::FromText(std::string_view text) -> Introduction {
  return ReadMembers<Introduction>(text, IntroductionMembers);
}

auto ToldOutcome::ToText() const -> std::string { return WriteMembers(*this, OutcomeMembers); }
auto ToldOutcome::FromText(std::string_view text) -> ToldOutcome {
  return ReadMembers<ToldOutcome>(text, OutcomeMembers);
}

}  // namespace shardc
