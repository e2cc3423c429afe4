// The header against the ops: what the lines `model`, `data` and `run` say of sizes, of constants and of the batch is
// what the ops compute with. A checkpoint is written with these lines, and one with others is refused.
//
// What no op has is free: names, seeds, paths, intervals.
#include <set>

#include "compiler/base/family_keys.h"
#include "compiler/base/recipe_words.h"
#include "compiler/base/run_id.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/expr/rotary.h"
#include "compiler/ops/loss.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// Returns the number or the truth value that the whole of `text` is. The text has to be written as plans are, because
/// checkpoints compare texts.
template <class T>
auto ReadValue(std::string_view text) -> std::optional<T> {
  if constexpr (std::is_same_v<T, bool>) {
    return text == "true" ? std::optional(true) : text == "false" ? std::optional(false) : std::nullopt;
  } else {
    const auto number = ParseWhole<T>(text);
    return number && fmt::format("{}", *number) == text ? number : std::nullopt;
  }
}

class HeaderVerifier {
 public:
  HeaderVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), tp_(plan.mesh.size(Axis::Tp)) {}

  auto Run() -> void {
    if (!ReadModel()) {
      return;
    }
    if (!IsRunId(plan_.run.run_id)) {
      findings_.Add("header-run-id"_rule,
                    "the run id is \"{}\"; it takes 1 to 128 of A-Z a-z 0-9 . _ - and begins with none of . and -",
                    plan_.run.run_id);
    }
    Heads();
    Layers();
    Batch();
    for (const SectionKind section : {SectionKind::Constants, SectionKind::Step, SectionKind::Eval}) {
      const std::vector<Op>& ops = plan_.section(section).ops;
      Producers(section);
      for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
        section_ = section;
        index_ = i;
        Check(ops[i]);
      }
    }
  }

 private:
  /// A member for each key of a model, with its default.
  struct Sizes {
    using Int = int64_t;
    using Real = double;
    using Bool = bool;
    using Formula = std::string;
#define REQUIRED
#define UNSET
#define MODEL_KEY(name, Type, default_, ...) Type name{default_};
#include "schemas/model_keys.def"
#undef REQUIRED
#undef UNSET
  };

  auto ReadModel() -> bool;
  /// Reads `key` of the line `model` into `size`. Returns true if the key is there and well formed.
  template <class T>
  auto ReadSize(const char* key, T& size) -> bool;
  auto Heads() -> void;
  auto Layers() -> void;
  auto Batch() -> void;
  /// Notes what writes each value of a section.
  auto Producers(SectionKind section) -> void;
  auto Check(const Op& op) -> void;
  /// Asks of the header what the op shows of the model.
  auto CheckFact(const Op& op, const ModelFact& fact) -> void;
  /// Returns the number that a fact of a size names.
  auto SizeOf(const Op& op, const ModelFact& fact) const -> int64_t;
  auto CheckEmbedding(const Op& op) -> void;
  auto CheckLoss(const LossOp& loss) -> void;
  auto ProducerOf(ValueId id) const -> const Op* { return producers_[static_cast<size_t>(id.index)]; }
  auto CheckFrequency(const std::string& own_frequency) -> void;

  template <class T>
  auto Expect(PlanRule rule, std::string_view key, const T& header, const T& found) -> void {
    if (header != found) {
      findings_.AddOp(section_, index_, rule, "the header has {} {}, this op {}", key, header, found);
    }
  }

  const Plan& plan_;
  Findings& findings_;
  int64_t tp_;
  Sizes sizes_;
  SectionKind section_ = SectionKind::Step;
  size_t index_ = 0;
  /// By value: the product or cast of the section that wrote it last; null where none did.
  std::vector<const Op*> producers_;
};

template <class T>
auto HeaderVerifier::ReadSize(const char* key, T& size) -> bool {
  const auto found = plan_.model.find(key);
  const bool is_there = found != plan_.model.end();
  if constexpr (std::is_same_v<T, std::string>) {
    // A formula stands there where it is not the default.
    size = is_there ? found->second : size;
    return true;
  } else {
    const std::optional<T> value = is_there ? ReadValue<T>(found->second) : std::nullopt;
    if (!value) {
      findings_.Add("header-model"_rule, "the model's {} is {}, {}", key, is_there ? found->second : "not there",
                    std::is_same_v<T, bool> ? "expected true or false" : "which is no number as plans write it");
    }
    size = value.value_or(T{});
    return value.has_value();
  }
}

