"""Checks that pages and comments name files that are there.

Usage: pages.py [ROOT]    Prints one line for each file that is not there; exit 1 if there are any.

Looked at are README.md, docs/, schemas/, compiler/ and runtime/. A path is one that begins with a folder of the top level
(compiler/base/fs.h), or in a page, in code type, the end of one: `base/fs.h`. A file that is called x is any file.
"""

import pathlib
import re
import sys

TOPS = ("compiler", "runtime", "schemas", "recipes", "tests", "tools", "docs")
READ = ("README.md", "docs", "schemas", "compiler", "runtime")
SUFFIXES = (".md", ".def", ".cpp", ".h", ".cu")
SOURCES = ("cpp", "h", "cu", "def", "py")
WHOLE_PATH = re.compile(rf"(?<![\w/.<>-])(?:{'|'.join(TOPS)})/(?:[\w-]+/)*[\w.-]*\w\.(?:{'|'.join(SOURCES)}|md|toml|txt|sh|cmake)\b")
END_OF_PATH = re.compile(rf"`((?:[\w-]+/)+[\w.-]+\.(?:{'|'.join(SOURCES)}))`")


def files_of(root: pathlib.Path) -> set[str]:
    """The files that a page or a comment may name."""
    return {path.relative_to(root).as_posix() for top in TOPS for path in (root / top).rglob("*") if path.is_file()}


def is_there(path: str, files: set[str], ends: set[str]) -> bool:
    return pathlib.PurePosixPath(path).stem == "x" or path in files or path in ends


def path_faults(root: pathlib.Path, files: set[str]) -> list[str]:
    """The paths that lead to no file."""
    ends = {file[begin.end():] for file in files for begin in re.finditer("/", file)}
    readable = sorted(path for name in READ for path in [root / name, *(root / name).rglob("*")] if path.suffix in SUFFIXES)
    faults = []
    for path in readable:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            named = [name for name in WHOLE_PATH.findall(line) if not is_there(name, files, set())]
            if path.suffix == ".md":
                named += [name for name in END_OF_PATH.findall(line) if name not in named and not is_there(name, files, ends)]
            faults += [f"{path.relative_to(root)}:{number}: {name} is not there" for name in named]
    return faults


def main(root: pathlib.Path) -> int:
    faults = path_faults(root, files_of(root))
    print("\n".join(faults) or "every path leads to a file")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
