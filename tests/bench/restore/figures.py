"""Measures what starts read of a checkpoint, and the processor time that they take.

    tools/dev bench-restore [--layers N] [--before FOLDER]

Trains a model for one step on dp 2 and saves 12 bytes per parameter. Then starts the finished run again, which loads the state and
ends, on several meshes, and evaluates the checkpoint. Per start, beside the bytes of the checkpoint: bytes that all ranks read (by
strace, whatever the cache holds), and bytes that come from the disk if the cache holds nothing of it (0 on file systems in memory).
And processor seconds of the fastest of three starts whose files are in the cache. --before names a folder with other programs, shardc
and shardc-run, which save and load a checkpoint of their own.

Then seconds of the fastest of several rounds in turn, all from the cache: from launch until the first step can begin, of the run
itself and of a run that continues it with nothing reset; and `shardc checkpoint verify` beside `xxhsum -H2`, on one core and on two.
"""

import argparse
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECIPE = """
[model]
family = "llama"
layers = {layers}
hidden = 1024
heads = 8
ffn = 2816
vocab = 256
seq = 32
[[init.rule]]
match = "*"
value = 0.01
[optimizer]
lr = 1e-3
[data]
tokens = ["tokens.u8"]
format = "u8"
eval_tokens = 1024
[batch]
global = 4
[train]
steps = 1
eval_every = 0
[checkpoint]
every = 0
[run]
threads = 1
"""
MESHES = [["mesh.dp=2"], ["mesh.dp=1"], ["mesh.dp=4"], ["mesh.dp=1", "mesh.tp=2"], ["mesh.dp=1", "mesh.replicate=2"], ["mesh.dp=2", "mesh.replicate=2"]]


def command(programs: pathlib.Path, verb: str, folder: pathlib.Path, sets: list[str], options: list[str]) -> list[str]:
    whole = [str(programs / "shardc"), verb, str(folder / "recipe.toml"), *options]
    for each in sets:
        whole += ["--set", each]
    return whole


def run(arguments: list[str]) -> tuple[float, int]:
    """Returns the processor seconds of the command and of all that it started, and the bytes that came from a disk."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Blocks of 512 bytes, whatever those of the disk are.
    blocks = after.ru_inblock - before.ru_inblock
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, blocks * 512


def forget(folder: pathlib.Path) -> None:
    """Takes the files of a folder out of the cache."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def bytes_read(arguments: list[str], checkpoint: pathlib.Path) -> int:
    """Returns the bytes that calls of read and pread gave of files in a folder."""
    with tempfile.NamedTemporaryFile() as trace:
        subprocess.run(
            ["strace", "-f", "-y", "-qq", "-s0", "-e", "trace=read,pread64", "-o", trace.name, *arguments], capture_output=True, check=True
        )
        text = pathlib.Path(trace.name).read_text()
    # A call that another thread's interrupts is on two lines, of which the first alone has the name.
    total = 0
    unfinished: set[str] = set()
    for line in text.splitlines():
        thread = line.split()[0]
        is_ours = str(checkpoint) in line or ("resumed>" in line and thread in unfinished)
        if is_ours and line.endswith("<unfinished ...>"):
            unfinished.add(thread)
            continue
        unfinished.discard(thread)
        count = re.search(r"= (\d+)$", line)
        if is_ours and count:
            total += int(count[1])
    return total


def seconds_to_begin(arguments: list[str]) -> float:
    """Seconds from launch until the line that tells that the state is there."""
    begin = time.monotonic()
    taken = 0.0
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if " to allocate and bind, " in line:
            taken = time.monotonic() - begin
    if process.wait() != 0 or taken == 0.0:
        raise SystemExit(f"{' '.join(arguments)}\n{''.join(lines)}")
    return taken


