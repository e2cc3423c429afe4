// Plan to text. Order of lines: header, tables, triggers, sections; every table in id order, and no line before those
// of what it names. Nothing is aligned, so that a change of one line shows as one line.
#include <iterator>
#include <set>

#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

/// Appends ` name=value`.
struct FieldWriter {
  const PlanNames& names;
  const PrintOptions& options;
  std::string& out;

  template <class T>
  auto Field(std::string_view name, const T& value) -> void {
    out += ' ';
    out += name;
    out += '=';
    AppendField(names, value, out);
  }
  template <class T>
  auto Default(std::string_view name, const T& value, const T& left_out) -> void {
    if (!(value == left_out)) {
      Field(name, value);
    }
  }
  auto Path(std::string_view name, const std::string& value) -> void {
    if (options.paths) {
      Default(name, value, std::string{});
    }
  }
};

/// Appends `  // recipe:21 shard.reshard_after_forward, shard`; either part may be missing.
auto AppendOrigin(const Origin& origin, std::string_view made_by, std::string& out) -> void {
  const bool known = origin.line != 0 || !origin.key.empty();
  if (!known && made_by.empty()) {
    return;
  }
  out += "  // ";
  if (known) {
    out += "recipe";
    out += origin.line != 0 ? ":" + std::to_string(origin.line) : "";
    out += origin.key.empty() ? "" : " " + QuoteIfNeeded(origin.key.text());
    out += made_by.empty() ? "" : ", ";
  }
  out += made_by;
}

auto AppendOp(const Op& op, const PlanNames& names, const PrintOptions& options, std::string& out) -> void {
  FieldWriter writer{names, options, out};
  if (LoopEdgeOf(op) == LoopEdge::End) {
    out += '}';
    writer.Default("stream", op.stream, Stream::Compute);
  } else {
    out += ToText(op.stream);
    out += ' ';
    out += ToText(op.kind());
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, RowFields<FieldWriter>{writer}); });
  }
  VisitLine(op, writer);
  out += LoopEdgeOf(op) == LoopEdge::Begin ? " {" : "";
  if (options.origins) {
    AppendOrigin(op.origin, ToText(op.made_by), out);
  }
}

/// Which buffers and values to print.
struct Selection {
  bool all = true;
  std::set<BufferId> buffers;
  std::set<ValueId> values;
};

auto SelectUsed(const Plan& plan, const Section& section) -> Selection {
  Selection selection{.all = false, .buffers = {}, .values = {}};
  const auto add = [&](ValueId value) {
    if (plan.values.Has(value)) {
      selection.values.insert(value);
      selection.buffers.insert(plan.values[value].buffer);
    }
  };
  for (const Op& op : section.ops) {
    for (const Access& access : AccessesOf(op.body)) {
      add(access.value);
      add(access.kills);
    }
  }
  return selection;
}

class Printer {
 public:
  Printer(const Plan& plan, const PrintOptions& options) : plan_(plan), names_(plan), options_(options) {}

  auto Print() -> std::string {
    // A text that grows is copied again and again. What is reserved and not written takes no memory.
    constexpr size_t BytesPerLine = 192;
    size_t lines = static_cast<size_t>(plan_.buffers.size()) + static_cast<size_t>(plan_.values.size());
    for (const Section& section : plan_.sections) {
      lines += section.ops.size();
    }
    out_.reserve(options_.section ? 0 : BytesPerLine * lines);
    FirstLine();
    if (options_.section) {
      PrintMemory(SelectUsed(plan_, plan_.section(*options_.section)));
      PrintSection(*options_.section);
      return std::move(out_);
    }
    PrintHeader();
    PrintTables();
    PrintMemory({});
    PrintSlices();
    PrintTriggers();
    for (size_t i = 0; i < NumSections; ++i) {
      if (!plan_.sections[i].ops.empty()) {
        PrintSection(static_cast<SectionKind>(i));
      }
    }
    return std::move(out_);
  }

 private:
  /// The fields of one line, its comment and its end.
  template <class T>
  auto FinishLine(const T& item, const Origin& origin = {}) -> void {
    VisitLine(item, FieldWriter{names_, options_, out_});
    if (options_.origins) {
      AppendOrigin(origin, {}, out_);
    }
    out_ += '\n';
  }