auto HeaderVerifier::ReadModel() -> bool {
  const auto name = plan_.model.find("family");
  const std::optional<Family> family = name == plan_.model.end() ? std::nullopt : FromText<Family>(name->second);
  if (!family) {
    findings_.Add("header-family"_rule, "the model's family is {}, expected one of {}",
                  name == plan_.model.end() ? "not there" : name->second, fmt::join(EnumNames<Family>::names, ", "));
    return false;
  }
  bool is_complete = true;
#define MODEL_KEY(key, ...) is_complete = (!HasSize(*family, #key) || ReadSize(#key, sizes_.key)) && is_complete;
#include "schemas/model_keys.def"
  for (const auto& [key, value] : plan_.model) {
    if (key != "family" && key != "loss_heads" && !HasSize(*family, key)) {
      findings_.Add("header-model"_rule, "the model has {} {}, which models of family {} lack", key, value,
                    name->second);
      is_complete = false;
    }
  }
  return is_complete;
}

auto HeaderVerifier::Heads() -> void {
  std::string heads;
  for (const TargetHead& head : plan_.heads) {
    if (!head.is_own) {
      heads += fmt::format("{}{}:{}", heads.empty() ? "" : ",", head.name, head.vocab);
    } else if (head.vocab != sizes_.vocab) {
      findings_.Add("header-vocab"_rule, "the model's vocab is {}, that of its own head, {}, is {}", sizes_.vocab,
                    head.name, head.vocab);
    }
  }
  const auto found = plan_.model.find("loss_heads");
  if (const std::string header = found == plan_.model.end() ? "" : found->second; header != heads) {
    findings_.Add("header-loss-heads"_rule, "the model's loss_heads are \"{}\", those of the plan \"{}\"", header,
                  heads);
  }
  if (plan_.data.vocab != sizes_.vocab) {
    findings_.Add("header-vocab"_rule, "the model's vocab is {}, that of the data {}", sizes_.vocab, plan_.data.vocab);
  }
  if (plan_.data.seq != sizes_.seq) {
    findings_.Add("header-seq"_rule, "the model's seq is {}, that of the data {}", sizes_.seq, plan_.data.seq);
  }
}

auto HeaderVerifier::Layers() -> void {
  int64_t of_parameters = 0;
  for (const Parameter& parameter : plan_.parameters) {
    of_parameters = std::max(of_parameters, parameter.layer + 1);
  }
  for (const SectionKind section : {SectionKind::Step, SectionKind::Eval}) {
    std::set<int64_t> attending;
    for (const Op& op : plan_.section(section).ops) {
      if (FactsOf(op).work == Work::Attention) {
        attending.insert(op.layer);
      }
    }
    if ((!plan_.section(section).ops.empty() && std::ssize(attending) != sizes_.layers) ||
        of_parameters != sizes_.layers) {
      findings_.Add("header-layers"_rule, "the model has {} layers, {} of section {} have attention, {} parameters",
                    sizes_.layers, attending.size(), ToText(section), of_parameters);
    }
  }
}

auto HeaderVerifier::Batch() -> void {
  const auto expect = [&](SectionKind section, std::string_view key, int64_t header) {
    LoopTracker loops;
    int64_t of_load = 0;
    for (const Op& op : plan_.section(section).ops) {
      loops.Enter(op);
      if (const auto load = SampleLoadOf(op); load && load->tokens.valid()) {
        of_load = loops.count();
      }
    }
    if (header != of_load) {
      findings_.Add("header-batch"_rule, "the header has {} {}, section {} reads {} microbatches", key, header,
                    ToText(section), of_load);
    }
  };
  expect(SectionKind::Data, "accumulate", plan_.run.accumulate);
  expect(SectionKind::Eval, "eval_batches", plan_.run.eval_batches);
}

auto HeaderVerifier::Producers(SectionKind section) -> void {
  producers_.assign(static_cast<size_t>(plan_.values.size()), nullptr);
  const std::vector<Op>& ops = plan_.section(section).ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (FactsOf(ops[i]).work == Work::Product || FactsOf(ops[i]).meaning == Meaning::Cast) {
      for (const Access& access : findings_.AccessesOf(section, i)) {
        if (access.kind != AccessKind::Read) {
          producers_[static_cast<size_t>(access.value.index)] = &ops[i];
        }
      }
    }
  }
}

auto HeaderVerifier::Check(const Op& op) -> void {
  for (const ModelFact& fact : FactsOf(op).model) {
    if (!fact.field.empty()) {
      CheckFact(op, fact);
    }
  }
  if (FactsOf(op).vocabulary.as_tokens && FactsOf(op).vocabulary.by_rows) {
    CheckEmbedding(op);
  } else if (const auto loss = LossOf(op)) {
    CheckLoss(*loss);
  }
}

