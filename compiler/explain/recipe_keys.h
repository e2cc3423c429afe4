// The keys of a plan's recipe and their values, as the plan's lines `recipe` tell them.
#pragma once

#include <map>
#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

class RecipeKeys {
 public:
  explicit RecipeKeys(const Plan& plan) {
    for (const RecipeEntry& entry : plan.recipe) {
      values_[entry.key] = entry.value;
    }
  }
  /// Returns the value as `--set` takes it, without quotes; empty if the key is unset.
  auto operator[](const std::string& key) const -> std::string {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      return "";
    }
    const std::string& value = found->second;
    return value.size() > 1 && value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace shardc
