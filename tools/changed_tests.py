"""Prints the tests of a build that a change can touch: for `tools/dev test --changed`.

Usage: changed_tests.py BUILD [BASE]

BUILD is a folder of the repository. BASE is the commit that the change is counted from; without it, the newest that the branch
shares with its upstream, or HEAD where it has none. What is not committed counts too.

Prints two lines, the targets to build and a pattern for ctest --tests-regex, and says on stderr what is left out. A program of
tests is touched where the build graph leads from a changed file to it or to a program that it starts; by each file of its folder;
and by files that it reads when it runs, which its sources name by their folder. Tests of no program look at the whole tree: they
always run, except the slow ones. A change of the build's own files touches everything.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

BUILT_BY = re.compile(r"(^|/)CMakeLists\.txt$|\.cmake$|^tools/(dev|layers\.txt|libtorch\.txt|cuda.*\.txt)$|^tests/support/")
DEPS_OF = re.compile(r"^(\S+): #deps \d+")
PROGRAMS = ("shardc", "shardc-run")


def output_of(*command: str, folder: pathlib.Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def changed_files(root: pathlib.Path, base: str | None) -> set[str]:
    """The files that differ between `base` and the working tree, with those that git does not know yet."""
    if base is None:
        upstream = subprocess.run(("git", "merge-base", "HEAD", "@{upstream}"), cwd=root, capture_output=True, text=True)
        base = upstream.stdout.strip() or "HEAD"
    differ = subprocess.run(("git", "diff", "--name-only", "--no-renames", base, "--"), cwd=root, capture_output=True, text=True)
    if differ.returncode != 0:
        sys.exit(f"changed_tests.py: {differ.stderr.strip()}\nname a commit that is there: tools/dev test --changed HEAD~1")
    return {*differ.stdout.split(), *output_of("git", "ls-files", "--others", "--exclude-standard", folder=root).split()}


class Graph:
    """What the build knows: which files each object was made from, and which objects each program is made of."""

    def __init__(self, root: pathlib.Path, build: pathlib.Path):
        self.root, self.build = root, build
        # For each source the objects that include it, as the last build found.
        self.objects: dict[str, set[str]] = collections.defaultdict(set)
        current = ""
        for line in output_of("ninja", "-t", "deps", folder=build).splitlines():
            if match := DEPS_OF.match(line):
                current = match[1]
            elif line.startswith(f"    {root}/"):
                self.objects[line[len(f"    {root}/"):]].add(current)

    def touched_objects(self, files: set[str]) -> set[str]:
        return {made for file in files for made in self.objects.get(file, ())}

    def inputs_of(self, target: str) -> set[str]:
        """All that `target` is made from, by the lines of the build alone: objects, libraries and, without headers, sources."""
        inputs = output_of("ninja", "-t", "inputs", target, folder=self.build).split()
        return {path.removeprefix(f"{self.root}/") for path in inputs}


def folders_read(root: pathlib.Path, folder: str) -> str:
    """The text of a test folder's sources, which names what they read."""
    return "\n".join(path.read_text() for path in sorted((root / "tests" / folder).rglob("*.cpp")))


def is_read(file: str, text: str) -> bool:
    """Does a text name the file, or a folder that it lies in?"""
    above = [parent.as_posix() for parent in pathlib.PurePosixPath(file).parents][:-1]
    return any(re.search(rf"[\"/]{re.escape(path)}\b", text) for path in (file, *above) if path != "tests")


def main(build: pathlib.Path, base: str | None) -> int:
    root = build.parent
    tests = json.loads(output_of("ctest", "--show-only=json-v1", folder=build))["tests"]
    files = changed_files(root, base)
    graph = Graph(root, build)
    programs = {test["name"]: re.sub(r"_\d+$", "", test["name"]) for test in tests if test["name"].startswith("tests_")}
    slow = {test["name"] for test in tests
            if any(field["name"] == "LABELS" and "slow" in field["value"] for field in test["properties"])}
    objects = graph.touched_objects(files)
    whole = next((f"{file} is of the build" for file in sorted(files) if BUILT_BY.search(file)), "")
    if not graph.objects:
        whole = "nothing is built yet"

    def is_touched(target: str) -> bool:
        inputs = graph.inputs_of(target)
        return not inputs.isdisjoint(objects) or not inputs.isdisjoint(files)

    touched_programs = [program for program in PROGRAMS if whole or is_touched(program)]
    unbuilt = {file for file in files if file not in graph.objects}
    chosen, left = [], []
    for test in (test["name"] for test in tests):
        if test not in programs:
            is_chosen = bool(whole) or bool(touched_programs) or test not in slow
        else:
            folder = programs[test].removeprefix("tests_").removesuffix("_slow")
            text = folders_read(root, folder) if unbuilt else ""
            is_chosen = (bool(whole) or is_touched(f"tests/{programs[test]}")
                         or any(file.startswith(f"tests/{folder}/") or is_read(file, text) for file in unbuilt))
        (chosen if is_chosen else left).append(test)
    # The checks of the tree start the programs.
    print(*sorted({*PROGRAMS, "print_place", *(programs[test] for test in chosen if test in programs)}))
    print(f"^({'|'.join(map(re.escape, chosen))})$")
    why = f"; everything: {whole}" if whole else ""
    print(f"{len(files)} files changed{why}; {len(chosen)} of {len(tests)} tests run, without the sanitizers", file=sys.stderr)
    if left:
        print(f"left out, as the change does not reach them: {' '.join(left)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else None))
