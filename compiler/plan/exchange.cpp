#include "compiler/plan/exchange.h"

#include <algorithm>

namespace shardc {

auto ExchangeOver(const Mesh& mesh, Comm comm, AxisSet axes) -> Exchange {
  const int64_t ranks = mesh.size(axes);
  const int64_t on_host = mesh.LocalSize(axes);
  switch (comm) {
    case Comm::Auto: break;
    case Comm::Shm: return {.members = 1, .members_on_host = 1, .local = ranks, .fold = on_host};
    case Comm::NcclRing:
      return {
          .members = ranks / on_host, .members_on_host = 1, .local = on_host, .fold = on_host, .sums_by_library = true};
    case Comm::Gloo:
    case Comm::Nccl:
      return {.members = ranks / on_host,
              .members_on_host = 1,
              .local = on_host,
              .fold = on_host,
              .sends_terms = on_host == 1};
    case Comm::GlooFlat:
    case Comm::NcclFlat:
      return {.members = ranks, .members_on_host = on_host, .local = 1, .fold = on_host, .sends_terms = true};
  }
  CHECK(false, "a plan names how its ranks communicate");
}

auto RemoteRanks(const Plan& plan, AxisSet axes, int64_t rank) -> std::vector<int64_t> {
  const Exchange exchange = ExchangeOf(plan, axes);
  const std::vector<int64_t> group = plan.mesh.Group(axes, rank);
  std::vector<int64_t> ranks;
  for (int64_t at = plan.mesh.IndexIn(axes, rank) % exchange.local; at < std::ssize(group); at += exchange.local) {
    ranks.push_back(group[static_cast<size_t>(at)]);
  }
  return ranks;
}

/// Large enough that a piece takes milliseconds, small beside what a step needs. A piece for each of very many members
/// is never less than what pays for a message.
auto ExchangePiece(int64_t num_elements, int64_t members) -> int64_t {
  constexpr int64_t OfAll = int64_t{1} << 21;
  constexpr int64_t Least = int64_t{1} << 14;
  return std::min(num_elements, std::max(OfAll / members, Least));
}

static constexpr int64_t CacheLine = 64;

static auto LongestSlice(int64_t bytes, int64_t num_slices) -> int64_t {
  return std::min(bytes, RoundUp(CeilDiv(bytes, num_slices), CacheLine));
}

auto SliceBegin(int64_t bytes, int64_t index, int64_t num_slices) -> int64_t {
  return std::min(bytes, index * LongestSlice(bytes, num_slices));
}

auto TravelType(const Exchange& exchange, DType terms) -> DType {
  return exchange.sends_terms || terms == DType::F64 ? terms : DType::F32;
}

static auto WholeLines(int64_t bytes) -> Bytes { return Bytes{RoundUp(bytes, CacheLine)}; }

auto GatherScratch(const Exchange& exchange, int64_t shard_elements, DType dtype) -> Bytes {
  // Where no peer on the host waits for its part, what comes goes straight to its place.
  return exchange.crosses() && exchange.local > 1
             ? WholeLines(ExchangePiece(shard_elements, exchange.members) * exchange.members * SizeOf(dtype))
             : Bytes{};
}

auto ReduceScatterScratch(const Exchange& exchange, int64_t slice_elements, DType terms) -> Bytes {
  if (!exchange.crosses()) {
    return {};
  }
  // Terms are sent out of the vector itself, and sums of a host out of slots beside those for what comes. A library
  // sums in the slots.
  const int64_t slots = exchange.sends_terms || exchange.sums_by_library ? exchange.members : 2 * exchange.members;
  const int64_t piece = ExchangePiece(slice_elements, exchange.members);
  return WholeLines(slots * piece * SizeOf(TravelType(exchange, terms)));
}

auto AllReduceScratch(const Exchange& exchange, int64_t num_elements, DType dtype, bool by_slices) -> Bytes {
  if (!exchange.crosses() || exchange.sums_by_library) {
    return {};
  }
  if (!by_slices) {
    return WholeLines(exchange.members * ExchangePiece(num_elements, exchange.members) * SizeOf(dtype));
  }
  const int64_t longest = LongestSlice(num_elements * SizeOf(dtype), exchange.local) / SizeOf(dtype);
  const int64_t part = ReducePart(ExchangePiece(longest, exchange.members), exchange.members);
  return WholeLines(2 * exchange.members * part * SizeOf(dtype));
}

/// `to_one`: what the ranks of a group together send if each of them sends to one other member of its exchange.
static auto Sent(const Exchange& exchange, Bytes inside, Bytes to_one) -> GroupTraffic {
  return {.all = inside + to_one * (exchange.members - 1),
          .between_hosts = to_one * (exchange.members - exchange.members_on_host)};
}

auto GatherTraffic(const Exchange& exchange, Bytes full) -> GroupTraffic {
  // Each rank takes the slices of all hosts from its peers on the host.
  return Sent(exchange, full * ((exchange.local - 1) * exchange.members), full);
}

auto ReduceScatterTraffic(const Exchange& exchange, int64_t full_elements, DType terms) -> GroupTraffic {
  return Sent(exchange, Bytes{full_elements * SizeOf(terms)} * ((exchange.local - 1) * exchange.members),
              Bytes{full_elements * SizeOf(TravelType(exchange, terms))});
}

/// Elements that a member sends to each other one for a slice of `num_elements`: its part of each piece, twice. A
/// library takes all of it as one piece.
static auto SentForSlice(int64_t num_elements, const Exchange& exchange) -> int64_t {
  if (num_elements == 0) {
    return 0;
  }
  const int64_t members = exchange.members;
  const int64_t piece = exchange.sums_by_library ? num_elements : ExchangePiece(num_elements, members);
  const int64_t rest = num_elements % piece;
  return 2 * (num_elements / piece * ReducePart(piece, members) + (rest == 0 ? 0 : ReducePart(rest, members)));
}

auto AllReduceTraffic(const Exchange& exchange, int64_t num_elements, DType dtype, bool by_slices) -> GroupTraffic {
  const Bytes payload{num_elements * SizeOf(dtype)};
  const int64_t inside = (exchange.local - 1) * exchange.members;
  if (!by_slices) {
    const int64_t ranks = exchange.local * exchange.members;
    const Bytes to_one = exchange.sums_by_library && exchange.crosses()
                             ? Bytes{SentForSlice(num_elements, exchange) * SizeOf(dtype)}
                             : payload;
    return Sent(exchange, payload * (inside * exchange.local), to_one * ranks);
  }
  const int64_t longest = LongestSlice(payload.value, exchange.local) / SizeOf(dtype);
  const int64_t sent = longest == 0 ? 0
                                    : num_elements / longest * SentForSlice(longest, exchange) +
                                          SentForSlice(num_elements % longest, exchange);
  return Sent(exchange, payload * (2 * inside), Bytes{sent * SizeOf(dtype)} * exchange.members);
}

auto AgreementTraffic(const Exchange& exchange, Bytes bytes) -> GroupTraffic {
  const int64_t ranks = exchange.local * exchange.members;
  return Sent(exchange, bytes * (ranks * (exchange.local - 1)), bytes * (ranks * exchange.local));
}

}  // namespace shardc
