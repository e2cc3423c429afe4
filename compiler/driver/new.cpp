// shardc new FILE: a recipe to begin with, which says in comments what to change. It never replaces a file.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "compiler/base/preset_rows.h"
#include "compiler/base/printable.h"
#include "compiler/data/replaced_input.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/recipe/preset_names.h"
#include "compiler/recipe/reference.h"

namespace shardc {

namespace {

struct NewOptions {
  std::string path;
  std::string preset = "llama-debug";
};

}  // namespace

static auto Put(const std::string& path, std::string_view text) -> Status {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) {
    return Fail(ExitCode::Usage, "{} exists, and stays as it is; name a file that does not exist", path);
  }
  if (descriptor < 0) {
    return Fail(ExitCode::Environment, "cannot make {}: {}", path, std::strerror(errno));
  }
  const std::string_view all = text;
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      const Error failed =
          Fail(ExitCode::Environment, "cannot write {} ({} bytes): {}", path, all.size(), std::strerror(errno));
      close(descriptor);
      unlink(path.c_str());
      return failed;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  close(descriptor);
  return Success{};
}

static auto WriteNew(const NewOptions& options) -> Status {
  const PresetRow* preset = PresetNamed(options.preset);
  if (preset == nullptr) {
    return Fail(ExitCode::Usage, "--preset: \"{}\" is no preset of a model\n{}", options.preset,
                HelpOnPresets(options.preset));
  }
  RETURN_IF_ERROR(CheckReplacesNone("new", options.path, {}));
  RETURN_IF_ERROR(Put(options.path, StarterRecipe(preset->name)));
  const std::string path = PrintableLine(options.path);
  return WriteResult(
      fmt::format("{0}: a recipe for {1}; set `tokens` in [data], and see what it costs: shardc plan --explain {0}\n",
                  path, preset->name));
}

auto DeclareNew(CommandOptions& options) -> Action {
  const auto values = std::make_shared<NewOptions>();
  options.Positional("FILE", values->path, "the recipe to write; a file that exists is never replaced");
  options.Text("--preset", values->preset, "NAME", "the model, one of `shardc presets`; default: llama-debug");
  return [values] { return ExitCodeOf(WriteNew(*values)); };
}

}  // namespace shardc
