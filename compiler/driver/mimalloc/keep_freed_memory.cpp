// What one pass frees the next takes: memory that goes back to the system in between comes again as page faults.
#include <mimalloc.h>

namespace {
[[maybe_unused]] const bool keeps = [] {
  mi_option_disable(mi_option_allow_decommit);
  return true;
}();
}  // namespace
