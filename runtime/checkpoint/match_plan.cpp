#include "runtime/checkpoint/match_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/stage.h"
#include "compiler/keys/adapters.h"
#include "runtime/checkpoint/another_run.h"
#include "runtime/checkpoint/differences.h"
#include "runtime/checkpoint/match_data.h"

namespace shardc {

namespace {

/// Names that a message lists, at most.
constexpr size_t MostNamed = 5;

/// The states that the plan keeps of each parameter.
auto RolesOf(const Plan& plan, ReadPurpose purpose) -> std::map<std::string, std::set<StateRole>> {
  std::map<std::string, std::set<StateRole>> roles;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      std::set<StateRole>& of_parameter = roles[plan.parameters[segment.parameter].name];
      for (const StateRole role : StateRoles) {
        if (role == StateRole::Parameter || (purpose == ReadPurpose::Resume && StateOf(sub_vector, role).valid())) {
          of_parameter.insert(role);
        }
      }
    }
  }
  return roles;
}

/// Returns what the digest of a seed is of.
auto DigestedOf(const Seed& seed) -> std::string_view {
  switch (seed.format) {
    case SeedFormat::Checkpoint: return "manifest";
    case SeedFormat::HuggingFace: return "config.json and headers";
  }
  CHECK(false, "format {}", static_cast<int>(seed.format));
}

/// Checks that the plan takes from the checkpoint that it continues what that gives.
auto MatchStage(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Plan& plan = *options.plan;
  if (!plan.seed.continues()) {
    return Success{};
  }
  const KeepsPart keeps = KeptBy(plan);
  ASSIGN_OR_RETURN(const auto stage, StageOf(manifest, keeps));
  const std::string difference = StageDifference(manifest, stage, plan);
  FAIL_IF(!difference.empty(), ExitCode::Checkpoint, "it is not as the plan says: {}; make the plan again", difference);
  const std::string fault = StageFault(manifest, plan, keeps);
  FAIL_IF(!fault.empty(), ExitCode::Checkpoint, "the run cannot continue it: {}", fault);
  if (keeps(StagePart::Data)) {
    const std::string others = OtherFiles(manifest.data, options);
    FAIL_IF(!others.empty(), ExitCode::Checkpoint,
            "the run goes on with other data: {}; put them back, or add \"data\" to `reset`", others);
  }
  return Success{};
}

auto MatchSeed(const Manifest& manifest, std::string_view digest, const Seed& seed) -> Status {
  FAIL_IF(digest != seed.manifest, ExitCode::Checkpoint,
          "it is not the one that the plan was made for: the digest of its {} is {}, the plan says {}; make the plan "
          "again",
          DigestedOf(seed), digest, seed.manifest);
  Differences tensors;
  for (const SeedTensor& here : seed.tensors) {
    const auto there = manifest.tensors.find(here.name);
    tensors.Compare(here.name,
                    there == manifest.tensors.end()
                        ? "not there"
                        : std::string(ToText(there->second.dtype)) + ToText(there->second.shape),
                    std::string(ToText(here.dtype)) + ToText(here.shape));
  }
  return tensors.empty() ? Status(Success{})
                         : Fail(ExitCode::Checkpoint, "it is not as the plan says: {}", tensors.Text());
}

/// The recipe's key for a member of the model's identity.
auto KeyOf(const std::string& member) -> std::string {
  return member == "loss_heads" ? "loss.head" : "model." + member;
}

/// Of parameters by the types that they are kept in, there and here.
class TypeChanges {
 public:
  auto Compare(const std::string& name, DType there, DType here) -> void {
    if (there != here) {
      Change& change = changes_[{there, here}];
      change.first = change.count == 0 ? name : change.first;
      ++change.count;
    }
  }
  auto empty() const -> bool { return changes_.empty(); }
  auto Text() const -> std::string {
    std::string text;
    for (const auto& [types, change] : changes_) {
      text += fmt::format("{}{} {} kept in {} in the checkpoint, in {} in this run ({}{})", text.empty() ? "" : "; ",
                          change.count, change.count == 1 ? "parameter is" : "parameters are", ToText(types.first),
                          ToText(types.second), change.first,
                          change.count == 1 ? "" : fmt::format(" and {} more", change.count - 1));
    }
    return text;
  }

