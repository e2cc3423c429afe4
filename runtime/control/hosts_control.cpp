#include "runtime/control/hosts_control.h"

#include <cstring>

#include "runtime/control/fold.h"

namespace shardc {

HostsControl::HostsControl(std::shared_ptr<HostMember> member, const Mesh& mesh, std::unique_ptr<JobStore> store,
                           Seconds timeout)
    : HostControl(std::move(member)), mesh_(mesh), store_(std::move(store)), timeout_(timeout) {}

auto HostsControl::PartOf(AxisSet axes) const -> Part {
  return {.ranks = member().GroupOf(axes),
          .num_hosts = mesh_.HostsOf(axes),
          .host = mesh_.IndexIn(axes, rank()) / mesh_.LocalSize(axes)};
}

auto HostsControl::NextKey(std::string_view what, AxisSet axes) -> std::string {
  return fmt::format("{}/{}/{}/{}", what, ToText(axes), mesh_.GroupNumber(axes, rank()), num_agreements_[axes.bits]++);
}

auto HostsControl::GatherOverHosts(const Part& part, const std::string& key, std::string_view mine)
    -> ErrorOr<std::vector<std::string>> {
  auto hosts = store_->Gather(key, part.host, part.num_hosts, mine, timeout_);
  if (hosts) {
    return hosts;
  }
  const std::vector<int64_t> late = store_->LateAt(key, part.num_hosts);
  return late.empty() ? std::move(hosts)
                      : Fail(ExitCode::Environment, "{} of {} hosts sent nothing within {:g} s", late.size(),
                             part.num_hosts, timeout_.value);
}

auto HostsControl::GatherBytes(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  const Part part = PartOf(axes);
  const int64_t of_host = bytes * std::ssize(part.ranks.ranks);
  const std::string key = NextKey("gather", axes);
  std::string gathered(static_cast<size_t>(of_host), '\0');
  RETURN_IF_ERROR(member().Gather(part.ranks, mine, bytes, reinterpret_cast<std::byte*>(gathered.data())));
  if (part.leads()) {
    ASSIGN_OR_RETURN(const auto hosts, GatherOverHosts(part, key, gathered));
    for (size_t host = 0; host < hosts.size(); ++host) {
      CHECK(std::ssize(hosts[host]) == of_host, "a host brought {} B to a gather of {} B", hosts[host].size(), of_host);
      std::memcpy(all + host * static_cast<size_t>(of_host), hosts[host].data(), static_cast<size_t>(of_host));
    }
  }
  return member().Broadcast(part.ranks, all, of_host * part.num_hosts);
}

auto HostsControl::Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  if (mesh_.HostsOf(axes) == 1) {
    return HostControl::Gather(axes, mine, bytes, all);
  }
  const int64_t size = mesh_.size(axes);
  CHECK(bytes * size <= MaxBytes, "gather of {} x {} bytes", size, bytes);
  Count(bytes, bytes * (size - 1));
  return GatherBytes(axes, mine, bytes, all);
}

auto HostsControl::Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status {
  if (mesh_.HostsOf(axes) == 1) {
    return HostControl::Broadcast(axes, data, bytes);
  }
  CHECK(bytes <= MaxBytes, "broadcast of {} bytes", bytes);
  const Part part = PartOf(axes);
  const std::string key = NextKey("broadcast", axes);
  Count(bytes, mesh_.IndexIn(axes, rank()) == 0 ? bytes * (mesh_.size(axes) - 1) : 0);
  if (part.leads() && part.host == 0) {
    RETURN_IF_ERROR(store_->Set(key, {reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)}));
  } else if (part.leads()) {
    const auto text = store_->Get(key, timeout_);
    if (!text) {
      return store_->is_late() ? Fail(ExitCode::Environment, "the first of {} hosts sent nothing within {:g} s",
                                      part.num_hosts, timeout_.value)
                               : text.error();
    }
    CHECK(std::ssize(*text) == bytes, "a broadcast of {} B came with {} B", bytes, text->size());
    std::memcpy(data, text->data(), static_cast<size_t>(bytes));
  }
  return member().Broadcast(part.ranks, data, bytes);
}

auto HostsControl::Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status {
  if (mesh_.HostsOf(axes) == 1) {
    return HostControl::Sum(axes, data, num_elements, dtype);
  }
  const int64_t bytes = num_elements * SizeOf(dtype);
  CHECK(bytes <= MaxBytes, "sum of {} bytes", bytes);
  Count(bytes, bytes * (mesh_.size(axes) - 1));
  const Part part = PartOf(axes);
  RETURN_IF_ERROR(member().Sum(part.ranks, data, num_elements, dtype));
  // All ranks of a host have its sum now.
  const std::string key = NextKey("sum", axes);
  if (part.leads()) {
    ASSIGN_OR_RETURN(const auto hosts,
                     GatherOverHosts(part, key, {reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)}));
    std::vector<const std::byte*> sums;
    for (const std::string& sum : hosts) {
      CHECK(std::ssize(sum) == bytes, "a host brought {} B to a sum of {} B", sum.size(), bytes);
      sums.push_back(reinterpret_cast<const std::byte*>(sum.data()));
    }
    Fold(sums, sums.size(), data, num_elements, {.terms = dtype, .sum = dtype}, false);
  }
  return member().Broadcast(part.ranks, data, bytes);
}

auto HostsControl::Barrier(AxisSet axes) -> Status {
  if (mesh_.HostsOf(axes) == 1) {
    return HostControl::Barrier(axes);
  }
  // One byte: nobody has all before the last one came.
  const std::byte here{1};
  std::vector<std::byte> all(static_cast<size_t>(mesh_.size(axes)));
  return GatherBytes(axes, &here, 1, all.data());
}

}  // namespace shardc
