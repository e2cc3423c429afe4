#include "runtime/record/product_record.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/base/versions.h"

namespace shardc {

using Texts = std::map<std::string, std::string>;

/// Far more than the products of a plan take.
static constexpr int64_t MaxProductBytes = int64_t{16} << 20;
static constexpr const char* ProductsName = "products";

static auto TextsIn(const nlohmann::json& json) -> std::optional<Texts> {
  Texts texts;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) {
      return std::nullopt;
    }
    texts[name] = value.get<std::string>();
  }
  return texts;
}

static auto RecordIn(nlohmann::json json) -> std::optional<ProductRecord> {
  if (!json.is_object() || !json.contains(ProductsName) || !json[ProductsName].is_object()) {
    return std::nullopt;
  }
  auto algorithms = TextsIn(json[ProductsName]);
  json.erase(ProductsName);
  auto chosen_for = TextsIn(json);
  if (!algorithms || !chosen_for) {
    return std::nullopt;
  }
  return ProductRecord{*std::move(chosen_for), *std::move(algorithms)};
}

auto ReadProductRecord(const Descriptor& run_dir) -> ErrorOr<std::optional<ProductRecord>> {
  const auto status = StatusAt(run_dir, ProductRecordName);
  if (!status) {
    return status.error();
  }
  if (status->kind == EntryKind::Missing) {
    return std::optional<ProductRecord>();
  }
  const auto text = ReadFileAt(run_dir, ProductRecordName, MaxProductBytes);
  if (!text) {
    return text.error();
  }
  auto record = RecordIn(nlohmann::json::parse(*text, nullptr, false));
  if (!record) {
    return Fail(ExitCode::Environment, "{}/{} is not as a launch writes it", run_dir.path(), ProductRecordName);
  }
  return record;
}

auto PutProductRecord(const Descriptor& run_dir, const ProductRecord& record) -> Status {
  nlohmann::ordered_json json = record.chosen_for;
  json[ProductsName] = record.algorithms;
  return PutFileAt(run_dir, ProductRecordName,
                   json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

auto VersionsDiffer(const Texts& before, const Texts& now) -> std::string {
  const auto shown = [](const std::string& version) {
    return version.empty() ? std::string("unknown") : PrintableLine(version);
  };
  std::vector<std::string> differences;
  for (const VersionDifference& difference : DifferencesBetween(before, now)) {
    differences.push_back(
        fmt::format("{} {}, was {}", PrintableLine(difference.name), shown(difference.now), shown(difference.before)));
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

}  // namespace shardc
