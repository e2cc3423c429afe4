#include "runtime/comm/nccl/nccl_variables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

namespace shardc {

namespace {

enum class Rule : uint8_t {
  /// Not set, or 0.
  Off,
  /// One value in all members.
  OneValue,
  /// Another value on each host, or not set.
  OnePerHost,
};

struct Row {
  const char* name;
  Rule rule;
  /// Why, as the end of a message.
  const char* why;
};

constexpr const char* Disagree = "NCCL hangs or fails where members differ in it";
constexpr const char* Networks = "members on different networks do not reach each other";
// The rows follow from the source of NCCL 2.28.9: a member decides by its own environment alone.
constexpr std::array Rows{
    Row{"NCCL_COMM_BLOCKING", Rule::Off, "NCCL would wait for a lost host for ever"},
    Row{"NCCL_COMM_ID", Rule::Off, "all communicators would meet at that one address"},
    Row{"NCCL_HOSTID", Rule::OnePerHost, "NCCL takes them for one host"},
    Row{"NCCL_ALGO", Rule::OneValue, Disagree},
    Row{"NCCL_PROTO", Rule::OneValue, Disagree},
    Row{"NCCL_BUFFSIZE", Rule::OneValue, Disagree},
    Row{"NCCL_NTHREADS", Rule::OneValue, Disagree},
    Row{"NCCL_MIN_NCHANNELS", Rule::OneValue, Disagree},
    Row{"NCCL_MAX_NCHANNELS", Rule::OneValue, Disagree},
    Row{"NCCL_MIN_CTAS", Rule::OneValue, Disagree},
    Row{"NCCL_MAX_CTAS", Rule::OneValue, Disagree},
    Row{"NCCL_NCHANNELS_PER_NET_PEER", Rule::OneValue, Disagree},
    Row{"NCCL_P2P_NET_CHUNKSIZE", Rule::OneValue, Disagree},
    Row{"NCCL_PAT_ENABLE", Rule::OneValue, Disagree},
    Row{"NCCL_NET", Rule::OneValue, Networks},
    Row{"NCCL_IB_DISABLE", Rule::OneValue, Networks},
};

auto ValueText(const std::string& value) -> std::string { return value.empty() ? "nothing" : value; }

auto CheckRow(const Row& row, size_t at, const std::vector<NcclMember>& members) -> Status {
  std::map<std::string_view, const NcclMember*> first_with;
  for (const NcclMember& member : members) {
    const std::string& value = member.variables[at];
    const NcclMember& first = *first_with.try_emplace(value, &member).first->second;
    FAIL_IF(row.rule == Rule::Off && !value.empty() && value != "0", ExitCode::Environment,
            "{} has {}={}, and {}; unset it", member.name, row.name, value, row.why);
    if (row.rule == Rule::OneValue && first_with.size() > 1) {
      const NcclMember& other = members.front();
      return Fail(ExitCode::Environment, "{}: {} in {}, {} in {}; {}: set it to one value on all hosts, or nowhere",
                  row.name, ValueText(other.variables[at]), other.name, ValueText(value), member.name, row.why);
    }
    FAIL_IF(row.rule == Rule::OnePerHost && !value.empty() && first.host != member.host, ExitCode::Environment,
            "{}={} in {} and in {}, which are on different hosts, and {}; unset it", row.name, value, first.name,
            member.name, row.why);
  }
  return Success{};
}

}  // namespace

auto OwnNcclVariables() -> NcclVariables {
  NcclVariables values;
  for (const Row& row : Rows) {
    const char* const value = std::getenv(row.name);
    values.emplace_back(value == nullptr ? "" : value);
    // The members tell each other their values by lines.
    std::ranges::replace(values.back(), '\n', ' ');
  }
  return values;
}

auto CheckNcclVariables(const std::vector<NcclMember>& members) -> Status {
  for (size_t at = 0; at < Rows.size(); ++at) {
    RETURN_IF_ERROR(CheckRow(Rows[at], at, members));
  }
  return Success{};
}

}  // namespace shardc
