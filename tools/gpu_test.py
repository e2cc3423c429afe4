"""Tests shardc on the GPU of this machine: what no machine without one can run.

Usage: gpu_test.py [--out FOLDER] [--only ROW,...] [--seconds N] [--folder FOLDER]
       gpu_test.py --record [--folder FOLDER]

It stands in the archive that `tools/dev gpu-pack` makes, beside the programs, and needs Python and the CUDA libraries of a PyTorch
installation: that of the Python that runs it, or the folders in CUDA_LIBRARIES, separated by colons. No network, nothing to install.

Prints a table in Markdown and writes it and last_run.json to FOLDER (default: .). Each row has a limit of time, and all rows together have
one (--seconds). The exit code is the number of rows that failed. --record writes the losses that the CPU computes, to compare with.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu_card  # noqa: E402

LOSSES = "tests/gpu/quickstart_losses.json"
TOKENS = ".deps/data/fortunes.bin"
QUICKSTART = ["recipes/quickstart.toml", "mesh.dp=1", "batch.micro=16"]
MIB = 1 << 20


@dataclasses.dataclass
class Result:
    """One line of the table. `outcome`: pass, FAIL, figure, or not run."""

    row: str
    what: str
    outcome: str
    figure: str


class Failure(Exception):
    """Why a row failed: a line for the table, and what the program printed."""

    def __init__(self, line: str, log: str = ""):
        super().__init__(line)
        self.log = log

    def details(self) -> str:
        return "\n".join(self.log.splitlines()[-40:])


def library_folders() -> list[str]:
    """Where the CUDA libraries of PyTorch lie; of one that this Python has, if nothing else is said."""
    if named := os.environ.get("CUDA_LIBRARIES"):
        return named.split(":")
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        sys.exit("error: this Python has no torch; name the folders of LibTorch's and CUDA's libraries in CUDA_LIBRARIES, separated by colons")
    torch = pathlib.Path(list(found.submodule_search_locations)[0])
    folders = [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]
    return [str(folder) for folder in folders if folder.is_dir()]


def stop(process: subprocess.Popen) -> None:
    """Ends a program with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Bench:
    """The folder with the programs, and how they are run."""

    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path, out: pathlib.Path):
        self.folder = folder
        self.out = out
        self.scratch = scratch
        # As the doctor reports it.
        self.card = {}
        self.memory = gpu_card.MemoryWatch()
        self.environment = os.environ | {"LD_LIBRARY_PATH": ":".join([str(folder / "lib"), *library_folders()])}

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def start(self, command: list[str], log: pathlib.Path, **environment: str) -> subprocess.Popen:
        with log.open("wb") as sink:
            return subprocess.Popen(command, cwd=self.folder, env=self.environment | environment, stdout=sink, stderr=subprocess.STDOUT,
                                    start_new_session=True)

    def run(self, command: list[str], limit_s: float, name: str, **environment: str) -> str:
        """What a command printed. Fails if it fails, or takes longer."""
        log = self.scratch / f"{name}.log"
        process = self.start(command, log, **environment)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            stop(process)
            raise Failure(f"still running after {limit_s:.0f} s", log.read_text(errors="replace")) from None
        if code != 0:
            raise Failure(f"exit code {code}", log.read_text(errors="replace"))
        return log.read_text(errors="replace")

    def train(self, settings: list[str], limit_s: float, name: str, steps: int | None = None) -> "Training":
        """Trains a recipe, to its end or until so many steps are over; then nothing is saved."""
        run_dir = self.scratch / name
        recipe, *sets = settings
        command = [self.program("shardc"), "run", recipe, "--run-dir", str(run_dir)]
        for setting in sets:
            command += ["--set", setting]
        log = self.scratch / f"{name}.log"
        began = time.monotonic()
        card_bytes = 0
        process = self.start(command, log)
        try:
            while process.poll() is None:
                card_bytes = max(card_bytes, self.memory.bytes())
                lines = metrics_of(run_dir)
                if steps is not None and len([line for line in lines if "loss" in line]) >= steps:
                    break
                if time.monotonic() - began > limit_s:
                    raise Failure(f"still running after {limit_s:.0f} s, at step {len(lines)}", log.read_text(errors="replace"))
                time.sleep(0.05)
            wall_s = time.monotonic() - began
            ended = process.poll()
        finally:
            stop(process)
        lines = metrics_of(run_dir)
        if ended is not None and (ended != 0 or steps is not None):
            raise Failure(f"exit code {ended} after {len(lines)} lines of metrics", log.read_text(errors="replace"))
        return Training([line for line in lines if "loss" in line], [line for line in lines if "eval_loss" in line], wall_s,
                        card_bytes, log.read_text(errors="replace"))


@dataclasses.dataclass
class Training:
    steps: list[dict]
    evaluations: list[dict]
    wall_s: float
    # What the card's memory grew by, at most.
    card_bytes: int
    log: str

    def losses(self) -> list[float]:
        return [line["loss"] for line in self.steps]

    def step_ms(self) -> float:
        return statistics.median(line["step_ms"] for line in self.steps[5:] or self.steps)