  auto FirstLine() -> void {
    std::string mesh;
    for (int i = 0; i < NumAxes; ++i) {
      const int64_t size = plan_.mesh.size(static_cast<Axis>(i));
      if (size != 1) {
        mesh += fmt::format("{}{}:{}", mesh.empty() ? "" : ",", ToText(static_cast<Axis>(i)), size);
      }
    }
    if (plan_.mesh.hosts != 1) {
      mesh += fmt::format("{}hosts:{}", mesh.empty() ? "" : ",", plan_.mesh.hosts);
    }
    out_ += fmt::format("plan version={} mesh={} device={} kernels={}\n", Plan::Version, mesh.empty() ? "1" : mesh,
                        ToText(plan_.device), ToText(plan_.kernels));
  }

  auto PrintHeader() -> void {
    if (!plan_.model.empty()) {
      out_ += "model";
      for (const auto& [key, value] : plan_.model) {
        out_ += fmt::format(" {}={}", QuoteIfNeeded(key), QuoteIfNeeded(value));
      }
      out_ += '\n';
    }
    if (options_.paths) {
      for (const std::string& text : plan_.overrides) {
        out_ += fmt::format("set {}\n", Quote(text));
      }
      PrintRecipe();
    }
    out_ += "data";
    FinishLine(plan_.data);
    PrintSources();
    out_ += "run";
    FinishLine(plan_.run);
    if (plan_.seed.is_set()) {
      out_ += "seed";
      FinishLine(plan_.seed);
      for (const SeedTensor& tensor : plan_.seed.tensors) {
        out_ += fmt::format("  seed_tensor {} {}{}\n", QuoteIfNeeded(tensor.name), ToText(tensor.dtype),
                            ToText(tensor.shape));
      }
    }
    PrintPasses("passes", plan_.passes);
    PrintPasses("disabled", plan_.disabled);
  }

  /// A value that is too long for a line continues in the next one, which has the same key.
  auto PrintRecipe() -> void {
    for (const RecipeEntry& entry : options_.recipe ? plan_.recipe : std::vector<RecipeEntry>{}) {
      std::string_view rest = entry.value;
      do {
        out_ += fmt::format("recipe {} {}{}\n", QuoteIfNeeded(entry.key), Quote(rest.substr(0, RecipeLineBytes)),
                            entry.is_assumed  ? " assumed"
                            : entry.line == 0 ? ""
                                              : fmt::format(" {}", entry.line));
        rest.remove_prefix(std::min(RecipeLineBytes, rest.size()));
      } while (!rest.empty());
    }
  }

  auto PrintSources() -> void {
    for (const TokenSource& source : plan_.data.sources) {
      const bool is_named =
          plan_.data.sources.size() > 1 || source != TokenSource{.files = source.files, .targets = source.targets};
      if (is_named) {
        out_ += fmt::format("source {}", QuoteIfNeeded(source.name));
        FinishLine(source);
      }
      for (size_t i = 0; options_.paths && i < source.files.size(); ++i) {
        out_ += fmt::format("{}tokens {}\n", is_named ? "  " : "", Quote(source.files[i]));
      }
      for (size_t i = 0; options_.paths && i < source.targets.size(); ++i) {
        out_ += fmt::format("  targets {}\n", Quote(source.targets[i]));
      }
    }
    for (size_t i = 0; options_.paths && i < plan_.data.eval_files.size(); ++i) {
      out_ += fmt::format("eval_tokens {}\n", Quote(plan_.data.eval_files[i]));
    }
  }

  auto PrintPasses(std::string_view word, const std::vector<PassKind>& passes) -> void {
    if (!passes.empty()) {
      out_ += word;
      for (const PassKind pass : passes) {
        out_ += ' ';
        out_ += ToText(pass);
      }
      out_ += '\n';
    }
  }

  /// `value logits`: what a line declares.
  template <class IdType>
  auto BeginLine(std::string_view word, IdType id) -> void {
    out_ += word;
    out_ += ' ';
    names_.Append(id, out_);
  }

