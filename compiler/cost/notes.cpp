#include "compiler/cost/notes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "compiler/cost/source_shares.h"
#include "compiler/data/wider_ids.h"
#include "compiler/expr/moments.h"
#include "compiler/expr/step_evaluator.h"
#include "compiler/ops/step_flops.h"
#include "compiler/plan/header.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

namespace {

/// Plan, files and rates that the rows below look at.
struct PlanAndFiles {
  const Plan& plan;
  const std::vector<SourceFacts>& facts;
  /// Learning rates of steps from the first to the last, evenly spread; of a long run not all of them. Empty if one
  /// cannot be computed.
  std::vector<double> rates;
};

using Lines = std::vector<std::string>;

}  // namespace

static auto RatesOf(const Plan& plan) -> std::vector<double> {
  constexpr int64_t MostRates = 4096;
  const ScalarId lr = plan.FindScalar(ScalarRole::Lr);
  if (!lr.valid() || plan.scalars[lr].kind != ScalarKind::Schedule || plan.run.steps < 1) {
    return {};
  }
  auto parsed = ParseExpr(plan.scalars[lr].expression, ExprKind::Schedule);
  if (!parsed.ok()) {
    return {};
  }
  StepEvaluator schedule(std::move(parsed.value), plan.run.schedule_steps());
  std::vector<double> rates;
  const int64_t count = std::min(plan.run.steps, MostRates);
  for (int64_t i = 0; i < count; ++i) {
    const auto rate = schedule.At(Spread(i, count, plan.run.steps - 1));
    if (!rate.ok()) {
      return {};
    }
    rates.push_back(rate.value);
  }
  return rates;
}

static auto ManyEpochs(const PlanAndFiles& subject) -> Lines {
  constexpr double MostEpochs = 4;
  const Plan& plan = subject.plan;
  Lines lines;
  if (plan.data.packs()) {
    // How many samples documents fill follows from their lengths, which the lines on documents tell with the epochs.
    return lines;
  }
  for (const SourceShare& source : MixtureOf(plan, subject.facts).sources) {
    const int64_t batch = SamplesPerStep(plan);
    const bool is_one_stream = source.name.empty();
    if (!source.is_known || (source.epochs() <= MostEpochs && !(is_one_stream && batch > source.epoch_samples))) {
      continue;
    }
    lines.push_back(
        fmt::format("the run takes {} samples{}, {} in a step, and {} {}: {:.2f} epochs; set {} or "
                    "train.steps",
                    source.samples, is_one_stream ? "" : " of source " + source.name, batch,
                    is_one_stream ? "data.tokens holds" : "that holds", source.epoch_samples, source.epochs(),
                    is_one_stream ? "data.tokens" : "data.source"));
  }
  return lines;
}

static auto LongWarmup(const PlanAndFiles& subject) -> Lines {
  const std::vector<double>& rates = subject.rates;
  if (rates.size() < 2 || rates.front() > rates.back() / 2 ||
      std::ranges::adjacent_find(rates, std::greater_equal<>()) != rates.end()) {
    return {};
  }
  return {
      fmt::format("the learning rate rises up to the last of the {} steps, from {:.4g} to {:.4g}, as in a warm-up "
                  "that the run does not outlast; set optimizer.lr or train.steps",
                  subject.plan.run.steps, rates.front(), rates.back())};
}

/// Finds files that are read twice, within one list or by two of them.
static auto FileTwice(const PlanAndFiles& subject) -> Lines {
  const DataSource& data = subject.plan.data;
  std::map<std::string, std::string> readers;
  Lines lines;
  for (const FileList& list : ListFiles(data, {})) {
    const std::string reader = list.is_eval ? "data.eval" : list.name.empty() ? "data.tokens" : "source " + list.name;
    for (const std::string& path : list.paths) {
      const auto [first, is_new] = readers.try_emplace(IdentityOfPath(path), reader);
      if (!is_new) {
        lines.push_back(first->second == reader
                            ? fmt::format("{} names the file {} twice, so that an epoch has its samples twice; set {}",
                                          reader, path, list.purpose.key)
                            : fmt::format("{} and {} both name the file {}{}; set {}", first->second, reader, path,
                                          list.is_eval ? ", so that the evaluation is on tokens that are trained on"
                                                       : ", so that its samples come from both",
                                          list.purpose.key));
      }
    }
  }
  return lines;
}

static auto WiderIds(const PlanAndFiles& subject) -> Lines {
  Lines lines;
  for (const FileList& list : ListFiles(subject.plan.data, subject.plan.heads)) {
    // One file tells: a list holds files of one tokenizer.
    for (const std::string& path : list.paths | std::views::take(1)) {
      if (const auto wider = LooksWider(path, subject.plan.data.format, list.purpose)) {
        lines.push_back(
            fmt::format("the {} file {} looks like ids of {}, and is read as ids of {}: every other id "
                        "has another distribution; set data.format",
                        list.purpose.noun, path, ToText(*wider), ToText(subject.plan.data.format)));
      }
    }
  }
  return lines;
}

