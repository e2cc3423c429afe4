#!/usr/bin/env python3
"""shardc on several hosts, started by hand and by real launchers: what it trains, what it sends, how it fails, how it goes on. Run
by ctest as jobs_test.py FOLDER, where shardc and shardc-run are in FOLDER: all tests, side by side (tests/cluster/side_by_side.py).
jobs_test.py FOLDER [-v] [Class.test]... runs single tests, one after the other. Needs root and `tools/dev setup --tests`.

SHARDC_SHOW=1 prints what is measured: times to the end by fault, bytes on the wire.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
import side_by_side  # noqa: E402
from jobs import JobsTest, needs, show  # noqa: E402
from launcher_jobs import MpiTest, SlurmTest  # noqa: E402, F401
from load import Load  # noqa: E402
from training import ENDLESS, Launch, Training, launched_on, until  # noqa: E402
from two_hosts import Hosts  # noqa: E402

# What takes longest begins first.
LONGEST = ("SlurmTest.test_requeued_at_random_times", "DirectoriesTest.test_a_run_directory_that_is_not_shared",
           "DirectoriesTest.test_doctor", "FailuresTest.test_a_link_of_host_0_that_is_down",
           "FailuresTest.test_a_link_of_host_1_that_is_down", "FailuresTest.test_a_partition_of_one_direction",
           "SlurmTest.test_saves_before_the_end_of_the_job", "FailuresTest.test_a_host_that_is_gone")


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

    def test_addresses_of_one_kind(self):
        """The name of host 0 stands for an address of each kind, and a host lacks one of them."""
        training = self.training("mesh.dp=4")
        for kind, lacking in (("-6", (0,)), ("-6", (1,)), ("-4", (0, 1))):
            with self.subTest(kind=kind, lacking=lacking), Hosts(2) as hosts:
                for index in lacking:
                    self.assertEqual(hosts[index].run(["ip", kind, "address", "flush", "dev", "eth0"]).returncode, 0)
                launch = Launch(hosts, 1, [*training.run(f"run{kind}{len(lacking)}{lacking[0]}"), "--timeout", "20"])
                ended = launch.wait()
                self.assertEqual([one.code for one in ended], [0, 0], "".join(one.text for one in ended))

    def test_an_interface_that_is_not_there(self):
        training = self.training("mesh.dp=2")
        launch = self.launch(1, training.run("run"), environment={"GLOO_SOCKET_IFNAME": "eth7"})
        self.assertIn("eth7", self.finish(launch, 6))

    def test_an_interface_that_other_hosts_do_not_reach(self):
        training = self.training("mesh.dp=2")
        launch = self.launch(1, training.run("run"), environment={"GLOO_SOCKET_IFNAME": "lo"})
        self.assertRegex(self.finish(launch, 6), "error: GLOO_SOCKET_IFNAME=lo is 127.0.0.1, where other hosts do not reach")

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

    @needs("nft")
    def test_packets_that_are_lost(self):
        """TCP sends them again: steps take longer, and have the same bits."""
        Percent = 2
        training = self.training("mesh.dp=4")
        self.on_one_machine(training, "one", "mesh.hosts=2")
        for processes in (2, 1):
            with self.subTest(processes=processes), Hosts(2) as hosts:
                for host in hosts:
                    host.lose_some(Percent)
                begin = time.monotonic()
                ended = Launch(hosts, processes, training.run(f"lossy{processes}")).wait()
                lost = [host.lost() for host in hosts]
                show(f"{Percent} % of the packets are lost, {processes} processes per host: {lost} packets, {time.monotonic() - begin:.1f} s")
                self.assertEqual([one.code for one in ended], [0] * len(ended), "".join(one.text for one in ended))
                self.assertGreater(min(lost), 20)
                self.same_run(training, f"lossy{processes}", "one")

    def test_goes_on_with_other_hosts(self):
        """On 1 x 2, 2 x 2 and 2 x 1 ranks in turn."""
        training = self.training("train.steps=60", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=20")
        self.on_one_machine(training, "run", "mesh.dp=2", "train.steps=20")
        self.finish(self.launch(2, training.run("run", "mesh.dp=4", "train.steps=40")))
        text = self.finish(self.launch(1, training.run("run", "mesh.dp=2")))
        self.assertIn("step-00000040", text)
        steps = [line["step"] for line in training.curve("run")]
        self.assertEqual(steps, list(range(1, 61)))


@needs("ip", "nsenter", "unshare")
class DocumentedTest(JobsTest):
    def blocks(self, page: str, heading: str) -> list[list[str]]:
        """The indented blocks of a section, without their indentation."""
        section = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
        return [[line[4:] for line in block.splitlines()] for block in re.findall(r"(?:^    .+\n)+", section, re.MULTILINE)]

    def on_hosts(self, folder: pathlib.Path, commands: dict[str, list[str]]) -> str:
        """Runs the commands of each host in a shell there, at the same time, and returns what they print."""
        logs = [(folder / f"{host.name}.log").open("w+") for host in self.hosts]
        shells = [host.start(["bash", "-ec", "\n".join(commands[host.name])], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                  for host, log in zip(self.hosts, logs)]
        codes = [shell.wait(timeout=180) for shell in shells]
        text = "".join(pathlib.Path(log.name).read_text() for log in logs)
        for log in logs:
            log.close()
        self.assertEqual(codes, [0] * len(codes), f"{commands}\n{text}")
        return text

    def test_from_nothing_to_two_hosts(self):
        """The commands of docs/cluster.md, on the hosts that their comments name. A block ends on both before the next one begins."""
        with tempfile.TemporaryDirectory(prefix="shared.") as name:
            shared = pathlib.Path(name)
            (shared / "first").mkdir()
            recipe = re.search(r"^    # first\.toml\n((?:    .*\n|\n)+)", (ROOT / "docs" / "first_run.md").read_text(), re.MULTILINE)[1]
            (shared / "first" / "first.toml").write_text("".join(line[4:] + "\n" for line in recipe.splitlines()))
            (shared / "first" / "my_text.txt").write_text((ROOT / "docs" / "cluster.md").read_text())
            # What a shell keeps for the blocks that follow.
            kept = {host.name: [f"export PATH={self.programs}:$PATH"] for host in self.hosts}
            text = ""
            for block in self.blocks("cluster.md", "From nothing to two hosts"):
                commands = {host: list(lines) for host, lines in kept.items()}
                for line in block:
                    command, where = re.fullmatch(r"(.*?)\s+# on (both|node0|node1)", line).groups()
                    for host in list(kept) if where == "both" else [where]:
                        # These hosts have no network that brings packages.
                        if not command.startswith("apt-get "):
                            commands[host].append(command.replace("/shared", name))
                        if command.startswith(("cd ", "export ")):
                            kept[host].append(commands[host][-1])
                text = self.on_hosts(shared, commands)
            self.assertRegex(text, "run first: resumed from .*/runs/first/checkpoints/step-00000020 at step 20\n")
            self.assertIn("step 40: saved", text)
        self.nothing_is_left()


# --timeout of Training.plan.
SILENCE_S = 5
# What is added to it, as docs/cluster.md has it: connections are looked at, messages exchanged; and a second in which processes end.
LEEWAY_S = 5 + 1
# A fault that closes connections needs no timeout.
SOON_S = 15


@needs("ip", "nsenter", "unshare")
class FailuresTest(JobsTest):
    """Each test has hosts of its own: hosts get lost."""

    def setUp(self):
        self.hosts = self.enterContext(Hosts(2))
        self.port = 29500

    def start(self, processes: int, timeout: bool = True, address6: bool = False) -> Launch:
        """A launch that has begun to train."""
        training = self.training("mesh.dp=4", *ENDLESS)
        command = training.plan("run", "mesh.hosts=2") if timeout else training.run("run")
        self.port += 1
        # A port of its own: the store of the launch before may linger.
        launch = self.launch(processes, command, master=self.hosts[0].address6 if address6 else self.hosts[0].address, port=self.port)
        until("three steps", lambda: training.last_step("run") >= 3 or not launch.is_running())
        self.assertTrue(launch.is_running(), "".join(launch.text(i) for i in range(len(launch.started))))
        return launch

    def ends(self, launch: Launch, what: str, longest_s: float, named: str, of=lambda index: True) -> None:
        """The processes `of` end with 6 in time, and those of each of their hosts tell `named`."""
        begin = time.monotonic()
        with Load() as load:
            ended = launch.wait(since=begin)
        judged = [one for index, one in enumerate(ended) if of(index)]
        text = "".join(f"--- after {one.seconds:.1f} s\n{one.text}" for one in judged)
        show(f"{what}: {len(judged)} processes ended after {', '.join(f'{one.seconds:.1f}' for one in judged)} s; "
             f"load {load.factor():.1f}")
        errors = [line for line in text.split("\n") if line.startswith("error: ")]
        show("  " + "\n  ".join(errors))
        self.assertEqual([one.code for one in judged], [6] * len(judged), text)
        self.assertLess(max(one.seconds for one in judged), load.longer(longest_s), text)
        self.assertRegex("\n".join(errors), named)

    def link_is_down(self, host: int, named: str) -> None:
        """A link that goes down takes its addresses of IPv6 away, and keeps those of IPv4."""
        for processes, address6 in ((1, True), (2, False)):
            with self.subTest(processes=processes, address6=address6):
                launch = self.start(processes, address6=address6)
                self.hosts[host].link_down()
                try:
                    self.ends(launch, f"link of host {host} is down", SILENCE_S + LEEWAY_S, named)
                    self.nothing_is_left()
                finally:
                    self.hosts[host].link_up()

    def test_a_link_of_host_1_that_is_down(self):
        self.link_is_down(1, r"no sign of life from host 1 \(node1\)")

    def test_a_link_of_host_0_that_is_down(self):
        """The host of the store."""
        self.link_is_down(0, r"store of the job|node0|rank [01] ")

    def test_a_partition_of_one_direction(self):
        for host in (1, 0):
            with self.subTest(host=host):
                launch = self.start(2 - host)
                self.hosts[host].lose(self.hosts[1 - host].address)
                try:
                    self.ends(launch, f"what host {host} sends is lost", SILENCE_S + LEEWAY_S, r"host [01]|rank [0-3] ")
                finally:
                    self.hosts[host].link_up()
                self.nothing_is_left()

    def test_all_processes_of_a_host_are_killed(self):
        for host, processes in ((1, 2), (0, 2), (1, 1)):
            with self.subTest(host=host, processes=processes):
                launch = self.start(processes, timeout=False)
                for pid in launched_on(self.hosts[host]):
                    os.kill(pid, signal.SIGKILL)
                self.ends(launch, f"all {processes} processes of host {host} are killed", SOON_S, rf"rank [{'01' if host == 0 else '23'}] |node{host}",
                          lambda index, host=host, processes=processes: index // processes != host)
                self.nothing_is_left()

    def test_a_host_that_is_gone(self):
        for host in (1, 0):
            with self.subTest(host=host), Hosts(2) as self.hosts:
                launch = self.start(2, timeout=False)
                self.hosts[host].kill()
                self.ends(launch, f"host {host} is gone", SOON_S, rf"rank [{'01' if host == 0 else '23'}] |node{host}",
                          lambda index, host=host: index // 2 != host)
                self.nothing_is_left([self.hosts[1 - host]])

    def test_a_signal_saves_and_leaves_nothing(self):
        training = self.training("mesh.dp=4", *ENDLESS)
        launch = self.launch(1, training.run("run"))
        until("three steps", lambda: training.last_step("run") >= 3)
        os.kill(launched_on(self.hosts[1])[0], signal.SIGTERM)
        self.finish(launch, 75)
        self.assertEqual(len(training.checkpoints("run")), 1)


@needs("ip", "nsenter", "unshare")
class DirectoriesTest(JobsTest):
    """Folders that only one host has."""

    def hide(self, host: int, folder: pathlib.Path) -> None:
        """On this host another, empty folder is at that path."""
        folder.mkdir(exist_ok=True)
        self.assertEqual(self.hosts[host].run(["mount", "-t", "tmpfs", "tmpfs", str(folder)]).returncode, 0)
        self.addCleanup(self.hosts[host].run, ["umount", str(folder)])

    def test_a_run_directory_that_is_not_shared(self):
        for stale in (False, True):
            for processes in (2, 1):
                with self.subTest(stale=stale, processes=processes):
                    training = self.training("mesh.dp=4")
                    self.hide(1, training.folder / "run")
                    if stale:
                        # An earlier launch, whose host 0 this host was, has left it.
                        attempt = training.folder / "run" / "attempts" / "0001"
                        self.hosts[1].run(["sh", "-c", f"mkdir -p {attempt}; echo '{{}}' > {attempt}/attempt.json; touch {attempt}/log.txt"])
                    text = self.finish(self.launch(processes, training.run("run")), 6)
                    self.assertRegex(text, r"error: .*node1 cannot use attempt .*; all hosts have to share the run directory")
                    self.assertEqual(text.count("error: "), 1, text)
                    self.assertEqual(training.curve("run"), [])

    def test_checkpoints_that_are_not_shared(self):
        """In a folder of their own: at the start, and not at the first save."""
        training = self.training("mesh.dp=4")
        elsewhere = training.folder / "elsewhere"
        self.hide(1, elsewhere)
        for processes in (2, 1):
            with self.subTest(processes=processes):
                text = self.finish(self.launch(processes, training.run("run", f"checkpoint.dir='{elsewhere}/checkpoints'")), 6)
                self.assertRegex(text, r"error: process \d \(node1\): the file .* does not show .*the folder of the checkpoints \(checkpoint.dir\) has to be one")
                self.assertEqual(training.curve("run"), [])
                self.assertEqual(list((elsewhere / "checkpoints").iterdir()), [])

    def test_checkpoints_that_one_process_does_not_see(self):
        """The other process of its host does."""
        training = self.training("mesh.dp=4")
        elsewhere = training.folder / "elsewhere"
        elsewhere.mkdir()
        alone = f"mount -t tmpfs tmpfs {elsewhere} && exec \"$@\""
        hidden = f"if [ $RANK = 3 ]; then exec unshare --mount sh -c '{alone}' sh \"$@\"; fi; exec \"$@\""
        command = ["sh", "-c", hidden, "sh", *training.run("run", f"checkpoint.dir='{elsewhere}'")]
        text = self.finish(self.launch(2, command), 6)
        self.assertRegex(text, r"error: process 3 \(node1\): the file .* does not show .*the folder of the checkpoints \(checkpoint.dir\) has to be one")
        self.assertEqual(training.curve("run"), [])

    def test_a_reason_comes_before_the_others_give_up(self):
        training = self.training("mesh.dp=4")
        self.hide(1, training.folder / "run")
        text = self.finish(self.launch(1, [*training.run("run"), "--timeout", "6"]), 6)
        self.assertRegex(text, r"error: .*node1 cannot use attempt .*; all hosts have to share the run directory")

    def test_tokens_that_one_host_lacks(self):
        training = self.training("mesh.dp=4", "data.tokens=['data/tokens.bin']")
        (training.folder / "data").mkdir()
        (training.folder / "tokens.bin").rename(training.folder / "data" / "tokens.bin")
        self.hide(1, training.folder / "data")
        text = self.finish(self.launch(2, training.run("run")), 6)
        self.assertIn("data/tokens.bin", text)
        self.assertIn("node1", text)

    def test_doctor(self):
        training = self.training()
        text = self.finish(self.launch(1, training.command("doctor", "--run-dir", str(training.folder / "run"))))
        for host in ("node0", "node1"):
            self.assertRegex(text, rf"(?m)^{host} +(10\.77\.0\.|fd77::)\d .* seen +[\d.]+ [um]s +[\d.]+ [GM]B/s")
        self.hide(1, training.folder / "other")
        text = self.finish(self.launch(1, training.command("doctor", "--run-dir", str(training.folder / "other"))), 6)
        self.assertRegex(text, r"error: process 1 \(node1\): the file .* does not show within")
        read_only = training.folder / "read_only"
        read_only.mkdir()
        done = self.hosts[1].run(["sh", "-c", f"mount --bind {read_only} {read_only} && mount -o remount,ro,bind {read_only}"])
        self.assertEqual(done.returncode, 0)
        self.addCleanup(self.hosts[1].run, ["umount", str(read_only)])
        text = self.finish(self.launch(1, training.command("doctor", "--run-dir", str(read_only))), 6)
        self.assertRegex(text, r"error: .*node1 cannot write a file .*Read-only file system")
        self.assertEqual(list(read_only.iterdir()), [])


# What hosts send beside the plan's bytes, in a launch of a few steps: the store, the connections, control and heartbeats.
MOST_BESIDE = 1_000_000


if __name__ == "__main__":
    JobsTest.programs = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    if len(sys.argv) > 1:
        unittest.main()
    sys.exit(side_by_side.main([sys.executable, __file__, str(JobsTest.programs)], side_by_side.names_of(sys.modules["__main__"]),
                               shows=bool(os.environ.get("SHARDC_SHOW"))))
