#!/usr/bin/env python3
"""shardc started by torchrun, by the script of tools/launch, on two hosts of namespaces. Run by `tools/dev test-cluster --torchrun` as
torchrun_test.py FOLDER [-v] [Class.test]..., where shardc and shardc-run are in FOLDER; needs root, `tools/dev setup --tests`, and
PyTorch's wheel, which it installs on first use (3 GB). ctest does not run it.

SHARDC_SHOW=1 prints what is measured: times to the end by fault.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "bench" / "fsdp2")]
import pytorch  # noqa: E402
from jobs import JobsTest, needs, show  # noqa: E402
from load import Load  # noqa: E402
from training import Ended, Launch, Training, launched_on, until  # noqa: E402
from two_hosts import Hosts  # noqa: E402

# A rank that fails ends those of all hosts within so long; torchrun takes a moment to see it.
SOON_S = 15 + 2
ENDLESS = ("mesh.dp=4", "train.steps=1000000", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=0")


class Agents(Launch):
    """torchrun.sh on each host, with two ranks."""

    def __init__(self, hosts: Hosts, training: Training, name: str, restarts: int = 0):
        self.started = []
        script = [str(ROOT / "tools" / "launch" / "torchrun.sh"), *training.run(name)[2:]]
        for index, host in enumerate(hosts):
            out = (training.folder / f"{name}.host{index}.log").open("w+")
            variables = os.environ | {"PATH": f"{pytorch.VENV}/bin:{os.environ['PATH']}", "HOSTS": "2", "NODE_RANK": str(index),
                                      "MASTER": "node0", "RANKS_PER_HOST": "2", "SHARDC": str(training.shardc), "RESTARTS": str(restarts)}
            self.started.append((host.start(script, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=out), out))

    def agent(self, index: int) -> int:
        """The process of torchrun on a host: the child of nsenter, whose place the script leaves to it."""
        pid = self.started[index][0].pid
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@needs("ip", "nsenter", "unshare")
class TorchrunTest(JobsTest):
    def start(self, training: Training, restarts: int = 0, steps: int = 3) -> Agents:
        """A launch that has begun to train."""
        agents = Agents(self.hosts, training, "run", restarts)
        until("some steps", lambda: training.last_step("run") >= steps or not agents.is_running())
        self.assertTrue(agents.is_running(), agents.text(0) + agents.text(1))
        return agents

    def ends(self, agents: Agents, what: str, longest_s: float) -> list[Ended]:
        """Both in time, with torchrun's one code for all that is not 0."""
        with Load() as load:
            ended = agents.wait()
        show(f"{what}: torchrun of both hosts ended after {', '.join(f'{one.seconds:.1f}' for one in ended)} s; load {load.factor():.1f}")
        text = "".join(f"--- after {one.seconds:.1f} s\n{one.text}" for one in ended)
        self.assertEqual([one.code for one in ended], [1, 1], text)
        self.assertLess(max(one.seconds for one in ended), load.longer(longest_s), text)
        self.nothing_is_left()
        return ended

    def test_the_bits_of_one_machine(self):
        training = self.training("mesh.dp=4", "train.steps=20")
        self.on_one_machine(training, "one", "mesh.hosts=2")
        self.finish(Agents(self.hosts, training, "run"))
        self.same_run(training, "run", "one")

    def test_a_rank_that_is_killed(self):
        """On the host of the store and on the other one."""
        for host in (1, 0):
            with self.subTest(host=host):
                training = self.training(*ENDLESS)
                agents = self.start(training)
                victim = launched_on(self.hosts[host])[0]
                os.kill(victim, signal.SIGKILL)
                ended = self.ends(agents, f"a rank of host {host} is killed", SOON_S)
                text = "".join(one.text for one in ended)
                self.assertRegex(text, rf"error: .*rank [{'23' if host else '01'}] .*(is gone|reset the connection)")
                self.assertRegex(ended[host].text, r"exitcode *: -9|exitcode: -9")
                self.assertEqual(training.checkpoints("run"), [])

    def test_a_signal_to_an_agent_saves(self):
        """To one of them; to all, which it takes if torchrun may start ranks again."""
        for told, restarts in (((1,), 0), ((0,), 0), ((0, 1), 1)):
            with self.subTest(told=told):
                training = self.training(*ENDLESS)
                agents = self.start(training, restarts)
                for agent in [agents.agent(host) for host in told]:
                    os.kill(agent, signal.SIGTERM)
                self.ends(agents, f"SIGTERM to torchrun of {' and '.join(self.hosts[host].name for host in told)}", 30)
                self.assertEqual(training.checkpoints("run"), [f"step-{training.last_step('run'):08}"])
                self.assertEqual(len(list((training.folder / "run" / "attempts").iterdir())), 1)

    def test_an_agent_that_is_killed(self):
        """Its ranks save and end with those of the other host."""
        training = self.training(*ENDLESS)
        agents = self.start(training)
        os.kill(agents.agent(0), signal.SIGKILL)
        begin = time.monotonic()
        with Load() as load:
            ended = agents.wait()
            self.assertLess(time.monotonic() - begin, load.longer(SOON_S))
        text = ended[1].text
        self.assertRegex(text, "exitcode *: 75")
        self.assertEqual(training.checkpoints("run"), [f"step-{training.last_step('run'):08}"], text)
        self.nothing_is_left()

    def test_starts_the_ranks_again(self):
        """With --max-restarts, after a rank was killed: the run goes on from its newest checkpoint, to the bits of a run that was left alone."""
        training = self.training("mesh.dp=4", "train.steps=400", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=20")
        agents = self.start(training, restarts=1)
        until("a checkpoint", lambda: training.checkpoints("run") or not agents.is_running())
        begin, before = time.monotonic(), training.last_step("run")
        os.kill(launched_on(self.hosts[1])[0], signal.SIGKILL)
        attempts = training.folder / "run" / "attempts"
        until("the next attempt", lambda: (attempts / "0002").exists() or not agents.is_running())
        show(f"killed at step {before}; the next attempt began after {time.monotonic() - begin:.1f} s")
        text = self.finish(agents)
        self.assertEqual(sorted(path.name for path in attempts.iterdir()), ["0001", "0002"], text)
        self.on_one_machine(training, "one", "mesh.hosts=2")
        self.same_run(training, "run", "one")


if __name__ == "__main__":
    JobsTest.programs = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    pytorch.install()
    unittest.main()
