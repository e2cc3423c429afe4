#include "tests/comm/programs/collectives_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/comm/programs/gpu_rank.h"
#include "tests/support/put_element.h"

namespace shardc {
namespace {

constexpr int64_t Alignment = 256;
constexpr int64_t OwnBytes = int64_t{4} << 20;
constexpr std::array SumTypes{ReduceTypes{DType::F32, DType::F32}, ReduceTypes{DType::F64, DType::F64},
                              ReduceTypes{DType::BF16, DType::BF16}, ReduceTypes{DType::BF16, DType::F32}};
constexpr std::array TotalTypes{DType::F32, DType::F64, DType::I64};

enum class Kind { AllGather, ReduceScatter, AllReduceBySlices, AllReduceAsItIs };

/// A collective, and where each rank has its operand and its result.
struct Call {
  Kind kind = Kind::AllGather;
  AxisSet axes;
  Stream stream = Stream::Dp;
  ReduceTypes types;
  bool accumulate = false;
  /// The shard of a reduce-scatter is the own slice of the full vector.
  bool in_place = false;
  /// Elements of a shard, or of the vector of an all-reduce.
  int64_t count = 1;
  int64_t from = 0;
  int64_t to = 0;

  auto is_gather() const -> bool { return kind == Kind::AllGather; }
  auto is_scatter() const -> bool { return kind == Kind::ReduceScatter; }
  auto arena() const -> Arena { return kind == Kind::AllReduceAsItIs ? Arena::Transient : Arena::SharedTransient; }
  auto num_operands(int64_t ranks) const -> int64_t { return is_scatter() ? count * ranks : count; }
  auto num_results(int64_t ranks) const -> int64_t { return is_gather() ? count * ranks : count; }
  auto from_bytes(int64_t ranks) const -> int64_t { return num_operands(ranks) * SizeOf(types.terms); }
  auto to_bytes(int64_t ranks) const -> int64_t { return num_results(ranks) * SizeOf(types.sum); }
  auto Text() const -> std::string {
    constexpr std::array<const char*, 4> Names{"all_gather", "reduce_scatter", "all_reduce by slices",
                                               "all_reduce as it is"};
    return fmt::format("{} of {} x {} into {} over {} on {}{}{}", Names[static_cast<size_t>(kind)], count,
                       ToText(types.terms), ToText(types.sum), ToText(axes), ToText(stream),
                       accumulate ? ", accumulated" : "", in_place ? ", in place" : "");
  }
};

/// Writes elements whose sums round differently in another order, all of them known from `seed`.
auto Draw(DType dtype, int64_t count, uint64_t seed, std::byte* to) -> void {
  for (int64_t i = 0; i < count; ++i) {
    // SplitMix64.
    uint64_t bits = seed * 0xD1342543DE82EF95U + static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15U;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    bits ^= bits >> 31U;
    const auto mantissa = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
    const double number = (bits & 3U) == 0 ? mantissa * 0x1p13 : mantissa;
    PutElement(dtype, dtype == DType::I64 ? mantissa * 0x1p55 : number, to + i * SizeOf(dtype));
  }
}

/// Returns drawn collectives with memory of their own, the same ones on all ranks.
auto DrawCalls(const CollectivesCase& which, const std::vector<AxisSet>& sets, std::mt19937_64& random)
    -> std::vector<Call> {
  constexpr std::array<int64_t, 9> Counts{1, 2, 3, 31, 255, 1024, 1027, 20'001, 150'001};
  constexpr size_t NumCalls = 16;
  std::vector<Call> calls;
  int64_t shared = 0;
  int64_t own = 0;
  while (calls.size() < NumCalls) {
    Call call;
    call.kind = static_cast<Kind>(random() % 4);
    call.axes = sets[random() % sets.size()];
    call.stream = StreamsOfCollectives[random() % StreamsOfCollectives.size()];
    call.count = std::min(Counts[random() % Counts.size()], which.most_elements);
    if (call.is_scatter()) {
      call.types = SumTypes[random() % SumTypes.size()];
      call.in_place = call.types.terms == call.types.sum && random() % 3 == 0;
      call.accumulate = !call.in_place && random() % 2 == 0;
    } else {
      const DType dtype = TotalTypes[random() % TotalTypes.size()];
      call.types = {dtype, dtype};
    }
    if (call.kind == Kind::AllReduceAsItIs) {
      call.count = std::min(call.count, which.most_elements_as_it_is);
    }
    const int64_t ranks = which.mesh.size(call.axes);
    int64_t& from = call.kind == Kind::AllReduceAsItIs ? own : shared;
    call.from = from;
    from += RoundUp(call.from_bytes(ranks), Alignment);
    call.to = shared;
    shared += RoundUp(call.to_bytes(ranks), Alignment);
    CHECK(shared <= which.SharedBytes() && own <= OwnBytes, "more collectives than memory");
    calls.push_back(call);
  }
  return calls;
}

/// Returns a collective of the largest vector for each kind and type.
auto LargeCalls(const CollectivesCase& which) -> std::vector<Call> {
  const AxisSet axes = AxisSet::All();
  const int64_t ranks = which.mesh.size(axes);
  std::vector<Call> calls;
  const auto add = [&](Kind kind, ReduceTypes types) {
    const int64_t num_shards = kind == Kind::AllReduceBySlices ? 1 : ranks;
    calls.push_back({.kind = kind,
                     .axes = axes,
                     .stream = StreamsOfCollectives[calls.size() % StreamsOfCollectives.size()],
                     .types = types,
                     .accumulate = kind == Kind::ReduceScatter,
                     .count = which.largest_bytes / SizeOf(types.terms) / num_shards,
                     .from = 0,
                     .to = which.largest_bytes});
  };
  add(Kind::AllGather, {DType::F32, DType::F32});
  for (const ReduceTypes types : SumTypes) {
    add(Kind::ReduceScatter, types);
  }
  for (const DType dtype : TotalTypes) {
    add(Kind::AllReduceBySlices, {dtype, dtype});
  }
  return calls;
}

/// The work of one rank with a list of collectives, and what it must get.
class RankRound {
 public:
  RankRound(GpuRank& rank, const Mesh& mesh, std::vector<Call> calls, uint64_t seed)
      : rank_(rank), mesh_(mesh), calls_(std::move(calls)), seed_(seed) {}

