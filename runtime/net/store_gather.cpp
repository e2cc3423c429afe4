// How the values of a gather lie in the store:
//
//   KEY/records    what the members append, each with its index
//   KEY/come       how many came
//   KEY/done       set by the last one, after all records; the others wait for it
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "compiler/base/check.h"
#include "runtime/net/store.h"

namespace shardc {

namespace {

/// Members that an error names.
constexpr size_t MostNamed = 8;

/// Stands before the bytes of a record. Records of one member may be several, each with a range of its bytes.
struct RecordHead {
  int64_t index = 0;
  int64_t bytes = 0;
  int64_t offset = 0;
  int64_t total = 0;
};

}  // namespace

auto JobStore::AppendRecord(const std::string& key, int64_t index, std::string_view bytes, Clock::time_point deadline)
    -> Status {
  constexpr size_t Most = MaxAppend - sizeof(RecordHead);
  size_t offset = 0;
  do {
    const std::string_view piece = bytes.substr(offset, Most);
    const RecordHead head{.index = index,
                          .bytes = static_cast<int64_t>(piece.size()),
                          .offset = static_cast<int64_t>(offset),
                          .total = static_cast<int64_t>(bytes.size())};
    std::string record(reinterpret_cast<const char*>(&head), sizeof head);
    record += piece;
    RETURN_IF_ERROR(Append(key, record, deadline));
    offset += piece.size();
  } while (offset < bytes.size());
  return Success{};
}

namespace {

/// What the records of a gather have of each member.
struct Gathered {
  std::vector<std::string> values;
  /// Bytes that came; none: -1.
  std::vector<int64_t> came;
};

}  // namespace

/// Errors: a clause about the records.
static auto ReadRecords(std::string_view records, int64_t count) -> ErrorOr<Gathered> {
  const auto size = static_cast<size_t>(count);
  Gathered gathered{.values = std::vector<std::string>(size), .came = std::vector<int64_t>(size, -1)};
  while (!records.empty()) {
    RecordHead head;
    FAIL_IF(records.size() < sizeof head, ExitCode::Environment, "its records are no records");
    std::memcpy(&head, records.data(), sizeof head);
    records.remove_prefix(sizeof head);
    FAIL_IF(head.bytes < 0 || head.offset < 0 || head.total < 0 || head.bytes > static_cast<int64_t>(records.size()) ||
                head.offset > head.total - head.bytes,
            ExitCode::Environment, "its records are no records");
    FAIL_IF(head.index < 0 || head.index >= count, ExitCode::Environment, "member {} came, and there are {}",
            head.index, count);
    std::string& value = gathered.values[static_cast<size_t>(head.index)];
    int64_t& came = gathered.came[static_cast<size_t>(head.index)];
    // The pieces of one member come in their order: it sends them by one connection.
    FAIL_IF(came == -1 ? head.offset != 0 : came != head.offset || came == head.total, ExitCode::Environment,
            "two members have the index {}", head.index);
    value.append(records.substr(0, static_cast<size_t>(head.bytes)));
    came = head.offset + head.bytes;
    records.remove_prefix(static_cast<size_t>(head.bytes));
  }
  return gathered;
}

auto JobStore::MissingAt(const std::string& key, int64_t count) -> ErrorOr<std::vector<int64_t>> {
  ASSIGN_OR_RETURN(const auto records, TryGet(key + "/records"));
  const auto gathered = ReadRecords(records.value_or(""), count);
  FAIL_IF(!gathered, ExitCode::Environment, "{} in the store at {}: {}", key, address_, gathered.error().message);
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < count; ++i) {
    if (gathered->came[static_cast<size_t>(i)] == -1) {
      missing.push_back(i);
    }
  }
  return missing;
}

auto JobStore::LateAt(const std::string& key, int64_t count) -> std::vector<int64_t> {
  auto missing = is_late() ? MissingAt(key, count) : ErrorOr<std::vector<int64_t>>(std::vector<int64_t>());
  return missing ? *std::move(missing) : std::vector<int64_t>();
}

auto JobStore::Missing(const std::string& key, int64_t count, Seconds timeout) -> Error {
  ASSIGN_OR_RETURN(const auto missing, MissingAt(key, count));
  const auto named = std::min(missing.size(), MostNamed);
  return Fail(ExitCode::Environment, "{} of {} members did not come to {} in the store at {} within {} s: {}{}",
              missing.size(), count, key, address_, timeout.value,
              fmt::join(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(named), ", "),
              named < missing.size() ? ", ..." : "");
}

auto JobStore::Gather(const std::string& key, int64_t index, int64_t count, std::string_view mine, Seconds timeout)
    -> ErrorOr<std::vector<std::string>> {
  CHECK(index >= 0 && index < count, "member {} of {}", index, count);
  const auto deadline = DeadlineIn(timeout);
  RETURN_IF_ERROR(AppendRecord(key + "/records", index, mine, deadline));
  ASSIGN_OR_RETURN(const auto come, Add(key + "/come", 1, deadline));
  if (come == count) {
    RETURN_IF_ERROR(Set(key + "/done", "1"));
  }
  ASSIGN_OR_RETURN(const auto is_done, Await(key + "/done", deadline));
  if (!is_done) {
    return Missing(key, count, timeout);
  }
  ASSIGN_OR_RETURN(const auto records, Read(key + "/records", std::max(deadline, DeadlineIn(timeout_))));
  auto gathered = ReadRecords(records, count);
  FAIL_IF(!gathered, ExitCode::Environment, "{} in the store at {}: {}", key, address_, gathered.error().message);
  return std::move(gathered->values);
}

}  // namespace shardc
