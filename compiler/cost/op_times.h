// The time of an op by itself on a GPU: the longer of its FLOPs and its bytes, at the rates of a machine's row
// (schemas/machines.def).
#pragma once

#include <optional>

#include "compiler/base/machine_rows.h"
#include "compiler/ops/ops.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Uses of the time of a step: kinds of ops that compute, and waits for other ranks and for the host.
enum class StepPart : uint8_t { Product, Attention, Other, Peers, Host };
constexpr size_t NumStepParts = 5;

/// Wires whose bandwidth the collectives share that use them at the same time.
enum class Link : uint8_t { None, InHost, Network };
constexpr size_t NumLinks = 3;

struct OpTime {
  StepPart part = StepPart::Other;
  Link link = Link::None;
  /// Seconds of the device, of a collective on `link`; then of the network; and of the host to launch it.
  double device = 0;
  double network = 0;
  double host = 0;
  /// The host goes on when the op is over, as it takes a number from it.
  bool host_waits = false;
};

class OpTimes {
 public:
  /// GPUs of a host, at most, if a plan with more ranks names no hosts.
  static constexpr int64_t MostOfHost = 8;

  OpTimes(const Plan& plan, const MachineRow& machine);

  auto Of(const Op& op) const -> OpTime;
  /// Returns the GPUs of a host that are assumed: 0 if the plan names hosts or needs none.
  auto assumed_of_host() const -> int64_t { return assumed_of_host_; }
  /// Returns the hosts of the plan, or those that are assumed.
  auto hosts() const -> int64_t { return plan().mesh.hosts; }

 private:
  /// Operations per second.
  auto AttentionRate(const Op& op) const -> double;
  auto ProductRate(const Op& op) const -> double;
  auto OfCollective(const Op& op, const OpCost& cost) const -> OpTime;

  auto rates() const -> const OpRates& { return machine_.rates; }
  auto plan() const -> const Plan& { return with_hosts_ ? *with_hosts_ : plan_; }

  const Plan& plan_;
  /// The plan with the hosts that are assumed, if they are.
  std::optional<Plan> with_hosts_;
  const MachineRow& machine_;
  int64_t assumed_of_host_ = 0;
};

}  // namespace shardc
