// The scripts of `shardc completion` in the shells themselves, and the manual page in groff.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "compiler/driver/command_table.h"
#include "tests/cli/program.h"
#include "tests/support/missing.h"

namespace shardc {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

auto Lines(const std::string& text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

auto Script(const std::string& shell) -> std::string {
  const Finished finished = RunProgram(Shardc(), {"completion", shell});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return finished.out;
}

/// What an interactive bash has on its command line after `typed` and a tab: `typed`, completed.
auto TypedInBash(const TemporaryFolder& folder, const std::string& typed) -> std::string {
  const std::string script = WriteIn(folder, "completion.bash", Script("bash"));
  const std::string program = WriteIn(folder, "type.py", R"python(import os, pty, re, sys, time, select
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", TERM="dumb", INPUTRC="/dev/null", PATH="/usr/bin:/bin", HOME="/nonexistent")
    os.chdir(sys.argv[3])
    os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "-i"])
seen = b""
def until(mark, limit=20):
    global seen
    end = time.time() + limit
    while not re.search(mark, seen) and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
os.write(fd, b"source %s; echo rea''dy\n" % sys.argv[1].encode())
until(rb"\nready\r")
seen = b""
# Ctrl-A and a # make a comment of the line, and nothing runs.
os.write(fd, sys.argv[2].encode() + b"\t\x01#\x05 END\n")
until(rb"END\r")
os.write(fd, b"history 2; echo do''ne\n")
until(rb"\ndone\r")
print(re.findall(rb"\d+  #(.*?) END\r", seen)[-1].decode())
os.write(fd, b"exit\n")
)python");
  const Finished finished = RunProgram("/usr/bin/python3", {program, script, typed, folder.path()});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return finished.out.substr(0, finished.out.find('\n'));
}

TEST(Completion, InAnInteractiveBash) {
  const TemporaryFolder folder;
  WriteText(folder / "my recipe.toml", "");
  EXPECT_EQ(TypedInBash(folder, "shardc toke"), "shardc tokenize ");
  EXPECT_EQ(TypedInBash(folder, "shardc checkpoint ver"), "shardc checkpoint verify ");
  EXPECT_EQ(TypedInBash(folder, "shardc plan --expl"), "shardc plan --explain ");
  EXPECT_EQ(TypedInBash(folder, "shardc plan --format j"), "shardc plan --format json ");
  EXPECT_EQ(TypedInBash(folder, "shardc plan --format=j"), "shardc plan --format=json ");
  EXPECT_EQ(TypedInBash(folder, "shardc check --set optimizer.l"), "shardc check --set optimizer.lr=");
  EXPECT_EQ(TypedInBash(folder, "shardc check --set model.preset=llama3.2-1"),
            "shardc check --set model.preset=llama3.2-1b ");
  EXPECT_EQ(TypedInBash(folder, "shardc check --set=precision.compute=b"),
            "shardc check --set=precision.compute=bf16 ");
  EXPECT_EQ(TypedInBash(folder, "shardc new r.toml --preset qwen3-3"), "shardc new r.toml --preset qwen3-32b ");
  EXPECT_EQ(TypedInBash(folder, "shardc plan r.toml --fit h1"), "shardc plan r.toml --fit h100-sxm");
  EXPECT_EQ(TypedInBash(folder, "shardc check my"), "shardc check my\\ recipe.toml ");
  EXPECT_EQ(TypedInBash(folder, "shardc completion z"), "shardc completion zsh ");
}

/// What the function of the script answers, as bash calls it.
auto BashReplies(const TemporaryFolder& folder, const std::vector<std::string>& words) -> std::vector<std::string> {
  const std::string script = WriteIn(folder, "completion.bash", Script("bash"));
  std::string text = fmt::format("source {}\nCOMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\nCOMP_WORDS=(", script);
  for (const std::string& word : words) {
    text += fmt::format(" '{}'", word);
  }
  text += fmt::format(")\nCOMP_CWORD={}\n_shardc\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n", words.size() - 1);
  const Finished finished = RunProgram("/bin/bash", {"-c", text});
  EXPECT_EQ(finished.err, "");
  return Lines(finished.out);
}

