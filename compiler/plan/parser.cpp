// Text to plan, line by line. Every line is bounded, every count comes from lines that are there, and a line names only
// what lines above it declare. The first fault ends the reading. The lines of sections are op_parser.cpp's.
#include <algorithm>
#include <utility>

#include "compiler/base/plan_limits.h"
#include "compiler/plan/line_parser.h"
#include "compiler/plan/op_parser.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

/// More than any text of a recipe, spelled out.
constexpr size_t MaxLineBytes = size_t{2} << 20;
constexpr size_t MaxPasses = 256;
/// Keys are searched for one by one, as names of scalars are.
constexpr size_t MaxRecipeKeys = 1024;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  auto Parse() -> ErrorOr<Plan>;

 private:
  auto ParseLine() -> bool;
  auto ExpectCharacters(std::string_view line) -> bool;
  auto ParsePlanLine() -> bool;
  auto ParseHeaderLine(std::string_view word) -> bool;
  auto ParseTableLine(std::string_view word) -> bool;
  auto ParseModel() -> bool;
  auto ParsePasses(std::vector<PassKind>& passes) -> bool;
  auto ParseRecipeLine() -> bool;
  auto ParseArena() -> bool;
  auto ParseSlices() -> bool;
  auto ParseSection() -> bool;

  /// Returns a new row of a table, into which its line is read. The row of a line that is rejected stays: the plan is
  /// thrown away with the first fault.
  template <class Table>
  static auto NewRow(Table& table) -> auto& {
    return table[table.Add({})];
  }

  auto Once(std::string_view what) -> bool {
    const bool again = std::find(seen_.begin(), seen_.end(), what) != seen_.end();
    seen_.emplace_back(what);
    return !again || in_.Reject(1, "second `{}` line", what);
  }

  std::string_view text_;
  Plan plan_;
  LineParser in_;
  std::vector<std::string> seen_;
  OpParser ops_{&in_};
  /// The line `plan` was read.
  bool has_begun_ = false;
};

auto Parser::ParsePlanLine() -> bool {
  LineParser::LineFields fields{in_};
  if (!in_.TakeLiteral("plan") || !in_.TakeFields(fields, false)) {
    return false;
  }
  int64_t version = 0;
  fields.Field("version", version);
  if (!in_.error() && version != Plan::Version) {
    return in_.Reject(1, "the plan has format version {}, this program reads version {}", version, Plan::Version);
  }
  std::string mesh;
  fields.Field("mesh", mesh);
  fields.Field("device", plan_.device);
  fields.Field("kernels", plan_.kernels);
  if (!in_.ExpectAllUsed(fields)) {
    return false;
  }
  const auto word =
      std::find_if(fields.words.begin(), fields.words.end(), [](const Word& own) { return own.key() == "mesh"; });
  return in_.ReadMesh(*word, plan_.mesh);
}

auto Parser::ParseModel() -> bool {
  LineParser::LineFields fields{in_};
  if (!in_.TakeFields(fields, false)) {
    return false;
  }
  for (const Word& field : fields.words) {
    if (QuoteIfNeeded(field.key()) != field.key()) {
      return in_.Reject(field.column, "`{}` is not a name", LineParser::Shortened(field.key()));
    }
    if (!plan_.model.emplace(field.key(), field.value()).second) {
      return in_.Reject(field.column, "field `{}` stands twice", LineParser::Shortened(field.key()));
    }
  }
  return true;
}

auto Parser::ParsePasses(std::vector<PassKind>& passes) -> bool {
  while (!in_.AtEnd()) {
    PassKind pass{};
    if (passes.size() == MaxPasses) {
      return in_.Reject(in_.column(), "more than {} passes", MaxPasses);
    }
    if (!in_.Take("pass", pass)) {
      return false;
    }
    passes.push_back(pass);
  }
  return true;
}

auto Parser::ParseRecipeLine() -> bool {
  RecipeEntry entry;
  const int at = in_.column();
  if (!in_.Take("key", entry.key) || !in_.Take("value", entry.value)) {
    return false;
  }
  if (in_.Peek() == 'a') {
    if (!in_.TakeLiteral("assumed")) {
      return false;
    }
    entry.is_assumed = true;
  } else if (!in_.AtEnd()) {
    const int line_at = in_.column();
    if (!in_.Take("line", entry.line)) {
      return false;
    }
    if (entry.line <= 0) {
      return in_.Reject(line_at, "a line of the recipe is a number above 0");
    }
  }
  if (!in_.ExpectEnd()) {
    return false;
  }
  std::vector<RecipeEntry>& recipe = plan_.recipe;
  const bool continues = !recipe.empty() && recipe.back().key == entry.key && !recipe.back().value.empty() &&
                         recipe.back().value.size() % RecipeLineBytes == 0;
  if (continues) {
    if (recipe.back().line != entry.line || recipe.back().is_assumed != entry.is_assumed) {
      return in_.Reject(at, "the line continues `{}`, and the two end in different words",
                        LineParser::Shortened(entry.key));
    }
    recipe.back().value += entry.value;
    return true;
  }
  if (recipe.size() == MaxRecipeKeys) {
    return in_.Reject(at, "more than {} keys of the recipe", MaxRecipeKeys);
  }
  if (std::any_of(recipe.begin(), recipe.end(), [&](const RecipeEntry& other) { return other.key == entry.key; })) {
    return in_.Reject(at, "the key `{}` stands twice", LineParser::Shortened(entry.key));
  }
  recipe.push_back(std::move(entry));
  return true;
}

