"""Checks where programs and libraries look for the libraries that they need.

Usage: search_paths.py FOLDER [--also FOLDER]    Prints one line for each entry that is wrong; exit 1 if there are any.

Looks at each program and shared library in FOLDER. Each entry of its RPATH and RUNPATH has to lie in FOLDER, or in the folder of
--also. An empty or relative entry would have the loader run what lies in the working directory of whoever starts the program, and
so would a library that is needed by a path.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

EXECUTABLE_OR_SHARED = (2, 3)


def is_program(path: pathlib.Path) -> bool:
    """Is it a program or a shared library?"""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and int.from_bytes(head[16:18], "little") in EXECUTABLE_OR_SHARED


def faults(path: pathlib.Path, allowed: list[pathlib.Path]) -> list[str]:
    """What is wrong with the search paths of a program."""
    section = subprocess.run(["readelf", "--dynamic", "--wide", str(path)], check=True, capture_output=True, text=True).stdout
    found = [f"it needs {name}, a path" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", section) if "/" in name]
    for entries in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", section):
        for entry in entries.split(":"):
            place = pathlib.Path(os.path.normpath(re.sub(r"\$(ORIGIN\b|{ORIGIN})", lambda _: str(path.parent), entry)))
            if not place.is_absolute():
                found.append(f"the entry `{entry}` is relative")
            elif not any(place.is_relative_to(folder) for folder in allowed):
                found.append(f"the entry `{entry}` lies outside")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--also", type=pathlib.Path, action="append", default=[])
    arguments = parser.parse_args()
    allowed = [pathlib.Path(os.path.abspath(folder)) for folder in (arguments.folder, *arguments.also)]
    programs = [path for path in sorted(allowed[0].rglob("*")) if is_program(path)]
    lines = [f"{path}: {fault}" for path in programs for fault in faults(path, allowed)]
    print("\n".join(lines) if lines else f"{len(programs)} programs and libraries look for libraries in known folders")
    return 1 if lines or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
