// What one rank counts of what it sends.
#pragma once

#include <cstdint>

namespace shardc {

/// Collectives of one kind over one set of axes, as this rank did them.
struct Traffic {
  int64_t calls = 0;
  /// Bytes of the full vectors.
  int64_t payload = 0;
  /// Bytes that this rank gave to its peers or took from them, such that the sum over the ranks has each byte once.
  int64_t wire = 0;
  /// Bytes of `wire` that went from host to host.
  int64_t between_hosts = 0;

  auto Add(const Traffic& more) -> void {
    calls += more.calls;
    payload += more.payload;
    wire += more.wire;
    between_hosts += more.between_hosts;
  }
  friend auto operator==(const Traffic&, const Traffic&) -> bool = default;
};

}  // namespace shardc
