"""The rows of `test.py --gpus N`, for machines with several GPUs: rates between them, and what a step costs on ranks with one each."""

import importlib.util
import json
import statistics

from bench import GIB, MIB, Bench, Deadline, Failure, Result, Training, judged
from compare import Comparison, line_of
from training import estimate, ms_of_kinds

SLICE = ["tests/gpu/llama_8b_slice.toml"]
WHOLE = [*SLICE, "model.layers=32", "recompute.policy=torchtitan-sac"]
DOES_NOT_FIT_CODE = 4
# GB/s that NVLink carries from a GPU in one direction, by a part of the card's name; the first one that fits. Cards for PCIe have it
# over a bridge alone, between two of them, or four H200 NVL.
LINKS = [("H100 PCIe", 300), ("H100 NVL", 300), ("H200 NVL", 450), ("H800", 200), ("H20", 450), ("H100", 450), ("H200", 450)]


def link_of(card: str) -> int | None:
    return next((rate for name, rate in LINKS if name in card), None)


def rates(gpus: int):
    """Returns the row that measures what a rank gets from its peers: (N - 1) / N of a full vector, by copies, or to be summed."""

    def row(bench: Bench, limit_s: float):
        text = bench.run([bench.program("tests_ranks_cuda"), "rates", str(gpus)], limit_s, "rates")
        link = link_of(bench.card.get("card") or bench.memory.card())
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        for line in lines:
            rate = line["bytes"] * (gpus - 1) / gpus / line["seconds"] / 1e9
            share = f", {100 * rate / link:.0f} % of its link's {link}" if link else ", a link of unknown rate"
            yield Result("rates", f"{line['kind']} of {line['bytes'] / MIB:.0f} MiB over {gpus} GPUs", "figure",
                         f"{rate:.0f} GB/s per GPU{share}, {1e6 * line['seconds']:.0f} us")
        if not lines:
            raise Failure("the program measured nothing", text)

    return row


def falls(losses: list[float]) -> bool:
    return statistics.mean(losses[-3:]) < losses[0] - 0.1


def exposed(gpus: int):
    """Returns the row that compares a step of ranks that communicate with one of a rank alone, which does the same but for the update:
    of that, each of N ranks does the N-th part."""

    def row(bench: Bench, limit_s: float):
        ends = Deadline(limit_s)
        bench.settle()
        several = bench.train([*SLICE, f"mesh.dp={gpus}", f"batch.global={gpus}"], ends.left(), "several", 20)
        yield from exposed_by(bench, ends, several, gpus)

    return row


def exposed_by(bench: Bench, ends: Deadline, several: Training, gpus: int):
    """Trains on one GPU what a run on several did. Yields by how much the step of that run was longer."""
    bench.settle()
    alone = bench.train([*SLICE, "batch.global=1"], ends.left(), "alone", 20)
    update_ms = ms_of_kinds(bench, SLICE, ends.left(), "alone-trace")["optimizer"]
    yield judged("exposed", f"loss falls on {gpus} GPUs", falls(several.losses()), f"{several.losses()[0]:.3f} to {several.losses()[-1]:.3f}")
    without_ms = alone.step_ms() - update_ms * (1 - 1 / gpus)
    yield Result("exposed", f"communication of a step of llama_8b_slice, dp {gpus}", "figure",
                 f"{several.step_ms() - without_ms:.1f} ms of {several.step_ms():.1f}; one GPU takes {alone.step_ms():.1f}, of which "
                 f"{update_ms:.1f} for the whole update")


def llama_8b(gpus: int):
    """Returns the row of a step of Llama 3 8B, one sequence per rank."""

    def row(bench: Bench, limit_s: float):
        settings = [*WHOLE, f"mesh.dp={gpus}", f"batch.global={gpus}"]
        bench.settle()
        try:
            run = bench.train(settings, limit_s, "llama_8b", 20)
        except Failure as failure:
            if str(failure).startswith(f"exit code {DOES_NOT_FIT_CODE},"):
                yield Result("llama_8b", "", "not run", f"it does not fit {gpus} of these GPUs")
                return
            raise
        yield step_of_llama_8b(run, gpus, estimate(bench, settings))

    return row


def step_of_llama_8b(run: Training, gpus: int, estimated: str) -> Result:
    last = run.steps[-1]
    tokens_per_s = last["tokens"] / last["step"] / run.step_ms() * 1e3
    return Result("llama_8b", f"step of Llama 3 8B, dp {gpus}, 8192 tokens per GPU, torchtitan's selective recomputation", "figure",
                  f"{run.step_ms():.1f} ms, {estimated}, {tokens_per_s:.0f} tokens/s, {tokens_per_s / gpus:.0f} per GPU, MFU {last['mfu']:.3f}, "
                  f"arenas {last['arena_bytes'] / GIB:.1f} GiB, loss {run.losses()[0]:.3f} to {run.losses()[-1]:.3f} in {len(run.steps)} steps")


def fsdp2(gpus: int):
    """Returns the row that trains the slice of Llama 3 8B in PyTorch FSDP2 too, from the same parameters and tokens."""

    def row(bench: Bench, limit_s: float):
        if importlib.util.find_spec("torch") is None:
            yield Result("fsdp2", "", "not run", "this Python has no torch")
            return
        ours, theirs = Comparison(bench, "8b_slice", SLICE[0], 1, "cuda", limit_s, gpus).run("eager,compiled")
        _, agrees = line_of("8b_slice", ours, theirs)
        ms = {result["mode"]: result["step_ms"] for result in theirs}
        yield judged("fsdp2", f"20 losses of llama_8b_slice, dp {gpus}", agrees, "shardc's and PyTorch's agree" if agrees else "they differ")
        yield Result("fsdp2", f"step of llama_8b_slice, dp {gpus}", "figure",
                     ", ".join([f"shardc {ours['step_ms']:.1f} ms", *(f"FSDP2 {mode} {value:.1f}" for mode, value in ms.items())]))

    return row


def rows_of(gpus: int) -> list[tuple]:
    """Returns name, limit in seconds and function of each row."""
    return [("rates", 60, rates(gpus)), ("exposed", 90, exposed(gpus)), ("llama_8b", 90, llama_8b(gpus)), ("fsdp2", 180, fsdp2(gpus))]