 private:
  struct Change {
    int64_t count = 0;
    std::string first;
  };
  std::map<std::pair<DType, DType>, Change> changes_;
};

/// Returns what of the stage that the run is the plan has otherwise.
auto StageOfRunDifference(const Manifest& manifest, const Plan& plan) -> std::string {
  const ManifestSeed& there = manifest.seed;
  const ManifestSeed here = RecordOf(plan);
  Differences stage;
  stage.Compare("the number of steps before", there.steps_before, here.steps_before);
  stage.Compare("the number of updates before", there.updates, here.updates);
  stage.Compare("the first step of the schedules", there.first_step, here.first_step);
  const auto& samples = manifest.data.first_samples;
  for (size_t s = 0; s < plan.data.sources.size(); ++s) {
    stage.Compare(fmt::format("the first sample of source {}", s), s < samples.size() ? samples[s] : 0,
                  plan.data.sources[s].first_sample);
  }
  return stage.Text();
}

/// A run keeps what it began from; which seed the recipe names now must be that one, or none.
auto MatchRunsSeed(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Seed& seed = options.plan->seed;
  const ManifestSeed& there = manifest.seed;
  const std::string stage = StageOfRunDifference(manifest, *options.plan);
  FAIL_IF(!stage.empty(), ExitCode::Checkpoint, "the run {}, and {}; put `start.first` back, or start another run: {}",
          there.digest.empty() ? "began from scratch"
                               : "continues " + ToText(Seed{.run_id = there.run_id, .step = there.step}),
          stage, OptionsOfAnotherRun(options));
  // Where no recipe was recorded, nor was a seed.
  if (!seed.is_set() || (there.digest == seed.manifest && there.adapter == seed.adapter) || manifest.recipe.empty()) {
    return Success{};
  }
  const Seed begun{.format = there.run_id == seed.run_id ? seed.format : SeedFormat::Checkpoint,
                   .path = "",
                   .run_id = there.run_id,
                   .step = there.step,
                   .manifest = there.digest,
                   .adapter = there.adapter,
                   .adapter_path = "",
                   .tensors = {}};
  const auto of_adapter = [](const Seed& own) {
    return own.adapter.empty() ? "" : fmt::format(", {} of its adapter", own.adapter);
  };
  return Fail(
      ExitCode::Checkpoint,
      "the recipe names a seed that the run did not begin from: `start.first` names {} (digest {} of its {}{}), "
      "and the run began from {}; put it back, or start another run: {}",
      ToText(seed), seed.manifest, DigestedOf(seed), of_adapter(seed),
      begun.is_set() ? fmt::format("{} (digest {}{})", ToText(begun), begun.manifest, of_adapter(begun)) : "scratch",
      OptionsOfAnotherRun(options));
}

/// A restart goes on with the state of the optimizer that kept it.
auto MatchOptimizer(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Plan& plan = *options.plan;
  FAIL_IF(manifest.optimizer != plan.run.optimizer, ExitCode::Checkpoint,
          "checkpoint of a run with another optimizer: `optimizer.name` is {} in the checkpoint, {} in this run; "
          "put it back, or {}",
          ToText(manifest.optimizer), ToText(plan.run.optimizer), GoOnInAnotherRun(manifest, options));
  for (const StateRole role : OptimizerRoles) {
    const bool is_there = std::ranges::any_of(
        manifest.tensors, [&](const auto& tensor) { return RolesOf(manifest, tensor.second).contains(role); });
    const bool is_here = std::ranges::any_of(plan.sub_vectors.begin(), plan.sub_vectors.end(),
                                             [&](const SubVector& own) { return StateOf(own, role).valid(); });
    FAIL_IF(is_there != is_here && MayKeep(plan.run.optimizer, role) && !KeepsAlways(plan.run.optimizer, role),
            ExitCode::Checkpoint,
            "checkpoint of a run with other settings of {}: the run keeps {} {}, and these settings keep {}; put "
            "the keys of [optimizer] back, or {}",
            ToText(plan.run.optimizer), is_there ? "a" : "no", ToText(role), is_here ? "one" : "none",
            GoOnInAnotherRun(manifest, options));
  }
  return Success{};
}