auto Parser::ParseHeaderLine(std::string_view word) -> bool {
  if (word == "model") {
    return Once(word) && ParseModel();
  }
  if (word == "set") {
    return in_.Take("text", plan_.overrides.emplace_back()) && in_.ExpectEnd();
  }
  if (word == "recipe") {
    return ParseRecipeLine();
  }
  if (word == "data") {
    if (!Once(word) || !in_.TakeItem(plan_.data)) {
      return false;
    }
    if (plan_.data.is_synthetic()) {
      // Without a name and without files, it has no line of its own.
      plan_.data.sources.emplace_back();
    }
    return true;
  }
  if (word == "source") {
    // Tokens that are made have their source already.
    const bool is_there = plan_.data.is_synthetic() && plan_.data.sources.size() == 1;
    TokenSource& source = is_there ? plan_.data.sources.back() : plan_.data.sources.emplace_back();
    return in_.Take("name", source.name) && in_.TakeItem(source);
  }
  if (word == "tokens") {
    // Those of the one stream stand without a source.
    if (plan_.data.sources.empty()) {
      plan_.data.sources.emplace_back();
    }
    return in_.Take("file name", plan_.data.sources.back().files.emplace_back()) && in_.ExpectEnd();
  }
  if (word == "eval_tokens") {
    return in_.Take("file name", plan_.data.eval_files.emplace_back()) && in_.ExpectEnd();
  }
  if (word == "run") {
    return Once(word) && in_.TakeItem(plan_.run);
  }
  if (word == "seed") {
    const int at = in_.column();
    return Once(word) && in_.TakeItem(plan_.seed) &&
           (plan_.seed.is_set() || in_.Reject(at, "a seed without the digest of its manifest"));
  }
  if (word == "seed_tensor") {
    SeedTensor& tensor = plan_.seed.tensors.emplace_back();
    return (plan_.seed.is_set() || in_.Reject(1, "a seed_tensor before the seed")) && in_.Take("name", tensor.name) &&
           in_.TakeTypeAndShape(tensor.dtype, tensor.shape, true) && in_.ExpectEnd();
  }
  if (word == "passes") {
    return Once(word) && ParsePasses(plan_.passes);
  }
  if (word == "disabled") {
    return Once(word) && ParsePasses(plan_.disabled);
  }
  if (word == "trigger") {
    Trigger& trigger = plan_.triggers.emplace_back();
    return in_.Take("section", trigger.section) && in_.Take("trigger", trigger.kind) && in_.TakeItem(trigger);
  }
  if (word == "halt") {
    return in_.TakeItem(plan_.halts.emplace_back());
  }
  return ParseTableLine(word);
}

auto Parser::ParseTableLine(std::string_view word) -> bool {
  if (word == "head") {
    TargetHead& head = NewRow(plan_.heads);
    return in_.TakeNewName<HeadId>(head.name) && in_.TakeItem(head);
  }
  if (word == "targets") {
    // A mixture has no heads, and targets of its sources.
    if (plan_.heads.empty() && !plan_.data.is_mixture()) {
      return in_.Reject(1, "targets before the first head");
    }
    auto& files =
        plan_.heads.empty() ? plan_.data.sources.back().targets : plan_.heads[HeadId{plan_.heads.size() - 1}].files;
    return in_.Take("file name", files.emplace_back()) && in_.ExpectEnd();
  }
  if (word == "group") {
    OptimizerGroup& group = NewRow(plan_.groups);
    return in_.TakeNewName<GroupId>(group.name) && in_.TakeItem(group);
  }
  if (word == "parameter") {
    Parameter& parameter = NewRow(plan_.parameters);
    const bool read = in_.TakeNewName<ParameterId>(parameter.name) &&
                      in_.TakeTypeAndShape(parameter.dtype, parameter.shape) &&
                      in_.TakePlacement(parameter.placement) && in_.TakeItem(parameter);
    in_.TakeOrigin(parameter.init_origin, nullptr);
    return read;
  }
  if (word == "unit") {
    Unit& unit = NewRow(plan_.units);
    const bool read = in_.TakeNewName<UnitId>(unit.name) && in_.TakeItem(unit);
    in_.TakeOrigin(unit.origin, nullptr);
    return read;
  }
  if (word == "sub_vector") {
    std::string name;
    return in_.TakeNewName<SubVectorId>(name) && in_.TakeItem(NewRow(plan_.sub_vectors));
  }
  if (word == "segment") {
    return plan_.sub_vectors.empty()
               ? in_.Reject(1, "a segment before the first sub_vector")
               : in_.TakeItem(plan_.sub_vectors[SubVectorId{plan_.sub_vectors.size() - 1}].segments.emplace_back());
  }
  if (word == "scalar") {
    if (plan_.scalars.size() == MostScalars) {
      return in_.Reject(1, "more than {} scalars", MostScalars);
    }
    Scalar& scalar = NewRow(plan_.scalars);
    return in_.TakeNewName<ScalarId>(scalar.name) && in_.Take("kind", scalar.kind) && in_.TakeItem(scalar);
  }
  if (word == "arena") {
    return ParseArena();
  }
  if (word == "buffer") {
    Buffer& buffer = NewRow(plan_.buffers);
    return in_.TakeNewName<BufferId>(buffer.name) && in_.Take("arena", buffer.arena) && in_.TakeItem(buffer);
  }
  if (word == "value") {
    Value& value = NewRow(plan_.values);
    return in_.TakeNewName<ValueId>(value.name) && in_.TakeLiteral("=") && in_.TakeView(value.buffer, value.offset) &&
           in_.TakeTypeAndShape(value.dtype, value.shape) && in_.TakePlacement(value.placement) && in_.TakeItem(value);
  }
  if (word == "slices") {
    return ParseSlices();
  }
  return in_.Reject(1, "`{}` does not begin a line of a plan", LineParser::Shortened(word));
}

