// What a lease file holds: who owns the directory, and a count that shows that the owner is alive. The count has a
// fixed place and width, so that the owner rewrites it in place with one small write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/checkpoint/process_identity.h"

namespace shardc {

struct LeaseRecord {
  /// 32 random hex digits: no two leases have the same.
  std::string token;
  std::string run_id;
  ProcessIdentity process;
  /// "2026-11-23T00:10:07Z", by the owner's clock. For messages.
  std::string since;
  int64_t beat = 0;
};

/// The first character of the count in the text, and how many characters it has.
constexpr int64_t LeaseBeatOffset = 8;
constexpr int64_t LeaseBeatWidth = 12;
/// A file that is larger is not read.
constexpr int64_t MaxLeaseBytes = 4096;

/// Makes a new lease of this process.
auto NewLeaseRecord(std::string run_id) -> LeaseRecord;
auto ToText(const LeaseRecord& record) -> std::string;
/// Reads a lease; nothing if the text is not a whole one. All texts of a record are printable.
auto LeaseRecordFromText(std::string_view text) -> std::optional<LeaseRecord>;

}  // namespace shardc
