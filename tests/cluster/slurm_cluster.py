#!/usr/bin/env python3
"""A Slurm cluster on this machine: munged and slurmctld on a host `login`, and a slurmd on each of node0, node1, ..., which are
hosts of tests/cluster/two_hosts.py with addresses of their own. Needs root and `tools/dev setup --tests`; no systemd.

Everything lies in one folder below /tmp (configuration, keys, state, logs) and in the processes of those hosts. Both are gone when
the cluster ends, however it ends: the hosts die with the program that made them. Hosts share this machine's files.

    slurm_cluster.py run [--nodes N] [--cpus N] [--set LINE]... -- COMMAND...
                                     runs COMMAND on `login`, where srun, sbatch, scontrol find the cluster; its exit code
    slurm_cluster.py hold [...]      starts the cluster, prints one JSON object (folder, and pid, address, `enter` of each host), and
                                     takes the cluster down when its standard input ends
    slurm_cluster.py smoke           starts a cluster and runs `srun -N2 --ntasks-per-node=2`; exit 0 if four tasks ran on two nodes

`--set` adds a line to slurm.conf, such as LaunchParameters=use_interactive_step.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from two_hosts import INTERFACE, Hosts  # noqa: E402

# proctrack/linuxproc and task/none: no cgroup of this machine is touched. cred_expire: a requeued job starts after so many seconds
# (120 by default), because Slurm waits until credentials of the job's last attempt have expired.
CONFIGURATION = """
ClusterName=test
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm
PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
ReturnToService=2
JobRequeue=1
KillWait=5
InactiveLimit=0
NodeName={nodes} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
START_S = 30


class SlurmCluster:
    """`with SlurmCluster() as cluster:`, then cluster.run(["srun", "-N2", "env"]), .wait(cluster.submit("job.sh")). cluster.hosts are login,
    node0, node1, ..."""

    def __init__(self, nodes: int = 2, cpus: int = 4, lines: list[str] | None = None):
        self.num_nodes, self.cpus, self.lines = nodes, cpus, lines or []
        self.hosts = Hosts(names=["login", *(f"node{i}" for i in range(nodes))])
        self.daemons: list[subprocess.Popen] = []

    def __enter__(self) -> "SlurmCluster":
        missing = [name for name in ("munged", "slurmctld", "slurmd", "srun", "scontrol") if shutil.which(name) is None]
        if missing:
            raise FileNotFoundError(f"{', '.join(missing)} not installed: tools/dev setup --tests")
        try:
            self.hosts.__enter__()
            self.folder = pathlib.Path(self.hosts.folder) / "slurm"
            self._start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def environment(self) -> dict[str, str]:
        """What a program needs to find the cluster; no variable of a Slurm job that this program may run in."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH", "SRUN", "SALLOC"))}
        return kept | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def _daemon(self, index: int, *command: str) -> None:
        with (self.folder / f"{command[0]}-{self.hosts[index].name}.out").open("wb") as out:
            self.daemons.append(self.hosts[index].start(
                list(command), env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def _start(self) -> None:
        folder = self.folder
        folder.mkdir()
        # Tasks of other users read slurm.conf and munge's socket.
        folder.parent.chmod(0o755)
        (folder / "state").mkdir()
        for i in range(self.num_nodes):
            (folder / f"spool-node{i}").mkdir()
        (folder / "plugstack.conf").write_text("")
        key = folder / "munge.key"
        key.touch(0o400)
        key.write_bytes(secrets.token_bytes(1024))
        nodes = "node0" if self.num_nodes == 1 else f"node[0-{self.num_nodes - 1}]"
        lines = CONFIGURATION.format(folder=folder, nodes=nodes, cpus=self.cpus) + "".join(line + "\n" for line in self.lines)
        (folder / "slurm.conf").write_text(lines)
        # --force: munged doubts folders that others may enter.
        self._daemon(0, "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
                     f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed",
                     "--num-threads=2")
        self._wait("munged", lambda: (folder / "munge.socket").exists())
        self._daemon(0, "slurmctld", "-D", "-i")
        self._wait("slurmctld", lambda: self.run(["scontrol", "ping"], capture_output=True).returncode == 0)
        for i in range(self.num_nodes):
            self._daemon(i + 1, "slurmd", "-D", "-N", f"node{i}")
        self._wait("slurmd", lambda: self._idle() == self.num_nodes)

    def _idle(self) -> int:
        listed = self.run(["sinfo", "--noheader", "--Node", "--format=%T"], capture_output=True, text=True).stdout
        return listed.split().count("idle")

    def _wait(self, name: str, ready) -> None:
        end = time.monotonic() + START_S
        while not ready():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                logs = "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                               for path in sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")]))
                raise RuntimeError(f"{name} did not start\n{logs}")
            time.sleep(0.05)

    def start(self, command: list[str], host: int = 0, **options) -> subprocess.Popen:
        options.setdefault("env", self.environment())
        return self.hosts[host].start(command, **options)

    def run(self, command: list[str], host: int = 0, **options) -> subprocess.CompletedProcess:
        options.setdefault("env", self.environment())
        return self.hosts[host].run(command, **options)

    def submit(self, *words: str, **options) -> str:
        """The number of a job that sbatch was given, in the cluster's folder."""
        options.setdefault("cwd", self.folder)
        done = self.run(["sbatch", "--parsable", *words], capture_output=True, text=True, **options)
        if done.returncode:
            raise RuntimeError(f"sbatch: {done.stderr}")
        return done.stdout.strip()

    def wait(self, job: str, timeout_s: float = 120) -> tuple[str, int]:
        """State and exit code of the job at its end; requeued jobs are waited for. (sbatch --wait looks every 10 s.)"""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            told = self.run(["scontrol", "show", "job", job], capture_output=True, text=True).stdout
            state, code = re.search(r"JobState=(\w+)", told)[1], re.search(r"ExitCode=(\d+):(\d+)", told)
            if state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED"):
                return state, 128 + int(code[2]) if int(code[2]) else int(code[1])
            time.sleep(0.1)
        raise TimeoutError(f"job {job} has not ended\n{told}")

    def __exit__(self, *_) -> None:
        # The kernel ends all that runs on a host; their folder, in which the cluster's lies, goes too.
        self.hosts.__exit__()
        for daemon in self.daemons:
            daemon.wait()


