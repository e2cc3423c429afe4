// The parts by which a program runs plans for GPUs of NVIDIA, beside those for CPUs.
#pragma once

namespace shardc {

/// Registers the CUDA family. Called when the program begins.
auto UseCuda() -> void;

}  // namespace shardc
