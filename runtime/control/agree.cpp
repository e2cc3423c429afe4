#include "runtime/control/agree.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/net/error_text.h"

namespace shardc {

namespace {

constexpr int64_t MaxTextBytes = 1024;

/// Returns the text of the status in `bytes` bytes, of which the last is a zero.
auto PaddedText(const Status& status, int64_t bytes) -> std::string {
  std::string text = TextOf(status, static_cast<size_t>(bytes) - 1);
  text.resize(static_cast<size_t>(bytes), '\0');
  return text;
}

}  // namespace

auto AgreeOnStatus(RankControl& control, const Status& mine) -> Status {
  const int64_t num_ranks = control.mesh().num_ranks();
  ASSIGN_OR_RETURN(const auto codes, control.GatherValues(AxisSet::All(), CodeOf(mine)));
  const auto first = std::ranges::find_if(codes, [](int64_t other) { return other != 0; });
  if (first == codes.end()) {
    return Success{};
  }

  const int64_t text_bytes = std::min(MaxTextBytes, RankControl::MaxBytes / num_ranks);
  const std::string text = PaddedText(mine, text_bytes);
  std::string texts(static_cast<size_t>(text_bytes * num_ranks), '\0');
  RETURN_IF_ERROR(control.Gather(AxisSet::All(), reinterpret_cast<const std::byte*>(text.data()), text_bytes,
                                 reinterpret_cast<std::byte*>(texts.data())));
  const auto text_of = [&](int64_t rank) { return std::string(texts.c_str() + rank * text_bytes); };
  // An error that all ranks report alike is reported without ranks.
  bool is_shared = std::ranges::count(codes, 0) == 0;
  for (int64_t rank = 1; rank < num_ranks; ++rank) {
    is_shared = is_shared && text_of(rank) == text_of(0);
  }
  if (is_shared) {
    return Error{static_cast<ExitCode>(*first), text_of(0)};
  }
  // Each different text once, with the first rank that has it.
  constexpr size_t MaxShown = 4;
  std::vector<std::string> shown;
  std::string message;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    std::string other = text_of(rank);
    if (codes[static_cast<size_t>(rank)] == 0 || shown.size() == MaxShown ||
        std::find(shown.begin(), shown.end(), other) != shown.end()) {
      continue;
    }
    message += fmt::format("{}rank {}: {}", message.empty() ? "" : "; ", rank, other);
    shown.push_back(std::move(other));
  }
  return Error{static_cast<ExitCode>(*first), message};
}

auto FollowRankZero(RankControl& control, const Status& mine) -> Status {
  struct Head {
    int64_t code = 0;
    int64_t kind = 0;
  };
  std::vector<char> message(sizeof(Head) + MaxTextBytes);
  Head head{.code = CodeOf(mine), .kind = static_cast<int64_t>(mine ? ErrorKind::None : mine.error().kind)};
  std::memcpy(message.data(), &head, sizeof(head));
  const std::string text = PaddedText(mine, MaxTextBytes);
  std::copy(text.begin(), text.end(), message.begin() + sizeof(head));
  RETURN_IF_ERROR(control.Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(message.data()),
                                    static_cast<int64_t>(message.size())));
  std::memcpy(&head, message.data(), sizeof(head));
  if (head.code == 0) {
    return Success{};
  }
  return Error{static_cast<ExitCode>(head.code), message.data() + sizeof(head), static_cast<ErrorKind>(head.kind)};
}

auto TextOfRankZero(RankControl& control, const std::string& mine) -> ErrorOr<std::string> {
  auto size = static_cast<int64_t>(mine.size());
  RETURN_IF_ERROR(control.Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(&size), sizeof(size)));
  std::string text = mine;
  text.resize(static_cast<size_t>(size));
  for (int64_t begin = 0; begin < size; begin += RankControl::MaxBytes) {
    RETURN_IF_ERROR(control.Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(text.data() + begin),
                                      std::min(RankControl::MaxBytes, size - begin)));
  }
  return text;
}

}  // namespace shardc
