"""Checks that the repository's top level is exactly what it is meant to be (dot files and build folders aside).

Usage: top_level.py [ROOT]    Prints one line for each name that is missing or too much; exit 1 if there are any.
"""

import pathlib
import sys

WANTED = {"CMakeLists.txt", "compiler", "runtime", "schemas", "recipes", "tests", "tools", "docs", "README.md"}
# What may be there too.
ALLOWED = {"findings"}


def main(root: pathlib.Path) -> int:
    found = {path.name for path in root.iterdir() if not path.name.startswith(".") and not path.name.startswith("build")}
    faults = [f"{name}: does not belong at the top level" for name in sorted(found - WANTED - ALLOWED)]
    faults += [f"{name}: is missing at the top level" for name in sorted(WANTED - found)]
    print("\n".join(faults) or "the top level is as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
