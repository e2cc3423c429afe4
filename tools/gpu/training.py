"""Rows of test.py that train a whole model: its losses, its time, its memory, and where the time of a step goes."""

import hashlib
import json
import pathlib
import re
import statistics
import time

from bench import GIB, MIB, Bench, Deadline, Failure, Training, judged, largest_difference, Result

LOSSES = "tests/gpu/quickstart_losses.json"
TOKENS = ".deps/data/fortunes.bin"
QUICKSTART = ["recipes/quickstart.toml", "mesh.dp=1", "batch.micro=16"]


def digest_of_tokens(bench: Bench) -> str:
    return hashlib.sha256((bench.folder / TOKENS).read_bytes()).hexdigest()


def recorded_losses(bench: Bench) -> dict:
    """What the CPU computed. Fails if it was of other tokens."""
    recorded = json.loads((bench.folder / LOSSES).read_text())
    if recorded["tokens"] != digest_of_tokens(bench):
        raise Failure(f"the losses in {LOSSES} are of other tokens: record them again")
    return recorded


def record(bench: Bench) -> None:
    """Writes what the CPU computes of the quickstart."""
    losses = {}
    for compute in ("fp32", "bf16"):
        losses[compute] = bench.train([*QUICKSTART, f"precision.compute={compute}"], 600, f"record-{compute}", 20).losses()[:20]
    path = bench.folder / LOSSES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"settings": QUICKSTART, "tokens": digest_of_tokens(bench), **losses}, indent=1) + "\n")


def quickstart(bench: Bench, limit_s: float):
    recorded = recorded_losses(bench)
    run = bench.train([*QUICKSTART, "run.device=cuda"], limit_s, "quickstart")
    difference = largest_difference(run.losses(), recorded["fp32"])
    yield judged("quickstart", f"{len(recorded['fp32'])} steps in fp32 against the CPU", difference <= 2e-5,
                 f"losses differ by {difference:.1e} of themselves (2e-5 at most)")
    validation = run.evaluations[-1]["eval_loss"]
    yield judged("quickstart", "validation after 300 steps", abs(validation - 1.995) <= 0.03, f"{validation:.4f} (1.995 +- 0.03)")
    yield bench.judged_by_goal("quickstart", "300 steps, from launch to end", run.wall_s <= 5,
                               f"{run.wall_s:.1f} s (5 at most), step {run.step_ms():.2f} ms")
    taken = found_in(run.log, r"(-?\d+) B since step 2")
    yield judged("quickstart", "memory of the card taken after step 2, over evaluations and saves", taken == 0, f"{taken:.0f} B")


def quickstart_bf16(bench: Bench, limit_s: float):
    recorded = recorded_losses(bench)
    run = bench.train([*QUICKSTART, "run.device=cuda", "precision.compute=bf16"], limit_s, "quickstart-bf16", len(recorded["bf16"]))
    difference = largest_difference(run.losses(), recorded["bf16"])
    yield judged("quickstart-bf16", f"{len(recorded['bf16'])} steps against the CPU", difference <= 1e-2,
                 f"losses differ by {difference:.1e} of themselves (1e-2 at most), step {run.step_ms():.2f} ms")


def found_in(text: str, pattern: str) -> float:
    """Returns the number that the first group of a pattern finds in what a program printed."""
    found = re.search(pattern, text)
    if found is None:
        raise Failure(f"`{pattern}` is nowhere in what the program printed", text)
    return float(found[1])


def model(name: str, settings: list[str], goal_ms: float, most_gib: float | None = None, first_step_s: float | None = None):
    """Returns the row of twenty steps of a model on data that is made, with goals for a step, the arenas and the first step."""

    def row(bench: Bench, limit_s: float):
        bench.settle()
        run = bench.train(settings, limit_s, name, 20)
        losses, last = run.losses(), run.steps[-1]
        foretold = bench.report(settings, 30, name, "--fit", "h100")
        yield judged(name, "loss falls", statistics.mean(losses[-3:]) < losses[0] - 0.1,
                     f"{losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} steps")
        yield bench.judged_by_goal(name, "step", run.step_ms() <= goal_ms,
                                   f"{run.step_ms():.1f} ms ({goal_ms:g} at most), {last['tokens'] / last['step'] / run.step_ms():.1f} k tokens/s, "
                                   f"MFU {last['mfu']:.3f}, estimated {1e3 * foretold['time']['step_seconds']:.1f} ms")
        planned = last["arena_bytes"] + foretold["fit"]["outside_arenas_bytes"]
        yield judged(name, "memory of the card", abs(run.card_bytes - planned) <= 0.01 * planned,
                     f"{run.card_bytes / MIB:.0f} MiB, planned with what lies outside {planned / MIB:.0f} (1 % at most), "
                     f"arenas {last['arena_bytes'] / MIB:.0f}")
        if most_gib is not None:
            arenas = last["arena_bytes"] / GIB
            yield judged(name, "arenas", arenas <= most_gib, f"{arenas:.2f} GiB ({most_gib:g} at most)")
        if first_step_s is not None:
            yield from start_of(bench, name, run, first_step_s)

    return row


