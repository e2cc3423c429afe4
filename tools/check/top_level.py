"""Checks that the repository's top level is exactly what it is meant to be (dot files and build folders aside).

Usage: top_level.py [ROOT]
"""

import pathlib
import sys

WANTED = {"CMakeLists.txt", "compiler", "runtime", "schemas", "recipes", "tests", "tools", "docs", "README.md"}


def main(root: pathlib.Path) -> int:
    found = {path.name for path in root.iterdir() if not path.name.startswith(".") and not path.name.startswith("build")}
    for name in sorted(found - WANTED):
        print(f"{name}: does not belong at the top level")
    for name in sorted(WANTED - found):
        print(f"{name}: is missing at the top level")
    return 0 if found == WANTED else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
