// The rows of schemas/hf_config.def, for who reads a config.json and who writes one.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/glob.h"
#include "compiler/expr/expr.h"
#include "compiler/keys/adapters.h"
#include "compiler/plan/types.h"

namespace shardc::published {

struct ClassRow {
  std::string_view name;
  std::string_view family;
  std::string_view model_type;
};
inline constexpr auto ClassRows = std::to_array<ClassRow>({
#define HF_CLASS(Class, family, model_type) {#Class, #family, model_type},
#include "schemas/hf_config.def"
});

/// Name of a type of weights in config.json.
struct TypeRow {
  std::string_view word;
  DType dtype;
};
inline constexpr auto TypeRows =
    std::to_array<TypeRow>({{"float32", DType::F32}, {"float16", DType::F16}, {"bfloat16", DType::BF16}});

struct SizeRow {
  std::string_view architecture;
  const char* key;
  std::string_view model_key;
  std::string_view absent;
};
inline constexpr auto SizeRows = std::to_array<SizeRow>({
#define HF_SIZE(Class, key, model_key, absent) {#Class, #key, #model_key, absent},
#include "schemas/hf_config.def"
});

struct OnlyRow {
  std::string_view architecture;
  const char* key;
  std::string_view values;
  std::string_view absent;
};
inline constexpr auto OnlyRows = std::to_array<OnlyRow>({
#define HF_ONLY(Class, key, values, absent) {#Class, #key, values, absent},
#include "schemas/hf_config.def"
});

/// Sizes that the configuration of a class refuses unless the first is a multiple of the second.
struct MultipleRow {
  std::string_view architecture;
  std::string_view model_key;
  std::string_view divisor;
};
inline constexpr auto MultipleRows = std::to_array<MultipleRow>({
#define HF_MULTIPLE(Class, model_key, divisor) {#Class, #model_key, #divisor},
#include "schemas/hf_config.def"
});

struct FreeRow {
  std::string_view architecture;
  std::string_view key;
};
inline constexpr auto FreeRows = std::to_array<FreeRow>({
#define HF_FREE(Class, key) {#Class, #key},
#include "schemas/hf_config.def"
});

/// Parameters that are made of another tensor than that of their name: a glob, and the rule of their elements.
struct MadeRow {
  std::string architecture;
  std::string parameters;
  std::string rule;
};

/// Returns the rows of a class; empty if each of its parameters has a tensor.
inline auto MadeRowsOf(std::string_view architecture) -> std::vector<MadeRow> {
  std::vector<MadeRow> rows{
#define HF_MADE(Class, parameters, rule) {#Class, parameters, rule},
#include "schemas/hf_config.def"
  };
  std::erase_if(rows, [&](const MadeRow& row) { return row.architecture != architecture; });
  return rows;
}

/// Returns the rows of an adapter of peft: B of each projection is its rows of the B of the fused module.
inline auto AdapterRowsOf(const AdapterSizes& sizes) -> std::vector<MadeRow> {
  std::vector<MadeRow> rows;
  for (const FusedModule& module : sizes.fused) {
    for (MadeRow& row : MadeRowsOf(module.architecture)) {
      if (const size_t at = row.rule.find(module.weight); at != std::string::npos) {
        row.rule.replace(at, module.weight.size(), AdapterParameter(module.weight, UpSuffix));
        rows.push_back({row.architecture, AdapterParameter(row.parameters, UpSuffix), row.rule});
      }
    }
  }
  return rows;
}

/// Returns the rule that loads a parameter: that of the first row that has it, or else the tensor of its name.
inline auto LoadingRule(std::span<const MadeRow> made, std::string_view parameter) -> std::string {
  for (const MadeRow& row : made) {
    if (GlobMatches(row.parameters, parameter)) {
      return row.rule;
    }
  }
  return RuleOfLoaded(parameter);
}

struct RopeRow {
  std::string_view type;
  /// Separated by blanks.
  std::string_view floats;
  std::string_view counts;
  const char* formula;
};
inline constexpr auto RopeRows = std::to_array<RopeRow>({
#define HF_ROPE(type, floats, counts, formula) {type, floats, counts, formula},
#include "schemas/hf_config.def"
});

struct RefusedRow {
  std::string_view key;
  std::string_view why;
};
inline constexpr auto RefusedRows = std::to_array<RefusedRow>({
#define HF_REFUSED(key, why) {#key, why},
#define HF_QUANTIZED(key) \
  {#key, "the weights are quantized; take the model that was quantized, whose weights are F32, F16 or BF16"},
#include "schemas/hf_config.def"
});

inline constexpr auto QuantizedKeys = std::to_array<std::string_view>({
#define HF_QUANTIZED(key) #key,
#include "schemas/hf_config.def"
});

inline constexpr auto KnownKeys = std::to_array<std::string_view>({
#define HF_READ(key) #key,
#include "schemas/hf_config.def"
});

inline constexpr auto IgnoredKeys = std::to_array<std::string_view>({
#define HF_IGNORED(key) #key,
#include "schemas/hf_config.def"
});

/// Keys whose values are ids of a tokenizer.
inline constexpr auto SpecialTokenKeys =
    std::to_array<std::string_view>({"bos_token_id", "eos_token_id", "pad_token_id"});

}  // namespace shardc::published
