#include "runtime/core/compare_replicas.h"

#include <algorithm>
#include <vector>

#include "compiler/checkpoint/digest.h"
#include "compiler/plan/local_parameter.h"
#include "runtime/control/agree.h"
#include "runtime/device/family.h"

namespace shardc {

namespace {

/// Elements of a parameter, in one role, that one rank owns.
struct HeldSegment {
  ParameterId parameter;
  StateRole role = StateRole::Parameter;
  ValuePart part;
  PartDigest digest;
};

/// Adds bytes of the device to a digest.
auto AddTo(Digest& digest, RankDevice& device, const std::byte* first, int64_t bytes, HostScratch& scratch) -> Status {
  const auto add = [&](const std::byte* piece, int64_t, int64_t size) -> Status {
    digest.Update(piece, size);
    return Success{};
  };
  return device.queue(Stream::Compute).ReadInPieces(first, bytes, scratch, add);
}

/// Returns the segments of this rank that all ranks of its group over `axes` hold, without digests.
auto SegmentsOver(AxisSet axes, Binder& binder, std::span<const StateRole> roles) -> std::vector<HeldSegment> {
  const Plan& plan = binder.plan();
  std::vector<HeldSegment> all_held;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (CopyAxes(sub_vector, plan.mesh) != axes) {
      continue;
    }
    const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, binder.rank()).begin;
    for (const StateRole role : roles) {
      if (!HasRole(sub_vector, role)) {
        continue;
      }
      const ValueId state = StateOf(sub_vector, role);
      for (const Segment& segment : sub_vector.segments) {
        const Interval owned = OwnedElementsOf(plan, sub_vector, segment, binder.rank());
        const Interval of_slice{owned.begin - slice_begin, owned.end - slice_begin};
        all_held.push_back({segment.parameter, role, {state, of_slice}, {}});
      }
    }
  }
  return all_held;
}

/// Returns the digest of each part: by the device where it takes them, else XXH3-128.
auto DigestsOf(std::span<const ValuePart> parts, Binder& binder) -> ErrorOr<std::vector<PartDigest>> {
  if (const auto of_device = PartsOf(FactsOf(binder.plan().device).family).digests; of_device != nullptr) {
    return of_device(parts, binder);
  }
  std::vector<PartDigest> digests;
  HostScratch scratch;
  for (const ValuePart& part : parts) {
    const View view = binder.ViewOf(part.value);
    const int64_t element = SizeOf(view.dtype);
    Digest digest;
    RETURN_IF_ERROR(AddTo(digest, binder.device(), view.At<const std::byte>({}) + part.elements.begin * element,
                          part.elements.size() * element, scratch));
    digests.push_back(digest.Halves());
  }
  return digests;
}

auto Difference(const Plan& plan, const HeldSegment& held, int64_t rank, PartDigest digest, int64_t other,
                PartDigest digest_there) -> Error {
  return Fail(ExitCode::InternalFault,
              "{}: ranks {} and {} hold the same elements with different bits, digests {} and {}",
              StateName(plan.parameters[held.parameter].name, held.role), rank, other,
              DigestText(digest.first, digest.second), DigestText(digest_there.first, digest_there.second));
}

/// Compares the ranks of one group, which all get the same result. The outer error is that of a failed collective.
auto CompareOver(AxisSet axes, Binder& binder, std::span<const StateRole> roles) -> ErrorOr<Status> {
  RankControl& control = binder.control();
  std::vector<HeldSegment> all_held = SegmentsOver(axes, binder, roles);
  std::vector<ValuePart> parts;
  for (const HeldSegment& held : all_held) {
    parts.push_back(held.part);
  }
  ASSIGN_OR_RETURN(const auto digests, DigestsOf(parts, binder));
  for (size_t i = 0; i < all_held.size(); ++i) {
    all_held[i].digest = digests[i];
  }
  // One number per rank first: that is nearly always enough.
  Digest digest_of_all;
  for (const HeldSegment& held : all_held) {
    digest_of_all.Update(&held.digest, sizeof(held.digest));
  }
  const auto mine = digest_of_all.Halves();
  ASSIGN_OR_RETURN(const auto summaries, control.GatherValues(axes, mine));
  if (std::ranges::all_of(summaries, [&](const auto& theirs) { return theirs == summaries.front(); })) {
    return Status(Success{});
  }
  const std::vector<int64_t> ranks = binder.plan().mesh.Group(axes, binder.rank());
  for (const HeldSegment& held : all_held) {
    ASSIGN_OR_RETURN(const auto all, control.GatherValues(axes, held.digest));
    const auto differs = std::ranges::find_if(all, [&](const auto& theirs) { return theirs != all.front(); });
    if (differs != all.end()) {
      return Status(Difference(binder.plan(), held, ranks.front(), all.front(),
                               ranks[static_cast<size_t>(differs - all.begin())], *differs));
    }
  }
  return Status(Fail(ExitCode::InternalFault, "digests differ, and those that they are made of do not"));
}

}  // namespace

auto CompareReplicas(Binder& binder, std::span<const StateRole> roles) -> Status {
  const Plan& plan = binder.plan();
  std::vector<AxisSet> axes_of_copies;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    const AxisSet axes = CopyAxes(sub_vector, plan.mesh);
    if (axes != AxisSet{} && std::ranges::find(axes_of_copies, axes) == axes_of_copies.end()) {
      axes_of_copies.push_back(axes);
    }
  }
  if (axes_of_copies.empty()) {
    return Success{};
  }
  Status mine = Success{};
  for (const AxisSet axes : axes_of_copies) {
    ASSIGN_OR_RETURN(const auto compared, CompareOver(axes, binder, roles));
    if (mine && !compared) {
      mine = compared;
    }
  }
  return AgreeOnStatus(binder.control(), mine);
}

auto CompareRotaryTables(Binder& binder) -> ErrorOr<std::string> {
  Digest digest;
  HostScratch scratch;
  bool has_table = false;
  for (const Op& op : binder.plan().section(SectionKind::Constants).ops) {
    for (const Access& access : AccessesOf(op.body)) {
      const View table = binder.ViewOf(access.value);
      const int64_t bytes = table.num_elements() * SizeOf(table.dtype);
      RETURN_IF_ERROR(AddTo(digest, binder.device(), table.At<const std::byte>({}), bytes, scratch));
      has_table = true;
    }
  }
  if (!has_table) {
    return std::string();
  }
  const auto mine = digest.Halves();
  ASSIGN_OR_RETURN(const auto all, binder.control().GatherValues(AxisSet::All(), mine));
  const auto differs = std::ranges::find_if(all, [&](const auto& theirs) { return theirs != all.front(); });
  FAIL_IF(differs != all.end(), ExitCode::InternalFault,
          "ranks 0 and {} have different rotary tables, XXH3-128 {} and {}", differs - all.begin(),
          DigestText(all.front().first, all.front().second), DigestText(differs->first, differs->second));
  return DigestText(mine.first, mine.second);
}

}  // namespace shardc
