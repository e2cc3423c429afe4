"""Checks every #include of the tree against tools/layers.txt, and each file's #include "..." against the files that exist.

Usage: layers.py [ROOT]    Prints one line for each include that points the wrong way; exit 1 if there are any.

Circles of files, and folders that include several headers of a folder in them, are held to tools/check/circles.txt (rooms.py).
"""

import pathlib
import re
import sys

import rooms

SUFFIXES = (".h", ".cpp", ".cu", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
FOLDER_RULE = re.compile(r"^([\w/]+):(.*)$")
PREFIX_RULE = re.compile(r"^<([^>]+)>:(.*)$")
PROJECT = ("compiler", "runtime", "schemas", "tests", "tools")
PROGRAM = ("compiler/", "runtime/")


class Layers:
    """The rows of layers.txt."""

    def __init__(self, path: pathlib.Path):
        self.closure: dict[str, set[str]] = {}
        self.prefixes: dict[str, list[str]] = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            if rule := PREFIX_RULE.match(line):
                self.prefixes[rule[1]] = rule[2].split()
            elif rule := FOLDER_RULE.match(line):
                seen = {rule[1]}
                for other in rule[2].split():
                    if other not in self.closure:
                        sys.exit(f"{path}:{number}: {rule[1]} names {other}, which has no line above")
                    seen |= self.closure[other]
                self.closure[rule[1]] = seen
            else:
                sys.exit(f"{path}:{number}: not a rule: {line}")

    def folder_of(self, path: str) -> str | None:
        """The longest folder of the rows that `path` lies in."""
        parts = path.split("/")[:-1]
        while parts:
            if (folder := "/".join(parts)) in self.closure:
                return folder
            parts.pop()
        return None


def inside(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder + "/") for folder in folders)


def fault(layers: Layers, root: pathlib.Path, path: str, quoted: str | None, system: str | None) -> str | None:
    """What is wrong with one include of `path`; None if it is in order."""
    name = quoted or system
    for prefix, folders in layers.prefixes.items():
        if name.startswith(prefix) and not inside(path, folders):
            return f"<{prefix}> belongs to {', '.join(folders)} only"
    if quoted is None:
        return None
    if quoted.split("/")[0] not in PROJECT or not (root / quoted).is_file():
        return "no such file in the repository (paths begin at its root)"
    if quoted.startswith("schemas/") or path.startswith("tests/"):
        return None
    source, target = layers.folder_of(path), layers.folder_of(quoted)
    if target is None:
        return "not a library's header"
    if source and target not in layers.closure[source]:
        return f"{source} may not include {target} (tools/layers.txt)"
    return None


def main(root: pathlib.Path) -> int:
    layers = Layers(root / "tools" / "layers.txt")
    graph = rooms.Rooms()
    faults = []
    for top in PROJECT:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            if top in ("compiler", "runtime") and layers.folder_of(path) is None:
                faults.append(f"{path}:1: its folder has no line in tools/layers.txt")
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if match and (what := fault(layers, root, path, match[1], match[2])):
                    faults.append(f"{path}:{number}: {line.strip()}: {what}")
                elif match and match[1] and path.startswith(PROGRAM) and match[1].startswith(PROGRAM):
                    graph.add(path, number, match[1])
    faults += rooms.faults_of(graph, root)
    print("\n".join(faults) or "every include points downward, and every circle is known")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
