"""Measures what a start from a model of Hugging Face and an export of one take.

    tools/dev bench-hf [--rounds N] [--only start|bytes|memory|export|merge]

start   Qwen2.5-0.5B's sizes in bf16 on 2 ranks of one thread, from launch until the first step can begin, against transformers and FSDP2
        (load_by_fsdp2.py): times of rounds in turn, VmHWM of the larger rank, and, in a round of its own, its largest PSS, sampled
bytes   that the ranks and the launcher read of the model's file in such a start, counted by strace, over those of the file
memory  VmHWM of a rank of such a start, and of an export, less that of the same program with a tiny model and less what the rank owns
export  of 2 GiB in f32, out of what 2 ranks saved, against `cp` of the exported file and `sync` of the copy, in turn, both from the page cache
merge   the same for `export --merge` of adapters of rank 16 on all projections of that model

The weights are noise. Both cores are probed between the two sides of a round, as in tests/bench/fsdp2/compare.py. Installs PyTorch and
transformers into .deps/bench-venv on first use (3 GB). Takes 12 GB of disk meanwhile.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/bench/fsdp2"))
from compare import descendants, field, steady_round  # noqa: E402
from pytorch import TRANSFORMERS, VENV, install, toml  # noqa: E402

SCRATCH = ROOT / ".deps" / "bench-hf"
SHARDC = ROOT / "build" / "shardc"
MIB = 1 << 20
QWEN = dict(layers=24, hidden=896, heads=14, kv_heads=2, ffn=4864, vocab=151936)
# In f32 2.01 GiB.
LARGER = dict(QWEN, layers=27)
TINY = dict(layers=1, hidden=64, heads=2, kv_heads=1, ffn=64, vocab=256)
RECIPE = """[model]
family = "qwen2"
{sizes}seq = 16
tied = true
rope_theta = 1e6
norm_eps = 1e-6

[mesh]
dp = 2

[precision]
compute = "bf16"
master = "{master}"

[optimizer]
name = "{optimizer}"
lr = 1e-5

[data]
synthetic = "zipf"

[batch]
global = 2

[train]
steps = 1

[run]
threads = 1

[start]
first = {{ seed = "{model}" }}
{more}"""
ADAPTERS = """
[adapter]
kind = "lora"
rank = 16
alpha = 32
"""


def tensors_of(sizes: dict) -> dict[str, list[int]]:
    """Names and shapes of Qwen2ForCausalLM, tied."""
    hidden, kv, ffn = sizes["hidden"], sizes["hidden"] // sizes["heads"] * sizes["kv_heads"], sizes["ffn"]
    block = {"self_attn.k_proj.bias": [kv], "self_attn.k_proj.weight": [kv, hidden], "self_attn.o_proj.weight": [hidden, hidden],
             "self_attn.q_proj.bias": [hidden], "self_attn.q_proj.weight": [hidden, hidden], "self_attn.v_proj.bias": [kv],
             "self_attn.v_proj.weight": [kv, hidden], "mlp.down_proj.weight": [hidden, ffn], "mlp.gate_proj.weight": [ffn, hidden],
             "mlp.up_proj.weight": [ffn, hidden], "input_layernorm.weight": [hidden], "post_attention_layernorm.weight": [hidden]}
    blocks = {f"model.layers.{i}.{name}": shape for i in range(sizes["layers"]) for name, shape in block.items()}
    return {"model.embed_tokens.weight": [sizes["vocab"], hidden], "model.norm.weight": [hidden], **blocks}


def num_elements(shape: list[int]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def write_model(name: str, sizes: dict) -> pathlib.Path:
    """A model in bf16, if it is not there."""
    folder = SCRATCH / name
    if (folder / "config.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape in tensors_of(sizes).items():
        end = at + 2 * num_elements(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(1)
    noise = b"".join(struct.pack("<f", generator.gauss(0, 0.02))[2:] for _ in range(MIB // 2))
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, at, MIB):
            file.write(noise[:min(MIB, at - begin)])
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "dtype": "bfloat16", "hidden_size": sizes["hidden"],
        "intermediate_size": sizes["ffn"], "num_hidden_layers": sizes["layers"], "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["kv_heads"], "vocab_size": sizes["vocab"], "tie_word_embeddings": True, "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "max_position_embeddings": 4096, "use_sliding_window": False}))
    return folder


def recipe_of(model: pathlib.Path, sizes: dict, master: str = "bf16", optimizer: str = "adamw", more: str = "") -> pathlib.Path:
    path = SCRATCH / f"{model.name}.toml"
    path.write_text(RECIPE.format(model=model, master=master, optimizer=optimizer, sizes=toml(sizes), more=more))
    return path


class PssWatch(threading.Thread):
    """The largest PSS, in MiB, of a process below one."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.largest, self.done = pid, 0.0, False
        self.start()

    def run(self) -> None:
        while not self.done:
            for pid in descendants(self.pid):
                self.largest = max(self.largest, field(f"/proc/{pid}/smaps_rollup", "Pss") / 1024)
            time.sleep(0.02)


