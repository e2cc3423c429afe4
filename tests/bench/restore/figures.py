"""Measures what starts read of a checkpoint, and the processor time that they take.

    tools/dev bench-restore [--layers N] [--before FOLDER]

Trains a model for one step on dp 2 and saves 12 bytes per parameter. Then starts the finished run again, which loads the state and
ends, on several meshes, and evaluates the checkpoint. Per start, beside the bytes of the checkpoint: bytes that all ranks read (by
strace, whatever the cache holds), and bytes that come from the disk if the cache holds nothing of it (0 on file systems in memory).
And processor seconds of the fastest of three starts whose files are in the cache. --before names a folder with other programs, shardc and shardc-run, which save and load a checkpoint of their own.
"""

import argparse
import os
import pathlib
import random
import re
import resource
import subprocess
import tempfile

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
