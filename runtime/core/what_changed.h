// What a restart does otherwise than the launch before it: the recipe as the checkpoint has it against that of the
// plan, key by key, each with its default, so that spelling one out changes nothing. Keys that a restart cannot honour
// are errors, told where the checkpoint is matched; here are those that it can, and those that have no effect any more.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns "changed since step 30: optimizer.lr 0.001 -> 0.03; ...": lines without the last line end; empty if nothing
/// changed. `before`: the recipe in the checkpoint of `step`; if it is empty, the text says that changes cannot be
/// found.
auto WhatChanged(const std::map<std::string, std::string>& before, const Plan& plan, int64_t step) -> std::string;

}  // namespace shardc
