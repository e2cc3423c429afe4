// The kernels of ops that work on the host, whatever the plan's device is: they reach memory through the queue of their
// op, or leave that to the communicator. An op has such a kernel if it is declared here, and no family has one for it.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::Repeat& op, Binder& binder) -> Kernel;
auto Bind(const op::EndRepeat& op, Binder& binder) -> Kernel;
auto Bind(const op::Carry& op, Binder& binder) -> Kernel;
auto Bind(const op::Release& op, Binder& binder) -> Kernel;
auto Bind(const op::Increment& op, Binder& binder) -> Kernel;
auto Bind(const op::Reset& op, Binder& binder) -> Kernel;
auto Bind(const op::ReadScalar& op, Binder& binder) -> Kernel;
auto Bind(const op::Control& op, Binder& binder) -> Kernel;
auto Bind(const op::LoadDocuments& op, Binder& binder) -> Kernel;
auto Bind(const op::LoadTokens& op, Binder& binder) -> Kernel;
auto Bind(const op::LoadTargets& op, Binder& binder) -> Kernel;
auto Bind(const op::RopeTable& op, Binder& binder) -> Kernel;
auto Bind(const op::AllGather& op, Binder& binder) -> Kernel;
auto Bind(const op::ReduceScatter& op, Binder& binder) -> Kernel;
auto Bind(const op::AllReduce& op, Binder& binder) -> Kernel;
auto Bind(const op::Initialize& op, Binder& binder) -> Kernel;
auto Bind(const op::LoadMoment& op, Binder& binder) -> Kernel;
auto Bind(const op::LoadParameter& op, Binder& binder) -> Kernel;
auto Bind(const op::SaveBegin& op, Binder& binder) -> Kernel;
auto Bind(const op::SaveShard& op, Binder& binder) -> Kernel;
auto Bind(const op::SaveCommit& op, Binder& binder) -> Kernel;
auto Bind(const op::RestoreShard& op, Binder& binder) -> Kernel;
auto Bind(const op::RestoreScalars& op, Binder& binder) -> Kernel;

/// Qualified, so that the kernels of other sets are not found.
template <class Body>
concept HasKernel = requires(const Body& body, Binder& binder) {
  host::Bind(body, binder);
};

}  // namespace shardc::host
