// The three descriptors that every process has: where one was closed by the parent, the next file that is opened would
// get its number, and messages would be written into that file.
#pragma once

#include <vector>

namespace shardc {

/// Opens /dev/null under each of the descriptors 0, 1 and 2 that is closed: 0 and 1 to read, 2 to write. To be called
/// first in main.
auto OpenStandardStreams() -> void;

/// For a forked process that leaves the files of its parent alone: closes every descriptor that is not in `kept`. Of
/// the standard streams, those that are not in `kept` lead nowhere.
auto CloseAllBut(std::vector<int> kept) -> void;

}  // namespace shardc
