"""Checks tests/slow.txt: each pattern fits a test of the sources, what stands in a file *_slow.cpp is left out, and no folder's
tests all are.

Patterns are those of GoogleTest: Suite.Test, or Instance/Suite.Test/Parameter. What instances and parameters are called is
known to the test programs alone: here they are `*`, and a pattern that chooses by a parameter fits whatever it says.

Usage: slow_tests.py [ROOT]    Prints one line for each fault of the list; exit 1 if there are any.
"""

import fnmatch
import pathlib
import re
import sys

TEST = re.compile(r"^TEST(?:_F)?\((\w+),\s*(\w+)\)", re.MULTILINE)
TEST_WITH_PARAMETER = re.compile(r"^TEST_P\((\w+),\s*(\w+)\)", re.MULTILINE)
# A program of its own, all of it slow.
SLOW_FILE = "_slow.cpp"


def read_tests(root: pathlib.Path) -> dict[str, set[str]]:
    """The folder of each file -> names of its tests, as patterns have them; those of files *_slow.cpp under ''."""
    tests: dict[str, set[str]] = {}
    for path in sorted((root / "tests").glob("*/*.cpp")):
        names = tests.setdefault("" if path.name.endswith(SLOW_FILE) else path.parent.name, set())
        text = path.read_text()
        names.update(f"{suite}.{test}" for suite, test in TEST.findall(text))
        names.update(f"*/{suite}.{test}/*" for suite, test in TEST_WITH_PARAMETER.findall(text))
    return {folder: names for folder, names in tests.items() if names}


def read_patterns(path: pathlib.Path) -> list[str]:
    """The lines of slow.txt, without comments."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def faults_of(root: pathlib.Path) -> list[str]:
    """What is wrong with the list."""
    tests = read_tests(root)
    patterns = read_patterns(root / "tests/slow.txt")
    errors = [f"{pattern} stands there twice" for pattern in sorted(set(patterns)) if patterns.count(pattern) > 1]
    left_out: set[str] = set()
    for pattern in patterns:
        found = {test for names in tests.values() for test in names if fnmatch.fnmatchcase(test, pattern)}
        if not found and "." in pattern:
            errors.append(f"{pattern} fits no test")
        left_out |= found
    for folder, names in sorted(tests.items()):
        if folder and names <= left_out:
            errors.append(f"of tests/{folder} nothing is quick")
        if not folder:
            errors += [f"{name}, of a file *{SLOW_FILE}, is missing" for name in sorted(names - left_out)]
    return errors


def main(root: pathlib.Path) -> int:
    faults = faults_of(root)
    for fault in faults:
        print(f"tests/slow.txt: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]))
