// The texts are those of the pinned LibTorch; a test breaks connections and compares.
#include "runtime/net/c10d_headers.h"

#include <array>
#include <cstdlib>
#include <mutex>

#include "runtime/net/torch_error.h"

namespace shardc {

namespace {

struct Known {
  std::string_view part;
  std::string_view clause;
};

// Reset stands before closed: Gloo's text of a reset speaks of both.
constexpr std::array KnownTexts = {
    Known{"Connection reset by peer", "reset the connection"},
    Known{"Broken pipe", "reset the connection"},
    Known{"Connection was likely closed", "closed the connection"},
    Known{"Connection closed by peer", "closed the connection"},
    Known{"Socket closed", "closed the connection"},
    Known{"Connection refused", "refused the connection"},
    Known{"No route to host", "cannot be reached: no route to host"},
    Known{"Network is unreachable", "cannot be reached: network is unreachable"},
    Known{"to a (local) address", "is no address of this host"},
    Known{"Timed out", LateClause},
    Known{"timed out", LateClause},
    Known{"imeout", LateClause},
};

}  // namespace

auto TextOf(const std::exception& exception) -> std::string {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  return error == nullptr ? exception.what() : error->what_without_backtrace();
}

auto ClauseOf(const std::string& text) -> std::string {
  for (const Known& known : KnownTexts) {
    if (text.find(known.part) != std::string::npos) {
      return std::string(known.clause);
    }
  }
  // "[file:line] what happened"
  const size_t place_end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  const size_t begin = place_end == std::string::npos ? 0 : place_end + 2;
  return "failed: " + text.substr(begin, text.find('\n', begin) - begin);
}

auto SilenceTorchLog() -> void {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) {
      FLAGS_caffe2_log_level = c10::GLOG_FATAL;
    }
  });
}

}  // namespace shardc
