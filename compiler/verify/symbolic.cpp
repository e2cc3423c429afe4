#include "compiler/verify/symbolic.h"

#include <algorithm>
#include <concepts>

#include "compiler/ops/unit_collectives.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

template <class T>
auto AppendBytes(std::string& key, const T& value) -> void {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

auto AppendType(std::string& key, const Value& value) -> void {
  AppendBytes(key, value.dtype);
  AppendBytes(key, value.shape.size());
  for (const int64_t size : value.shape) {
    AppendBytes(key, size);
  }
}

/// The reads and writes of an op, and the key that distinguishes its computation from that of every other op.
struct OpReader {
  struct Written {
    ValueId value;
    /// The term that the result is added to.
    TermId onto;
  };

  SymbolicRun& run;
  const Plan& plan;
  std::string key = {};
  std::vector<std::pair<ValueId, TermId>> reads = {};
  std::vector<Written> writes = {};

  auto In(std::string_view, ValueId id) -> void {
    reads.emplace_back(id, run.Read(id));
    AppendBytes(key, reads.back().second.index);
    AppendType(key, plan.values[id]);
  }
  auto InIf(std::string_view name, ValueId id) -> void {
    key.push_back(id.valid() ? 'y' : 'n');
    if (id.valid()) {
      In(name, id);
    }
  }
  auto Out(std::string_view, ValueId id) -> void { writes.push_back({id, {}}); }
  auto Over(std::string_view, ValueId id, ValueId) -> void { writes.push_back({id, {}}); }
  auto Acc(std::string_view, ValueId id, ValueId onto) -> void {
    writes.push_back({id, onto.valid() ? run.Read(onto) : TermId{}});
  }
  auto InOut(std::string_view name, ValueId id) -> void {
    In(name, id);
    writes.push_back({id, {}});
  }
  auto Maybe(std::string_view name, ValueId id) -> void {
    key.push_back(id.valid() ? 'y' : 'n');
    if (id.valid()) {
      InOut(name, id);
    }
  }
  auto Scratch(std::string_view, ValueId) -> void {}
  auto Whole(std::string_view, BufferId) -> void {}
  template <class T>
  auto Attr(std::string_view, const T& value) -> void {
    if constexpr (std::same_as<T, std::string>) {
      AppendBytes(key, value.size());
      key += value;
    } else if constexpr (std::same_as<T, RankExpr>) {
      Attr({}, ToText(value));
    } else {
      AppendBytes(key, value);
    }
  }
};

auto SameType(const Plan& plan, ValueId a, ValueId b) -> bool { return plan.values[a].dtype == plan.values[b].dtype; }

}  // namespace

auto Terms::Intern(std::string key, Term term) -> TermId {
  const auto [found, fresh] = by_key_.try_emplace(std::move(key), TermId{});
  if (fresh) {
    found->second = terms_.Add(std::move(term));
  }
  return found->second;
}

auto Terms::Memory(BufferId buffer, int64_t bytes) -> TermId {
  std::string key = "m";
  AppendBytes(key, buffer.index);
  return Intern(std::move(key), {.kind = TermKind::Memory, .bytes = bytes});
}

auto Terms::Result(const std::string& key, Term term) -> TermId { return Intern("r" + key, std::move(term)); }

auto Terms::Sum(TermId onto, TermId added) -> TermId {
  std::string key = "s";
  AppendBytes(key, onto.index);
  AppendBytes(key, added.index);
  return Intern(std::move(key), {.kind = TermKind::Sum, .bytes = terms_[added].bytes, .operands = {onto, added}});
}

auto Terms::Join(const std::vector<TermRange>& ranges) -> TermId {
  std::vector<TermRange> joined;
  int64_t bytes = 0;
  const auto add = [&](const TermRange& range) {
    bytes += range.end - range.begin;
    if (!joined.empty() && joined.back().term == range.term && joined.back().end == range.begin) {
      joined.back().end = range.end;
    } else {
      joined.push_back(range);
    }
  };
  for (const TermRange& range : ranges) {
    if (terms_[range.term].kind != TermKind::Joined) {
      add(range);
      continue;
    }
    // A range of a joined term is made of ranges of the terms that were joined.
    int64_t begin = 0;
    for (const TermRange& inner : terms_[range.term].ranges) {
      const int64_t end = begin + inner.end - inner.begin;
      const Interval wanted = Intersect({begin, end}, {range.begin, range.end});
      if (!wanted.empty()) {
        add({inner.term, inner.begin + wanted.begin - begin, inner.begin + wanted.end - begin});
      }
      begin = end;
    }
  }
  if (joined.size() == 1 && joined[0].begin == 0 && joined[0].end == terms_[joined[0].term].bytes) {
    return joined[0].term;
  }
  std::string key = "p";
  for (const TermRange& range : joined) {
    AppendBytes(key, range.term.index);
    AppendBytes(key, range.begin);
    AppendBytes(key, range.end);
  }
  return Intern(std::move(key), {.kind = TermKind::Joined, .bytes = bytes, .ranges = std::move(joined)});
}

auto Terms::Slice(TermId term, int64_t begin, int64_t end) -> TermId { return Join({{term, begin, end}}); }

