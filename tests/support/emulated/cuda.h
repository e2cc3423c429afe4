// The CUDA family without a GPU, for tests: its kernels run emulated, from the files that nvcc compiles; products are
// those of the reference, and elements of init rules are made by the host's kernels. The device's addresses are of no
// memory of the host: kernels, and copies by queues, find theirs elsewhere, so any other access ends the process.
#pragma once

#include <map>
#include <string>

namespace shardc {

struct RankContext;

/// Registers the emulated family. Called when the program begins.
auto UseEmulatedCuda() -> void;

/// Returns the versions that the family tells from now on; none at first.
auto EmulatedVersions() -> std::map<std::string, std::string>&;

/// Gives a rank of a plan for GPUs the communicator that ranks of one host have, between the memories of their emulated
/// devices; leaves a rank of another plan as it is. Requires: ranks are threads, and each calls it before anything is
/// bound. The launcher of users never makes such ranks: ResolveCudaDevice refuses their plan.
auto ConnectEmulated(RankContext& context) -> void;

}  // namespace shardc
