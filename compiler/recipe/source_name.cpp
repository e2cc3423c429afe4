#include "compiler/recipe/source_name.h"

#include <fmt/format.h>

namespace shardc {

auto SourceName(const Recipe& recipe, size_t index) -> std::string {
  const SourceTable& source = recipe.data.source[index];
  return source.name.is_set ? *source.name : fmt::format("source{}", index);
}

}  // namespace shardc
