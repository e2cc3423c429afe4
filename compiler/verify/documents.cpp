// Documents in samples: a plan whose data are split into documents loads where they lie beside each microbatch of
// tokens. All of attention stays within them, forward, computed again and backward; their last tokens have no targets;
// positions begin again in each. A plan of one stream has none of this.
#include <string_view>
#include <vector>

#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// Contents of a buffer, by all that writes them.
enum class Held : uint8_t { Nothing, Starts, Positions, Others };

class DocumentVerifier {
 public:
  DocumentVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), held_(static_cast<size_t>(plan.buffers.size()), Held::Nothing) {}

  auto Run() -> void {
    ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) { NoteWrites(section, index, op); });
    for (const SectionKind section : {SectionKind::Data, SectionKind::Eval}) {
      Loads(section);
    }
    if (findings_.empty()) {
      ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) { Reads(section, index, op); });
    }
  }

 private:
  auto At(ValueId id) -> Held& { return held_[static_cast<size_t>(plan_.values[id].buffer.index)]; }

  auto NoteWrites(SectionKind section, size_t index, const Op& op) -> void {
    const auto note = [&](ValueId id, Held what) {
      Held& held = At(id);
      held = held == Held::Nothing || held == what ? what : Held::Others;
    };
    const auto load = SampleLoadOf(op);
    if (load && load->positions.valid()) {
      note(load->starts, Held::Starts);
      note(load->positions, Held::Positions);
      return;
    }
    if (const auto copy = CopyOf(op)) {
      note(copy->to, At(copy->from));
      return;
    }
    for (const Access& access : findings_.AccessesOf(section, index)) {
      if (access.kind != AccessKind::Read) {
        note(access.value, Held::Others);
      }
    }
  }

  /// Checks that a section which loads tokens loads their documents once, and takes targets away by them.
  auto Loads(SectionKind section) -> void {
    const std::vector<Op>& ops = plan_.section(section).ops;
    const bool splits = plan_.data.splits_documents();
    ValueId starts;
    int64_t num_loads = 0;
    for (const Op& op : ops) {
      if (const auto load = SampleLoadOf(op); load && load->positions.valid()) {
        starts = load->starts;
        ++num_loads;
      }
    }
    if (num_loads != (splits && !ops.empty() ? 1 : 0)) {
      findings_.Add("document-load"_rule, "section {} has {} load_documents, and documents are \"{}\"", ToText(section),
                    num_loads, ToText(plan_.data.documents));
      return;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto load = SampleLoadOf(ops[i]);
      if (!load || !load->targets.valid()) {
        continue;
      }
      const ValueId read = ValueIn(ops[i].body, "starts");
      if (read.valid() != splits || (splits && !SameBytes(plan_, read, starts))) {
        findings_.AddOp(section, i, "document-targets"_rule, "{}",
                        splits ? "leaves targets at the ends of documents: it does not read their starts"
                               : "takes targets away by documents, and samples are cut from one stream");
      }
    }
  }

  auto Reads(SectionKind section, size_t index, const Op& op) -> void {
    const bool splits = plan_.data.splits_documents();
    const OpFacts& facts = FactsOf(op);
    if (facts.attention.is_set()) {
      const ValueId starts = ValueIn(op.body, facts.attention.starts);
      if (starts.valid() != splits || (splits && At(starts) != Held::Starts)) {
        findings_.AddOp(section, index, "document-attention"_rule, "{}",
                        splits ? "attends to other documents: it does not read where they start"
                               : "stays within documents, and samples are cut from one stream");
      }
    }
    const bool makes_angles = std::ranges::any_of(
        facts.model, [](const ModelFact& fact) { return fact.key == ModelKey::RopeFrequency && !fact.field.empty(); });
    if (makes_angles) {
      const ValueId positions = ValueIn(op.body, "positions");
      if (positions.valid() != splits || (splits && At(positions) != Held::Positions)) {
        findings_.AddOp(section, index, "document-positions"_rule, "{}",
                        splits ? "makes angles of positions that do not begin again in each document"
                               : "makes angles by documents, and samples are cut from one stream");
      }
    }
  }

  const Plan& plan_;
  Findings& findings_;
  /// By buffer.
  std::vector<Held> held_;
};

}  // namespace

auto VerifyDocuments(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Build)) {
    DocumentVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