def follow(command: list, pattern: str, watch: bool, on_line) -> dict:
    """Runs a command until a line of its output has the pattern; it and what it started are ended then."""
    launched = time.time()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    pss, said = PssWatch(process.pid) if watch else None, ""
    try:
        for line in process.stdout:
            said += line
            if re.search(pattern, line):
                return {**on_line(line, launched, process.pid), "pss": pss.largest if pss else 0.0}
    finally:
        if pss:
            pss.done = True
            pss.join()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    sys.exit(f"{' '.join(map(str, command))} ended before its first step:\n{said}")


def our_start(recipe: pathlib.Path, watch: bool = False, before: tuple = ()) -> dict:
    shutil.rmtree(SCRATCH / "run", ignore_errors=True)

    def ready(line: str, launched: float, pid: int) -> dict:
        seconds = time.time() - launched
        return {"seconds": seconds, "peak": max(field(f"/proc/{below}/status", "VmHWM") for below in descendants(pid)) / 1024}

    return follow([*before, SHARDC, "run", recipe, "--run-dir", SCRATCH / "run"], " to initialise", watch, ready)


def their_start(model: pathlib.Path, watch: bool = False) -> dict:
    def ready(line: str, launched: float, pid: int) -> dict:
        said = json.loads(line)
        return {"seconds": said["ready"] - launched, "peak": said["peak"]}

    return follow([VENV / "bin/python", "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29583",
                   ROOT / "tests/bench/hugging_face/load_by_fsdp2.py", model], r'^\{"ready"', watch, ready)


def in_turn(rounds: int, theirs, own, seconds) -> list:
    """Rounds of both sides, each printed to standard error."""
    found = []
    for _ in range(rounds):
        found.append(steady_round(theirs, own, 2))
        print("  {:.2f} s against {:.2f} s".format(*map(seconds, found[-1][::-1])), file=sys.stderr, flush=True)
    return found


def row(figure: str, theirs: str, own: str, ratio: str, goal: str) -> None:
    print(f"| {figure} | {theirs} | {own} | {ratio} | {goal} |", flush=True)


def pair(figure: str, rounds: list, pick, unit: str, goal: str) -> None:
    theirs, own = ([pick(side) for side in sides] for sides in zip(*rounds))
    ratios = [b / a for a, b in zip(theirs, own)]
    row(figure, f"{statistics.median(theirs):.2f} {unit}", f"{statistics.median(own):.2f} {unit}",
        f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})", goal)


def start(rounds: int) -> None:
    model = write_model("qwen", QWEN)
    recipe = recipe_of(model, QWEN)
    seconds = lambda side: side["seconds"]  # noqa: E731
    both = in_turn(rounds, lambda: their_start(model), lambda: our_start(recipe), seconds)
    pair("launch until the first step can begin", both, seconds, "s", "0.25")
    pair("VmHWM of a rank then", both, lambda side: side["peak"], "MiB", "0.5")
    pair("largest PSS of a rank", [(their_start(model, True), our_start(recipe, True))], lambda side: side["pss"], "MiB", "0.5")


