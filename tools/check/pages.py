"""Checks that pages and comments name files that are there, and that docs/architecture.md names every folder of the programs.

Usage: pages.py [ROOT]    Prints one line for each file that is not there, and each folder without a name; exit 1 if there are any.

Looked at are README.md, docs/, schemas/, compiler/ and runtime/. A path is one that begins with a folder of the top level
(compiler/base/fs.h), or in a page, in code type, the end of one: `base/fs.h`. A file that is called x is any file. Folders are
those of compiler/ and runtime/ with sources, two levels deep. One is named by its path in code type, and one in another also by
its own name in the row of that folder: `jit/`.
"""

import pathlib
import re
import sys

ARCHITECTURE = pathlib.Path("docs") / "architecture.md"
TOPS = ("compiler", "runtime", "schemas", "recipes", "tests", "tools", "docs")
READ = ("README.md", "docs", "schemas", "compiler", "runtime")
PROGRAM = ("compiler", "runtime")
SUFFIXES = (".md", ".def", ".cpp", ".h", ".cu")
SOURCES = ("cpp", "h", "cu", "def", "py")
WHOLE_PATH = re.compile(rf"(?<![\w/.<>-])(?:{'|'.join(TOPS)})/(?:[\w-]+/)*[\w.-]*\w\.(?:{'|'.join(SOURCES)}|md|toml|txt|sh|cmake)\b")
END_OF_PATH = re.compile(rf"`((?:[\w-]+/)+[\w.-]+\.(?:{'|'.join(SOURCES)}))`")
ROW = re.compile(r"^\| `((?:compiler|runtime)/[\w/]+)` \|(.*)$", re.MULTILINE)


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


def folder_faults(root: pathlib.Path, files: set[str]) -> list[str]:
    """The folders that architecture.md does not name, and those that it names and that are not there."""
    text = (root / ARCHITECTURE).read_text()
    rows = dict(ROW.findall(text))
    folders = {"/".join(file.split("/")[:-1][:3]) for file in files
               if file.startswith(PROGRAM) and file.count("/") > 1 and file.endswith((".cpp", ".h", ".cu"))}
    faults = []
    for folder in sorted(folders):
        outer, name = folder.rsplit("/", 1)
        if f"`{folder}`" not in text and f"`{name}/`" not in rows.get(outer, ""):
            faults.append(f"{ARCHITECTURE}: it does not name {folder}")
    for folder in sorted(rows.keys() - folders):
        if not (root / folder).is_dir():
            faults.append(f"{ARCHITECTURE}: {folder} has a row and is not there")
    return faults


def main(root: pathlib.Path) -> int:
    files = files_of(root)
    faults = path_faults(root, files) + folder_faults(root, files)
    print("\n".join(faults) or "every path leads to a file, and every folder has a name")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
