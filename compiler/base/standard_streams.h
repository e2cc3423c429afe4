// The three descriptors that every process has: where one was closed by the parent, the next file that is opened would
// get its number, and messages would be written into that file.
#pragma once

namespace shardc {

/// Opens /dev/null under each of the descriptors 0, 1 and 2 that is closed: 0 and 1 to read, 2 to write. To be called
/// first in main.
auto OpenStandardStreams() -> void;

}  // namespace shardc