def smoke() -> int:
    begin = time.monotonic()
    with SlurmCluster() as cluster:
        up = time.monotonic()
        done = cluster.run(["srun", "-N2", "--ntasks-per-node=2", "sh", "-c", "echo $SLURM_PROCID of $SLURM_STEP_NUM_TASKS on $(hostname)"],
                           capture_output=True, text=True, timeout=60)
        ran = time.monotonic()
    lines = sorted(done.stdout.split("\n")[:-1])
    print("\n".join(lines))
    print(f"up after {up - begin:.1f} s, srun {ran - up:.1f} s, down {time.monotonic() - ran:.1f} s")
    wanted = ["0 of 4 on node0", "1 of 4 on node0", "2 of 4 on node1", "3 of 4 on node1"]
    if done.returncode or lines != wanted:
        print(f"srun: exit {done.returncode}, wanted {wanted}\n{done.stderr}", file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "hold", "smoke"):
        sub = verbs.add_parser(verb)
        if verb == "smoke":
            continue
        sub.add_argument("--nodes", type=int, default=2, choices=range(1, 100), metavar="N")
        sub.add_argument("--cpus", type=int, default=4, metavar="N", help="processors that each node offers to Slurm")
        sub.add_argument("--set", action="append", default=[], metavar="LINE")
        if verb == "run":
            sub.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.verb == "smoke":
        return smoke()
    command = getattr(options, "command", [])
    if command[:1] == ["--"]:
        command = command[1:]
    if options.verb == "run" and not command:
        parser.error("run: which command?")
    with SlurmCluster(options.nodes, options.cpus, options.set) as cluster:
        if options.verb == "run":
            code = cluster.run(command).returncode
            return 128 - code if code < 0 else code
        print(json.dumps({"folder": str(cluster.folder), "slurm_conf": str(cluster.folder / "slurm.conf"), "hosts": [
            {"name": host.name, "pid": host.pid, "address": host.address, "address6": host.address6,
             "interface": INTERFACE, "enter": host.enter()} for host in cluster.hosts]}), flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    # A signal takes the cluster down too.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    sys.exit(main(sys.argv[1:]))
