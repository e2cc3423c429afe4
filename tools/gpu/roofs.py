"""Rows of `test.py --roofs`: how near kernels and products come to what the card does at best, and what choices of them give."""

import json
import pathlib
import re
import statistics

from bench import MIB, Bench, Deadline, Failure, Result, Training, judged
from training import LLAMA_1B, LLAMA_124M, QUICKSTART, operations

# Steps of a trace: both ends are included.
TRACED = (5, 6)
# Rows of what takes less of a step than this are left out.
LEAST_SHARE = 0.002


class Roof:
    """What the card does at best, as the row doctor measured it."""

    def __init__(self, card: dict):
        if "copy_tb_s" not in card:
            raise Failure("the row doctor has to run before")
        self.copy, self.product = card["copy_tb_s"] * 1e12, card["product_tf_s"] * 1e12

    def rate(self, seconds: float, size: float, flops: float) -> str:
        """Returns the rate of what moves bytes and multiplies in so many seconds, and its share of what bounds it."""
        if seconds == 0:
            return "0 s"
        if flops / self.product > size / self.copy:
            return f"{flops / seconds / 1e12:.0f} TF/s, {100 * flops / seconds / self.product:.0f} % of the product"
        return f"{size / seconds / 1e12:.2f} TB/s, {100 * size / seconds / self.copy:.0f} % of the copy"


class Model:
    """A model that is trained again and again within the time of its row."""

    def __init__(self, bench: Bench, name: str, settings: list[str], limit_s: float):
        self.bench, self.name, self.settings, self.ends = bench, name, settings, Deadline(limit_s)

    def train(self, what: str, *more: str, sets: tuple[str, ...] = ()) -> Training:
        """Trains for 20 steps."""
        self.bench.settle()
        return self.bench.train([*self.settings, *sets], self.ends.left(), f"{self.name}-{what}", 20, more=more)

    def ops(self, what: str, *more: str, sets: tuple[str, ...] = ()) -> tuple[dict[str, dict[str, float]], list[float]]:
        """Returns what the ops of a step take together by their names: seconds, bytes, flops, and their number; and the losses of the run.
        Each op is waited for. "products" are all ops that multiply matrices."""
        self.bench.settle()
        trace, (first, last) = self.bench.scratch / f"{self.name}-{what}.json", TRACED
        run = self.bench.train([*self.settings, *sets, "run.device_checks=true"], self.ends.left(), f"{self.name}-{what}", until=lambda _: trace.is_file(),
                         more=("--trace", str(trace), "--trace-steps", f"{first}..{last}", *more))
        ops: dict[str, dict[str, float]] = {}
        for event in operations(trace):
            for kind in (event["name"], "products") if event["name"].startswith("matmul") else (event["name"],):
                op = ops.setdefault(kind, dict.fromkeys(("count", "seconds", "bytes", "flops"), 0.0))
                for key, value in (("count", 1), ("seconds", event["dur"] / 1e6), ("bytes", event["args"]["bytes"]), ("flops", event["args"]["flops"])):
                    op[key] += value / (last - first + 1)
        return ops, run.losses()


def products_of(run_dir: pathlib.Path) -> list[tuple[str, float, dict]]:
    """Returns the products that a run measured: their texts, FLOPs and times. Slowest first."""
    record = json.loads((run_dir / "gemm.json").read_text())
    products = []
    for text, times in record["times"].items():
        m, n, k = map(int, re.match(r"\w+ (\d+) x (\d+) x (\d+) ", text).groups())
        products.append((text, 2.0 * m * n * k, times))
    return sorted(products, key=lambda product: -product[2]["first_us"])