def bytes_read(_: int) -> None:
    model, traces = write_model("qwen", QWEN), SCRATCH / "traces"
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir()
    calls = "read,readv,pread64,preadv,mmap"
    # A file for each thread: no line is cut in two.
    our_start(recipe_of(model, QWEN), before=("strace", "-ff", "-y", "--seccomp-bpf", "-e", f"trace={calls}", "-o", traces / "of"))
    text = "".join(trace.read_text(errors="replace") for trace in traces.iterdir())
    of_file = re.escape(f"<{model / 'model.safetensors'}>")
    if re.search(rf"mmap\(.*{of_file}", text):
        sys.exit("the file is mapped, and reads do not count its bytes")
    read = sum(int(count) for count in re.findall(rf"^p?readv?(?:64)?\(\d+{of_file}.* = (\d+)$", text, re.MULTILINE))
    there = (model / "model.safetensors").stat().st_size
    row("bytes read of the file", f"{there:,}", f"{read:,}", f"**{read / there:.4f}**", "1.01")


def peak_of(*command) -> float:
    """The largest resident memory of a program, in MiB."""
    # In a small process: that from which a program is forked counts too.
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    words = [sys.executable, "-c", code, *map(str, command)]
    return int(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout) / 1024


def saved(name: str, sizes: dict, more: str = "") -> pathlib.Path:
    """The run directory of a run of one step, without moments, if it is not there."""
    folder = SCRATCH / (f"{name}-adapted" if more else f"{name}-run")
    if not list(folder.glob("checkpoints/*/manifest.json")):
        shutil.rmtree(folder, ignore_errors=True)
        recipe = recipe_of(write_model(name, sizes), sizes, "fp32", "sgd", more)
        subprocess.run([SHARDC, "run", recipe, "--run-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def export_of(run: pathlib.Path) -> list:
    shutil.rmtree(SCRATCH / "exported", ignore_errors=True)
    return [SHARDC, "export", run, "-o", SCRATCH / "exported", "--max-file", "8GB"]


def memory(_: int) -> None:
    starts = [our_start(recipe_of(write_model(name, sizes), sizes))["peak"] for name, sizes in (("tiny", TINY), ("qwen", QWEN))]
    owned = sum(map(num_elements, tensors_of(QWEN).values())) * 2 / 2 / MIB
    row("memory of a start beside the owned slices", f"{starts[0]:.0f} MiB + {owned:.0f} owned", f"{starts[1]:.0f} MiB",
        f"**{starts[1] - starts[0] - owned:.1f} MiB**", "64 MiB + the largest row block")
    for type_name in ("f32", "bf16"):
        exports = [peak_of(*export_of(saved(name, sizes)), "--dtype", type_name) for name, sizes in (("tiny", TINY), ("larger", LARGER))]
        row(f"memory of an export in {type_name}", f"{exports[0]:.0f} MiB", f"{exports[1]:.0f} MiB", f"**{exports[1] - exports[0]:.1f} MiB**",
            "64 MiB + the largest row block")


def beside_cp(what: str, command, rounds: int, goal: str) -> None:
    """Times a command that writes SCRATCH/exported beside a copy of the file that it writes."""
    copy, original = SCRATCH / "copy", SCRATCH / "model.safetensors"
    subprocess.run(command(), check=True, stdout=subprocess.DEVNULL)
    (SCRATCH / "exported/model.safetensors").rename(original)

    def timed(words: list) -> float:
        os.sync()
        begun = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun

    def cp() -> float:
        copy.unlink(missing_ok=True)
        return timed(["sh", "-c", f"cp {original} {copy} && sync {copy}"])

    both = in_turn(rounds, cp, lambda: timed(command()), float)
    pair(f"{what} of {original.stat().st_size / MIB / 1024:.2f} GiB against cp and sync", both, float, "s", goal)
    copy.unlink()


def export(rounds: int) -> None:
    run = saved("larger", LARGER)
    beside_cp("export", lambda: export_of(run), rounds, "1.25")


def merge(rounds: int) -> None:
    run = saved("larger", LARGER, ADAPTERS)
    beside_cp("export --merge", lambda: [*export_of(run), "--merge"], rounds, "1.4")


FIGURES = {"start": start, "bytes": bytes_read, "memory": memory, "export": export, "merge": merge}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=FIGURES)
    options = parser.parse_args()
    install(TRANSFORMERS)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    print("| figure | without shardc | shardc | ratio | goal |\n|---|---|---|---|---|")
    for name, measure in FIGURES.items():
        if options.only in (None, name):
            measure(options.rounds)


if __name__ == "__main__":
    main()
