"""Tests shardc on the GPU of this machine: what no machine without one can run.

Usage: test.py [--gpus N] [--out FOLDER] [--only ROW,...] [--seconds N] [--folder FOLDER]
       test.py --hosts exposed|llama_8b|fsdp2 --out SHARED [--seconds N] [--folder FOLDER]
       test.py --compare [...]
       test.py --roofs [--only ROW,...] [--out FOLDER] [--seconds N] [--folder FOLDER]
       test.py --record [--folder FOLDER]

It stands in the archive that `tools/dev gpu-pack` makes, beside the programs, and needs Python and the CUDA libraries of a PyTorch
installation: that of the Python that runs it, or the folders in CUDA_LIBRARIES, separated by colons. No network, nothing to install.

Prints a table in Markdown and writes it and last_run.json to FOLDER (default: .). Each row has a limit of time, and all rows together have
one (--seconds). The exit code is the number of rows that failed. With --gpus N the rows are those for N GPUs (several.py), and the
record is N_gpus.json. With --hosts it is a process of a launch over several hosts (launched.py), which share
FOLDER. --compare trains beside PyTorch FSDP2, with the arguments of compare.py. With --roofs it prints figures alone, of each
kernel and product against what the card does at best (roofs.py), in six minutes at most. --record writes the losses that the CPU
computes, to compare with.
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import MIB, Bench, Deadline, Failure, Result, judged  # noqa: E402
from bits import bits  # noqa: E402
from compare import main as compare  # noqa: E402
from features import features  # noqa: E402
from hosts import hosts  # noqa: E402
from launched import ROWS as LAUNCHED, place_of, row_of  # noqa: E402
from ranks import ranks  # noqa: E402
from roofs import ROWS as ROOFS  # noqa: E402
from sanitizer import sanitizer  # noqa: E402
from several import rows_of  # noqa: E402
from training import LLAMA_1B, LLAMA_124M, model, quickstart, quickstart_bf16, record, save, shares  # noqa: E402

# ---- The rows. Each yields its results, so that those before a failure stand.


def doctor(bench: Bench, limit_s: float):
    report = json.loads(bench.run([sys.executable, str(bench.folder / "card.py")], limit_s, "doctor").splitlines()[-1])
    bench.card = report
    yield Result("doctor", "card", "figure", f"{report['card']}, driver {report['driver']}, {report['free_bytes'] / MIB:.0f} MiB free")
    yield Result("doctor", "libraries", "figure", ", ".join(f"{name} {version}" for name, version in report["libraries"].items()))
    yield bench.judged_by_goal("doctor", "copy", report["copy_tb_s"] >= 2.8,
                               f"{report['copy_tb_s']:.2f} TB/s (2.8 at least, else judge no time below)")
    yield bench.judged_by_goal("doctor", "product of 8192 x 8192 x 8192 in bf16", report["product_tf_s"] >= 700,
                               f"{report['product_tf_s']:.0f} TF/s (700 at least, else judge no time below)")


# So many processes test kernels at once: each takes seconds to make its context, one after another on the card.
GROUPS = 8


def kernels(bench: Bench, limit_s: float):
    """Each kernel against a reference in double; the program runs each twice, and fails where the bits differ.

    A fault of one kernel ends all that its process does on the card, so the ops of a process that fails are tested again one by one."""
    program, ends = bench.program("tests_ops_cuda"), Deadline(limit_s)
    listed = bench.run([program, "--gtest_list_tests"], limit_s, "kernels-list")
    suites = re.findall(r"^(\w+)\.$", listed, re.MULTILINE)

    def tested(group: list[str]) -> tuple[int, dict[str, Failure]]:
        """How many tests of the ops passed, and which ops failed."""
        # A group that hangs leaves time for its ops by themselves.
        limit_s = ends.left() / min(2, len(group))
        try:
            text = bench.run([program, "--gtest_brief=1", f"--gtest_filter={':'.join(f'{suite}.*' for suite in group)}"], limit_s,
                             f"kernels-{group[0]}", OMP_NUM_THREADS="2")
            if found := re.search(r"\[  PASSED  \] ([1-9]\d*) tests?", text):
                return int(found[1]), {}
            failure = Failure("no test passed", text)
        except Failure as error:
            failure = error
        if len(group) == 1:
            return 0, {group[0]: failure}
        outcomes = [tested([suite]) for suite in group]
        return sum(passed for passed, _ in outcomes), {name: failure for _, failed in outcomes for name, failure in failed.items()}

    groups = [group for number in range(GROUPS) if (group := suites[number::GROUPS])]
    with concurrent.futures.ThreadPoolExecutor(GROUPS) as pool:
        outcomes = list(pool.map(tested, groups))
    failures = {suite: failure for _, failed in outcomes for suite, failure in failed.items()}
    passed = sum(number for number, _ in outcomes)
    yield judged("kernels", "against double, twice, to the bit", bool(suites) and not failures,
                 f"{passed} tests of {len(suites) - len(failures)} ops passed" + (f"; failed: {', '.join(failures)}" if failures else ""))
    if failures:
        (bench.out / "kernels.log").write_text("\n".join(f"==== {suite}: {failure}\n{failure.log}" for suite, failure in failures.items()))


# name, limit in seconds, function; in this order, so that an early end still tells most.
ROWS = [
    ("doctor", 25, doctor),
    ("kernels", 90, kernels),
    ("quickstart", 40, quickstart),
    ("quickstart-bf16", 25, quickstart_bf16),
    ("bits", 60, bits),
    ("features", 80, features),
    ("ranks", 120, ranks),
    ("hosts", 120, hosts),
    ("llama_124m", 40, model("llama_124m", LLAMA_124M, 72)),
    ("llama_124m_16", 40, model("llama_124m_16", [*LLAMA_124M, "batch.global=16"], 40)),
    ("llama_1b", 60, model("llama_1b", LLAMA_1B, 280, most_gib=39.6, first_step_s=6)),
    ("llama_8b_slice", 60, model("llama_8b_slice", ["tests/gpu/llama_8b_slice.toml"], 160)),
    ("shares", 40, shares),
    ("save", 60, save),
    ("sanitizer", 60, sanitizer),
]


def table_of(results: list[Result]) -> str:
    rows = [f"| {r.row} | {r.what} | {r.outcome} | {r.figure} |" for r in results]
    return "\n".join(["| row | what | outcome | figure |", "|---|---|---|---|", *rows])


@dataclasses.dataclass
class Report:
    """What is written of a run, as far as it has come: an end by force leaves the rows before it."""

    bench: Bench
    table: pathlib.Path
    record: pathlib.Path
    results: list[Result] = dataclasses.field(default_factory=list)
    details: list[str] = dataclasses.field(default_factory=list)

    def text(self) -> str:
        return "\n\n".join([table_of(self.results), *(f"```\n{text}\n```" for text in self.details)])

    def write(self) -> None:
        self.table.write_text(self.text() + "\n")
        sources = self.bench.folder / "sources.json"
        run = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "card": self.bench.card.get("card", ""),
            "driver": self.bench.card.get("driver", ""),
            "libraries": self.bench.card.get("libraries", {}),
            "rows": [dataclasses.asdict(result) for result in self.results],
            "sources": json.loads(sources.read_text()) if sources.is_file() else {},
        }
        self.record.write_text(json.dumps(run, indent=1) + "\n")


def run_rows(report: Report, rows: list[tuple], names: list[str], seconds: float, is_written: bool) -> None:
    bench, results, details, began = report.bench, report.results, report.details, time.monotonic()
    for name, limit_s, function in rows:
        if name not in names:
            continue
        left = seconds - (time.monotonic() - began)
        if left < 1:
            results.append(Result(name, "", "not run", f"{seconds:.0f} s are over"))
            continue
        if name != "doctor" and "doctor" in names and not bench.card:
            results.append(Result(name, "", "not run", "the doctor found no card"))
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
        except Exception as error:  # noqa: BLE001 Whatever it is, the other rows tell more.
            results.append(Result(name, "", "FAIL", f"{type(error).__name__}: {error}"))
        results.append(Result(name, "time of the row", "figure", f"{time.monotonic() - start:.1f} s"))
        if is_written:
            report.write()


def main() -> int:
    if "--compare" in sys.argv[1:]:
        return compare([word for word in sys.argv[1:] if word != "--compare"])
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--hosts", choices=LAUNCHED)
    parser.add_argument("--roofs", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.gpus < 1:
        parser.error("--gpus takes a number of GPUs")
    rows = ROWS if arguments.gpus == 1 else [ROWS[0], *rows_of(arguments.gpus)]
    name = "last_run" if arguments.gpus == 1 else f"{arguments.gpus}_gpus"
    if arguments.roofs:
        rows, name = [ROWS[0], *ROOFS], "roofs"
    if arguments.seconds is None:
        arguments.seconds = 360 if arguments.roofs else 480
    place = place_of(dict(os.environ)) if arguments.hosts else None
    if arguments.hosts:
        if place is None:
            parser.error("--hosts takes a launch by torchrun or srun, one process per GPU")
        rows = [(arguments.hosts, arguments.seconds, row_of(arguments.hosts, place))]
        name = f"hosts_{arguments.hosts}"
    known = [name for name, _, _ in rows]
    names = arguments.only.split(",") if arguments.only else known
    if unknown := set(names) - set(known):
        parser.error(f"no row is named {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    is_first = place is None or place.rank == 0
    with tempfile.TemporaryDirectory(prefix="shardc-gpu-", ignore_cleanup_errors=True) as scratch:
        bench = Bench(arguments.folder, pathlib.Path(scratch), arguments.out)
        if arguments.record:
            record(bench)
            return 0
        table = f"{name}.md" if arguments.hosts or arguments.roofs else "report.md"
        report = Report(bench, arguments.out / table, arguments.out / f"{name}.json")
        run_rows(report, rows, names, arguments.seconds, is_first)
    if not is_first:
        return 0
    # A run without a row that ran shows nothing.
    failed = sum(result.outcome == "FAIL" for result in report.results) + all(result.outcome == "not run" for result in report.results)
    print(f"\n{report.text()}\n\n{failed} failed, {time.monotonic() - began:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