  /// Returns what went wrong; empty if nothing did.
  auto Run() -> std::string {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (const Status filled = Fill(i); !filled) {
        return filled.error().message;
      }
    }
    const auto stream_of = [this](size_t i) { return calls_[i].stream; };
    Status ran = rank_.device().Finish();
    ran = ran ? rank_.RunTurns(calls_.size(), stream_of, [this](size_t i) { return Collect(i); }) : ran;
    if (!ran) {
      return ran.error().message;
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (std::string text = Difference(i); !text.empty()) {
        return text;
      }
    }
    return "";
  }

 private:
  auto RanksOf(const Call& call) const -> std::vector<int64_t> { return mesh_.Group(call.axes, rank_.number()); }
  auto SeedOf(size_t index, int64_t rank, bool is_before) const -> uint64_t {
    return ((seed_ * 64 + index) * 64 + static_cast<uint64_t>(rank)) * 2 + (is_before ? 1 : 0);
  }
  auto Write(DType dtype, int64_t count, uint64_t seed, std::byte* to) -> Status {
    Queue& queue = rank_.device().queue(Stream::Compute);
    const int64_t bytes = count * SizeOf(dtype);
    Draw(dtype, count, seed, queue.BeginWrite(to, bytes, scratch_));
    return queue.EndWrite(to, bytes, scratch_);
  }
  /// Writes the operand, and to the result's place what a sum is added to.
  auto Fill(size_t index) -> Status {
    const Call& call = calls_[index];
    const auto ranks = std::ssize(RanksOf(call));
    RETURN_IF_ERROR(Write(call.types.terms, call.num_operands(ranks), SeedOf(index, rank_.number(), false),
                          rank_.device().Base(call.arena()) + call.from));
    return Write(call.types.sum, call.num_results(ranks), SeedOf(index, rank_.number(), true),
                 rank_.device().Base(Arena::SharedTransient) + call.to);
  }
  /// Makes the call. The peers are through after it: what they read changes at once.
  auto Collect(size_t index) -> Status {
    const Call& call = calls_[index];
    const auto ranks = std::ssize(RanksOf(call));
    Queue& queue = rank_.device().queue(call.stream);
    LayeredCommunicator& comm = rank_.comm();
    const CommSpan from = rank_.SpanOf(call.arena(), call.from, call.from_bytes(ranks));
    const CommSpan to = rank_.SpanOf(Arena::SharedTransient, call.to, call.to_bytes(ranks));
    CommSpan result = to;
    if (call.is_gather()) {
      RETURN_IF_ERROR(comm.AllGather(queue, call.axes, from, to, {}));
    } else if (call.is_scatter()) {
      if (call.in_place) {
        const int64_t begin = mesh_.IndexIn(call.axes, rank_.number()) * to.bytes;
        result = rank_.SpanOf(call.arena(), call.from + begin, to.bytes);
      }
      RETURN_IF_ERROR(comm.ReduceScatter(queue, call.axes, from, result, {}, call.types, call.accumulate));
    } else {
      RETURN_IF_ERROR(comm.AllReduce(queue, call.axes, from, {}, call.types.terms));
      result = from;
    }
    const auto at = [this](const CommSpan& span) { return rank_.engine().Peer(rank_.number(), span); };
    if (result.data != to.data) {
      RETURN_IF_ERROR(rank_.engine().Copy(queue, at(to), at(result), to.bytes));
    }
    return rank_.engine().Clear(queue, at(from), from.bytes);
  }
  auto Expected(size_t index) const -> std::vector<std::byte> {
    const Call& call = calls_[index];
    const std::vector<int64_t> group = RanksOf(call);
    const auto ranks = std::ssize(group);
    std::vector<std::byte> expected(static_cast<size_t>(call.to_bytes(ranks)));
    if (call.is_gather()) {
      for (int64_t k = 0; k < ranks; ++k) {
        Draw(call.types.terms, call.count, SeedOf(index, group[static_cast<size_t>(k)], false),
             expected.data() + k * call.from_bytes(ranks));
      }
      return expected;
    }
    Draw(call.types.sum, call.num_results(ranks), SeedOf(index, rank_.number(), true), expected.data());
    std::vector<std::vector<std::byte>> operands;
    std::vector<const std::byte*> terms;
    const int64_t slice = call.is_scatter() ? mesh_.IndexIn(call.axes, rank_.number()) : 0;
    for (const int64_t peer : group) {
      operands.emplace_back(static_cast<size_t>(call.from_bytes(ranks)));
      Draw(call.types.terms, call.num_operands(ranks), SeedOf(index, peer, false), operands.back().data());
      terms.push_back(operands.back().data() + slice * call.count * SizeOf(call.types.terms));
    }
    Fold(terms, terms.size(), expected.data(), call.count, call.types, call.accumulate);
    return expected;
  }
  auto Difference(size_t index) -> std::string {
    const Call& call = calls_[index];
    const std::vector<std::byte> expected = Expected(index);
    const auto found =
        rank_.device().Read(rank_.device().Base(Arena::SharedTransient) + call.to, std::ssize(expected), scratch_);
    if (!found) {
      return found.error().message;
    }
    const auto differs = std::mismatch(expected.begin(), expected.end(), *found).first - expected.begin();
    return differs == std::ssize(expected)
               ? ""
               : fmt::format("{}: element {} differs, of {}", call.Text(), differs / SizeOf(call.types.sum),
                             std::ssize(expected) / SizeOf(call.types.sum));
  }

