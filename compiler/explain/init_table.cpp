#include "compiler/explain/init_table.h"

#include <nlohmann/json.hpp>

#include "compiler/explain/table.h"
#include "compiler/expr/moments.h"
#include "compiler/plan/text.h"

namespace shardc {

static auto InitMoments(const Parameter& parameter) -> Moments {
  const auto rule = ParseExpr(parameter.init, ExprKind::Rule);
  CHECK(rule.ok(), "`{}` of {}", parameter.init, parameter.name);
  const auto value = EvaluateRule(rule.value, {});
  CHECK(value.ok(), "`{}` of {}", parameter.init, parameter.name);
  return MomentsOf(value.value);
}

static auto PlaceText(const Origin& origin) -> std::string {
  return origin.line > 0 ? fmt::format("{}, recipe:{}", origin.key, origin.line) : origin.key;
}

auto RenderInitText(const Plan& plan) -> std::string {
  Table table("  ");
  table.KeepLeft(2);
  table.Row({"parameter", "shape", "rule", "mean", "std", "from"});
  for (const Parameter& parameter : plan.parameters) {
    const Moments moments = InitMoments(parameter);
    table.Row({parameter.name, ToText(parameter.shape), parameter.init, fmt::format("{:.6g}", moments.mean),
               fmt::format("{:.6g}", moments.std), PlaceText(parameter.init_origin)});
  }
  return fmt::format("init, seed {}, {} parameters; mean and std are those of what is drawn\n", plan.run.init_seed,
                     plan.parameters.size()) +
         table.Text();
}

auto RenderInitJson(const Plan& plan) -> std::string {
  using Json = nlohmann::ordered_json;
  Json json;
  json["format_version"] = "1.0";
  json["seed"] = plan.run.init_seed;
  json["parameters"] = Json::array();
  for (const Parameter& parameter : plan.parameters) {
    const Moments moments = InitMoments(parameter);
    json["parameters"].push_back({{"name", parameter.name},
                                  {"shape", std::vector<int64_t>(parameter.shape.begin(), parameter.shape.end())},
                                  {"rule", parameter.init},
                                  {"mean", moments.mean},
                                  {"std", moments.std},
                                  {"key", parameter.init_origin.key},
                                  {"recipe_line", parameter.init_origin.line}});
  }
  return json.dump(2) + "\n";
}

}  // namespace shardc
