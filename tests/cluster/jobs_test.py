"""shardc on several hosts, started by hand and by real launchers: what it trains, what it sends, how it fails, how it goes on. Run
by ctest as jobs_test.py FOLDER, where shardc and shardc-run are in FOLDER; needs root and `tools/dev setup --tests`.

SHARDC_SHOW=1 prints what is measured: times to the end by fault, bytes on the wire.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = pathlib.Path()

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from training import Launch, Training, left_on, processes_of, until  # noqa: E402
from two_hosts import Hosts  # noqa: E402


def needs(*programs: str):
    """Skips a test if the machine lacks one of these programs, or root; with CI=true it fails then."""
    missing = [name for name in programs if shutil.which(name) is None] + ([] if os.geteuid() == 0 else ["root"])
    return unittest.skipIf(missing and os.environ.get("CI") != "true", f"missing: {', '.join(missing)}; tools/dev setup --tests")


def show(text: str) -> None:
    if os.environ.get("SHARDC_SHOW"):
        print(text, file=sys.stderr, flush=True)


class JobsTest(unittest.TestCase):
    """Tests on two hosts that outlive each of them."""

    @classmethod
    def setUpClass(cls):
        cls.hosts = cls.enterClassContext(Hosts(2))

    def training(self, *sets: str) -> Training:
        training = Training(PROGRAMS, *sets)
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

    def nothing_is_left(self, timeout_s: float = 10) -> None:
        for host in self.hosts:
            try:
                until("nothing is left", lambda host=host: not left_on(host), timeout_s)
            except TimeoutError:
                self.fail(f"left on {host.name}: {left_on(host)}")

    def on_one_machine(self, training: Training, name: str, *sets: str) -> None:
        done = subprocess.run(training.run(name, *sets), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def same_run(self, training: Training, name: str, other: str) -> None:
        self.assertEqual(training.curve(name), training.curve(other))
        files, others = training.last_checkpoint(name), training.last_checkpoint(other)
        self.assertEqual(sorted(files), sorted(others))
        self.assertEqual([file for file in files if files[file] != others[file]], [])


@needs("ip", "nsenter", "unshare")
class TrainsTest(JobsTest):
    def test_the_bits_of_one_machine(self):
        """Processes per host, addresses and interfaces make no difference."""
        training = self.training("mesh.dp=4")
        self.on_one_machine(training, "one", "mesh.hosts=2")
        self.assertEqual(len(training.curve("one")), 42)
        for name, processes, options in (
            ("ranks", 2, {}),
            ("launchers", 1, {}),
            ("ipv6", 2, {"master": self.hosts[0].address6}),
            ("interface", 1, {"master": self.hosts[0].address, "environment": {"GLOO_SOCKET_IFNAME": "eth0"}}),
        ):
            with self.subTest(name):
                self.finish(self.launch(processes, training.run(name), **options))
                self.same_run(training, name, "one")

    def test_an_interface_that_is_not_there(self):
        training = self.training("mesh.dp=2")
        launch = self.launch(1, training.run("run"), environment={"GLOO_SOCKET_IFNAME": "eth7"})
        self.assertIn("eth7", self.finish(launch, 6))

    def bytes_sent(self, training: Training, name: str, processes: int, steps: int) -> list[int]:
        """By each host, in a launch of so many steps."""
        before = [host.counters()["sent"] for host in self.hosts]
        self.finish(self.launch(processes, training.run(name, f"train.steps={steps}")))
        return [host.counters()["sent"] - sent for host, sent in zip(self.hosts, before)]

    def test_bytes_on_the_wire(self):
        """Those that explain tells, and not more than 2 % beside them; a constant for start and end."""
        Begin, More = 2, 10
        training = self.training("mesh.dp=4", "model.hidden=256", "model.ffn=512", "train.eval_every=0", "checkpoint.every=0",
                                 "data.eval_tokens=0")
        explained = training.explained("mesh.hosts=2")
        told = 2 * sum(row["between_hosts_bytes"] for row in explained["communication"])
        self.assertGreater(told, 5_000_000)
        for processes in (2, 1):
            few = self.bytes_sent(training, f"few{processes}", processes, Begin)
            many = self.bytes_sent(training, f"many{processes}", processes, Begin + More)
            for host, sent, all_sent in zip(self.hosts, few, many):
                per_step = (all_sent - sent) / More
                beside = sent - Begin * per_step
                show(f"{host.name}, {processes} processes per host: explain {told} bytes per step, counted {per_step:.0f} "
                     f"({100 * (per_step / told - 1):+.2f} %); start and end {beside:.0f}")
                self.assertGreaterEqual(per_step, told)
                self.assertLessEqual(per_step, 1.02 * told)
                self.assertLessEqual(beside, MOST_BESIDE)

    def test_goes_on_with_other_hosts(self):
        """On 1 x 2, 2 x 2 and 2 x 1 ranks in turn."""
        training = self.training("train.steps=60", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=20")
        self.on_one_machine(training, "run", "mesh.dp=2", "train.steps=20")
        self.finish(self.launch(2, training.run("run", "mesh.dp=4", "train.steps=40")))
        text = self.finish(self.launch(1, training.run("run", "mesh.dp=2")))
        self.assertIn("step-00000040", text)
        steps = [line["step"] for line in training.curve("run")]
        self.assertEqual(steps, list(range(1, 61)))


# What hosts send beside the plan's bytes, in a launch of a few steps: the store, the connections, control and heartbeats.
MOST_BESIDE = 250_000


if __name__ == "__main__":
    PROGRAMS = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
