#!/usr/bin/env python3
"""Runs a test that depends on real processes, sockets and launchers, or a part of its cases, and runs once more what failed: on a
machine with neighbours a process may stand still for longer than a test can wait. The second run decides. The first failure is
printed, and SHARDC_TEST_TIMES/second_runs.txt lists what passed only the second time, for the summary of tools/test_times.py.

    twice.py NAME COMMAND [ARGUMENT...]
    twice.py NAME --part K/N COMMAND [ARGUMENT...]    the K-th of N parts of the cases of a GoogleTest program, 1 <= K <= N
"""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def failed_cases(report: pathlib.Path) -> list[str]:
    """Suite.Case of the cases that failed, by a report of GoogleTest; none if the program ended before it wrote one."""
    if not report.is_file():
        return []
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return [f"{case.get('classname')}.{case.get('name')}" for case in cases if case.find("failure") is not None]


def main(name: str, *words: str) -> int:
    environment = dict(os.environ)
    command = list(words)
    if command[0] == "--part":
        part, count = map(int, command[1].split("/"))
        command = command[2:]
        environment |= {"GTEST_SHARD_INDEX": str(part - 1), "GTEST_TOTAL_SHARDS": str(count)}
        name += f"_{part}"
    folder = os.environ.get("SHARDC_TEST_TIMES")
    report = pathlib.Path(folder, f"{name}.xml") if folder else None
    if report:
        environment["GTEST_OUTPUT"] = f"xml:{report}"
    code = subprocess.run(command, env=environment).returncode
    if code == 0:
        return 0
    again = failed_cases(report) if report else []
    print(f"twice.py: it failed with {code}; once more: {' '.join(again) or 'all of it'}", flush=True)
    if again:
        environment = dict(os.environ, GTEST_FILTER=":".join(again))
        environment.pop("GTEST_OUTPUT", None)
    code = subprocess.run(command, env=environment).returncode
    if code == 0 and folder:
        with open(pathlib.Path(folder, "second_runs.txt"), "a") as file:
            file.writelines(f"{name} {case}\n" for case in again or ["(all of it)"])
    return code if code >= 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