def start_of(bench: Bench, name: str, run: Training, first_step_s: float):
    """Yields how long a run takes to its first step, and to initialise its parameters."""
    yield bench.judged_by_goal(name, "launch to the end of the first step", run.first_step_s <= first_step_s,
                               f"{run.first_step_s:.1f} s ({first_step_s:g} at most)")
    initialise_s = found_in(run.log, r"([\d.]+) s to initialise")
    line = next(line.strip() for line in run.log.splitlines() if "s to initialise" in line)
    if loading := re.search(r"([\d.]+) s to load kernels", line):
        initialise_s -= float(loading[1])
    yield bench.judged_by_goal(name, "initial values", initialise_s <= 0.1, f"{line} (0.1 s to initialise at most, beside loading kernels)")


def estimate(bench: Bench, settings: list[str]) -> str:
    """Returns "estimated 262.1 ms": the step of a recipe on an H100."""
    return f"estimated {1e3 * bench.report(settings, 30, 'estimate')['time']['step_seconds']:.1f} ms"


# The ops of a trace by what they are; all others are the rest.
KINDS = {"products": ("matmul", "matmul_add"), "attention": ("attention", "attention_backward"), "optimizer": ("adamw", "sum_squares", "clip_factor")}


def operations(trace: pathlib.Path) -> list[dict]:
    """Returns the ops of a trace as its streams ran them: other lanes have large numbers."""
    events = json.loads(trace.read_text())["traceEvents"]
    return [event for event in events if event["ph"] == "X" and "op" in event["args"] and event["tid"] < 1000]


def ms_of_kinds(bench: Bench, settings: list[str], limit_s: float, name: str) -> dict[str, float]:
    """Where the time of a step goes, op by op, as the GPU times them."""
    trace = bench.scratch / f"{name}.json"
    first, last = 5, 6
    bench.train(settings, limit_s, name, until=lambda _: trace.is_file(),
                more=("--trace", str(trace), "--trace-steps", f"{first}..{last}"))
    ms = dict.fromkeys([*KINDS, "rest"], 0.0)
    for event in operations(trace):
        kind = next((kind for kind, names in KINDS.items() if event["name"] in names), "rest")
        ms[kind] += event["dur"] / 1e3 / (last - first + 1)
    return ms


def shares(bench: Bench, limit_s: float):
    ms = ms_of_kinds(bench, LLAMA_1B, limit_s, "shares")
    total = sum(ms.values())
    yield Result("shares", "step of llama_1b, op by op", "figure",
                 f"{total:.0f} ms: " + ", ".join(f"{kind} {value:.0f} ({100 * value / total:.0f} %)" for kind, value in ms.items()))


def copied_s(bench: Bench, source: pathlib.Path, target: pathlib.Path, limit_s: float) -> float:
    """Returns how long `cp` and `sync` of the files of a folder take on one file system."""
    began = time.monotonic()
    bench.run(["cp", "--recursive", "--reflink=never", str(source), str(target)], limit_s, "cp")
    bench.run(["sync", str(target), *map(str, target.iterdir())], limit_s, "sync")
    return time.monotonic() - began


def save(bench: Bench, limit_s: float):
    """The save of a model of 124M against a copy of its files, and the run that continues from it."""
    ends = Deadline(limit_s)
    settings = [*LLAMA_124M, "batch.global=16", "checkpoint.every=4", "checkpoint.keep=0"]
    run = bench.train(settings, ends.left(), "save", 13)
    # A save is between the line of its step and the next step.
    lines = {line["step"]: line for line in run.steps}
    saves = [lines[step + 1]["elapsed_s"] - lines[step]["elapsed_s"] - lines[step + 1]["step_ms"] / 1e3 for step in (4, 8, 12)]
    saved = run.checkpoint(12)
    size = sum(file.stat().st_size for file in saved.iterdir())
    copies = [copied_s(bench, saved, bench.scratch / f"copy-{number}", ends.left()) for number in range(3)]
    ratio = statistics.median(saves) / statistics.median(copies)
    yield judged("save", "time against cp and sync of its files", ratio <= 1.3,
                 f"{ratio:.2f} (1.3 at most): {statistics.median(saves):.2f} s of {statistics.median(copies):.2f} for {size / GIB:.2f} GiB "
                 f"(saves {', '.join(f'{s:.2f}' for s in saves)}; copies {', '.join(f'{s:.2f}' for s in copies)})")
    # The run was killed after step 13, so it goes on from step 12, and makes that step once more.
    again = bench.train(settings, ends.left(), "save-resumed", len(run.steps) + 1, run_dir=run.run_dir)
    is_same = [same_step(line) for line in again.steps[:len(run.steps)]] == [same_step(line) for line in run.steps]
    yield judged("save", "step after a load", is_same, f"loss {'equal to the bit' if is_same else 'differs'}; "
                 f"{found_in(again.log, r'([0-9.]+) s to load'):.2f} s to load")


def same_step(line: dict) -> tuple:
    """Returns what is equal in the lines of one step of equal runs."""
    return tuple(line.get(key) for key in ("step", "loss", "grad_norm", "lr", "skipped"))


LLAMA_124M = ["tests/gpu/llama_124m.toml"]
LLAMA_1B = ["tests/gpu/llama_1b.toml"]
