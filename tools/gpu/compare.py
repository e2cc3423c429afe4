"""Times shardc against PyTorch FSDP2 on the GPU of this machine: from the same parameters, on the same tokens, losses first.

Usage: compare.py [--gpus N] [--out FOLDER] [--only MODEL,...] [--modes eager,compiled] [--seconds N] [--folder FOLDER]
                  [--device cuda|cpu]

It stands beside test.py in the archive that `tools/dev gpu-pack` makes, and needs PyTorch 2.11 in the Python that runs it; `test.py
--compare` starts it. Parameters are drawn by shardc, from whose checkpoint PyTorch reads them. Prints a table in Markdown, as docs/gpu.md has
it, and writes it to FOLDER (default: .) with all figures. The exit code is the number of models whose losses differ, or that failed. With
--gpus N both train on N GPUs, with as many samples on each as on one. `--device cpu --only tiny` tries the comparison itself.
"""

import argparse
import array
import itertools
import json
import pathlib
import random
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import GIB, Bench, Deadline, Failure, largest_difference  # noqa: E402

STEPS = 20
# How far the losses of the two may differ, of themselves: both compute in bf16. Where PyTorch's modes differ by more, as losses do that
# jump, they may differ by as much, up to the second number.
TOLERANCE, MOST_TOLERANCE = 2e-2, 0.1
# Name, recipe, samples in a step; the first ones tell most.
MODELS = [
    ("1b", "tests/gpu/llama_1b.toml", 8),
    ("124m", "tests/gpu/llama_124m.toml", 32),
    ("124m_16", "tests/gpu/llama_124m.toml", 16),
    ("8b_slice", "tests/gpu/llama_8b_slice.toml", 1),
    ("tiny", "tests/gpu/tiny.toml", 8),
]
HEAD = ("| model | shardc | FSDP2 eager | FSDP2 compiled | shardc / eager, compiled | tokens/s of shardc, eager, compiled "
        "| GiB: shardc's arenas (card), eager, compiled allocated (reserved) | launch to the end of the first step | losses differ from theirs by |\n"
        "|---|---|---|---|---|---|---|---|---|")


def sizes_of(recipe: str) -> dict[str, str]:
    """Returns the keys of a recipe that are numbers."""
    return dict(re.findall(r"^(\w+) = ([\d.e-]+)$", recipe, re.MULTILINE))


def write_tokens(path: pathlib.Path, vocab: int, count: int) -> None:
    """Writes numbers of 4 bytes of a skewed law, so that there is something to learn."""
    draw = random.Random(7).random
    array.array("I", (int(vocab * draw() ** 4) for _ in range(count))).tofile(path.open("wb"))


class Comparison:
    """One model: what both begin from, and what came of it."""

    def __init__(self, bench: Bench, name: str, recipe: str, micro: int, device: str, limit_s: float, gpus: int = 1):
        self.bench, self.name, self.device, self.ends, self.gpus = bench, name, device, Deadline(limit_s), gpus
        self.sizes = sizes_of((bench.folder / recipe).read_text())
        self.micro, self.tokens = micro, bench.scratch / f"{name}.u32"
        write_tokens(self.tokens, int(self.sizes["vocab"]), STEPS * micro * gpus * int(self.sizes["seq"]) + 1)
        self.settings = [recipe, f"run.device={device}", "precision.compute=bf16", "data.synthetic=none", "data.format=u32",
                         f'data.tokens=["{self.tokens}"]', "data.order=sequential", "train.steps=1000"]

    def weights(self) -> pathlib.Path:
        """Returns the file with the parameters that a run begins from: a step that changes none saves them, without moments."""
        sets = ["optimizer.name=sgd", "optimizer.lr=0", "batch.global=1", "train.steps=1"]
        run = self.bench.train([*self.settings, *sets], self.ends.left(), f"{self.name}-weights")
        return run.checkpoint() / "rank-00000.safetensors"

    def theirs(self, modes: str) -> list[dict]:
        weights = self.weights()
        # Each compares with a PyTorch that has compiled nothing before.
        compiled = {"TORCHINDUCTOR_CACHE_DIR": str(self.bench.scratch / f"{self.name}-compiled")}
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.gpus}"] if self.gpus > 1 else []
        results = self.pytorch(modes, f"--weights={weights}", launcher=launcher, **compiled)
        # The disk may not hold those of all models.
        weights.unlink()
        return results

    def pytorch(self, modes: str, *more: str, launcher: list[str] | None = None, **environment: str) -> list[dict]:
        keys = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "lr", "rope_theta")
        sizes = {key: self.sizes[key] for key in keys if key in self.sizes}
        text = self.bench.run([sys.executable, *(launcher or []), str(self.bench.folder / "tests/bench/fsdp2/baseline_gpu.py"),
                               *(f"--{key}={value}" for key, value in sizes.items()), f"--micro={self.micro}", f"--steps={STEPS}",
                               f"--tokens={self.tokens}", f"--device={self.device}", f"--modes={modes}", *more],
                              self.ends.left(), f"{self.name}-pytorch", **environment)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def run(self, modes: str) -> tuple[dict, list[dict]]:
        self.bench.settle()
        run = self.bench.train([*self.settings, f"mesh.dp={self.gpus}", f"batch.global={self.micro * self.gpus}"], self.ends.left(), self.name, STEPS)
        ours = dict(losses=run.losses()[:STEPS], step_ms=run.step_ms(), card=run.card_bytes, arenas=run.steps[-1]["arena_bytes"],
                    first_step_s=run.first_step_s, tokens=run.steps[-1]["tokens"] / run.steps[-1]["step"])
        return ours, self.theirs(modes)


