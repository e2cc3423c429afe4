#include "runtime/metrics/metrics_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace shardc {

namespace {

auto SystemError(const char* what, const std::string& path) -> Error {
  const int code = errno;
  return Fail(ExitCode::Environment, "cannot {} {}: {}", what, path, std::strerror(code));
}

/// Shortest text that reads back to the same double.
auto Number(double value) -> std::string { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

/// Further fields of an object. Names of heads need no escapes.
auto Fields(const std::vector<LossTerm>& terms) -> std::string {
  std::string text;
  for (const LossTerm& term : terms) {
    text += fmt::format(R"(,"{}":{})", term.name, Number(term.value));
  }
  return text;
}

/// The step of a line; none where it is no object with one.
auto StepOf(const std::string& line) -> std::optional<int64_t> {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object()) {
    return std::nullopt;
  }
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) {
    return std::nullopt;
  }
  return step->get<int64_t>();
}

}  // namespace

auto MetricsWriter::Open(const std::string& path, int64_t restored_step) -> ErrorOr<std::unique_ptr<MetricsWriter>> {
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) {
      return Fail(ExitCode::Environment, "cannot make directory {}: {}", folder.string(), failure.message());
    }
  }
  RETURN_IF_ERROR(TruncateAfter(path, restored_step));
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return SystemError("open", path);
  }
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(path, descriptor));
}

MetricsWriter::~MetricsWriter() { close(descriptor_); }

auto MetricsWriter::Write(const StepMetrics& metrics) -> Status {
  return Append(fmt::format(R"({{"step":{},"loss":{},"grad_norm":{},"lr":{},"step_ms":{},"tokens_per_s":{}{}}})",
                            metrics.step, Number(metrics.loss), Number(metrics.grad_norm), Number(metrics.lr),
                            Number(metrics.step_ms), Number(metrics.tokens_per_s), Fields(metrics.terms)));
}

auto MetricsWriter::WriteEval(int64_t step, double eval_loss, const std::vector<LossTerm>& terms) -> Status {
  return Append(fmt::format(R"({{"step":{},"eval_loss":{}{}}})", step, Number(eval_loss), Fields(terms)));
}

auto MetricsWriter::Append(const std::string& line) -> Status {
  const std::string text = line + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) {
      return SystemError("write", path_);
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return Success{};
}

auto MetricsWriter::TruncateAfter(const std::string& path, int64_t step) -> Status {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (std::filesystem::exists(path)) {
      return SystemError("read", path);
    }
    return Success{};
  }
  const std::string temporary = path + ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  std::string line;
  while (std::getline(in, line)) {
    const auto of_line = StepOf(line);
    if (of_line && *of_line <= step) {
      out << line << '\n';
    }
  }
  out.close();
  if (in.bad() || !out) {
    return SystemError("write", temporary);
  }
  // On disk before the rename: else a power loss can leave an empty file under the good name.
  const int descriptor = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return SystemError("open", temporary);
  }
  const bool synced = fsync(descriptor) == 0;
  const int code = errno;
  close(descriptor);
  if (!synced) {
    errno = code;
    return SystemError("fsync", temporary);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return SystemError("rename", temporary);
  }
  return Success{};
}

}  // namespace shardc
