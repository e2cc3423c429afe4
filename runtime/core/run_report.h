// What a run says of itself besides its steps: whole lines, for people.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/base/error_or.h"
#include "runtime/data/token_reader.h"
#include "runtime/memory/arenas.h"
#include "runtime/memory/guard.h"

namespace shardc {

/// How often the run reads each source of a mixture; empty where there is one stream.
auto SourcesText(const TokenReader& tokens, int64_t steps) -> ErrorOr<std::string>;

/// Bytes of each arena, planned and touched; in guard mode (`guard` is set) those of pages with buffers, and of pages
/// that were written. `rank`: whose they are.
auto MemoryText(int64_t rank, const ArenaSet& arenas, const Guard* guard) -> std::string;

}  // namespace shardc