def roofs(name: str, settings: list[str]):
    """Returns the row of a model: its ops and products against the card's roofs, and its step by other choices."""

    def row(bench: Bench, limit_s: float):
        roof, model = Roof(bench.card), Model(bench, name, settings, limit_s)
        free = ("run.deterministic=false",)
        plain, tuned, not_deterministic = model.train("plain"), model.train("tuned", "--tune"), model.train("free", sets=free)
        # Once more: the card is warmer now.
        again = model.train("again")
        without = (plain.step_ms(), again.step_ms())
        for what, run in (("products by measurement", tuned), ("attention not deterministic", not_deterministic)):
            yield Result(name, f"step, {what}", "figure",
                         f"{run.step_ms():.2f} ms; {without[0]:.2f} before and {without[1]:.2f} after it without: {run.step_ms() / statistics.mean(without):.3f}")
        yield judged(name, "loss falls with products by measurement", tuned.losses()[-1] < tuned.losses()[0],
                     f"{tuned.losses()[0]:.3f} to {tuned.losses()[-1]:.3f}, {plain.losses()[-1]:.3f} without")
        for text, flops, times in products_of(tuned.run_dir):
            first, chosen = (f"{times[key]:.1f} us, {roof.rate(times[key] * 1e-6, 0, flops)}" for key in ("first_us", "chosen_us"))
            yield Result(name, f"product {text.split(', aligned')[0]}", "figure", f"first answer {first}; chosen of {times['measured']:.0f}: {chosen}")
        ops, _ = model.ops("ops")
        total = sum(op["seconds"] for kind, op in ops.items() if kind != "products")

        def shown(op: dict[str, float]) -> str:
            return f"{op['seconds'] * 1e3:.2f} ms, {roof.rate(op['seconds'], op['bytes'], op['flops'])}"

        for kind, op in sorted(ops.items(), key=lambda item: -item[1]["seconds"]):
            if op["seconds"] >= LEAST_SHARE * total:
                yield Result(name, f"op {kind}, {op['count']:.0f} in a step", "figure", f"{shown(op)}; {100 * op['seconds'] / total:.1f} % of the step")
        others, losses = model.ops("ops-tuned", f"--tune={tuned.run_dir / 'gemm.json'}")
        yield judged(name, "losses with the file of that measurement", losses == tuned.losses()[:len(losses)], f"{len(losses)} losses, to the bit")
        changes = [("products", "by measurement", others)]
        others, _ = model.ops("ops-free", sets=free)
        changes += [(kind, "not deterministic", others) for kind in ("attention", "attention_backward")]
        for kind, what, others in changes:
            yield Result(name, f"op {kind}, {what}", "figure", f"{shown(others[kind])}; {shown(ops[kind])} otherwise")

    return row


def graphs(bench: Bench, limit_s: float):
    """Steps whose launches are graphs: what they gain, the bits, and the memory of the card that they take."""
    for name, settings in (("quickstart", [*QUICKSTART, "run.device=cuda", "precision.compute=bf16"]), ("llama_124m", [*LLAMA_124M, "batch.global=16"])):
        model = Model(bench, f"graphs-{name}", settings, limit_s / 2)
        plain, graph, again = model.train("plain"), model.train("graphs", "--graphs"), model.train("again")
        without = (plain.step_ms(), again.step_ms())
        yield Result("graphs", f"step of {name}", "figure", f"{graph.step_ms():.3f} ms; {without[0]:.3f} before and {without[1]:.3f} after it without: "
                     f"{graph.step_ms() / statistics.mean(without):.3f}; the card has {(graph.card_bytes - plain.card_bytes) / MIB:.1f} MiB more in use")
        is_same = graph.losses()[:20] == plain.losses()[:20]
        yield judged("graphs", f"losses of {name}", is_same, "equal to the bit" if is_same else "differ")


# name, limit in seconds, function; what tells most comes first.
ROWS = [
    ("roofs_1b", 150, roofs("roofs_1b", LLAMA_1B)),
    ("roofs_8b_slice", 120, roofs("roofs_8b_slice", ["tests/gpu/llama_8b_slice.toml"])),
    ("graphs", 60, graphs),
    ("roofs_124m", 90, roofs("roofs_124m", [*LLAMA_124M, "batch.global=16"])),
]
