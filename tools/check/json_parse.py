"""Finds sources that parse JSON by the library itself. ParseJson of compiler/base/json_reader.h limits the depth: what is nested deeper
than a stack holds would end the process.

Usage: json_parse.py [ROOT]    Prints one line for each place; exit 1 if there are any.
"""

import pathlib
import re
import sys

FOLDERS = ("compiler", "runtime")
READER = "compiler/base/json_reader.cpp"
PARSES = re.compile(r"json::(?:sax_)?parse\(|\bjson_literals\b|>>\s*json\b")


def main(root: pathlib.Path) -> int:
    faults = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in (".h", ".cpp", ".cu")):
        file = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if file != READER and PARSES.search(line):
                faults.append(f"{file}:{number}: parses JSON without a limit of its depth; call ParseJson of compiler/base/json_reader.h")
    print("\n".join(faults) or "JSON is parsed in one place")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
