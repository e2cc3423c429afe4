"""What the rows of test.py share: the folder with the programs, how they are run, and what a training leaves."""

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import card

MIB = 1 << 20
GIB = 1 << 30


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


class Deadline:
    """The end of a row's time, which its programs share."""

    def __init__(self, limit_s: float):
        self.at = time.monotonic() + limit_s

    def left(self) -> float:
        return max(1.0, self.at - time.monotonic())

    def is_over(self) -> bool:
        return time.monotonic() >= self.at


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
    """Ends a program with all that it started. One that hangs in the driver may not end: it is left to itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


@dataclasses.dataclass
class Training:
    steps: list[dict]
    evaluations: list[dict]
    wall_s: float
    # From the launch to the first line of metrics.
    first_step_s: float
    # What the card's memory grew by, at most.
    card_bytes: int
    run_dir: pathlib.Path
    log: str

    def losses(self) -> list[float]:
        return [line["loss"] for line in self.steps]

    def step_ms(self) -> float:
        return statistics.median(line["step_ms"] for line in self.steps[5:] or self.steps)

    def checkpoint(self, step: int | None = None) -> pathlib.Path:
        """Returns the folder of the checkpoint of a step, of the last step if none is named."""
        return checkpoint_of(self.run_dir, self.steps[-1]["step"] if step is None else step)


def checkpoint_of(run_dir: pathlib.Path, step: int) -> pathlib.Path:
    return run_dir / "checkpoints" / f"step-{step:08}"


def is_saved(run_dir: pathlib.Path, step: int) -> bool:
    return (checkpoint_of(run_dir, step) / "manifest.json").is_file()


def metrics_of(run_dir: pathlib.Path) -> list[dict]:
    """The whole lines that a run has written so far."""
    path = run_dir / "metrics.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


class Bench:
    """The folder with the programs, and how they are run."""

    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path, out: pathlib.Path):
        self.folder = folder
        self.out = out
        self.scratch = scratch
        # As the doctor reports it.
        self.card = {}
        self.memory = card.MemoryWatch()
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

    def report(self, settings: list[str], limit_s: float, name: str, *options: str) -> dict:
        """Returns what the compiler foretells of a recipe, the first of the settings, with the others set. It prints notes too."""
        recipe, *sets = settings
        text = self.run([self.program("shardc"), "plan", "--explain", "--format", "json", *options, recipe,
                         *(word for text in sets for word in ("--set", text))], limit_s, f"{name}-report")
        return json.loads(text[re.search(r"^\{", text, re.MULTILINE).start():])

    def command(self, settings: list[str], run_dir: pathlib.Path, *more: str) -> list[str]:
        """Returns the command that trains a recipe, the first of the settings, with the others set."""
        recipe, *sets = settings
        return [self.program("shardc"), "run", recipe, "--run-dir", str(run_dir), *more, *(word for text in sets for word in ("--set", text))]

    def train(self, settings: list[str], limit_s: float, name: str, steps: int | None = None, *, until: Callable[[pathlib.Path], bool] | None = None,
              send: signal.Signals | Callable[[int], None] = signal.SIGKILL, code: int = 0, run_dir: pathlib.Path | None = None, more: tuple[str, ...] = (),
              command: list[str] | None = None, **environment: str) -> Training:
        """Trains a recipe to its end, which has this exit code; or until so many steps are over, or `until` says so of the run's
        folder, and then sends the signal: after SIGKILL nothing is saved. `send` may also be what sends it to the process. Fails if the
        run ends before that. `command`: what trains there in the place of `shardc run`."""
        run_dir = run_dir or self.scratch / name
        if steps is not None:
            until = lambda folder: len([line for line in metrics_of(folder) if "loss" in line]) >= steps  # noqa: E731
        log = self.scratch / f"{name}.log"
        began = time.monotonic()
        card_bytes, first_step_s, is_sent = 0, 0.0, False
        process = self.start(command or self.command(settings, run_dir, *more), log, **environment)

        def failed(why: str) -> Failure:
            return Failure(f"{why}, at line {len(metrics_of(run_dir))} of the metrics", log.read_text(errors="replace"))

        try:
            while process.poll() is None:
                card_bytes = max(card_bytes, self.memory.bytes())
                if first_step_s == 0 and metrics_of(run_dir):
                    first_step_s = time.monotonic() - began
                if until is not None and not is_sent and until(run_dir):
                    is_sent = True
                    if send == signal.SIGKILL:
                        break
                    send(process.pid) if callable(send) else process.send_signal(send)
                if time.monotonic() - began > limit_s:
                    raise failed(f"still running after {limit_s:.0f} s")
                time.sleep(0.02)
            wall_s = time.monotonic() - began
            ended = process.poll()
        finally:
            stop(process)
        if ended is not None and (ended != code or (until is not None and not is_sent)):
            raise failed(f"exit code {ended}")
        lines = metrics_of(run_dir)
        return Training([line for line in lines if "loss" in line], [line for line in lines if "eval_loss" in line], wall_s, first_step_s,
                        card_bytes, run_dir, log.read_text(errors="replace"))

    def settle(self) -> None:
        """Waits until programs that were ended have given back the card's memory."""
        ends = Deadline(5)
        while self.memory.bytes() > 16 * MIB and time.monotonic() < ends.at:
            time.sleep(0.05)

    def judged_by_goal(self, row: str, what: str, is_good: bool, figure: str) -> Result:
        """Returns a result that a goal judges, which is one of an H100: on another card it is a figure."""
        name = self.card.get("card") or self.memory.card()
        return judged(row, what, is_good, figure) if "H100" in name or not name else Result(row, what, "figure", figure)


def judged(row: str, what: str, is_good: bool, figure: str) -> Result:
    return Result(row, what, "pass" if is_good else "FAIL", figure)


def largest_difference(ours: list[float | None], theirs: list[float | None]) -> float:
    """Returns the difference of two curves, relative to the second, over the steps of the second. A step without a number differs from
    one with a number infinitely, and so does what is not finite from all."""
    if len(ours) < len(theirs):
        raise Failure(f"{len(ours)} steps, expected {len(theirs)}")

    def difference(a: float | None, b: float | None) -> float:
        if a is None or b is None:
            return 0.0 if a == b else float("inf")
        if not math.isfinite(a) or not math.isfinite(b):
            return float("inf")
        return abs(a - b) / abs(b) if b else abs(a)

    return max((difference(a, b) for a, b in zip(ours, theirs)), default=0.0)
