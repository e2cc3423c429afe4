#include "runtime/record/product_record.h"

#include <fmt/ranges.h>

#include <vector>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/printable.h"
#include "compiler/base/versions.h"

namespace shardc {

using Texts = std::map<std::string, std::string>;

/// Far more than the products of a plan take.
static constexpr int64_t MaxProductBytes = int64_t{16} << 20;
static constexpr const char* ProductsName = "products";
static constexpr const char* TunedName = "tuned";
static constexpr const char* TimesName = "times";

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

static auto TimesIn(const nlohmann::json& json) -> std::optional<std::map<std::string, ProductTimes>> {
  if (!json.is_object()) {
    return std::nullopt;
  }
  std::map<std::string, ProductTimes> times;
  for (const auto& [product, value] : json.items()) {
    for (const char* name : {"first_us", "chosen_us", "measured"}) {
      if (!value.is_object() || !value.contains(name) || !value[name].is_number()) {
        return std::nullopt;
      }
    }
    times[product] = {.first_us = value["first_us"].get<double>(),
                      .chosen_us = value["chosen_us"].get<double>(),
                      .measured = value["measured"].get<int64_t>()};
  }
  return times;
}

auto ProductRecordIn(std::string_view text) -> std::optional<ProductRecord> {
  auto parsed = ParseJson(text, ExitCode::Environment);
  nlohmann::json json = parsed ? *std::move(parsed) : nlohmann::json();
  if (!json.is_object() || !json.contains(ProductsName) || !json[ProductsName].is_object()) {
    return std::nullopt;
  }
  auto algorithms = TextsIn(json[ProductsName]);
  auto times = TimesIn(json.value(TimesName, nlohmann::json::object()));
  for (const char* name : {ProductsName, TunedName, TimesName}) {
    json.erase(name);
  }
  auto chosen_for = TextsIn(json);
  if (!algorithms || !times || !chosen_for) {
    return std::nullopt;
  }
  return ProductRecord{*std::move(chosen_for), *std::move(algorithms), *std::move(times)};
}

auto TextOf(const ProductRecord& record) -> std::string {
  nlohmann::ordered_json json = record.chosen_for;
  if (!record.times.empty()) {
    json[TunedName] = true;
  }
  json[ProductsName] = record.algorithms;
  for (const auto& [product, times] : record.times) {
    json[TimesName][product] = {
        {"first_us", times.first_us}, {"chosen_us", times.chosen_us}, {"measured", times.measured}};
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Returns the record in the text of a file. Errors: no launch wrote it.
static auto RecordIn(const std::string& path, const ErrorOr<std::string>& text) -> ErrorOr<ProductRecord> {
  if (!text) {
    return text.error();
  }
  auto record = ProductRecordIn(*text);
  FAIL_IF(!record, ExitCode::Environment, "{} is not as a launch writes it", path);
  return *std::move(record);
}

auto ReadProductRecord(const Descriptor& run_dir) -> ErrorOr<std::optional<ProductRecord>> {
  ASSIGN_OR_RETURN(const auto status, StatusAt(run_dir, ProductRecordName));
  if (status.kind == EntryKind::Missing) {
    return std::optional<ProductRecord>();
  }
  ASSIGN_OR_RETURN(auto record, RecordIn(run_dir.path() + "/" + ProductRecordName,
                                         ReadFileAt(run_dir, ProductRecordName, MaxProductBytes)));
  return std::optional(std::move(record));
}

auto PutProductRecord(const Descriptor& folder, const ProductRecord& record) -> Status {
  return PutFileAt(folder, ProductRecordName, TextOf(record));
}

auto ReadProductFile(const std::string& path) -> ErrorOr<ProductRecord> {
  return RecordIn(path, ReadFile(path, MaxProductBytes));
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
