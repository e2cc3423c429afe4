"""Prints what a run of the tests took, the slowest first, and how it ended: the last line is `N passed, N failed`.

Usage: test_times.py [--phases FILE SECONDS] FOLDER...

Each FOLDER holds ctest.xml, which `ctest --output-junit` wrote, the reports of GoogleTest programs (GTEST_OUTPUT=xml:FOLDER/), and
second_runs.txt, where tests are listed that failed and passed when they ran once more (tests/cluster/twice.py). More than
SECOND_RUNS of these are a failure, and so is a folder without a test. FILE has a line `PHASE SECONDS USER_SECONDS SYSTEM_SECONDS` for each phase of the run, which
took SECONDS in all; the core-seconds of each are printed beside those of tests/core_seconds.txt. A difference fails nothing.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS_SHOWN = 12
CASES_SHOWN = 20
LEAST_SECONDS = 1.0
SECOND_RUNS = 2


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


def read_second_runs(folder: pathlib.Path) -> list[str]:
    path = folder / "second_runs.txt"
    return path.read_text().splitlines() if path.is_file() else []


def read_core_seconds(path: pathlib.Path) -> dict[str, float]:
    """PHASE -> core-seconds, of a file of lines `PHASE CORE_SECONDS  # comment`."""
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return {words[0]: float(words[1]) for words in lines if words}


def print_phases(path: pathlib.Path, whole: float, committed: dict[str, float]) -> None:
    # Some locales have a decimal comma.
    rows = [(words[0], *map(float, words[1:])) for words in map(str.split, path.read_text().replace(",", ".").splitlines())]
    rows = [(name, seconds, user + system, committed.get(name)) for name, seconds, user, system in rows]
    if len(rows) > 1:
        usual = [row[3] for row in rows]
        rows.append(("whole run", whole, sum(row[2] for row in rows), None if None in usual else sum(usual)))
    print(f"\n{'seconds':>8} {'core-seconds':>13} {'committed':>10}  phase")
    for name, seconds, cores, usual in rows:
        beside = f"{'':10}  {name}" if usual is None else f"{usual:10.0f}  {name} {100 * cores / usual - 100:+.0f} %"
        print(f"{seconds:8.0f} {cores:13.0f} {beside}")


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


def main(arguments: list[str]) -> int:
    phases = None
    if arguments[:1] == ["--phases"]:
        phases, whole, arguments = pathlib.Path(arguments[1]), float(arguments[2]), arguments[3:]
    folders = [pathlib.Path(argument) for argument in arguments]
    tests, cases, skipped, second_runs = [], [], [], []
    failed = [] if folders else ["failed: no test ran"]
    for folder in folders:
        mark = f" ({folder.parent.name})" if len(folders) > 1 else ""
        tests_here = read_tests(folder)
        failed += [] if tests_here else [f"failed: no test ran in {folder.parent.name}"]
        tests += [(seconds, name + mark, status) for seconds, name, status in tests_here]
        of_folder, skipped_here = read_cases(folder)
        cases += [(seconds, name + mark) for seconds, name in of_folder]
        skipped += [text + mark for text in skipped_here]
        second_runs += [text + mark for text in read_second_runs(folder)]
    print_slowest("test", [(seconds, name) for seconds, name, _ in tests], TESTS_SHOWN)
    print_slowest("case", cases, CASES_SHOWN)
    if phases and phases.is_file():
        print_phases(phases, whole, read_core_seconds(ROOT / "tests/core_seconds.txt"))
    for text in skipped:
        print(f"\nskipped: {text}", end="")
    num_tests = len(tests) + len(failed)
    failed += [f"failed: {name}" for _, name, status in tests if status != "run"]
    if len(second_runs) > SECOND_RUNS:
        failed.append(f"failed: {len(second_runs)} tests passed only on their second run; at most {SECOND_RUNS} may")
        num_tests += 1
    print("\n")
    for name in second_runs:
        print(f"passed on its second run: {name}")
    for text in failed:
        print(text)
    print(f"{num_tests - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
