// The names of the sources of a mixture.
#pragma once

#include <fmt/format.h>

#include <string>

#include "compiler/keys/sections.h"

namespace shardc {

/// Returns data.source.name of a table, or "source" and its place in the list.
template <class Form>
auto SourceName(const SourceTableOf<Form>& source, size_t index) -> std::string {
  return IsSet(source.name) ? *source.name : fmt::format("source{}", index);
}

}  // namespace shardc