  GpuRank& rank_;
  const Mesh& mesh_;
  std::vector<Call> calls_;
  uint64_t seed_;
  HostScratch scratch_;
};

/// Returns the sets of axes whose groups have several ranks.
auto SetsOf(const Mesh& mesh) -> std::vector<AxisSet> {
  std::vector<AxisSet> sets;
  for (uint8_t bits = 1; bits < 1U << NumMeshAxes; ++bits) {
    if (mesh.size(AxisSet{bits}) > 1) {
      sets.push_back({bits});
    }
  }
  return sets;
}

}  // namespace

auto ExpectEqualFold(const CollectivesCase& which) -> void {
  const Mesh& mesh = which.mesh;
  const std::vector<AxisSet> sets = SetsOf(mesh);
  const Plan plan = PlanOfCollectives(mesh, sets, which.SharedBytes(), OwnBytes);
  World world(mesh, which.members);
  const auto run = [&](const std::shared_ptr<HostMember>& member) -> std::string {
    const auto rank = GpuRank::Create(plan, member, which.lags);
    if (!rank) {
      return rank.error().message;
    }
    std::mt19937_64 random(1);
    for (uint64_t round = 0; round < which.num_rounds; ++round) {
      auto calls = DrawCalls(which, sets, random);
      if (std::string text = RankRound(**rank, mesh, std::move(calls), round).Run(); !text.empty()) {
        return fmt::format("round {}: {}", round, text);
      }
    }
    uint64_t seed = which.num_rounds;
    for (const Call& call : LargeCalls(which)) {
      if (std::string text = RankRound(**rank, mesh, {call}, seed++).Run(); !text.empty()) {
        return text;
      }
    }
    const Status closed = (*rank)->comm().Close();
    return closed ? "" : closed.error().message;
  };
  const auto texts = world.Run({.timeout = Seconds{60}, .warn = {}}, run);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], "") << "rank " << rank;
  }
}

}  // namespace shardc