def line_of(name: str, ours: dict, theirs: list[dict]) -> tuple[str, bool]:
    """Returns the line of a model, and whether losses agree in every mode."""
    modes = {result["mode"]: result for result in theirs}
    differences = {mode: largest_difference(ours["losses"], result["losses"]) for mode, result in modes.items()}

    sides = [ours | {"allocated": ours["arenas"], "reserved": ours["card"]}, *(modes.get(mode) for mode in ("eager", "compiled"))]

    def of(sides: list[dict | None], form: str, key: str, divide=lambda value: value) -> list[str]:
        """Returns what is shown of one figure of each side."""
        return ["-" if side is None else form.format(divide(side[key])) for side in sides]

    gib = lambda value: value / GIB  # noqa: E731
    memory = zip(of(sides, "{:.1f}", "allocated", gib), of(sides, "({:.1f})", "reserved", gib))
    cells = [name, *of(sides, "{:.1f} ms", "step_ms"), ", ".join(of(sides[1:], "{:.2f}", "step_ms", lambda ms: ours["step_ms"] / ms)),
             ", ".join(of(sides, "{:.1f} k", "step_ms", lambda ms: ours["tokens"] / ms)), ", ".join(map(" ".join, memory)),
             ", ".join(of(sides, "{:.1f} s", "first_step_s")), ", ".join(f"{value:.1e}" for value in differences.values())]
    return "| " + " | ".join(cells) + " |", bool(differences) and is_close(differences, modes)


def is_close(differences: dict[str, float], modes: dict[str, dict]) -> bool:
    """Returns whether shardc's losses agree with those of each mode, or differ less from one than the modes do."""
    between = max((largest_difference(a["losses"], b["losses"]) for a, b in itertools.combinations(modes.values(), 2)), default=0)
    return max(differences.values()) <= TOLERANCE or min(differences.values()) <= min(between, MOST_TOLERANCE)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--only", default=",".join(name for name, *_ in MODELS if name != "tiny"))
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    arguments = parser.parse_args(words)
    names = arguments.only.split(",")
    if unknown := set(names) - {name for name, *_ in MODELS}:
        parser.error(f"no model is named {', '.join(sorted(unknown))}; known are {', '.join(name for name, *_ in MODELS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    ends, failed, figures, lines = Deadline(arguments.seconds), 0, {}, [HEAD]
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="shardc-gpu-") as scratch:
        bench = Bench(arguments.folder, pathlib.Path(scratch), arguments.out)
        for name, recipe, micro in MODELS:
            if name not in names:
                continue
            if ends.left() < 20:
                line, agrees = f"| {name} | not run: {arguments.seconds:.0f} s are over |", True
            else:
                try:
                    ours, theirs = Comparison(bench, name, recipe, micro, arguments.device, ends.left(), arguments.gpus).run(arguments.modes)
                    figures[name] = {"shardc": ours, "pytorch": theirs}
                    line, agrees = line_of(name, ours, theirs)
                except Failure as failure:
                    (arguments.out / f"compare-{name}.log").write_text(failure.log)
                    line, agrees = f"| {name} | FAIL: {failure} |", False
                except Exception as error:  # noqa: BLE001 Whatever it is, the other models tell more.
                    line, agrees = f"| {name} | FAIL: {type(error).__name__}: {error} |", False
            failed += not agrees
            lines.append(line)
            print(line, flush=True)
            (arguments.out / "compare.md").write_text("\n".join(lines) + "\n")
            (arguments.out / "compare.json").write_text(json.dumps(figures, indent=1) + "\n")
    # A comparison of nothing shows nothing.
    return failed or int(not figures)


if __name__ == "__main__":
    sys.exit(main())
