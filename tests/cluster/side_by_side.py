"""Runs the tests of a unittest program side by side, each in a process of its own: tests on hosts of namespaces wait most of
their time, and share nothing. Prints the seconds that each took, and what failed.

A test that fails runs once more after all others, by itself: on a machine with neighbours a process may stand still for longer
than a test can wait. The second run decides; the first failure is printed, and SHARDC_TEST_TIMES/second_runs.txt lists what
passed only the second time, for the summary of tools/test_times.py.

As a module: side_by_side.main([python, program, ...], ["Class.test", ...]) is the exit code; `program Class.test` runs one test.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

# Two cores are kept busy by that many, which wait for timeouts and daemons three quarters of their time.
AT_ONCE = 4
# Of one test.
TIMEOUT_S = 300


def names_of(module) -> list[str]:
    """Class.test of all tests in the module, those of its `LONGEST` first."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    names = sorted(test.id().split(".", 1)[1] for case in suite for test in case)
    longest = list(getattr(module, "LONGEST", ()))
    unknown = set(longest) - set(names)
    if unknown:
        raise ValueError(f"LONGEST names what is no test: {sorted(unknown)}")
    return [*longest, *(name for name in names if name not in longest)]


class Outcome:
    def __init__(self, name: str, code: int, text: str, seconds: float):
        self.name, self.code, self.text, self.seconds = name, code, text, seconds

    def line(self) -> str:
        reason = re.search(r"skipped (['\"])(.*)\1", self.text)
        how = "FAILED" if self.code else f"skipped: {reason[2]}" if reason else "ok"
        return f"{self.seconds:7.1f}  {self.name}  {how}"


def run_one(command: list[str], name: str) -> Outcome:
    begin = time.monotonic()
    process = subprocess.Popen([*command, name, "-v"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
    try:
        text, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # Its hosts end with it.
        process.kill()
        text, _ = process.communicate()
        text += f"\nkilled after {TIMEOUT_S} s"
    return Outcome(name, process.returncode, text, time.monotonic() - begin)


def main(command: list[str], names: list[str], at_once: int = AT_ONCE, shows: bool = False) -> int:
    """`shows`: what tests print too, not only of those that fail."""
    # The hosts of a test die with the program that made them, and these with their output's reader.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    begin = time.monotonic()

    def tell(outcome: Outcome) -> None:
        print(outcome.line(), flush=True)
        if outcome.code or shows:
            print(outcome.text, flush=True)

    failed = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_one, command, name) for name in names]):
            tell(done.result())
            if done.result().code:
                failed.append(done.result().name)
    again = []
    for name in failed:
        print(f"{name} once more, by itself", flush=True)
        again.append(run_one(command, name))
        tell(again[-1])
    last = [outcome.name for outcome in again if outcome.code]
    if folder := os.environ.get("SHARDC_TEST_TIMES"):
        with open(pathlib.Path(folder, "second_runs.txt"), "a") as file:
            file.writelines(f"{outcome.name}\n" for outcome in again if not outcome.code)
    print(f"{len(names) - len(last)} of {len(names)} passed, {len(failed) - len(last)} of them the second time; "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return 1 if last or not names else 0