auto Parser::ParseArena() -> bool {
  Arena arena{};
  Bytes bytes;
  LineParser::LineFields fields{in_};
  if (!in_.Take("arena", arena) || !Once(fmt::format("arena {}", ToText(arena))) || !in_.TakeFields(fields, false)) {
    return false;
  }
  fields.Field("bytes", bytes);
  plan_.arena_bytes[static_cast<size_t>(arena)] = bytes.value;
  return in_.ExpectAllUsed(fields);
}

auto Parser::ParseSlices() -> bool {
  SubVectorId id;
  const int at = in_.column();
  if (!in_.Take("sub-vector", id)) {
    return false;
  }
  SubVector& own = plan_.sub_vectors[id];
  bool is_named = false;
  ForEachSlice(own, [&](ValueId slice) { is_named = is_named || slice.valid(); });
  if (is_named) {
    return in_.Reject(at, "the slices of this sub-vector stand above already");
  }
  SlicesOf<SubVector> slices{own};
  return in_.TakeItem(slices);
}

auto Parser::ParseSection() -> bool {
  SectionKind kind{};
  if (!in_.Take("section", kind) || !Once(fmt::format("section {}", ToText(kind))) || !in_.TakeLiteral("{")) {
    return false;
  }
  ops_.Open(&plan_.section(kind));
  return in_.ExpectEnd();
}

auto Parser::ParseLine() -> bool {
  if (in_.AtEnd()) {
    return true;
  }
  if (!std::exchange(has_begun_, true)) {
    return ParsePlanLine();
  }
  const auto word = in_.TakeWord("word");
  if (!word) {
    return false;
  }
  if (ops_.is_open()) {
    return ops_.ParseLine(*word);
  }
  return word->text == "section" ? ParseSection() : ParseHeaderLine(word->text);
}

/// Plans are printable ASCII, so that a plan looks the same in every editor and no two plans look alike.
auto Parser::ExpectCharacters(std::string_view line) -> bool {
  const auto other = std::ranges::find_if(line, [](char c) { return c < ' ' || c > '~'; });
  if (other == line.end()) {
    return true;
  }
  const int column = static_cast<int>(other - line.begin()) + 1;
  if (*other == '\r' && other + 1 == line.end()) {
    return in_.Reject(column, "the line ends in CRLF; lines of a plan end in LF alone");
  }
  return in_.Reject(column, "a byte {:#04x} stands where printable ASCII belongs; in quotes it is written \\x{:02x}",
                    static_cast<unsigned char>(*other), static_cast<unsigned char>(*other));
}

auto Parser::Parse() -> ErrorOr<Plan> {
  int line_number = 0;
  std::string_view rest = text_.size() > MaxPlanBytes ? std::string_view{} : text_;
  while (!rest.empty() && !in_.error()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    in_.Begin(++line_number, line);
    if (line.size() > MaxLineBytes) {
      in_.Reject(1, "the line has {} bytes; lines have {} at most", line.size(), MaxLineBytes);
    } else if (line_number == 1 && line.starts_with("\xef\xbb\xbf")) {
      in_.Reject(1, "the text begins with a byte order mark; a plan begins with `plan version=`");
    } else if (ExpectCharacters(line)) {
      ParseLine();
    }
  }
  if (line_number == 0) {
    in_.Begin(1, {});
    in_.Reject(1, "the text has {} bytes; plans have 1 to {}", text_.size(), MaxPlanBytes);
  } else if (!has_begun_) {
    in_.Reject(1, "the text ends before the line `plan version=...`");
  } else if (ops_.is_open()) {
    in_.Reject(1, "the text ends inside a section");
  }
  plan_.num_events = in_.num_events();
  return in_.error() ? ErrorOr<Plan>(*in_.error()) : ErrorOr<Plan>(std::move(plan_));
}

}  // namespace

auto ParsePlan(std::string_view text) -> ErrorOr<Plan> { return Parser(text).Parse(); }

}  // namespace shardc
