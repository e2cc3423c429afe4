"""What tests of shardc on hosts of namespaces have in common: the hosts, launches on them, and what has to be true at their end.

SHARDC_SHOW=1 prints what is measured: times to the end by fault, bytes on the wire.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from load import Load  # noqa: E402
from training import Launch, Training, left_on  # noqa: E402
from two_hosts import Host, Hosts  # noqa: E402


def needs(*programs: str):
    """Skips a test if the machine lacks one of these programs, or root; with CI=true it fails then."""
    missing = [name for name in programs if shutil.which(name) is None] + ([] if os.geteuid() == 0 else ["root"])
    return unittest.skipIf(missing and os.environ.get("CI") != "true", f"missing: {', '.join(missing)}; tools/dev setup --tests")


def show(text: str) -> None:
    if os.environ.get("SHARDC_SHOW"):
        print(text, file=sys.stderr, flush=True)


# The store of a launch that failed waits for 5 s for hosts that are gone, whose connections look open. Processes end after it.
STORE_LEFT_S = 5 + 2


class JobsTest(unittest.TestCase):
    """Tests on two hosts that outlive each of them."""

    # Where shardc and shardc-run are; the program that runs the tests sets it.
    programs = pathlib.Path()

    @classmethod
    def setUpClass(cls):
        cls.hosts = cls.enterClassContext(Hosts(2))

    def training(self, *sets: str) -> Training:
        training = Training(self.programs, *sets)
        self.addCleanup(training.close)
        return training

    def launch(self, processes: int, command: list[str], **options) -> Launch:
        return Launch(self.hosts, processes, command, **options)

    def finish(self, launch: Launch, code: int = 0) -> str:
        """The messages of all processes, each of which has ended with `code`; and they left nothing."""
        ended = launch.wait()
        text = "".join(one.text for one in ended)
        self.assertEqual([one.code for one in ended], [code] * len(ended), text)
        self.nothing_is_left()
        return text

    def left(self, host: Host) -> list[str]:
        return left_on(host)

    def nothing_is_left(self, hosts: list[Host] | None = None) -> None:
        begin = time.monotonic()
        with Load() as load:
            while left := {host.name: self.left(host) for host in hosts or self.hosts if self.left(host)}:
                self.assertLess(time.monotonic() - begin, load.longer(STORE_LEFT_S), left)
                time.sleep(0.05)

    def on_one_machine(self, training: Training, name: str, *sets: str) -> None:
        with (training.folder / f"{name}.log").open("w+") as log:
            process = subprocess.Popen(training.run(name, *sets), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                code = process.wait(timeout=180)
            except subprocess.TimeoutExpired:
                running = subprocess.run(["ps", "-eLo", "pid,ppid,stat,etimes,wchan:30,args"], capture_output=True, text=True).stdout
                process.terminate()
                process.wait()
                self.fail((training.folder / f"{name}.log").read_text() + running)
            self.assertEqual(code, 0, (training.folder / f"{name}.log").read_text())

    def same_run(self, training: Training, name: str, other: str) -> None:
        self.assertEqual(training.curve(name), training.curve(other))
        files, others = training.last_checkpoint(name), training.last_checkpoint(other)
        self.assertEqual(sorted(files), sorted(others))
        self.assertEqual([file for file in files if files[file] != others[file]], [])
