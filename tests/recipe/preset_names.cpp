// What is said of names that are no presets.
#include "compiler/recipe/preset_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/base/preset_rows.h"

namespace shardc {
namespace {

TEST(PresetNames, AreAnsweredByModelAndSize) {
  struct Case {
    const char* name;
    const char* help;
  };
  const Case cases[] = {
      // As models are called elsewhere.
      {"meta-llama/Meta-Llama-3-8B", "did you mean \"llama3-8b\"?"},
      {"Qwen/Qwen2.5-7B-Instruct", "did you mean \"qwen2.5-7b\"?"},
      {"llama-3-8b", "did you mean \"llama3-8b\"?"},
      {"Llama3-8B", "did you mean \"llama3-8b\"?"},
      {"llama3_8b", "did you mean \"llama3-8b\"?"},
      {"llama3:8b", "did you mean \"llama3-8b\"?"},
      {"llama 3 8b", "did you mean \"llama3-8b\"?"},
      {"qwen3-8b-base", "did you mean \"qwen3-8b\"?"},
      {"meta-llama/Llama-2-7b-chat-hf", "did you mean \"llama2-7b\"?"},
      {"unsloth/Llama-3.2-1B-bnb-4bit", "did you mean \"llama3.2-1b\"?"},
      // Sizes that a model does not have.
      {"llama3-9b", "there is no llama3 of 9b; there are \"llama3-8b\", \"llama3-70b\""},
      {"meta-llama/Llama-3.2-11B-Vision", "there is no llama3.2 of 11b; there are \"llama3.2-1b\", \"llama3.2-3b\""},
      {"llama3", "llama3 has \"llama3-8b\", \"llama3-70b\""},
      // Models that are not here, of sizes that are, or are not.
      {"meta-llama/Llama-3.3-70B-Instruct",
       "nearest: \"llama2-70b\", \"llama3-70b\", \"llama3.1-70b\"; `shardc presets` lists all"},
      {"qwen2-7b", "nearest: \"qwen2.5-7b\", \"qwen3-4b\", \"qwen3-8b\"; `shardc presets` lists all"},
      {"meta-llama/Llama-4-Scout-17B-16E", "no preset of llama has 17b; `shardc presets` lists all"},
      {"llama4-maverick", "models of llama here are llama2, llama3, llama3.1, llama3.2; `shardc presets` lists all"},
      {"qwen", "models of qwen here are qwen2.5, qwen3; `shardc presets` lists all"},
      {"mistral-7b", "`shardc presets` lists all"},
      {"gpt2", "`shardc presets` lists all"},
      {"", "`shardc presets` lists all"},
      // Slips.
      {"llama3-8", "nearest: \"llama3-8b\"; `shardc presets` lists all"},
      {"lama3.1-405b", "nearest: \"llama3.1-405b\", \"llama3.1-70b\", \"llama3.1-8b\"; `shardc presets` lists all"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(HelpOnPresets(c.name), c.help) << c.name;
  }
}

TEST(PresetNames, WithoutTheirFirstLetterAreNearest) {
  for (const PresetRow& row : PresetRows()) {
    const std::string help = HelpOnPresets(row.name.substr(1));
    EXPECT_TRUE(help.starts_with(fmt::format("nearest: \"{}\"", row.name))) << help;
  }
}

}  // namespace
}  // namespace shardc
