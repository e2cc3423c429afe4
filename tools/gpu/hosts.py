"""The row of test.py for hosts of GPUs: one machine plays two of them, whose ranks share its card and exchange by NCCL."""

import collections
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable

from bench import Bench, Deadline, Failure, Training, is_saved, largest_difference, metrics_of
from bits import difference
from ranks import ENVIRONMENT_CODE, MOST_S, SHARED, TIMEOUT_S, NotPossible, Outcome, children_of, ended, outcomes, ranks_of

HOSTS = 2
MESHES = {"1 rank": "mesh.dp=2", "2 ranks": "mesh.dp=4"}
TWO_EACH = MESHES["2 ranks"]
COMMS = ("nccl", "nccl-flat", "nccl-ring")
STEPS = 3
# How far losses of sums by NCCL may be from those of sums in rank order, of themselves.
TOLERANCE_OF_RING = 1e-6
PREEMPTED_CODE = 75
# What NCCL writes of each call, and the bytes of an element by its number of the type: i8, u8, i64, f32, f64.
CALL = re.compile(r"NCCL INFO (\w+): opCount .* count (\d+) datatype (\d+) .*\[nranks=(\d+)\]")
BYTES = {0: 1, 1: 1, 4: 8, 7: 4, 8: 8}
IN_A_NAMESPACE = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")

# How often a rank calls each function of NCCL in a step, and the bytes that it sends by all.
Calls = collections.Counter


class Hosts:
    """Trainings of the tiny model on hosts that this machine plays."""

    def __init__(self, bench: Bench, ends: Deadline):
        self.bench, self.ends = bench, ends

    def settings(self, mesh: str, comm: str, *sets: str) -> list[str]:
        return [*SHARED, f"mesh.hosts={HOSTS}", mesh, f"run.comm={comm}", *sets]

    def train(self, name: str, mesh: str, comm: str, *sets: str, **how) -> Training:
        return self.bench.train(self.settings(mesh, comm, *sets), self.ends.left(), f"hosts-{name}", **{"CUDA_MODULE_LOADING": "LAZY"} | how)

    def bits(self, mesh: str) -> Outcome:
        """Trains with each way to communicate, the last one twice, and without NCCL."""
        sets, runs = MESHES[mesh], {}
        for name, comm in (("shm", "shm"), *((comm, comm) for comm in COMMS), ("nccl-ring again", "nccl-ring")):
            runs[name] = self.train(f"{mesh}-{name}".replace(" ", "-"), sets, comm, f"train.steps={STEPS}")
            if not re.search("rank 0 sent .*, as planned", runs[name].log):
                raise Failure(f"{name}: rank 0 did not send as planned", runs[name].log)
        for one, other in (("shm", "nccl"), ("nccl", "nccl-flat"), ("nccl-ring", "nccl-ring again")):
            if found := difference(runs[one], runs[other]):
                return False, f"{one} and {other}: {found}"
        relative = largest_difference(runs["nccl-ring"].losses(), runs["shm"].losses())
        return relative <= TOLERANCE_OF_RING, (f"nccl and nccl-flat have the bits of shm, nccl-ring the same ones twice; its losses differ from "
                                               f"shm's by {relative:.1e} of themselves ({TOLERANCE_OF_RING:.0e} at most)")

    def logged(self, comm: str, steps: int) -> list[Calls]:
        """Trains so many steps. Returns what the ranks asked NCCL for, by its own logs."""
        folder = self.bench.scratch / f"hosts-{comm}-{steps}-logs"
        folder.mkdir()
        run = self.train(f"{comm}-{steps}", TWO_EACH, comm, f"train.steps={steps}", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="COLL",
                         NCCL_DEBUG_FILE=str(folder / "%p"))
        logs = [calls_of(file.read_text(errors="replace")) for file in sorted(folder.iterdir())]
        if len(logs) != 2 * HOSTS:
            raise Failure(f"{len(logs)} processes wrote logs of NCCL, expected {2 * HOSTS}", run.log)
        return logs

    def counted(self, comm: str) -> Outcome:
        """Compares NCCL's own logs of two runs, of which one makes two steps more, with the plan."""
        short, long = self.logged(comm, 1), self.logged(comm, 3)
        found = {frozenset((more - less).items()) for less, more in zip(short, long)}
        step = planned(self.bench.report(self.settings(TWO_EACH, comm), self.ends.left(), f"hosts-{comm}")["communication"], comm)
        expected = frozenset((what, 2 * count) for what, count in step.items())
        return found == {expected}, (f"a step has {shown(step)} by the plan, and " + ("by NCCL's logs of all ranks" if found == {expected} else
                                     "two steps by NCCL's logs " + "; ".join(shown(dict(calls)) for calls in found)))

    def ended(self, name: str, disturb: Callable[[list[int]], None], says: str, within: tuple[str, ...] = ()) -> Outcome:
        return ended(self.bench, self.ends, f"hosts-{name}", self.settings(TWO_EACH, "nccl"), 2 * HOSTS - 1, disturb, says, within)

    def cut(self) -> Outcome:
        """Takes the network away by which the hosts reach each other, in a network namespace."""
        if not all(map(shutil.which, ("unshare", "nsenter", "ip"))) or subprocess.run([*IN_A_NAMESPACE, "true"], capture_output=True).returncode:
            raise NotPossible("not possible here: a network namespace needs root, and the programs ip, unshare and nsenter")

        def drop(ranks: list[int]) -> None:
            subprocess.run(["nsenter", f"--net=/proc/{ranks[0]}/ns/net", "ip", "link", "set", "lo", "down"], check=True)

        return self.ended("cut", drop, r"error: .*rank \d", IN_A_NAMESPACE)

    def stopped(self, name: str, pick: Callable[[int], int]) -> Outcome:
        """Asks one process to end, which saves. Goes on without hosts, and compares with a run that nothing stopped."""
        run = self.train(name, TWO_EACH, "nccl", "train.steps=100000", code=PREEMPTED_CODE, until=lambda folder: len(metrics_of(folder)) >= 3,
                         send=lambda process: os.kill(pick(process), signal.SIGTERM))
        last = run.steps[-1]["step"]
        if not is_saved(run.run_dir, last):
            raise Failure(f"step {last} was not saved", run.log)
        steps = f"train.steps={last + 2}"
        rest = self.train(f"{name}-rest", TWO_EACH, "shm", steps, run_dir=run.run_dir)
        if f"resumed from {run.run_dir}" not in rest.log:
            raise Failure("the run began from scratch", rest.log)
        found = difference(rest, self.train(f"{name}-whole", TWO_EACH, "shm", steps))
        return not found, found or f"saved step {last}; the same metrics and parameters as a run without the stop"

    def refused(self, name: str, says: str, **environment: str) -> Outcome:
        run = self.train(name, MESHES["1 rank"], "nccl", code=ENVIRONMENT_CODE, **environment)
        is_named = re.search(says, run.log) is not None
        return is_named and run.wall_s <= MOST_S, (f"exit code {ENVIRONMENT_CODE} after {run.wall_s:.1f} s ({MOST_S} at most); the cause is "
                                                   f"{'' if is_named else 'not '}named")

    def without_library(self) -> Outcome:
        """Puts a file of that name, which is no library, before all others."""
        folder = self.bench.scratch / "hosts-no-library"
        folder.mkdir()
        (folder / "libnccl.so.2").touch()
        return self.refused("without-library", r"it cannot be loaded: .*libnccl\.so\.2",
                            LD_LIBRARY_PATH=f"{folder}:{self.bench.environment['LD_LIBRARY_PATH']}")


