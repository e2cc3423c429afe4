"""The row of test.py for several ranks that share one GPU: as processes, as threads, and as threads whose streams lag at random."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Callable

from bench import Bench, Deadline, Failure, Result, Training, judged, largest_difference, metrics_of, stop
from bits import difference
from features import TINY, TOLERANCES

SHARED = [TINY, "run.device=cuda", "run.share_gpus=true", "run.compare_every=1"]
# Kernels of several processes take turns of about 2 ms on the card, and each process takes 0.5 GiB and seconds to begin.
STEPS = "train.steps=3"
AT_A_TIME = 3

MESHES: dict[str, list[str]] = {
    "dp 2 x tp 2": ["mesh.dp=2", "mesh.tp=2"],
    "replicate 2 x dp 2": ["mesh.replicate=2", "mesh.dp=2"],
    "dp 4": ["mesh.dp=4"],
    "dp 4 in groups of 2": ["mesh.dp=4", "shard.reshard_size=2", "shard.reshard_after_forward=true", "shard.prefetch_backward=1"],
    "dp 2, 3 microbatches": ["mesh.dp=2", "batch.global=6", "batch.accumulate=3"],
    "tp 2": ["mesh.tp=2"],
    "dp 2": ["mesh.dp=2"],
    "dp 2 in bf16": ["mesh.dp=2", "precision.compute=bf16", "precision.reduce=bf16"],
}
# How far the losses of two ranks in fp32 may be from those of one, of themselves.
TOLERANCE_OF_ONE = 1e-5
# A rank that is stopped ends by SIGKILL only 4 s after the timeout, and its host and what it has on the card after that.
TIMEOUT_S, MOST_S = 10, 20
ENVIRONMENT_CODE = 6

Outcome = tuple[bool, str]


class Ranks:
    """Trainings of the tiny model on ranks that share the card."""

    def __init__(self, bench: Bench, ends: Deadline):
        self.bench, self.ends = bench, ends

    def processes(self, name: str, sets: list[str], run_dir: pathlib.Path | None = None, **how) -> Training:
        # Kernels are loaded at their first launch: most runs need few of them.
        return self.bench.train([*SHARED, *sets], self.ends.left(), f"ranks-{name}", run_dir=run_dir, **{"CUDA_MODULE_LOADING": "LAZY"} | how)

    def threads(self, name: str, sets: list[str], *lag: str) -> Training:
        recipe, *all_sets = [*SHARED, *sets]
        plan, run_dir = self.bench.scratch / f"ranks-{name}.plan", self.bench.scratch / f"ranks-{name}"
        self.bench.run([self.bench.program("shardc"), "plan", recipe, "-o", str(plan), *(word for text in all_sets for word in ("--set", text))],
                       self.ends.left(), f"ranks-{name}-plan")
        return self.bench.train([], self.ends.left(), f"ranks-{name}", CUDA_MODULE_LOADING="LAZY",
                                command=[self.bench.program("tests_ranks_cuda"), "train", str(plan), str(run_dir), *lag])

    def cpu(self, name: str, sets: list[str], run_dir: pathlib.Path | None = None) -> Training:
        return self.bench.train([TINY, *sets], self.ends.left(), f"ranks-{name}", run_dir=run_dir)

    def mesh(self, mesh: str) -> Outcome:
        """Trains by processes, by threads and with lagging streams, and on the CPU."""
        name, sets = re.sub("[^a-z0-9]+", "-", mesh), [*MESHES[mesh], STEPS]
        cpu, processes = self.cpu(f"{name}-cpu", sets), self.processes(f"{name}-processes", sets)
        threads, lagging = self.threads(f"{name}-threads", sets), self.threads(f"{name}-lagging", sets, "lag")
        for what, other in (("processes", processes), ("lagging streams", lagging)):
            if found := difference(threads, other):
                return False, f"threads and {what}: {found}"
        most = TOLERANCES["bf16" if "precision.compute=bf16" in sets else "fp32"]
        relative = distance(threads, cpu)
        return relative <= most, f"the same bits; losses and norms differ from the CPU's by {relative:.1e} of themselves ({most:.0e} at most)"

    def one_rank(self) -> Outcome:
        relative = largest_difference(self.threads("two", ["mesh.dp=2", STEPS]).losses(), self.threads("one", ["mesh.dp=1", STEPS]).losses())
        return relative <= TOLERANCE_OF_ONE, f"losses differ by {relative:.1e} of themselves ({TOLERANCE_OF_ONE:.0e} at most)"

    def resumed(self) -> Outcome:
        """Trains two steps on each of several meshes and devices, one after another."""
        whole = self.cpu("whole", ["mesh.dp=2", "train.steps=8"])
        run = self.processes("resumed", ["mesh.dp=2", "train.steps=2"])
        parts = ((self.processes, "mesh.dp=4"), (self.cpu, "mesh.dp=2"), (self.processes, "mesh.dp=2"))
        for number, (train, mesh) in enumerate(parts, 2):
            run = train(f"resumed-{number}", [mesh, f"train.steps={2 * number}"], run_dir=run.run_dir)
            if f"resumed from {run.run_dir}" not in run.log:
                raise Failure(f"part {number} began from scratch", run.log)
        relative = distance(run, whole)
        most = TOLERANCES["fp32"]
        return relative <= most, f"losses and norms differ from the CPU's by {relative:.1e} of themselves ({most:.0e} at most)"

    def ended(self, sent: signal.Signals, says: str) -> Outcome:
        return ended(self.bench, self.ends, f"ranks-{sent.name.lower()}", [*SHARED, "mesh.dp=2"], 1, lambda ranks: os.kill(ranks[1], sent), says)

    def too_few_gpus(self) -> Outcome:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        run = self.bench.train([TINY, "run.device=cuda", "mesh.dp=2"], self.ends.left(), "ranks-too-few", code=ENVIRONMENT_CODE,
                               CUDA_MODULE_LOADING="LAZY", CUDA_VISIBLE_DEVICES=visible)
        found = re.search(r"ranks 0 and 1 have the same GPU.*run\.share_gpus = true", run.log)
        return found is not None, f"exit code {ENVIRONMENT_CODE}; ranks and remedy are {'' if found else 'not '}named"

    def collectives(self, members: str) -> Outcome:
        text = self.bench.run([self.bench.program("tests_ranks_cuda"), "--gtest_brief=1", f"--gtest_filter=*/{members}_*"], self.ends.left(),
                              f"ranks-collectives-{members}")
        found = re.search(r"\[  PASSED  \] (\d+) tests?", text)
        return found is not None and found[1] != "0", f"{found[1] if found else 0} meshes, all bits those of the host"

    def rates(self) -> Outcome:
        """Tries what measures rates among several GPUs; the figures on one say nothing."""
        text = self.bench.run([self.bench.program("tests_ranks_cuda"), "rates", "2", "share"], self.ends.left(), "ranks-rates")
        lines = [line for line in text.splitlines() if line.startswith("{")]
        return bool(lines), f"{len(lines)} lines"


def ended(bench: Bench, ends: Deadline, name: str, settings: list[str], rank: int, disturb: Callable[[list[int]], None], says: str,
          within: tuple[str, ...] = ()) -> Outcome:
    """Disturbs a run by the processes of its ranks, of which `rank` is the last or none. The run has to end with a message that says so.
    `within`: a command that runs the one that follows it."""
    run_dir, log = bench.scratch / name, bench.scratch / f"{name}.log"
    command = [*within, *bench.command([*settings, "train.steps=100000"], run_dir, "--timeout", str(TIMEOUT_S))]
    process = bench.start(command, log, CUDA_MODULE_LOADING="LAZY")

    def failed(why: str) -> Failure:
        return Failure(why, log.read_text(errors="replace"))

    try:
        while len(metrics_of(run_dir)) < 3:
            if process.poll() is not None or ends.left() <= 1:
                raise failed(f"the run made no steps, exit code {process.poll()}")
            time.sleep(0.02)
        ranks = ranks_of(process.pid)
        if len(ranks) != rank + 1:
            raise failed(f"the run has {len(ranks)} processes of ranks, expected {rank + 1}")
        disturb(ranks)
        began = time.monotonic()
        code = process.wait(2 * MOST_S)
        while is_there(process.pid) and time.monotonic() - began < 2 * MOST_S:
            time.sleep(0.02)
        took_s = time.monotonic() - began
    except subprocess.TimeoutExpired:
        raise failed(f"still running after {2 * MOST_S} s") from None
    finally:
        stop(process)
    if not re.search(says, log.read_text(errors="replace")):
        raise failed(f"`{says}` is nowhere in what the run printed")
    is_good = code == ENVIRONMENT_CODE and took_s <= MOST_S
    return is_good, (f"exit code {code} ({ENVIRONMENT_CODE} expected), the rank is named, all processes ended after {took_s:.1f} s "
                     f"({MOST_S} at most)")


def distance(ours: Training, theirs: Training) -> float:
    """Returns by how much losses and norms differ, of themselves."""
    return max(largest_difference([line[key] for line in ours.steps], [line[key] for line in theirs.steps]) for key in ("loss", "grad_norm"))


def processes() -> list[tuple[int, int, int]]:
    """Returns number, parent and group of each process that has not ended."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        # One that ends meanwhile cannot be read.
        with contextlib.suppress(OSError, IndexError):
            if folder.name.isdigit():
                state, parent, group = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:3]
                found += [] if state == "Z" else [(int(folder.name), int(parent), int(group))]
    return found