auto Terms::IsZero(TermId id) const -> bool {
  const Term& term = terms_[id];
  if (term.kind == TermKind::Joined) {
    return std::ranges::all_of(term.ranges, [&](const TermRange& range) { return IsZero(range.term); });
  }
  return term.constant() == 0;
}

auto Terms::Addends(TermId term) const -> std::vector<TermId> {
  std::vector<TermId> addends;
  for (; terms_[term].kind == TermKind::Sum; term = terms_[term].operands[0]) {
    addends.push_back(terms_[term].operands[1]);
  }
  if (!IsZero(term)) {
    addends.push_back(term);
  }
  std::ranges::reverse(addends);
  return addends;
}

auto SymbolicRun::Read(ValueId id) -> TermId {
  if (by_name_) {
    if (const auto named = names_.find(id); named != names_.end()) {
      return named->second;
    }
  }
  const Value& value = plan_.values[id];
  const Interval range = RangeOf(value, point_);
  const TermId memory = terms_.Memory(value.buffer, plan_.buffers[value.buffer].bytes.value);
  std::vector<TermRange> ranges;
  int64_t reached = range.begin;
  const std::vector<Content>& contents = contents_[value.buffer];
  auto content = std::ranges::partition_point(contents, [&](const Content& p) { return p.bytes.end <= range.begin; });
  for (; content != contents.end() && content->bytes.begin < range.end; ++content) {
    const Interval held = Intersect(content->bytes, range);
    if (reached < held.begin) {
      ranges.push_back({memory, reached, held.begin});
    }
    const int64_t begin = content->offset + held.begin - content->bytes.begin;
    ranges.push_back({content->term, begin, begin + held.size()});
    reached = held.end;
  }
  if (reached < range.end) {
    ranges.push_back({memory, reached, range.end});
  }
  work_ += ranges.size();
  return terms_.Join(ranges);
}

auto SymbolicRun::Write(ValueId id, TermId term) -> void {
  touched_.emplace_back(id, term);
  if (by_name_) {
    names_[id] = term;
  }
  const Value& value = plan_.values[id];
  const Interval range = RangeOf(value, point_);
  std::vector<Content>& contents = contents_[value.buffer];
  auto first = std::ranges::partition_point(contents, [&](const Content& p) { return p.bytes.end <= range.begin; });
  auto last = first;
  // The new content, and what is left of the contents before and after it.
  std::vector<Content> in_place;
  if (first != contents.end() && first->bytes.begin < range.begin) {
    in_place.push_back({{first->bytes.begin, range.begin}, first->term, first->offset});
  }
  in_place.push_back({range, term, 0});
  for (; last != contents.end() && last->bytes.begin < range.end; ++last) {
    if (last->bytes.end > range.end) {
      in_place.push_back({{range.end, last->bytes.end}, last->term, last->offset + range.end - last->bytes.begin});
    }
  }
  work_ += static_cast<size_t>(contents.end() - first) + in_place.size();
  contents.insert(contents.erase(first, last), in_place.begin(), in_place.end());
}

auto SymbolicRun::Run(const Op& op) -> void {
  touched_.clear();
  const auto rename = [&](ValueId from, ValueId to) {
    const TermId term = Read(from);
    touched_.emplace_back(from, term);
    Write(to, term);
  };
  if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
    contents_.erase(released);
  } else if (const auto carry = CarryOf(op)) {
    touched_.emplace_back(carry->from, Read(carry->from));
  } else if (const auto copy = CopyOf(op)) {
    rename(copy->from, copy->to);
  } else if (const auto cast = CastOf(op); cast && SameType(plan_, cast->from, cast->to)) {
    rename(cast->from, cast->to);
  } else {
    RunAsResult(op);
  }
}

auto SymbolicRun::RunAsResult(const Op& op) -> void {
  OpReader reader{.run = *this, .plan = plan_};
  // An addition out of place adds as one in place does, where both operands are of one type.
  const AccessList accesses = AccessesOf(op.body);
  const bool is_sum = FactsOf(op).meaning == Meaning::Sum && SameType(plan_, accesses[0].value, accesses[1].value);
  reader.key.push_back(is_sum ? '\xff' : static_cast<char>(op.kind()));
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, reader); });
  std::vector<TermId> operands;
  for (const auto& [value, term] : reader.reads) {
    touched_.emplace_back(value, term);
    operands.push_back(term);
  }
  // All ranks' parts of a vector, each kept from the vector itself, make it up again.
  if (ParameterGatherOf(plan_, op) && terms_[operands[0]].kind == TermKind::Joined) {
    const Term& kept = terms_[operands[0]];
    const ValueId full = reader.writes[0].value;
    if (kept.ranges.size() == 1 && terms_[kept.ranges[0].term].bytes == plan_.values[full].bytes().value) {
      Write(full, kept.ranges[0].term);
      return;
    }
  }
  for (size_t i = 0; i < reader.writes.size(); ++i) {
    const auto& [value, onto] = reader.writes[i];
    std::string key = reader.key;
    AppendBytes(key, i);
    AppendType(key, plan_.values[value]);
    const TermId result = terms_.Result(key, {.kind = TermKind::Result,
                                              .bytes = plan_.values[value].bytes().value,
                                              .op = &op,
                                              .result = static_cast<int>(i),
                                              .operands = operands,
                                              .ranges = {}});
    Write(value, onto.valid() ? terms_.Sum(onto, result) : result);
  }
}

}  // namespace shardc
