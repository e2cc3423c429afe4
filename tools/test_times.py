"""Prints what a run of the tests took, the slowest first, and how it ended: the last line is `N passed, N failed`.

Usage: test_times.py FOLDER...

Each FOLDER holds ctest.xml, which `ctest --output-junit` wrote, and the reports of GoogleTest programs (GTEST_OUTPUT=xml:FOLDER/).
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

TESTS_SHOWN = 12
CASES_SHOWN = 20
LEAST_SECONDS = 1.0


def read_tests(folder: pathlib.Path) -> list[tuple[float, str, str]]:
    """(seconds, name, status) of each test that ctest ran."""
    root = ElementTree.parse(folder / "ctest.xml").getroot()
    return [(float(case.get("time", 0)), case.get("name"), case.get("status")) for case in root.iter("testcase")]


def read_cases(folder: pathlib.Path) -> tuple[list[tuple[float, str]], list[str]]:
    """(seconds, name) of each case of the GoogleTest programs, and what was skipped with its reason."""
    cases, skipped = [], []
    for path in sorted(folder.glob("tests_*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{path.stem} {case.get('classname')}.{case.get('name')}"
            cases.append((float(case.get("time", 0)), name))
            reason = case.find("skipped")
            if reason is not None:
                # GoogleTest puts place and text on two lines.
                skipped.append(f"{name}: {reason.get('message', '').splitlines()[-1].strip()}")
    return cases, skipped


def print_slowest(what: str, rows: list[tuple[float, str]], shown: int) -> None:
    slow = sorted((row for row in rows if row[0] >= LEAST_SECONDS), reverse=True)
    if not slow:
        return
    print(f"\n{'seconds':>8}  {what}")
    for seconds, name in slow[:shown]:
        print(f"{seconds:8.1f}  {name}")
    if len(slow) > shown:
        rest = sum(seconds for seconds, _ in slow[shown:])
        print(f"{rest:8.1f}  in {len(slow) - shown} more of {LEAST_SECONDS:g} s at least")


def main(folders: list[pathlib.Path]) -> int:
    tests, cases, skipped = [], [], []
    for folder in folders:
        mark = f" ({folder.parent.name})" if len(folders) > 1 else ""
        tests += [(seconds, name + mark, status) for seconds, name, status in read_tests(folder)]
        of_folder, skipped_here = read_cases(folder)
        cases += [(seconds, name + mark) for seconds, name in of_folder]
        skipped += [text + mark for text in skipped_here]
    print_slowest("test", [(seconds, name) for seconds, name, _ in tests], TESTS_SHOWN)
    print_slowest("case", cases, CASES_SHOWN)
    for text in skipped:
        print(f"\nskipped: {text}", end="")
    failed = [name for _, name, status in tests if status != "run"]
    print("\n")
    for name in failed:
        print(f"failed: {name}")
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([pathlib.Path(argument) for argument in sys.argv[1:]]))