def children_of(process: int) -> list[int]:
    """Returns the processes that a process has started, oldest first."""
    return sorted(number for number, parent, _ in processes() if parent == process)


def ranks_of(process: int) -> list[int]:
    """Returns the processes of the ranks of a run: those below it, or below the processes that play hosts."""
    hosts = [child for child in children_of(process) if children_of(child)]
    return [rank for host in hosts or [process] for rank in children_of(host)]


def is_there(group: int) -> bool:
    return any(group == of_process for _, _, of_process in processes())


def tasks_of(ranks: Ranks) -> dict[str, Callable[[], Outcome]]:
    """Returns the tasks by what they show, the longest ones first."""
    tasks: dict[str, Callable[[], Outcome]] = {}
    for members in ("processes", "threads"):
        tasks[f"collectives among {members}, against the host's sums"] = lambda members=members: ranks.collectives(members)
    tasks["dp 2 on the GPU, dp 4 on the GPU, dp 2 on the CPU and on the GPU, one after another"] = ranks.resumed
    tasks["rank 1 of 2 is stopped"] = lambda: ranks.ended(signal.SIGSTOP, f"timed out after {TIMEOUT_S} s .*waiting for rank 1")
    for mesh in MESHES:
        tasks[f"{mesh}: processes, threads, lagging streams"] = lambda mesh=mesh: ranks.mesh(mesh)
    tasks["rank 1 of 2 is killed"] = lambda: ranks.ended(signal.SIGKILL, r"error: rank 1 was killed by signal 9 \(SIGKILL\)")
    tasks["dp 2 against one rank"] = ranks.one_rank
    tasks["two ranks, one GPU, not shared"] = ranks.too_few_gpus
    tasks["program that measures rates among GPUs"] = ranks.rates
    return tasks


def ranks(bench: Bench, limit_s: float):
    """Trains on ranks that share the card. On a machine with several cards, ranks take them in turn."""
    ends = Deadline(limit_s)
    yield from outcomes(bench, "ranks", tasks_of(Ranks(bench, ends)), ends)


class NotPossible(Exception):
    """Why something cannot be shown: this machine cannot, or the time is over."""


def outcomes(bench: Bench, row: str, tasks: dict[str, Callable[[], Outcome]], ends: Deadline):
    """Does some tasks of a row at a time, as long as there is time. Yields a result of each."""
    logs = []

    def done(task: Callable[[], Outcome]) -> Outcome:
        if ends.is_over():
            raise NotPossible("the time of the row is over")
        return task()

    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for what, task in {what: pool.submit(done, task) for what, task in tasks.items()}.items():
            try:
                is_good, figure = task.result()
            except NotPossible as why:
                yield Result(row, what, "not run", str(why))
                continue
            except Failure as failure:
                is_good, figure = False, str(failure)
                logs.append(f"==== {what}: {failure}\n{failure.log}")
            yield judged(row, what, is_good, figure)
    if logs:
        (bench.out / f"{row}.log").write_text("\n".join(logs))
