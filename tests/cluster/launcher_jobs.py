"""shardc started by Slurm, Open MPI and Hydra on hosts of namespaces. A part of jobs_test.py, which runs these tests."""

import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from jobs import JobsTest, needs, show  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402
from training import ENDLESS, Training, launched_on, parent_of, processes_of, until  # noqa: E402
from two_hosts import Host  # noqa: E402


@needs("mpirun.openmpi", "mpiexec.hydra", "ip")
class MpiTest(JobsTest):
    def environment(self, **variables: str) -> dict[str, str]:
        return os.environ | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": self.hosts.agent,
            "HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": self.hosts.agent} | variables

    def mpi(self, command: list[str], **variables: str) -> subprocess.CompletedProcess:
        return self.hosts[0].run(command, capture_output=True, text=True, timeout=180, env=self.environment(**variables))

    def test_a_daemon_that_is_killed(self):
        """That of MPI on a host: the ranks of all hosts save and end."""
        for host, mpirun in ((1, "mpirun.openmpi"), (0, "mpiexec.hydra")):
            with self.subTest(mpirun=mpirun):
                training = self.training("mesh.dp=4", *ENDLESS)
                launch = self.hosts[0].start(
                    [str(ROOT / "tools" / "launch" / "mpirun.sh"), *training.run("run")[2:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env=self.environment(HOSTS="node0,node1", RANKS_PER_HOST="2", MPIRUN=mpirun, SHARDC=str(training.shardc)))
                until("three steps", lambda: training.last_step("run") >= 3 or launch.poll() is not None)
                os.kill(parent_of(launched_on(self.hosts[host])[0]), signal.SIGKILL)
                begin = time.monotonic()
                self.assertNotEqual(launch.wait(timeout=60), 0)
                self.nothing_is_left()
                show(f"the daemon of {mpirun} on host {host} is killed: nothing is left after {time.monotonic() - begin:.1f} s")
                self.assertEqual(training.checkpoints("run"), [f"step-{training.last_step('run'):08}"])

    def test_the_bits_of_one_machine(self):
        """By tools/launch/mpirun.sh."""
        training = self.training("mesh.dp=4", "train.steps=20")
        self.on_one_machine(training, "one", "mesh.hosts=2")
        for name, mpirun, per_host in (("openmpi", "mpirun.openmpi", 2), ("hydra", "mpiexec.hydra", 2), ("launchers", "mpirun.openmpi", 1)):
            with self.subTest(name):
                done = self.mpi([str(ROOT / "tools" / "launch" / "mpirun.sh"), *training.run(name)[2:]], HOSTS="node0,node1",
                                RANKS_PER_HOST=str(per_host), MPIRUN=mpirun, SHARDC=str(training.shardc))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.nothing_is_left()
                self.same_run(training, name, "one")

    def test_by_node_is_refused(self):
        training = self.training("mesh.dp=4")
        done = self.mpi(["mpirun.openmpi", "--host", "node0:2,node1:2", "--map-by", "node", "-n", "4", "-x", "MASTER_ADDR=node0",
                         "-x", "MASTER_PORT=29500", *training.run("run")])
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("Open MPI did not number the processes host by host (OMPI_MCA_rmaps_base_mapping_policy=node)", done.stderr)
        self.assertFalse((training.folder / "run").exists())
        self.nothing_is_left()


@needs("slurmctld", "slurmd", "munged", "srun", "ip")
class SlurmTest(JobsTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(SlurmCluster())
        # Slurm itself is on these hosts: ports of its daemons.
        cls.hosts = cls.cluster.hosts

    def left(self, host: Host) -> list[str]:
        return [f"process {pid}" for pid in processes_of(host)]

    def srun(self, *words: str) -> subprocess.CompletedProcess:
        return self.cluster.run(["srun", "-N2", *words], capture_output=True, text=True, timeout=180, cwd=self.cluster.folder)

    def test_steps(self):
        training = self.training("mesh.dp=4", "train.steps=20")
        self.on_one_machine(training, "one", "mesh.hosts=2")
        for name, options in (("ranks", ["-n4", "--ntasks-per-node=2"]), ("launchers", ["-n2"])):
            with self.subTest(name):
                done = self.srun(*options, *training.run(name))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.nothing_is_left()
                self.same_run(training, name, "one")

    def test_a_daemon_that_is_killed(self):
        """That of a step on a host, the parent of its tasks: the ranks of all hosts save and end."""
        training = self.training("mesh.dp=4", *ENDLESS)
        step = self.cluster.start(["srun", "-N2", "-n4", "--ntasks-per-node=2", *training.run("run")],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("three steps", lambda: training.last_step("run") >= 3 or step.poll() is not None)
        os.kill(parent_of(launched_on(self.hosts[2])[0]), signal.SIGKILL)
        begin = time.monotonic()
        self.nothing_is_left()
        show(f"Slurm's daemon of a step on a host is killed: nothing is left after {time.monotonic() - begin:.1f} s")
        self.assertEqual(training.checkpoints("run"), [f"step-{training.last_step('run'):08}"])
        # Slurm waits for the daemon, and not for ever.
        self.cluster.run(["scancel", "--name=shardc"])
        step.wait(timeout=60)

    def test_cyclic_is_refused(self):
        training = self.training("mesh.dp=4")
        done = self.srun("-n4", "--ntasks-per-node=2", "--distribution=cyclic", *training.run("run"))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("Slurm did not number the processes host by host (SLURM_DISTRIBUTION=cyclic)", done.stderr)
        self.assertFalse((training.folder / "run").exists())

    def submit(self, training: Training, name: str, *options: str) -> str:
        """A job of tools/launch/slurm.sbatch with one process per host."""
        return self.cluster.submit(f"--output={name}.log", "--ntasks-per-node=1", "--cpus-per-task=2", *options,
                                   str(ROOT / "tools" / "launch" / "slurm.sbatch"), *training.run(name)[2:],
                                   env=self.cluster.environment() | {"SHARDC": str(training.shardc)})

    def log(self, name: str) -> str:
        return (self.cluster.folder / f"{name}.log").read_text()

    def test_requeued_at_random_times(self):
        """By somebody else, without a word to the ranks: the run goes on from its newest checkpoint each time."""
        Requeues = 5
        training = self.training("mesh.dp=2", "train.steps=1000", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=20")
        job = self.submit(training, "run")
        times = random.Random()
        for requeue in range(Requeues):
            attempt = training.folder / "run" / "attempts" / f"{requeue + 1:04}"
            until("the next attempt", attempt.exists)
            before = training.last_step("run")
            until("a step", lambda before=before: training.last_step("run") > before or self.is_over(job))
            delay = times.uniform(0, 0.6)
            time.sleep(delay)
            done = self.cluster.run(["scontrol", "requeue", job], capture_output=True, text=True)
            show(f"requeue {requeue + 1}, {delay:.2f} s after a step of this start, at step {training.last_step('run')}: {done.stderr.strip() or 'ok'}")
            self.assertEqual(done.returncode, 0, done.stderr + self.log("run"))
        self.on_one_machine(training, "one", "mesh.hosts=2")
        self.assertEqual(self.cluster.wait(job), ("COMPLETED", 0), self.log("run"))
        self.assertEqual(len(list((training.folder / "run" / "attempts").iterdir())), Requeues + 1)
        self.same_run(training, "run", "one")
        self.nothing_is_left()

    def is_over(self, job: str) -> bool:
        told = self.cluster.run(["scontrol", "show", "job", job], capture_output=True, text=True).stdout
        return "JobState=COMPLETED" in told or "JobState=FAILED" in told

    def test_saves_before_the_end_of_the_job(self):
        """The end is what scontrol tells; SLURM_JOB_END_TIME, where it is set."""
        for name, tell in (
            ("told", "export SLURM_JOB_END_TIME=$(($(date +%s) + 10))"),
            ("asked", "scontrol update JobId=$SLURM_JOB_ID EndTime=$(date -d '+10 seconds' +%Y-%m-%dT%H:%M:%S)"),
        ):
            with self.subTest(name):
                training = self.training("mesh.dp=2", *ENDLESS)
                begin = time.monotonic()
                job = self.cluster.submit("-N2", "--ntasks-per-node=1", "--time=2", f"--output={name}.log", "--wrap",
                                          f"{tell}\nscontrol show job $SLURM_JOB_ID | grep EndTime\nsrun {shlex.join(training.run('run'))}")
                ended = self.cluster.wait(job)
                show(f"{name}: ended after {time.monotonic() - begin:.1f} s\n{self.log(name)}")
                self.assertEqual(ended[1], 75, self.log(name))
                self.assertEqual(len(training.checkpoints("run")), 1)