def calls_of(log: str) -> Calls:
    calls: Calls = collections.Counter()
    for what, *numbers in CALL.findall(log):
        count, size, ranks = int(numbers[0]), BYTES[int(numbers[1])], int(numbers[2])
        calls[what] += 1
        to_each = {"Send": count / (ranks - 1), "Recv": 0, "AllReduce": 2 * -(-count // ranks)}.get(what, count)
        calls["bytes"] += round(to_each * size * (ranks - 1))
    return calls


def planned(lines: list[dict], comm: str) -> Calls:
    """Returns what a rank asks NCCL for in a step, of the lines of a plan's communication. The model is so small that each collective is one
    piece, and its all-reduces are those of single numbers."""
    is_flat, members = comm == "nccl-flat", 2 * HOSTS if comm == "nccl-flat" else HOSTS
    calls: Calls = collections.Counter()
    for line in lines:
        kind, count = line["op"], line["count"]
        # Memory of the host goes another way.
        if kind == "control":
            continue
        calls["bytes"] += line["wire_bytes" if is_flat else "between_hosts_bytes"]
        if kind == "all_gather":
            calls["AllGather"] += count
        elif comm == "nccl-ring":
            calls["ReduceScatter" if kind == "reduce_scatter" else "AllReduce"] += count
        elif kind == "reduce_scatter":
            calls["Send"] += count * (members - 1)
            calls["Recv"] += count * (members - 1)
        else:
            calls["AllGather"] += count
    return calls


def shown(calls: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(calls.items()))


def host_of(process: int) -> int:
    """Returns the process that plays the last host."""
    return [child for child in children_of(process) if children_of(child)][-1]


def tasks_of(hosts: Hosts) -> dict[str, Callable[[], Outcome]]:
    """Returns the tasks by what they show, the longest ones first."""
    tasks: dict[str, Callable[[], Outcome]] = {}
    last = 2 * HOSTS - 1
    says = rf"error: rank .*(waiting for rank {last}[ ,]|the last exchange was with rank {last} )"
    tasks["rank 3 of 4 is stopped"] = lambda: hosts.ended("stop", lambda ranks: os.kill(ranks[last], signal.SIGSTOP), says)
    for mesh in MESHES:
        tasks[f"{HOSTS} hosts x {mesh}: nccl, nccl-flat, nccl-ring against shm"] = lambda mesh=mesh: hosts.bits(mesh)
    tasks["the network is cut"] = hosts.cut
    for what, pick in (("rank 3", lambda process: ranks_of(process)[last]), ("host 1", host_of)):
        name = "saved-by-" + what.replace(" ", "-")
        tasks[f"SIGTERM to the process of {what}, and on without hosts"] = lambda name=name, pick=pick: hosts.stopped(name, pick)
    for comm in COMMS:
        tasks[f"{comm}: calls of NCCL against the plan"] = lambda comm=comm: hosts.counted(comm)
    tasks["rank 3 of 4 is killed"] = lambda: hosts.ended("kill", lambda ranks: os.kill(ranks[last], signal.SIGKILL),
                                                         rf"error: rank {last} \([^)]+\).*was killed by signal 9 \(SIGKILL\)")
    tasks["no interface has the name in NCCL_SOCKET_IFNAME"] = lambda: hosts.refused("interface", "NCCL_SOCKET_IFNAME=nowhere0",
                                                                                   NCCL_SOCKET_IFNAME="nowhere0")
    tasks["libnccl.so.2 is no library"] = hosts.without_library
    return tasks


def hosts(bench: Bench, limit_s: float):
    """Trains on two hosts that this machine plays. On a machine with several cards, ranks take them in turn."""
    ends = Deadline(limit_s)
    yield from outcomes(bench, "hosts", tasks_of(Hosts(bench, ends)), ends)