def compare_continue(programs: pathlib.Path, folder: pathlib.Path, rounds: int) -> None:
    """Starts of the run, and of a run that continues it."""
    (folder / "next").mkdir()
    (folder / "next/tokens.u8").symlink_to("../tokens.u8")
    first = f'[start]\nfirst = {{ continue = "{folder / "run"}", reset = [] }}\n'
    (folder / "next/recipe.toml").write_text((folder / "recipe.toml").read_text() + first)
    resumes, continues = [], []
    for _ in range(rounds):
        resumes.append(seconds_to_begin(command(programs, "run", folder, MESHES[0], ["--run-dir", str(folder / "run")])))
        continues.append(seconds_to_begin(command(programs, "run", folder / "next", MESHES[0], ["--run-dir", str(folder / "next/run")])))
        shutil.rmtree(folder / "next/run")
    resume, continued = min(resumes), min(continues)
    print(f"  from launch to the first step: resume {resume:.2f} s, continue {continued:.2f} s, {continued / resume:.2f} of it", flush=True)


def seconds_on(cores: set[int], arguments: list[str]) -> float:
    begin = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
    return time.monotonic() - begin


def compare_verify(programs: pathlib.Path, checkpoint: pathlib.Path, rounds: int) -> None:
    files = sorted(map(str, checkpoint.glob("*.safetensors")))
    cores = sorted(os.sched_getaffinity(0))
    verify = [str(programs / "shardc"), "checkpoint", "verify", str(checkpoint)]
    sides = {"xxhsum": ({cores[0]}, ["xxhsum", "-H2", *files]), "one core": ({cores[0]}, verify), "two": (set(cores[:2]), verify)}
    best = {side: min(times) for side, times in zip(sides, zip(*[[seconds_on(*each) for each in sides.values()] for _ in range(rounds)]))}
    rates = ", ".join(f"{side} {best[side]:.3f} s, {best[side] / best['xxhsum']:.2f} of it" for side in ("one core", "two"))
    print(f"  checkpoint verify: xxhsum -H2 {best['xxhsum']:.3f} s; {rates}", flush=True)


def figures(programs: pathlib.Path, folder: pathlib.Path) -> dict[str, tuple[int, float]]:
    run_dir = folder / "run"
    run(command(programs, "run", folder, MESHES[0], ["--run-dir", str(run_dir)]))
    checkpoint = (run_dir / "checkpoints/step-00000001").resolve()
    size = sum(file.stat().st_size for file in checkpoint.iterdir())
    print(f"{programs}: a checkpoint of {size} bytes on {' '.join(MESHES[0])}")
    rows = {}
    starts = [("run", mesh, ["--run-dir", str(run_dir)]) for mesh in MESHES] + [("eval", MESHES[0], ["--checkpoint", str(checkpoint)])]
    for verb, mesh, options in starts:
        arguments = command(programs, verb, folder, mesh, options)
        forget(checkpoint)
        _, from_disk = run(arguments)
        seconds = min(run(arguments)[0] for _ in range(3))
        read = bytes_read(arguments, checkpoint)
        name = f"{verb}, {' '.join(mesh)}"
        rows[name] = (read, seconds)
        print(f"  {name:35} reads {read / size:6.3f} of it, {from_disk / size:6.3f} from the disk, {seconds:6.2f} s of processor time", flush=True)
    compare_continue(programs, folder, 5)
    compare_verify(programs, checkpoint, 60)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=10, help="of 12.8 million parameters each (10: 1.5 GB)")
    parser.add_argument("--before", type=pathlib.Path, help="folder with other programs")
    arguments = parser.parse_args()
    all_rows = []
    for programs in [ROOT / "build", *([arguments.before] if arguments.before else [])]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "recipe.toml").write_text(RECIPE.format(layers=arguments.layers))
            (folder / "tokens.u8").write_bytes(random.Random(1).randbytes(20_000))
            all_rows.append(figures(programs.resolve(), folder))
    if len(all_rows) == 2:
        for name, (read, seconds) in all_rows[0].items():
            print(f"  {name:40} {read / all_rows[1][name][0]:.2f} of the bytes, {seconds / all_rows[1][name][1]:.2f} of the time")


if __name__ == "__main__":
    main()