def metrics_of(run_dir: pathlib.Path) -> list[dict]:
    """The whole lines that a run has written so far."""
    path = run_dir / "metrics.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def largest_difference(ours: list[float], theirs: list[float]) -> float:
    """Of two curves, relative to the second, over the steps of the second."""
    if len(ours) < len(theirs):
        raise Failure(f"{len(ours)} steps, expected {len(theirs)}")
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def judged(row: str, what: str, is_good: bool, figure: str) -> Result:
    return Result(row, what, "pass" if is_good else "FAIL", figure)


# ---- The rows. Each yields its results, so that those before a failure stand.


def doctor(bench: Bench, limit_s: float):
    report = json.loads(bench.run([sys.executable, str(bench.folder / "gpu_card.py")], limit_s, "doctor").splitlines()[-1])
    bench.card = report
    yield Result("doctor", "card", "figure", f"{report['card']}, driver {report['driver']}, {report['free_bytes'] / MIB:.0f} MiB free")
    yield Result("doctor", "libraries", "figure", ", ".join(f"{name} {version}" for name, version in report["libraries"].items()))
    yield judged("doctor", "copy", report["copy_tb_s"] >= 2.8, f"{report['copy_tb_s']:.2f} TB/s (2.8 at least, else judge no time below)")
    yield judged("doctor", "product of 8192 x 8192 x 8192 in bf16", report["product_tf_s"] >= 700,
                 f"{report['product_tf_s']:.0f} TF/s (700 at least, else judge no time below)")


def kernels(bench: Bench, limit_s: float):
    """Each kernel against a reference in double; the program runs each twice, and fails where the bits differ.

    The tests of an op are a process of their own, because a fault of one kernel ends all that its process does on the card."""
    program, ends = bench.program("tests_ops_cuda"), time.monotonic() + limit_s
    listed = bench.run([program, "--gtest_list_tests"], limit_s, "kernels-list")
    suites = re.findall(r"^(\w+)\.$", listed, re.MULTILINE)

    def tested(suite: str) -> tuple[int, Failure | None]:
        try:
            text = bench.run([program, "--gtest_brief=1", f"--gtest_filter={suite}.*"], max(1.0, ends - time.monotonic()), f"kernels-{suite}",
                             OMP_NUM_THREADS="2")
        except Failure as failure:
            return 0, failure
        found = re.search(r"\[  PASSED  \] (\d+) tests?", text)
        return (int(found[1]), None) if found else (0, Failure("no test passed", text))

    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        outcomes = dict(zip(suites, pool.map(tested, suites)))
    failures = {suite: failure for suite, (_, failure) in outcomes.items() if failure is not None}
    passed = sum(number for number, _ in outcomes.values())
    yield judged("kernels", "against double, twice, to the bit", bool(suites) and not failures,
                 f"{passed} tests of {len(suites) - len(failures)} ops passed" + (f"; failed: {', '.join(failures)}" if failures else ""))
    if failures:
        (bench.out / "kernels.log").write_text("\n".join(f"==== {suite}: {failure}\n{failure.log}" for suite, failure in failures.items()))


def digest_of_tokens(bench: Bench) -> str:
    return hashlib.sha256((bench.folder / TOKENS).read_bytes()).hexdigest()


def recorded_losses(bench: Bench) -> dict:
    """What the CPU computed. Fails if it was of other tokens."""
    recorded = json.loads((bench.folder / LOSSES).read_text())
    if recorded["tokens"] != digest_of_tokens(bench):
        raise Failure(f"the losses in {LOSSES} are of other tokens: record them again")
    return recorded


def quickstart(bench: Bench, limit_s: float):
    recorded = recorded_losses(bench)
    run = bench.train([*QUICKSTART, "run.device=cuda"], limit_s, "quickstart")
    difference = largest_difference(run.losses(), recorded["fp32"])
    yield judged("quickstart", f"{len(recorded['fp32'])} steps in fp32 against the CPU", difference <= 2e-5,
                 f"losses differ by {difference:.1e} of themselves (2e-5 at most)")
    validation = run.evaluations[-1]["eval_loss"]
    yield judged("quickstart", "validation after 300 steps", abs(validation - 1.995) <= 0.05, f"{validation:.4f} (1.995 +- 0.05)")
    yield judged("quickstart", "300 steps, from launch to end", run.wall_s <= 6, f"{run.wall_s:.1f} s (6 at most), step {run.step_ms():.2f} ms")


def quickstart_bf16(bench: Bench, limit_s: float):
    recorded = recorded_losses(bench)
    run = bench.train([*QUICKSTART, "run.device=cuda", "precision.compute=bf16"], limit_s, "quickstart-bf16", len(recorded["bf16"]))
    difference = largest_difference(run.losses(), recorded["bf16"])
    yield judged("quickstart bf16", f"{len(recorded['bf16'])} steps against the CPU", difference <= 1e-2,
                 f"losses differ by {difference:.1e} of themselves (1e-2 at most), step {run.step_ms():.2f} ms")


