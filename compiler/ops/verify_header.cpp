// The header against the ops: what the lines `model`, `data` and `run` say of sizes, of constants and of the batch is
// what the ops compute with. A checkpoint is written with these lines, and one with others is refused.
//
// What no op has is free: names, seeds, paths, intervals.
#include <charconv>
#include <set>
#include <unordered_map>

#include "compiler/base/recipe_words.h"
#include "compiler/base/run_id.h"
#include "compiler/expr/rotary.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

/// The number that `text` is, as a whole, where it is written as plans are: checkpoints compare the text.
template <class T>
auto ReadNumber(std::string_view text) -> std::optional<T> {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && fmt::format("{}", number) == text ? std::optional(number) : std::nullopt;
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
      Producers(ops);
      for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
        section_ = section;
        index_ = i;
        Check(ops[i]);
      }
    }
  }

 private:
  struct Sizes {
    int64_t layers = 0;
    int64_t hidden = 0;
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t head_dim = 0;
    int64_t ffn = 0;
    int64_t vocab = 0;
    int64_t seq = 0;
    double rope_theta = 0;
    double norm_eps = 0;
    bool tied = false;
  };

  auto ReadModel() -> bool;
  auto Heads() -> void;
  auto Layers() -> void;
  auto Batch() -> void;
  /// Notes what writes each value of a section.
  auto Producers(const std::vector<Op>& ops) -> void;
  auto Check(const Op& op) -> void;
  /// Asks of the header what the op shows of the model.
  auto CheckFact(const Op& op, const ModelFact& fact) -> void;
  /// The number that a fact of a size names.
  auto SizeOf(const Op& op, const ModelFact& fact) const -> int64_t;
  auto CheckEmbedding(const Op& op) -> void;
  auto CheckLoss(const LossOp& loss) -> void;
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
  /// By the value: the op that wrote it last.
  std::unordered_map<ValueId, const Op*> producers_;
};

auto HeaderVerifier::ReadModel() -> bool {
  bool complete = true;
  const auto read = [&]<class T>(const char* key, T& to) {
    const auto found = plan_.model.find(key);
    const std::optional<T> number = found == plan_.model.end() ? std::nullopt : ReadNumber<T>(found->second);
    if (!number) {
      findings_.Add("header-model"_rule, "the model's {} is {}, which is no number as plans write it", key,
                    found == plan_.model.end() ? "not there" : found->second);
    }
    to = number.value_or(T{});
    complete = complete && number.has_value();
  };
  read("layers", sizes_.layers);
  read("hidden", sizes_.hidden);
  read("heads", sizes_.heads);
  read("kv_heads", sizes_.kv_heads);
  read("head_dim", sizes_.head_dim);
  read("ffn", sizes_.ffn);
  read("vocab", sizes_.vocab);
  read("seq", sizes_.seq);
  read("rope_theta", sizes_.rope_theta);
  read("norm_eps", sizes_.norm_eps);
  const auto tied = plan_.model.find("tied");
  if (tied == plan_.model.end() || (tied->second != "true" && tied->second != "false")) {
    findings_.Add("header-model"_rule, "the model's tied is {}, expected true or false",
                  tied == plan_.model.end() ? "not there" : tied->second);
    return false;
  }
  sizes_.tied = tied->second == "true";
  const auto family = plan_.model.find("family");
  if (family == plan_.model.end() || !FromText<Family>(family->second)) {
    findings_.Add("header-family"_rule, "the model's family is {}, expected one of {}",
                  family == plan_.model.end() ? "not there" : family->second,
                  fmt::join(EnumNames<Family>::names, ", "));
    complete = false;
  }
  static const std::set<std::string_view> known{"family",   "layers", "hidden",     "heads",         "kv_heads",
                                                "head_dim", "ffn",    "vocab",      "seq",           "rope_theta",
                                                "norm_eps", "tied",   "loss_heads", "rope_frequency"};
  for (const auto& [key, value] : plan_.model) {
    if (!known.contains(key)) {
      findings_.Add("header-model"_rule, "the model has {} {}, which no op has", key, value);
      complete = false;
    }
  }
  return complete;
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

auto HeaderVerifier::Producers(const std::vector<Op>& ops) -> void {
  producers_.clear();
  for (const Op& op : ops) {
    if (FactsOf(op).work == Work::Product || FactsOf(op).meaning == Meaning::Cast) {
      for (const Access& access : AccessesOf(op.body)) {
        if (access.kind != AccessKind::Read) {
          producers_[access.value] = &op;
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
  // What model.rope_frequency is where the recipe, and so the header, has none.
  constexpr std::string_view Default = "rope_theta ^ (-2 * index(0) / head_dim)";
  const auto own = plan_.model.find("rope_frequency");
  const std::string text(own == plan_.model.end() ? Default : std::string_view(own->second));
  const auto frequency = ParseExpr(text, ExprKind::Frequency);
  const auto reduced = frequency.ok() ? ReduceRule(frequency.value, variables)
                                      : ExprResult<Expr>{.value = {}, .errors = frequency.errors};
  const std::string expected = reduced.ok() ? reduced.value.text() : "no formula";
  if (expected != own_frequency) {
    findings_.AddOp(section_, index_, "header-rope"_rule,
                    "the header has the frequency {} with rope_theta {}, which is {}; this op {}", text,
                    sizes_.rope_theta, expected, own_frequency);
  }
}

/// The model's own head is the embedding's matrix, or one of its own.
auto HeaderVerifier::CheckLoss(const LossOp& loss) -> void {
  if (loss.head.valid() && !plan_.heads[loss.head].is_own) {
    return;
  }
  const auto product = producers_.find(loss.logits);
  if (product == producers_.end() || FactsOf(*product->second).work != Work::Product) {
    return;
  }
  ValueId matrix = ValueIn(product->second->body, "b");
  if (const auto cast = producers_.find(matrix); cast != producers_.end() && CastOf(*cast->second)) {
    matrix = CastOf(*cast->second)->from;
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
