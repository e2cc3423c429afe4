"""The row of test.py that trains each feature of one rank for a few steps, on the GPU and on the CPU of the same machine."""

import array
import concurrent.futures
import re
import signal
from collections.abc import Callable

from bench import Bench, Deadline, Failure, Training, is_saved, judged, largest_difference, metrics_of

TINY = "tests/gpu/tiny.toml"
BF16, MASTER = "precision.compute=bf16", "precision.master=bf16"
# How far the losses and norms of the two devices may differ, of themselves.
TOLERANCES = {"fp32": 1e-4, "bf16": 2e-2}
AT_A_TIME = 6

HEAD = 'loss.head=[{name = "next", vocab = 256, targets = ["{folder}/masked.bin"], weight = 0.5}]'
TOKENS = 'data.tokens=["{folder}/tokens.bin"]'
# A head whose products are too large for a float.
OVERFLOW = 'init.rule=[{match = "*", value = "normal(0.5, 0.1)"}, {match = "lm_head.weight", value = 3e38}]'
# Each loss above the last two is one; without updates, losses rise and fall with the samples.
SPIKES = ["train.spike_window=2", "train.spike_sigma=0.001", "optimizer.lr=0"]

# Name, settings, exit code, what the run prints. {folder} has the files of write_data. tests/emulated has these and more, emulated.
FEATURES: list[tuple[str, list[str], int, str]] = [
    ("llama", [], 0, ""),
    ("bf16", [BF16], 0, ""),
    ("qwen2", ["model.family=qwen2"], 0, ""),
    ("bf16, qwen2, recomputed", [BF16, "model.family=qwen2", "recompute.policy=full"], 0, ""),
    ("qwen3", ["model.family=qwen3", "model.head_dim=32"], 0, ""),
    ("bf16, qwen3, tied, chunks", [BF16, "model.family=qwen3", "model.head_dim=32", "model.tied=true", "loss.chunks=2"], 0, ""),
    ("tied", ["model.tied=true"], 0, ""),
    ("targets of their own", [TOKENS, 'data.targets=["{folder}/masked.bin"]'], 0, ""),
    ("heads", [TOKENS, HEAD], 0, ""),
    ("chunks of the loss", ["loss.chunks=4"], 0, ""),
    ("sgd", ["optimizer.name=sgd", "optimizer.lr=0.1"], 0, ""),
    ("nesterov", ["optimizer.name=sgd", "optimizer.lr=0.1", "optimizer.momentum=0.9", "optimizer.nesterov=true"], 0, ""),
    ("groups of adamw", ['optimizer.group=[{match = "*norm.weight", weight_decay = 0.0}, {match = "*.mlp.*", lr_scale = 0.5}]'], 0, ""),
    ("not clipped", ["optimizer.clip_norm=0"], 0, ""),
    ("reduced after each microbatch", ["batch.micro=2", "batch.reduce=each"], 0, ""),
    ("reduced after the last microbatch", ["batch.micro=2", "batch.reduce=last"], 0, ""),
    ("recomputed", ["recompute.policy=full"], 0, ""),
    ("recomputed but for some", [BF16, "recompute.policy=selective", 'recompute.save=["attention", "q_proj", "gate_proj"]'], 0, ""),
    ("recomputed as torchtitan does", [BF16, "recompute.policy=torchtitan-sac"], 0, ""),
    ("frozen", ['optimizer.frozen=["model.embed_tokens.weight", "model.layers.0.*"]'], 0, ""),
    ("bf16 masters", [MASTER], 0, ""),
    ("bf16 masters and compute", [MASTER, BF16], 0, ""),
    ("not deterministic", [BF16, "run.deterministic=false"], 0, ""),
    ("fp32 residual", [BF16, "precision.residual=fp32"], 0, ""),
    ("precision by unit", [BF16, 'precision.override=[{match = "layers.1", compute = "fp32"}, {match = "embed", master = "bf16"}]'], 0, ""),
    ("evaluated after each step", ["data.eval_tokens=4097", "train.eval_every=1"], 0, ""),
    ("updates left out", [OVERFLOW, "train.on_nonfinite=skip"], 0, "is not finite: matmul made it"),
    ("stopped as not finite", [OVERFLOW, "train.on_nonfinite=stop"], 7, "is not finite: matmul made it first"),
    ("spikes left out", [*SPIKES, "train.on_spike=skip"], 0, " is a spike: it lies "),
    ("stopped by a spike", [*SPIKES, "train.on_spike=stop"], 7, "the run saves and ends"),
]


def write_data(bench: Bench) -> None:
    """Writes the tokens once more, and targets, of which every third one is missing."""
    tokens = (bench.folder / ".deps/data/fortunes.bin").read_bytes()
    (bench.scratch / "tokens.bin").write_bytes(tokens)
    header, targets = tokens[:1024], array.array("H", tokens[1024:])
    targets[::3] = array.array("H", [0xFFFF] * len(targets[::3]))
    (bench.scratch / "masked.bin").write_bytes(header + targets.tobytes())


