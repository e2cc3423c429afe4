// The CUDA family without a GPU, for tests: its kernels run emulated, from the files that nvcc compiles; products are
// those of the reference. Its memory is the host's, and is closed to it: only a kernel, or a copy by a queue, opens it,
// so any other access ends the process.
#pragma once

namespace shardc {

/// Registers the emulated family. Called when the program begins.
auto UseEmulatedCuda() -> void;

}  // namespace shardc