/// Compares by what the products of adapters are scaled, where both recipes are known: no tensor tells.
auto CompareAdapters(const Manifest& manifest, const Plan& plan, Differences& model) -> void {
  const AdapterSizes there = ResolveAdapters(ReadKeys(manifest.recipe).keys);
  const AdapterSizes here = ResolveAdapters(ReadKeys(plan.recipe).keys);
  for (const Parameter& parameter : plan.parameters) {
    const std::string weight = AdaptedBy(parameter.name);
    const auto own = weight.empty() ? std::nullopt : AdapterOf(here, weight);
    const auto other = own ? AdapterOf(there, weight) : std::nullopt;
    if (own && other && own->scale != other->scale) {
      model.Compare(fmt::format("the scale of the adapter of {}", weight), other->scale, own->scale);
      return;
    }
  }
}

auto MatchModel(const Manifest& manifest, const Plan& plan, const std::string& remedy) -> Status {
  Differences model;
  for (const auto& [key, here] : plan.model) {
    const auto there = manifest.model.find(key);
    model.Compare(KeyOf(key), there == manifest.model.end() ? "not given" : there->second, here);
  }
  for (const auto& [key, there] : manifest.model) {
    if (!plan.model.contains(key)) {
      model.Compare(KeyOf(key), there, std::string("not given"));
    }
  }
  CompareAdapters(manifest, plan, model);
  FAIL_IF(!model.empty(), ExitCode::Checkpoint, "checkpoint of another model: {}; {}", model.Text(), remedy);
  return Success{};
}