// All that the tables have: each command, each option of each command, each key and each word of a key.
TEST(Completion, OfBashKnowsAllOfTheTables) {
  const TemporaryFolder folder;
  std::vector<std::string> commands;
  for (const CommandRow& command : CommandTable()) {
    std::vector<std::string> flags;
    for (const OptionRow& option : command.options) {
      if (!option.is_positional()) {
        flags.push_back(option.long_name);
      }
      if (!option.is_positional() && !option.words.empty()) {
        EXPECT_EQ(BashReplies(folder, {"shardc", std::string(command.name), option.long_name, ""}), option.words);
      }
    }
    EXPECT_THAT(BashReplies(folder, {"shardc", std::string(command.name), "--"}), IsSupersetOf(flags)) << command.name;
    commands.emplace_back(command.name);
  }
  EXPECT_EQ(BashReplies(folder, {"shardc", ""}), commands);
  EXPECT_THAT(commands, IsSupersetOf({"check", "plan", "run", "new", "presets", "completion"}));
  std::vector<std::string> keys;
  for (const SetKey& key : SetKeys()) {
    keys.push_back(key.path + "=");
    if (!key.words.empty()) {
      EXPECT_EQ(BashReplies(folder, {"shardc", "run", "--set", key.path, "="}), key.words) << key.path;
    }
  }
  EXPECT_EQ(BashReplies(folder, {"shardc", "run", "--set", ""}), keys);
  EXPECT_THAT(keys, IsSupersetOf({"model.preset=", "mesh.dp=", "train.steps="}));
  // A number is the user's to know.
  EXPECT_THAT(BashReplies(folder, {"shardc", "run", "--set", "mesh.dp", "=", "1"}), ElementsAre(""));
}

// A shell that has completed one of them completes the next one too.
TEST(Completion, OfZshRepeatsOptions) {
  const std::string script = Script("zsh");
  std::vector<std::string> repeated;
  for (const CommandRow& command : CommandTable()) {
    for (const OptionRow& option : command.options) {
      if (option.is_repeated && !option.is_positional()) {
        EXPECT_THAT(script, HasSubstr(fmt::format(" '*'{}'[", option.long_name)));
        repeated.push_back(fmt::format("{} {}", command.name, option.long_name));
      }
    }
  }
  EXPECT_THAT(repeated, IsSupersetOf({"run --set", "run --unset", "plan --disable"}));
  EXPECT_THAT(repeated, Not(Contains("run --run-dir")));
}

TEST(Completion, OfFish) {
  if (!std::filesystem::exists("/usr/bin/fish")) {
    SkipWithout("fish");
    return;
  }
  const TemporaryFolder folder;
  const std::string script = WriteIn(folder, "completion.fish", Script("fish"));
  const auto complete = [&](const std::string& line) {
    const Finished finished =
        RunProgram("/usr/bin/fish", {"--no-config", "-c", "source " + script + "; complete -C '" + line + "'"},
                   {"HOME=" + std::string(folder.path())});
    EXPECT_EQ(finished.err, "");
    std::vector<std::string> words;
    for (const std::string& each : Lines(finished.out)) {
      words.push_back(each.substr(0, each.find('\t')));
    }
    return words;
  };
  EXPECT_THAT(complete("shardc toke"), ElementsAre("tokenize"));
  EXPECT_THAT(complete("shardc checkpoint ver"), ElementsAre("verify"));
  EXPECT_THAT(complete("shardc plan --expl"), ElementsAre("--explain"));
  EXPECT_THAT(complete("shardc plan --format j"), ElementsAre("json"));
  EXPECT_THAT(complete("shardc check --set model.preset=llama3.2"),
              ElementsAre("model.preset=llama3.2-1b", "model.preset=llama3.2-3b"));
  EXPECT_THAT(complete("shardc check --set mesh."), Contains("mesh.dp="));
}

