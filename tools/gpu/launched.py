"""The rows of `test.py --hosts ROW`, which a launcher starts on several hosts, once per GPU. Each row launches one program, by which all
processes meet; process 0 has the results."""

import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import shutil
import subprocess

from bench import GIB, Bench, Deadline, Result, Training, metrics_of, stop
from compare import Comparison
from several import SLICE, WHOLE, exposed_by, step_of_llama_8b
from training import estimate

STEPS = 20
# Steps before this one are not counted: hosts connect in the first.
COUNTED_FROM = 5
# What a launcher tells a process, and would tell a program that is to run alone.
OF_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "SLURM_", "PMI", "OMPI_", "SHARDC_")


@dataclasses.dataclass
class Place:
    """Where this process is among those of the launch."""

    rank: int
    ranks: int
    local_rank: int
    hosts: int


def place_of(environment: dict[str, str]) -> Place | None:
    """Returns the place as torchrun or srun tells it."""

    def numbers(*names: str) -> list[int] | None:
        return [int(environment[name]) for name in names] if all(name in environment for name in names) else None

    if found := numbers("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        return Place(*found[:3], found[1] // found[3])
    if found := numbers("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES"):
        return Place(*found)
    return None


def sent_bytes(root: pathlib.Path = pathlib.Path("/sys/class")) -> int:
    """Returns what the network cards of this host have sent: InfiniBand and RoCE in words of 4 bytes, others in bytes."""
    counters = [(4, path) for path in root.glob("infiniband/*/ports/*/counters/port_xmit_data")]
    counters += [(1, device.parent / "statistics/tx_bytes") for device in root.glob("net/*/device")]
    total = 0
    for unit, path in counters:
        with contextlib.suppress(OSError, ValueError):
            total += unit * int(path.read_text())
    return total


def planned_bytes(bench: Bench, settings: list[str], place: Place, limit_s: float) -> int:
    """Returns what a host sends to the others in a step, by the plan."""
    report = bench.report([*settings, f"mesh.hosts={place.hosts}"], limit_s, "launched")
    return sum(line["between_hosts_bytes"] for line in report["communication"]) * place.ranks // place.hosts


def launched(bench: Bench, place: Place, name: str, settings: list[str], limit_s: float) -> tuple[Training, float] | None:
    """Trains in all processes, until process 0 has seen enough and ends the run. Returns the run there, and what its host sent in a step."""
    run_dir = bench.out.absolute() / name
    if place.rank > 0:
        process = bench.start(bench.command(settings, run_dir), bench.out / f"{name}.{place.rank}.log")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
        stop(process)
        return None
    shutil.rmtree(run_dir, ignore_errors=True)
    seen: list[tuple[int, int]] = []

    def is_over(folder: pathlib.Path) -> bool:
        steps = len(metrics_of(folder))
        if steps >= (STEPS if seen else COUNTED_FROM):
            seen.append((steps, sent_bytes()))
        return len(seen) == 2

    run = bench.train(settings, limit_s, name, until=is_over, run_dir=run_dir)
    (first, before), (last, after) = seen
    return run, (after - before) / (last - first)


def of_network(row: str, sent: float, planned: int) -> Result:
    return Result(row, "bytes that host 0 sends in a step", "figure",
                  f"{sent / 1e9:.3f} GB, planned {planned / 1e9:.3f} ({100 * (sent / planned - 1):+.1f} %)" if sent and planned
                  else f"nothing counted, planned {planned / 1e9:.3f} GB")


def row_of(name: str, place: Place):
    """Returns the row of this name, as a function."""
    on_all = [f"mesh.dp={place.ranks}", f"batch.global={place.ranks}"]

    def exposed(bench: Bench, limit_s: float):
        ends, settings = Deadline(limit_s), [*SLICE, *on_all]
        if found := launched(bench, place, name, settings, ends.left()):
            bench.environment = {key: value for key, value in bench.environment.items() if not key.startswith(OF_LAUNCHERS)}
            yield of_network(name, found[1], planned_bytes(bench, settings, place, ends.left()))
            yield from exposed_by(bench, ends, found[0], place.ranks)

    def llama_8b(bench: Bench, limit_s: float):
        ends, settings = Deadline(limit_s), [*WHOLE, *on_all]
        if found := launched(bench, place, name, settings, ends.left()):
            yield of_network(name, found[1], planned_bytes(bench, settings, place, ends.left()))
            yield step_of_llama_8b(found[0], place.ranks, estimate(bench, [*settings, f"mesh.hosts={place.hosts}"]))

    def fsdp2(bench: Bench, limit_s: float):
        if importlib.util.find_spec("torch") is None or "MASTER_ADDR" not in os.environ:
            yield Result(name, "", "not run", "this Python has no torch, or MASTER_ADDR is not set")
            return
        comparison = Comparison(bench, "llama_8b", SLICE[0], 1, "cuda", limit_s, place.ranks)
        comparison.sizes["layers"] = "32"
        environment = {"RANK": place.rank, "WORLD_SIZE": place.ranks, "LOCAL_RANK": place.local_rank}
        results = comparison.pytorch("eager,compiled", "--sac", MASTER_PORT=os.environ.get("MASTER_PORT", "29500"),
                                     **{key: str(value) for key, value in environment.items()})
        for result in results:
            yield Result(name, f"step of Llama 3 8B in PyTorch FSDP2, {result['mode']}, selective recomputation", "figure",
                         f"{result['step_ms']:.1f} ms, {8192e3 * place.ranks / result['step_ms']:.0f} tokens/s, "
                         f"allocated {result['allocated'] / GIB:.1f} GiB")

    return {"exposed": exposed, "llama_8b": llama_8b, "fsdp2": fsdp2}[name]


ROWS = ("exposed", "llama_8b", "fsdp2")
