"""Runs the commands that the pages of docs/ show, and compares what they print with what the pages show. Run by ctest as
commands_test.py FOLDER [PAGE...], where shardc and shardc-run are in FOLDER.

In an indented block a line that begins with "$ " is a command, and the lines up to the next command are what it prints, of both
streams. "..." as a line stands for any number of lines, and at the end of a line for the rest of it. A command that is followed by no
output may print anything. A command ends with 0, or with the N of a comment `# exit code N` at its end. A block of TOML whose first
line is a comment with a file's name, `# first.toml: ...`, is that file. A page's commands run in turn in one new folder, which has
the recipes of the repository and a text, my_text.txt. What clocks and the machine decide is written <so>, and matches any words.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("first_run.md", "on_a_gpu_host.md", "memory_is_short.md", "coming_from_torchtitan.md", "faq.md")
PROGRAMS = pathlib.Path()


def blocks(text: str):
    """The indented blocks of a page, without their indentation; the lines of each."""
    block: list[str] = []
    for line in [*text.split("\n"), "end"]:
        if line.startswith("    ") or (block and not line.strip()):
            block.append(line[4:])
        elif block:
            while block and not block[-1].strip():
                block.pop()
            yield block
            block = []


def commands(block: list[str]):
    """Pairs of a command and the lines shown after it."""
    shown: list[tuple[str, list[str]]] = []
    for line in block:
        if line.startswith("$ "):
            shown.append((line[2:], []))
        elif shown and shown[-1][0].endswith("\\"):
            shown[-1] = (shown[-1][0][:-1] + line, [])
        elif shown:
            shown[-1][1].append(line)
    return shown


def pattern_of(shown: list[str]) -> str:
    """What the output must match, in whole."""
    lines = []
    for line in shown:
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        rest = line.endswith("...")
        words = re.split(r"<[a-z ]+>", line.removesuffix("...").rstrip() if rest else line.rstrip())
        lines.append(r".+?".join(re.escape(part) for part in words) + (".*" if rest else r"[ \t]*") + r"\n")
    return "".join(lines)


def run_commands(test: unittest.TestCase, page: pathlib.Path, folder: pathlib.Path, environment: dict[str, str], left_out=lambda command: False) -> int:
    """Runs the commands of a page in the folder, but those that `left_out` says, and returns how many it ran."""
    count = 0
    for block in blocks(page.read_text()):
        named = re.match(r"# ([a-z_]+\.toml)\b", block[0])
        if named:
            (folder / named[1]).write_text("\n".join(block) + "\n")
            continue
        for command, shown in commands(block):
            if left_out(command):
                continue
            count += 1
            code = re.search(r"# exit code (\d+)$", command)
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            told = f"{page.name}: {command}\nprinted:\n{done.stdout}"
            test.assertEqual(done.returncode, int(code[1]) if code else 0, told)
            if shown:
                test.assertRegex(done.stdout if done.stdout.endswith("\n") else done.stdout + "\n", rf"\A{pattern_of(shown)}\Z", told)
    return count


def environment_with(programs: pathlib.Path) -> dict[str, str]:
    return dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", NO_COLOR="1", COLUMNS="100")


class CommandsTest(unittest.TestCase):
    def run_page(self, page: pathlib.Path) -> int:
        with tempfile.TemporaryDirectory(prefix="docs.") as name:
            folder = pathlib.Path(name)
            (folder / "recipes").symlink_to(ROOT / "recipes")
            (folder / "my_text.txt").write_text("".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))))
            return run_commands(self, page, folder, environment_with(PROGRAMS))

    def test_patterns(self):
        shown = ["a  1 of <seconds> s", "...", "end of it ..."]
        self.assertRegex("a  1 of 0.3 s\nx\ny\nend of it all\n", rf"\A{pattern_of(shown)}\Z")
        self.assertNotRegex("a  2 of 0.3 s\nend of it all\n", rf"\A{pattern_of(shown)}\Z")
        self.assertNotRegex("a  1 of 0.3 s\nend of it all\nmore\n", rf"\A{pattern_of(shown)}\Z")
        self.assertEqual([("b \\".replace("\\", "") + "c", ["d"])], commands(["$ b \\", "c", "d"]))


def page_test(page: str):
    def test(self):
        self.assertGreater(self.run_page(ROOT / "docs" / page), 0, f"{page} shows no command")

    return test


for page_name in PAGES:
    setattr(CommandsTest, f"test_{page_name.removesuffix('.md')}", page_test(page_name))

if __name__ == "__main__":
    PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