def model(name: str, goal_ms: float):
    """Twenty steps of a model on data that is made."""

    def row(bench: Bench, limit_s: float):
        run = bench.train([f"tests/gpu/{name}.toml"], limit_s, name, 20)
        losses = run.losses()
        yield judged(name, "loss falls", statistics.mean(losses[-3:]) < losses[0] - 0.1, f"{losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} steps")
        last = run.steps[-1]
        yield judged(name, "step", run.step_ms() <= goal_ms,
                     f"{run.step_ms():.1f} ms ({goal_ms:g} at most), {last['tokens'] / last['step'] / run.step_ms():.1f} k tokens/s, MFU {last['mfu']:.3f}")
        planned = last["arena_bytes"] + outside_arenas(bench, f"tests/gpu/{name}.toml")
        yield judged(name, "memory of the card", abs(run.card_bytes - planned) <= 0.02 * planned,
                     f"{run.card_bytes / MIB:.0f} MiB, planned with what lies outside {planned / MIB:.0f} (2 % at most), arenas {last['arena_bytes'] / MIB:.0f}")

    return row


def outside_arenas(bench: Bench, recipe: str) -> float:
    """What a rank takes of an H100 beside its arenas, as plans reckon with it."""
    text = bench.run([bench.program("shardc"), "plan", "--fit", "h100", recipe], 30, "fit")
    found = re.search(r"less ([\d.]+) (MiB|GiB)\s+outside", text)
    if found is None:
        raise Failure("the plan does not say what lies outside its arenas", text)
    return float(found[1]) * {"MiB": MIB, "GiB": 1024 * MIB}[found[2]]


# name, limit in seconds, function; in this order, so that an early end still tells most.
ROWS = [
    ("doctor", 25, doctor),
    ("kernels", 90, kernels),
    ("quickstart", 40, quickstart),
    ("quickstart-bf16", 25, quickstart_bf16),
    ("llama_124m", 40, model("llama_124m", 75)),
    ("llama_1b", 60, model("llama_1b", 340)),
]


def table_of(results: list[Result]) -> str:
    rows = [f"| {r.row} | {r.what} | {r.outcome} | {r.figure} |" for r in results]
    return "\n".join(["| row | what | outcome | figure |", "|---|---|---|---|", *rows])


def run_rows(bench: Bench, names: list[str], seconds: float) -> tuple[list[Result], list[str]]:
    results, details, began = [], [], time.monotonic()
    for name, limit_s, function in ROWS:
        if name not in names:
            continue
        left = seconds - (time.monotonic() - began)
        if left < 1:
            results.append(Result(name, "", "not run", f"{seconds:.0f} s are over"))
            continue
        start = time.monotonic()
        try:
            for result in function(bench, min(limit_s, left)):
                results.append(result)
                print(table_of([result]).splitlines()[-1], flush=True)
        except Failure as failure:
            results.append(Result(name, "", "FAIL", str(failure)))
            (bench.out / f"{name}.log").write_text(failure.log)
            details.append(f"{name}: {failure}\n{failure.details()}")
            print(table_of(results[-1:]).splitlines()[-1], flush=True)
        except (KeyError, IndexError, ValueError, OSError) as error:
            results.append(Result(name, "", "FAIL", f"{type(error).__name__}: {error}"))
        results.append(Result(name, "time of the row", "figure", f"{time.monotonic() - start:.1f} s"))
    return results, details


def record(bench: Bench) -> None:
    """Writes what the CPU computes of the quickstart."""
    losses = {}
    for compute in ("fp32", "bf16"):
        losses[compute] = bench.train([*QUICKSTART, f"precision.compute={compute}"], 600, f"record-{compute}", 20).losses()[:20]
    path = bench.folder / LOSSES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"settings": QUICKSTART, "tokens": digest_of_tokens(bench), **losses}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--only", default=",".join(name for name, _, _ in ROWS))
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - {name for name, _, _ in ROWS}:
        parser.error(f"no row is named {', '.join(sorted(unknown))}; known are {', '.join(name for name, _, _ in ROWS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="shardc-gpu-") as scratch:
        bench = Bench(arguments.folder, pathlib.Path(scratch), arguments.out)
        if arguments.record:
            record(bench)
            return 0
        results, details = run_rows(bench, names, arguments.seconds)
    failed = sum(result.outcome == "FAIL" for result in results)
    report = "\n\n".join([table_of(results), *(f"```\n{text}\n```" for text in details)])
    print(f"\n{report}\n\n{failed} failed, {time.monotonic() - began:.0f} s")
    (arguments.out / "report.md").write_text(report + "\n")
    sources = arguments.folder / "sources.json"
    run = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "card": bench.card.get("card", ""),
        "driver": bench.card.get("driver", ""),
        "libraries": bench.card.get("libraries", {}),
        "rows": [dataclasses.asdict(result) for result in results],
        "sources": json.loads(sources.read_text()) if sources.is_file() else {},
    }
    (arguments.out / "last_run.json").write_text(json.dumps(run, indent=1) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