TEST(Completion, OfZsh) {
  if (!std::filesystem::exists("/usr/bin/zsh")) {
    SkipWithout("zsh");
    return;
  }
  const TemporaryFolder folder;
  const std::string script = WriteIn(folder, "completion.zsh", Script("zsh"));
  const Finished parsed = RunProgram("/usr/bin/zsh", {"-f", "-n", script});
  EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
  const std::string typing = WriteIn(folder, "type.py", R"python(import os, pty, re, sys, time, select
os.chdir(sys.argv[3])
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", PATH="/usr/bin:/bin", HOME=sys.argv[3])
    os.execv("/usr/bin/zsh", ["zsh", "-f", "-i"])
seen = b""
def until(mark, limit=20):
    global seen
    end = time.time() + limit
    while not re.search(mark, seen) and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
os.write(fd, b"autoload -Uz compinit; compinit -u -D; source %s\n" % sys.argv[1].encode())
os.write(fd, b"show() { print -r -- $BUFFER > line; BUFFER=; }; zle -N show; bindkey '^X' show; echo rea''dy\n")
until(rb"\nready\r")
os.write(fd, sys.argv[2].encode() + b"\t\x18")
end = time.time() + 20
while not (os.path.exists("line") and open("line").read()) and time.time() < end:
    until(rb"never", 0.1)
print(open("line").read(), end="")
os.unlink("line")
os.write(fd, b"exit\n")
)python");
  // What an interactive zsh has on its command line after a tab.
  const auto typed = [&](const std::string& text) {
    return RunProgram("/usr/bin/python3", {typing, script, text, std::string(folder.path())}).out;
  };
  EXPECT_EQ(typed("shardc toke"), "shardc tokenize \n");
  EXPECT_EQ(typed("shardc checkpoint ver"), "shardc checkpoint verify \n");
  EXPECT_EQ(typed("shardc plan --expl"), "shardc plan --explain \n");
  EXPECT_EQ(typed("shardc plan --format j"), "shardc plan --format json \n");
  EXPECT_EQ(typed("shardc check --set optimizer.l"), "shardc check --set optimizer.lr=\n");
  EXPECT_EQ(typed("shardc check --set model.preset=llama3.2-1"), "shardc check --set model.preset=llama3.2-1b \n");
}

TEST(Completion, OfAnotherShellIsRefused) {
  const Finished finished = RunProgram(Shardc(), {"completion", "tcsh"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("there is no completion for `tcsh`; there is for bash, zsh and fish"));
}

TEST(Manual, HasEachCommandWithItsOptions) {
  const Finished finished = RunProgram(Shardc(), {"docs", "--man"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("\n.TH SHARDC 1 "));
  const std::string& page = finished.out;
  for (const CommandRow& command : CommandTable()) {
    const size_t begin = page.find(fmt::format("\n.SS shardc {}\n", command.name));
    ASSERT_NE(begin, std::string::npos) << command.name;
    const std::string section = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    for (const OptionRow& option : command.options) {
      std::string name = option.is_positional() ? option.metavar : option.long_name;
      for (size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 2)) {
        name.insert(at, 1, '\\');
      }
      EXPECT_THAT(section, HasSubstr(name)) << command.name;
    }
  }
}

TEST(Manual, IsSetWithoutWarnings) {
  if (!std::filesystem::exists("/usr/bin/groff")) {
    SkipWithout("groff");
    return;
  }
  const TemporaryFolder folder;
  const std::string page = WriteIn(folder, "shardc.1", RunProgram(Shardc(), {"docs", "--man"}).out);
  const Finished finished = RunProgram("/usr/bin/groff", {"-man", "-ww", "-Tascii", page});
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("--explain"));
}

}  // namespace
}  // namespace shardc