  auto PrintTables() -> void {
    for (const HeadId id : plan_.heads.ids()) {
      const TargetHead& head = plan_.heads[id];
      BeginLine("head", id);
      FinishLine(head);
      for (size_t i = 0; options_.paths && i < head.files.size(); ++i) {
        out_ += fmt::format("  targets {}\n", Quote(head.files[i]));
      }
    }
    for (const GroupId id : plan_.groups.ids()) {
      BeginLine("group", id);
      FinishLine(plan_.groups[id]);
    }
    for (const ParameterId id : plan_.parameters.ids()) {
      const Parameter& parameter = plan_.parameters[id];
      BeginLine("parameter", id);
      const std::string placement = ToText(parameter.placement);
      out_ += fmt::format(" {}{}{}{}", ToText(parameter.dtype), ToText(parameter.shape), placement.empty() ? "" : " ",
                          placement);
      FinishLine(parameter, parameter.init_origin);
    }
    for (const UnitId id : plan_.units.ids()) {
      BeginLine("unit", id);
      FinishLine(plan_.units[id], plan_.units[id].origin);
    }
    for (const SubVectorId id : plan_.sub_vectors.ids()) {
      BeginLine("sub_vector", id);
      FinishLine(plan_.sub_vectors[id]);
      for (const Segment& segment : plan_.sub_vectors[id].segments) {
        out_ += "  segment";
        FinishLine(segment);
      }
    }
    for (const ScalarId id : plan_.scalars.ids()) {
      BeginLine("scalar", id);
      out_ += ' ';
      out_ += ToText(plan_.scalars[id].kind);
      FinishLine(plan_.scalars[id]);
    }
  }

  auto PrintSlices() -> void {
    for (const SubVectorId id : plan_.sub_vectors.ids()) {
      const size_t begin = out_.size();
      BeginLine("slices", id);
      const size_t fields = out_.size();
      VisitLine(SlicesOf<const SubVector>{plan_.sub_vectors[id]}, FieldWriter{names_, options_, out_});
      if (out_.size() == fields) {
        out_.resize(begin);
      } else {
        out_ += '\n';
      }
    }
  }

  auto PrintMemory(const Selection& selection) -> void {
    for (int i = 0; i < NumArenas; ++i) {
      if (const int64_t bytes = plan_.arena_bytes[static_cast<size_t>(i)]; bytes != 0) {
        out_ += fmt::format("arena {} bytes={}\n", ToText(static_cast<Arena>(i)), bytes);
      }
    }
    for (const BufferId id : plan_.buffers.ids()) {
      if (selection.all || selection.buffers.contains(id)) {
        const Buffer& buffer = plan_.buffers[id];
        BeginLine("buffer", id);
        out_ += ' ';
        out_ += ToText(buffer.arena);
        FinishLine(buffer);
      }
    }
    for (const ValueId id : plan_.values.ids()) {
      if (selection.all || selection.values.contains(id)) {
        PrintValue(id);
      }
    }
  }

  auto PrintValue(ValueId id) -> void {
    const Value& value = plan_.values[id];
    BeginLine("value", id);
    out_ += " = ";
    names_.Append(value.buffer, out_, {}, '[' + ToText(value.offset) + ']');
    out_ += ' ';
    out_ += ToText(value.dtype);
    out_ += ToText(value.shape);
    if (const std::string placement = ToText(value.placement); !placement.empty()) {
      out_ += ' ';
      out_ += placement;
    }
    FinishLine(value);
  }

  auto PrintTriggers() -> void {
    for (const Trigger& trigger : plan_.triggers) {
      out_ += fmt::format("trigger {} {}", ToText(trigger.section), ToText(trigger.kind));
      FinishLine(trigger);
    }
    for (const Halt& halt : plan_.halts) {
      out_ += "halt";
      FinishLine(halt);
    }
  }

  auto PrintSection(SectionKind kind) -> void {
    out_ += fmt::format("section {} {{\n", ToText(kind));
    int depth = 1;
    for (const Op& op : plan_.section(kind).ops) {
      depth -= LoopEdgeOf(op) == LoopEdge::End && depth > 1 ? 1 : 0;
      out_.append(static_cast<size_t>(2 * depth), ' ');
      AppendOp(op, names_, options_, out_);
      out_ += '\n';
      depth += LoopEdgeOf(op) == LoopEdge::Begin ? 1 : 0;
    }
    out_ += "}\n";
  }

  const Plan& plan_;
  const PlanNames names_;
  const PrintOptions& options_;
  std::string out_;
};

}  // namespace

auto PrintPlan(const Plan& plan, const PrintOptions& options) -> std::string { return Printer(plan, options).Print(); }

auto PrintOp(const Op& op, const PlanNames& names, bool origin) -> std::string {
  std::string text;
  AppendOp(op, names, PrintOptions{.origins = origin}, text);
  return text;
}

}  // namespace shardc