class Feature:
    """One training, on both devices."""

    def __init__(self, bench: Bench, ends: Deadline, name: str, sets: list[str], code: int = 0, prints: str = ""):
        self.bench, self.ends, self.name, self.code, self.prints = bench, ends, name, code, prints
        self.sets = [text.replace("{folder}", str(bench.scratch)) for text in sets]

    def train(self, device: str, *sets: str, **how) -> Training:
        name = f"feature-{re.sub('[^a-z0-9]+', '-', self.name)}-{device}"
        # Kernels are loaded at their first launch: most runs need few of them.
        return self.bench.train([TINY, f"run.device={device}", *self.sets, *sets], self.ends.left(), how.pop("name", name),
                                **{"code": self.code, "CUDA_MODULE_LOADING": "LAZY"} | how)

    def compare(self, gpu: Training, cpu: Training) -> tuple[str, float]:
        """Returns the type that the feature computes in, and by how much losses and norms differ, of themselves."""
        if [line.get("skipped") for line in gpu.steps] != [line.get("skipped") for line in cpu.steps]:
            raise Failure("the two devices leave out different updates", gpu.log)
        if self.prints not in gpu.log:
            raise Failure(f"`{self.prints}` is nowhere in what the run printed", gpu.log)
        differences = [largest_difference([line[key] for line in ours], [line[key] for line in theirs])
                       for key, ours, theirs in (("loss", gpu.steps, cpu.steps), ("grad_norm", gpu.steps, cpu.steps),
                                                 ("eval_loss", gpu.evaluations, cpu.evaluations))]
        return "bf16" if {BF16, MASTER} & set(self.sets) else "fp32", max(differences)

    def on_both(self) -> tuple[str, float]:
        cpu, gpu = self.train("cpu"), self.train("cuda")
        return self.compare(gpu, cpu)

    def after(self, device: str) -> tuple[str, float]:
        """Trains three steps on one device, and from their checkpoint three more on the other."""
        whole = self.train("cpu", "train.steps=6", name=f"feature-{device}-whole")
        first = self.train(device, "train.steps=3", name=f"feature-{device}-first")
        other = "cuda" if device == "cpu" else "cpu"
        rest = self.train(other, "train.steps=6", name=f"feature-{device}-rest", run_dir=first.run_dir)
        if f"resumed from {first.run_dir}" not in rest.log:
            raise Failure("the second device began from scratch", rest.log)
        return self.compare(rest, whole)

    def from_seed(self) -> tuple[str, float]:
        """Trains from the parameters of a run, one of them by a rule that reads the tensor."""
        seed = self.train("cuda", name="feature-seed")
        self.sets += [f'start.first={{ seed = "{seed.checkpoint()}", missing = ["model.embed_tokens.weight"] }}',
                      """init.rule=[{match = "model.embed_tokens.weight", value = "0.5 * seed('model.embed_tokens.weight')"}]"""]
        return self.on_both()

    def signalled(self) -> tuple[str, float]:
        """Asks a run to end, which saves its last step."""
        cpu = self.train("cpu")
        gpu = self.train("cuda", "train.steps=100000", code=75, send=signal.SIGTERM, until=lambda folder: len(metrics_of(folder)) >= 5)
        if not is_saved(gpu.run_dir, gpu.steps[-1]["step"]):
            raise Failure(f"step {gpu.steps[-1]['step']} was not saved", gpu.log)
        gpu.steps, gpu.evaluations = gpu.steps[:len(cpu.steps)], cpu.evaluations
        return self.compare(gpu, cpu)


def trainings(bench: Bench, ends: Deadline) -> dict[str, Callable[[], tuple[str, float]]]:
    all_of_them = {name: Feature(bench, ends, name, *rest).on_both for name, *rest in FEATURES}
    for name, function in (("checkpoint of the CPU", lambda feature: feature.after("cpu")),
                           ("checkpoint of the GPU", lambda feature: feature.after("cuda")),
                           ("rules that read a seed", Feature.from_seed), ("signal with a save", Feature.signalled)):
        all_of_them[name] = lambda feature=Feature(bench, ends, name, []), function=function: function(feature)
    return all_of_them


def features(bench: Bench, limit_s: float):
    write_data(bench)
    tasks = trainings(bench, Deadline(limit_s))
    largest = dict.fromkeys(TOLERANCES, 0.0)
    failures: dict[str, Failure] = {}
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, task in {name: pool.submit(task) for name, task in tasks.items()}.items():
            try:
                compute, difference = task.result()
            except Failure as failure:
                failures[name] = failure
                continue
            if not difference <= TOLERANCES[compute]:
                failures[name] = Failure(f"differs by {difference:.1e} of itself, {TOLERANCES[compute]:.0e} at most")
            largest[compute] = max(largest[compute], difference)
    if failures:
        (bench.out / "features.log").write_text("\n".join(f"==== {name}: {failure}\n{failure.log}" for name, failure in failures.items()))
    yield judged("features", "each against the CPU, losses and norms", not failures,
                 f"{len(tasks) - len(failures)} of {len(tasks)} trainings equal the CPU's; they differ by at most "
                 + ", ".join(f"{value:.1e} in {compute} ({TOLERANCES[compute]:.0e})" for compute, value in largest.items()))
    for name, failure in failures.items():
        yield judged("features", name, False, str(failure))