auto HeaderVerifier::SizeOf(const Op& op, const ModelFact& fact) const -> int64_t {
  if (!fact.dim) {
    return *AttributeOf<int64_t>(op.body, fact.field);
  }
  const Dims& shape = plan_.values[ValueIn(op.body, fact.field)].shape;
  const int64_t size = *fact.dim < 0 ? shape.back() : shape[static_cast<size_t>(*fact.dim)];
  const int64_t unit = fact.unit.empty() ? 1 : *AttributeOf<int64_t>(op.body, fact.unit);
  return size * fact.times / unit * (fact.is_cut ? tp_ : 1);
}

auto HeaderVerifier::CheckFact(const Op& op, const ModelFact& fact) -> void {
  switch (fact.key) {
    case ModelKey::Hidden: Expect("header-hidden"_rule, "hidden", sizes_.hidden, SizeOf(op, fact)); break;
    case ModelKey::Heads: Expect("header-heads"_rule, "heads", sizes_.heads, SizeOf(op, fact)); break;
    case ModelKey::KvHeads: Expect("header-heads"_rule, "kv_heads", sizes_.kv_heads, SizeOf(op, fact)); break;
    case ModelKey::HeadDim: Expect("header-heads"_rule, "head_dim", sizes_.head_dim, SizeOf(op, fact)); break;
    case ModelKey::Ffn: Expect("header-ffn"_rule, "ffn", sizes_.ffn, SizeOf(op, fact)); break;
    case ModelKey::Seq: Expect("header-seq"_rule, "seq", sizes_.seq, SizeOf(op, fact)); break;
    case ModelKey::NormEps:
      Expect("header-norm-eps"_rule, "norm_eps", sizes_.norm_eps, *AttributeOf<double>(op.body, fact.field));
      break;
    case ModelKey::RopeFrequency: CheckFrequency(*AttributeOf<std::string>(op.body, fact.field)); break;
  }
}

auto HeaderVerifier::CheckEmbedding(const Op& op) -> void {
  const Value& weight = plan_.values[ValueIn(op.body, FactsOf(op).vocabulary.matrix)];
  if (const ParameterId parameter = weight.role.parameter(); parameter.valid()) {
    Expect("header-vocab"_rule, "vocab", sizes_.vocab, plan_.parameters[parameter].shape[0]);
  }
}

auto HeaderVerifier::CheckFrequency(const std::string& own_frequency) -> void {
  if (!findings_.empty()) {
    return;
  }
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  const ExprVariables variables{{"layers", as_double(sizes_.layers)},     {"hidden", as_double(sizes_.hidden)},
                                {"heads", as_double(sizes_.heads)},       {"kv_heads", as_double(sizes_.kv_heads)},
                                {"head_dim", as_double(sizes_.head_dim)}, {"seq", as_double(sizes_.seq)},
                                {"rope_theta", sizes_.rope_theta}};
  const auto frequency = ParseExpr(sizes_.rope_frequency, ExprKind::Frequency);
  const auto reduced = frequency.ok() ? ReduceRule(frequency.value, variables)
                                      : ExprResult<Expr>{.value = {}, .errors = frequency.errors};
  const std::string expected = reduced.ok() ? reduced.value.text() : "no formula";
  if (expected != own_frequency) {
    findings_.AddOp(section_, index_, "header-rope"_rule,
                    "the header has the frequency {} with rope_theta {}, which is {}; this op {}",
                    sizes_.rope_frequency, sizes_.rope_theta, expected, own_frequency);
  }
}

/// Asks that the model's own head uses the embedding's matrix, or one of its own.
auto HeaderVerifier::CheckLoss(const LossOp& loss) -> void {
  if (loss.head.valid() && !plan_.heads[loss.head].is_own) {
    return;
  }
  const Op* product = ProducerOf(loss.logits);
  if (product == nullptr || FactsOf(*product).work != Work::Product) {
    return;
  }
  ValueId matrix = ValueIn(product->body, "b");
  if (const Op* cast = ProducerOf(matrix); cast != nullptr && CastOf(*cast)) {
    matrix = CastOf(*cast)->from;
  }
  for (const Op& op : plan_.section(section_).ops) {
    const VocabularyFact& vocabulary = FactsOf(op).vocabulary;
    if (vocabulary.as_tokens) {
      Expect("header-tied"_rule, "tied", sizes_.tied,
             plan_.values[matrix].role == plan_.values[ValueIn(op.body, vocabulary.matrix)].role);
      return;
    }
  }
}

}  // namespace

auto VerifyHeader(const Plan& plan, Findings& findings) -> void {
  // Until then the loop over microbatches, and what is a rank's own, come about.
  if (plan.Established(PassKind::Lifecycle)) {
    HeaderVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
