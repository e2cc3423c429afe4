#include "tests/cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/base/check.h"

namespace shardc {

auto Shardc() -> std::string { return SHARDC_BINARY_DIR "/shardc"; }

auto RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment) -> Finished {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
  variables.insert(variables.end(), environment.begin(), environment.end());
  const auto pointers = [](std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (std::string& text : strings) {
      result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, nullptr, pointers(texts).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  CHECK(error == 0, "cannot start {}: {}", program, error);
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), ReadText(out), ReadText(err)};
}

auto WriteIn(const TemporaryFolder& folder, const std::string& name, const std::string& text) -> std::string {
  const std::string path = folder / name;
  WriteText(path, text);
  return path;
}

auto SoundRecipe() -> std::string {
  return "[model]\nfamily = \"llama\"\nlayers = 2\nhidden = 8\nheads = 2\nffn = 16\nvocab = 32\nseq = 8\n"
         "[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n[optimizer]\nlr = 1e-3\n"
         "[data]\ntokens = [\"tokens.bin\"]\n[batch]\nmicro = 1\n[train]\nsteps = 10\n";
}

}  // namespace shardc
