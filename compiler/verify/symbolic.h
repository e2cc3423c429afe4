// What the bytes of a plan hold, as terms. A term is a result of an op, of terms; so two values are one term where the
// same ops made them of the same things, whatever their names, offsets and times: an op that is computed again gives
// the term that it gave before. What copies, releases, in-place ops and views do to bytes is followed and leaves no
// trace in terms.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ops/op_facts.h"

namespace shardc {

using TermId = Id<struct TermTag>;

/// Bytes [begin, end) of a term.
struct TermRange {
  TermId term;
  int64_t begin = 0;
  int64_t end = 0;
};

enum class TermKind : uint8_t {
  /// Bytes that a buffer held before the section.
  Memory,
  /// The result of number `result` of `op`, of `operands` in row order.
  Result,
  /// operands[0] + operands[1]: what an op added to what was there.
  Sum,
  /// `ranges` of other terms, one after another; a single one is not the whole of its term.
  Joined,
};

struct Term {
  TermKind kind = TermKind::Memory;
  int64_t bytes = 0;
  /// The first op that made it.
  const Op* op = nullptr;
  int result = 0;
  std::vector<TermId> operands;
  std::vector<TermRange> ranges;

  /// Returns the facts of the op that made the term; those of an op without facts if no op made it.
  auto facts() const -> const OpFacts& {
    static constexpr OpFacts none{};
    return kind == TermKind::Result ? FactsOf(*op) : none;
  }
  /// Returns the number that all its elements have; nothing if an op computed it.
  auto constant() const -> std::optional<double> { return kind == TermKind::Result ? ConstantOf(*op) : std::nullopt; }
};

/// Terms, each kept once: equal terms have equal ids.
class Terms {
 public:
  auto operator[](TermId id) const -> const Term& { return terms_[id]; }
  auto Memory(BufferId buffer, int64_t bytes) -> TermId;
  /// Returns the term of a result. `key` distinguishes this result from all others.
  auto Result(const std::string& key, Term term) -> TermId;
  auto Sum(TermId onto, TermId added) -> TermId;
  /// Joins the ranges one after another, as the shortest list. Returns the term itself if they are the whole of one
  /// term.
  auto Join(const std::vector<TermRange>& ranges) -> TermId;
  /// Requires: 0 <= begin < end <= bytes of the term.
  auto Slice(TermId term, int64_t begin, int64_t end) -> TermId;
  /// Returns true if the term is made of zeros.
  auto IsZero(TermId term) const -> bool;
  /// Returns the terms that were added up in it, first to last, without zeros.
  auto Addends(TermId term) const -> std::vector<TermId>;

 private:
  auto Intern(std::string key, Term term) -> TermId;

  IdVector<TermId, Term> terms_;
  std::unordered_map<std::string, TermId> by_key_;
};

/// Runs ops on terms. The plan and the ops outlive the terms.
class SymbolicRun {
 public:
  /// Runs as the rank at `point`. With `by_name`, a value that was written or set under its name keeps that term,
  /// whatever became of its bytes.
  SymbolicRun(const Plan& plan, Terms* terms, const RankPoint& point, bool by_name = false)
      : plan_(plan), terms_(*terms), point_(point), by_name_(by_name) {}

  auto set_repeat(int64_t index) -> void { point_.repeat = index; }
  auto Run(const Op& op) -> void;
  auto Read(ValueId id) -> TermId;
  /// Says what the bytes of a value hold.
  auto Put(ValueId id, TermId term) -> void { Write(id, term); }
  auto SetName(ValueId id, TermId term) -> void { names_[id] = term; }
  /// Returns the values that the last op read and wrote, with the terms that they held then.
  auto touched() const -> const std::vector<std::pair<ValueId, TermId>>& { return touched_; }
  /// Returns the number of byte ranges looked at so far.
  auto work() const -> size_t { return work_; }

 private:
  /// Bytes of a buffer that hold what starts at byte `offset` of a term.
  struct Content {
    Interval bytes;
    TermId term;
    int64_t offset = 0;
  };

  auto Write(ValueId id, TermId term) -> void;
  auto RunAsResult(const Op& op) -> void;

  const Plan& plan_;
  Terms& terms_;
  RankPoint point_;
  bool by_name_;
  std::unordered_map<ValueId, TermId> names_;
  /// In the order of their bytes; bytes that no content has are memory.
  std::unordered_map<BufferId, std::vector<Content>> contents_;
  std::vector<std::pair<ValueId, TermId>> touched_;
  size_t work_ = 0;
};

}  // namespace shardc
