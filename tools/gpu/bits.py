"""The row of test.py that runs one plan several times: each run has to give the same bits."""

import concurrent.futures
import pathlib

from bench import Bench, Deadline, Failure, Training, is_saved, judged
from training import QUICKSTART, same_step

TINY = "tests/gpu/tiny.toml"
STEPS = 200


def difference(one: Training, other: Training) -> str:
    """Returns what differs in the metrics and the parameters of two runs; empty if nothing does."""
    for a, b in zip(one.steps, other.steps):
        if same_step(a) != same_step(b):
            return f"step {a['step']} has loss {a['loss']} and {b['loss']}, norm {a['grad_norm']} and {b['grad_norm']}"
    if len(one.steps) != len(other.steps):
        return f"{len(one.steps)} and {len(other.steps)} steps"
    if [line["eval_loss"] for line in one.evaluations] != [line["eval_loss"] for line in other.evaluations]:
        return "the evaluations differ"
    ours, theirs = (tensors(run.checkpoint()) for run in (one, other))
    if not ours:
        return f"{one.checkpoint()} has no tensors"
    return "" if ours == theirs else "the saved tensors differ"


def tensors(checkpoint: pathlib.Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(checkpoint.glob("*.safetensors"))}


def bits(bench: Bench, limit_s: float):
    ends = Deadline(limit_s)
    settings = [*QUICKSTART, "run.device=cuda", "precision.compute=bf16", f"train.steps={STEPS}", "checkpoint.every=50"]

    def run(name: str) -> Training:
        return bench.train(settings, ends.left(), f"bits-{name}")

    def resumed() -> Training:
        """Trains, is killed after the first save, and goes on."""
        killed = bench.train(settings, ends.left(), "bits-killed", until=lambda folder: is_saved(folder, 50))
        rest = bench.train(settings, ends.left(), "bits-resumed", run_dir=killed.run_dir)
        if f"resumed from {killed.run_dir}" not in rest.log:
            raise Failure("the run that was killed began from scratch", rest.log)
        return rest

    three = [TINY, "run.device=cuda", "precision.compute=bf16", "train.steps=3"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first, second, killed = pool.submit(run, "first"), pool.submit(run, "second"), pool.submit(resumed)
        plain = pool.submit(bench.train, three, limit_s, "bits-plain")
        guarded = pool.submit(bench.train, [*three, "run.guard=true"], limit_s, "bits-guarded")
        for name, other in (("twice", second), ("killed after a save, and resumed", killed)):
            found = difference(first.result(), other.result())
            yield judged("bits", f"quickstart in bf16, {STEPS} steps, {name}", not found, found or "the same metrics and parameters")
        found = difference(plain.result(), guarded.result())
        times = f"{guarded.result().wall_s:.1f} s, without the guard {plain.result().wall_s:.1f} s"
        yield judged("bits", "2 blocks in bf16, 3 steps, under the guard", not found, found or f"the same metrics and parameters; {times}")
