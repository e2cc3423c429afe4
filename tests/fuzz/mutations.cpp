// Random changes of sound expressions: pieces of one in another, bytes changed, ranges doubled or left out. The seed
// is fixed: a failure is found again.

#include <gtest/gtest.h>

#include <random>

#include "compiler/base/check.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/expr/names.h"

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int;

namespace shardc {
namespace {

auto RunOn(std::string_view text) -> void {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

/// Every text that the tables hold, a call of every function, and the forms of the grammar.
auto Seeds() -> std::vector<std::string> {
  std::vector<std::string> seeds{
      "if layer < 2 then normal(0, 0.02) else trunc_normal(0, 0.02, -0.04, 0.04)",
      "3e-3 * min((step + 1) / 50, 0.1 + 0.9 * 0.5 * (1 + cos(pi * step / steps)))",
      "let a = layer % 4 in not (a != 3 and layer == layers - 1) or -2 ^ -a <= .5",
      "let wide = let s = 2 in s * init_std in uniform(-wide, wide)",
  };
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    std::string call = fmt::format("{}(", row.name);
    for (int i = 0; i < row.num_parameters(); ++i) {
      call += fmt::format("{}{}", i == 0 ? "" : ", ", i + 1);
    }
    seeds.push_back(call + ")");
    seeds.emplace_back(row.domain);
    seeds.emplace_back(row.body);
  }
  for (const InitScheme& scheme : InitSchemes()) {
    for (const InitSchemeRule& rule : scheme.rules) {
      seeds.emplace_back(rule.value);
    }
  }
  return seeds;
}

TEST(FuzzExpr, SeedsAndTheirChanges) {
  const std::vector<std::string> seeds = Seeds();
  for (const std::string& seed : seeds) {
    RunOn(seed);
  }
  std::mt19937 random(3);
  const auto pick = [&](size_t count) { return static_cast<size_t>(random()) % count; };
  const auto piece = [&](const std::string& text) {
    const size_t begin = pick(text.size() + 1);
    return text.substr(begin, pick(text.size() - begin + 1));
  };
  for (int round = 0; round < 60'000; ++round) {
    std::string text = seeds[pick(seeds.size())];
    for (size_t changes = 1 + pick(4); changes > 0; --changes) {
      const size_t at = pick(text.size() + 1);
      switch (pick(4)) {
        case 0: text.insert(at, piece(seeds[pick(seeds.size())])); break;
        case 1: text.erase(at, pick(8)); break;
        case 2: text.insert(at, piece(text)); break;
        default: text.insert(at, 1, static_cast<char>(random())); break;
      }
    }
    SetCheckContext(text);
    RunOn(text);
  }
}

}  // namespace
}  // namespace shardc