/// State that the plan needs and the checkpoint lacks, and state that the plan has no place for.
struct StateDifference {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

auto CompareScalars(const Manifest& manifest, const Plan& plan, StateDifference& difference) -> void {
  std::set<std::string> scalars;
  for (const Scalar& scalar : plan.scalars) {
    if (scalar.kind == ScalarKind::State) {
      const std::string name = StoredName(scalar);
      scalars.insert(name);
      if (!manifest.state.contains(name)) {
        difference.missing.push_back("scalar " + name);
      }
    }
  }
  for (const auto& [name, value] : manifest.state) {
    if (!scalars.contains(name)) {
      difference.unexpected.push_back("scalar " + name);
    }
  }
}

/// Compares the parameters and what is kept of them, and of a run that goes on also the scalars of its state.
auto MatchState(const Manifest& manifest, const CheckpointReaderOptions& options, const std::string& remedy) -> Status {
  const Plan& plan = *options.plan;
  const bool resume = options.purpose == ReadPurpose::Resume;
  const auto is_of_adapter = [](const std::string& name) { return !AdaptedBy(name).empty(); };
  const bool adapts_there =
      std::ranges::any_of(manifest.tensors, is_of_adapter, [](const auto& tensor) { return tensor.first; });
  const bool adapts_here = std::ranges::any_of(plan.parameters, is_of_adapter, &Parameter::name);
  FAIL_IF(adapts_there != adapts_here, ExitCode::Checkpoint,
          "the checkpoint is of a run {} [adapter], and this recipe has {}; {}, or {}",
          adapts_there ? "with" : "without", adapts_here ? "one" : "none", adapts_here ? "take it out" : "put it back",
          GoOnInAnotherRun(manifest, options));
  std::vector<std::string> frozen_here;
  std::vector<std::string> frozen_there;
  StateDifference state;
  Differences shapes;
  TypeChanges types;
  auto roles_here = RolesOf(plan, options.purpose);
  for (const Parameter& parameter : plan.parameters) {
    std::set<StateRole> roles_there;
    if (const auto tensor = manifest.tensors.find(parameter.name); tensor != manifest.tensors.end()) {
      shapes.Compare(parameter.name, ToText(tensor->second.shape), ToText(parameter.shape));
      types.Compare(parameter.name, tensor->second.dtype, parameter.dtype);
      roles_there = RolesOf(manifest, tensor->second);
    }
    const std::set<StateRole>& roles = roles_here[parameter.name];
    // Moments are those of what is trained.
    if (resume && roles_there.contains(StateRole::Parameter) && roles.contains(StateRole::Parameter) &&
        (roles.size() == 1) != (roles_there.size() == 1)) {
      (roles.size() == 1 ? frozen_here : frozen_there).push_back(parameter.name);
      continue;
    }
    for (size_t i = 0; i < CountOf<StateRole>(); ++i) {
      const auto role = static_cast<StateRole>(i);
      if (roles.contains(role) && !roles_there.contains(role)) {
        state.missing.push_back(StoredName(parameter.name, role));
      } else if (resume && !roles.contains(role) && roles_there.contains(role)) {
        state.unexpected.push_back(StoredName(parameter.name, role));
      }
    }
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!roles_here.contains(name)) {
      state.unexpected.push_back(name);
    }
  }
  if (resume) {
    CompareScalars(manifest, plan, state);
  }
  FAIL_IF(!shapes.empty(), ExitCode::Checkpoint, "checkpoint of another model: {}; {}", shapes.Text(), remedy);
  FAIL_IF(!types.empty(), ExitCode::Checkpoint,
          "`precision.master`, an override of it, or `precision.frozen` is another: {}; {}", types.Text(), remedy);
  if (!frozen_here.empty() || !frozen_there.empty()) {
    const auto part = [](std::string_view which, const std::vector<std::string>& names) {
      return names.empty() ? std::string() : fmt::format("; {}: {}", which, Listed(names, MostNamed));
    };
    return Fail(ExitCode::Checkpoint, "`{}` is another{}{}; put it back, or {}",
                ReadKeys(plan.recipe).keys.adapter.kind ? "adapter.train_also" : "optimizer.frozen",
                part("frozen here and trained there", frozen_here), part("trained here and frozen there", frozen_there),
                GoOnInAnotherRun(manifest, options));
  }
  if (!state.missing.empty() || !state.unexpected.empty()) {
    std::string text;
    if (!state.missing.empty()) {
      text = fmt::format("the plan needs, and it lacks: {}", Listed(state.missing, MostNamed));
    }
    if (!state.unexpected.empty()) {
      text += fmt::format("{}it holds, and the plan has no place for: {}", text.empty() ? "" : "; ",
                          Listed(state.unexpected, MostNamed));
    }
    return Fail(ExitCode::Checkpoint, "{}", text);
  }
  return Success{};
}

auto MatchRun(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Plan& plan = *options.plan;
  const bool resume = options.purpose == ReadPurpose::Resume;
  const std::string remedy = !resume ? "use the recipe that made it, for which the directory of its run stands"
                             : HasParametersOf(manifest, plan)
                                 ? "put it back, or " + GoOnInAnotherRun(manifest, options)
                                 : "put it back, or start another run: " + OptionsOfAnotherRun(options);
  RETURN_IF_ERROR(MatchModel(manifest, plan, remedy));
  if (resume) {
    RETURN_IF_ERROR(MatchData(manifest, options));
    RETURN_IF_ERROR(MatchOptimizer(manifest, options));
    RETURN_IF_ERROR(MatchRunsSeed(manifest, options));
  }
  return MatchState(manifest, options, remedy);
}

}  // namespace

auto MatchPlan(const Manifest& manifest, std::string_view digest, const CheckpointReaderOptions& options) -> Status {
  if (options.purpose == ReadPurpose::Seed) {
    RETURN_IF_ERROR(MatchSeed(manifest, digest, options.plan->seed));
    return MatchStage(manifest, options);
  }
  return MatchRun(manifest, options);
}

}  // namespace shardc
