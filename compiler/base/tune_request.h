// The request of a launch about its products of matrices: --tune or --tune=FILE.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// Request of a launch about its products. If neither is set, the library's first answers hold.
struct TuneRequest {
  /// Measure the products that the run has not measured yet.
  bool measures = false;
  /// gemm.json of another run, whose algorithms are taken; empty if none was named.
  std::string file;

  auto is_set() const -> bool { return measures || !file.empty(); }
};

/// Returns the request of `--tune` or `--tune=FILE`, by the text that the command line gives: "true" of a flag without
/// a value.
inline auto TuneRequestOf(std::string_view text) -> TuneRequest {
  return text == "true" ? TuneRequest{.measures = true, .file = ""}
                        : TuneRequest{.measures = false, .file = std::string(text)};
}

}  // namespace shardc
