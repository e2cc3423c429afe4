#include "compiler/passes/plan_header.h"

#include "compiler/base/byte_limit.h"
#include "compiler/base/family_keys.h"
#include "compiler/base/machine_rows.h"
#include "compiler/check/check_recipe.h"
#include "compiler/check/recipe_data.h"
#include "compiler/plan/exchange.h"
#include "compiler/recipe/model_sizes.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/recipe/run_id.h"

namespace shardc {

auto RunDirOf(const Recipe& recipe) -> std::string { return ResolvedPath(recipe, "runs/" + RunIdOf(recipe)); }

static auto ResolveComm(const Recipe& recipe) -> Comm {
  if (*recipe.run.comm != Comm::Auto) {
    return *recipe.run.comm;
  }
  if (*recipe.mesh.hosts == 1) {
    return Comm::Shm;
  }
  const bool is_gpu = FactsOf(*recipe.run.device).family == DeviceFamily::Cuda;
  return !is_gpu ? Comm::Gloo : *recipe.mesh.hosts <= MostExchangingGpus ? Comm::Nccl : Comm::NcclRing;
}

/// Returns the operations per second that a rank can do; 0 if they are not known.
static auto PeakFlopsOf(const Recipe& recipe) -> double {
  if (recipe.run.peak_flops.is_set) {
    return *recipe.run.peak_flops;
  }
  return recipe.run.machine.is_set ? FindMachine(*recipe.run.machine)->peak_bf16.value : 0;
}

template <class T>
static auto SizeText(const T& size, const T&) -> std::string {
  return fmt::format("{}", size);
}

/// Returns an empty text for the default.
static auto SizeText(const Formula& formula, const Formula& default_) -> std::string {
  return formula.text == default_.text ? "" : formula.text;
}

/// Returns the sizes and settings that models of the family have.
static auto ModelOf(const ModelSizes& sizes) -> std::map<std::string, std::string> {
  const auto family = FromText<Family>(sizes.family);
  CHECK(family, "family {}", sizes.family);
  std::map<std::string, std::string> model{{"family", sizes.family}};
  const ModelSection defaults;
#define MODEL_KEY(name, ...)                                                                                     \
  if (const std::string text = SizeText(sizes.name, *defaults.name); !text.empty() && HasSize(*family, #name)) { \
    model[#name] = text;                                                                                         \
  }
#include "schemas/model_keys.def"
  return model;
}

auto WriteHeader(Plan& plan, const Recipe& recipe) -> void {
  const ModelSizes sizes = ResolveModel(recipe);
  const BatchSizes batch = ResolveBatch(recipe);
  plan.mesh.sizes = {
#define AXIS(Name, name, ...) *recipe.mesh.name,
#include "schemas/axes.def"
  };
  plan.mesh.hosts = *recipe.mesh.hosts;
  plan.mesh.set_size(Axis::DpInner, recipe.shard.reshard_size.is_set ? *recipe.shard.reshard_size : 1);
  plan.device = *recipe.run.device;
  plan.kernels = *recipe.run.kernels;
  plan.model = ModelOf(sizes);
  plan.overrides = recipe.overrides;
  for (ResolvedKey& key : ResolvedKeys(recipe)) {
    plan.recipe.push_back({.key = std::move(key.path),
                           .value = std::move(key.value),
                           .line = key.line_beside_preset,
                           .is_assumed = key.is_assumed});
  }

  plan.data = DataOf(recipe);
  plan.heads = HeadsOf(recipe);
  for (const LossHead& head : recipe.loss.head) {
    plan.model["loss_heads"] +=
        fmt::format("{}{}:{}", plan.model["loss_heads"].empty() ? "" : ",", *head.name, *head.vocab);
  }

  RunSettings& run = plan.run;
  run.run_id = RunIdOf(recipe);
  run.run_dir = RunDirOf(recipe);
  run.checkpoint_dir = recipe.checkpoint.dir.is_set ? ResolvedPath(recipe, *recipe.checkpoint.dir) : "";
  run.checkpoint_keep = *recipe.checkpoint.keep;
  run.steps = *recipe.train.steps;
  run.max_minutes = recipe.train.max_minutes.is_set ? *recipe.train.max_minutes : 0;
  run.tokens_per_step = batch.global * sizes.seq;
  run.micro_batch = batch.micro;
  run.accumulate = batch.accumulate;
  run.peak_flops = PeakFlopsOf(recipe);
  run.comm = ResolveComm(recipe);
  run.optimizer = *recipe.optimizer.name;
  run.attention_workspace = *ParseByteLimit(recipe.run.attention_workspace->text);
  run.scan_bytes = *ParseByteLimit(recipe.data.scan->text);
  run.init_seed = static_cast<uint64_t>(*recipe.init.seed);
#define RUN_KEY(section, name, ...) run.name = *recipe.section.name;
#include "schemas/recipe_keys.def"
}

}  // namespace shardc