/// Returns true if a run takes ten minutes at least, on whatever it runs, or so many steps that it may.
static auto IsLong(const Plan& plan) -> bool {
  constexpr int64_t ManySteps = 1000;
  constexpr double Minutes10 = 600;
  // More operations per second than a rank's device does: a GPU in bf16, a few cores.
  const double most = plan.device == Device::Cpu ? 1e12 : 1e15;
  return plan.run.steps >= ManySteps ||
         static_cast<double>(StepFlopsOf(plan).all().value) * static_cast<double>(plan.run.steps) / most >= Minutes10;
}

static auto NoCheckpoint(const PlanAndFiles& subject) -> Lines {
  const Plan& plan = subject.plan;
  const bool saves_on_the_way = std::ranges::any_of(plan.triggers, [&](const Trigger& trigger) {
    return trigger.section == SectionKind::Save && trigger.kind == TriggerKind::EverySteps &&
           trigger.every < plan.run.steps;
  });
  if (saves_on_the_way || IsAssumed(plan, "train.steps") || !IsLong(plan)) {
    return {};
  }
  return {fmt::format("the run saves at its end alone, so that a crash loses up to {} steps; set checkpoint.every",
                      plan.run.steps)};
}

/// Returns the distance between the numbers of bf16 beside `x`.
static auto SpacingOfBfloat16(double x) -> double {
  // The significand has 8 bits, the first of which is not stored.
  constexpr int StoredBits = 7;
  return std::ldexp(1, std::ilogb(x) - StoredBits);
}

static auto SmallUpdates(const PlanAndFiles& subject) -> Lines {
  const Plan& plan = subject.plan;
  if (plan.run.optimizer != Optimizer::Adamw || subject.rates.empty()) {
    return {};
  }
  const double rate = *std::ranges::max_element(subject.rates);
  int64_t num_kept = 0;
  int64_t num_small = 0;
  double deviation = 0;
  for (const Parameter& parameter : plan.parameters) {
    if (!parameter.trainable || parameter.dtype != DType::BF16) {
      continue;
    }
    ++num_kept;
    // Most models have about this one; the values of a matrix that is loaded are not known here.
    constexpr double Usual = 0.02;
    const auto drawn = InitDistribution(parameter);
    const bool is_loaded = plan.seed.is_set() && parameter.shape.size() > 1;
    const double std = drawn ? MomentsOf(*drawn).std : is_loaded ? Usual : 0;
    // Adam moves an element by about the rate. What is less than half of the distance is rounded away.
    if (std > 0 && rate * plan.groups[parameter.group].lr_scale < SpacingOfBfloat16(std) / 2) {
      ++num_small;
      deviation = std::max(deviation, std);
    }
  }
  if (num_small == 0) {
    return {};
  }
  return {
      fmt::format("{} of {} parameters are kept in bf16, whose numbers beside {:.3g} lie {:.2g} apart, and the "
                  "learning rate is at most {:.3g}: most of their updates are rounded away; set precision.master",
                  num_small, num_kept, deviation, SpacingOfBfloat16(deviation), rate)};
}

/// Finds rates that no model bears: Adam moves an element by about the rate, however small its gradient is.
static auto HighRate(const PlanAndFiles& subject) -> Lines {
  constexpr double MostOfAny = 1;
  const Plan& plan = subject.plan;
  if (plan.run.optimizer != Optimizer::Adamw || subject.rates.empty()) {
    return {};
  }
  const double rate = *std::ranges::max_element(subject.rates);
  return rate < MostOfAny ? Lines()
                          : Lines{fmt::format("the learning rate is at most {:.4g}, and adamw moves each element by "
                                              "about as much in a step; set optimizer.lr",
                                              rate)};
}

static auto RoundedSeed(const PlanAndFiles& subject) -> Lines {
  const Plan& plan = subject.plan;
  Lines lines;
  for (const bool trainable : {true, false}) {
    const auto rounded =
        std::ranges::count_if(plan.parameters.begin(), plan.parameters.end(), [&](const Parameter& own) {
          const bool is_narrow = own.trainable == trainable && own.dtype != DType::F32;
          const auto loaded = is_narrow ? LoadedTensorOf(own) : std::nullopt;
          const SeedTensor* const tensor = loaded ? plan.seed.Find(*loaded) : nullptr;
          return tensor != nullptr && SizeOf(tensor->dtype) > SizeOf(own.dtype);
        });
    if (rounded > 0) {
      lines.push_back(fmt::format(
          "{}{} parameters are kept in fewer bits than the seed holds, so that their values are rounded; set {}",
          rounded, trainable ? "" : " frozen", trainable ? "precision.master" : "precision.frozen"));
    }
  }
  return lines;
}

auto NotesText(const Plan& plan, const ErrorOr<std::vector<SourceFacts>>& facts) -> std::string {
  if (!facts) {
    return "";
  }
  const PlanAndFiles subject{.plan = plan, .facts = *facts, .rates = RatesOf(plan)};
  std::string notes;
  for (auto* const row :
       {ManyEpochs, FileTwice, WiderIds, LongWarmup, HighRate, NoCheckpoint, SmallUpdates, RoundedSeed}) {
    for (const std::string& line : row(subject)) {
      notes += fmt::format("note: {}\n", line);
    }
  }
  return notes;
}

}  // namespace shardc
