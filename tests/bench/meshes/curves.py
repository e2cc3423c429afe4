"""Trains one small model for 1,000 steps on several meshes and lays their loss curves over each other.

    tools/dev bench-meshes [--steps N] [--out FILE.svg]

Every mesh sees the same samples in the same order and begins with the same parameters, so that curves differ by the order of sums
alone. Prints the largest difference from one rank in the first 10 steps, in all, and in the mean of the last 100.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
MESHES = [
    ("1 rank", []),
    ("dp 2", ["mesh.dp=2"]),
    ("tp 2", ["mesh.tp=2"]),
    ("dp 2 x tp 2", ["mesh.dp=2", "mesh.tp=2"]),
    ("replicate 2 x dp 2", ["mesh.replicate=2", "mesh.dp=2"]),
]
COLOURS = ["#111111", "#0b6bcb", "#c2410c", "#15803d", "#7e22ce"]

RECIPE = """
[model]
family = "llama"
layers = 2
hidden = 64
heads = 4
kv_heads = 2
ffn = 160
vocab = 256
seq = 64
[[init.rule]]
match = "*norm.weight"
value = 1
[[init.rule]]
match = "*_proj.weight"
value = "normal(0, 1 / sqrt(fan_in))"
[[init.rule]]
match = "model.embed_tokens.weight"
value = "normal(0, 0.5)"
[[init.rule]]
match = "lm_head.weight"
value = "normal(0, 0.1)"
[optimizer]
lr = "0.002 * min(1, (step + 1) / 50)"
[data]
tokens = ["tokens.u8"]
format = "u8"
[batch]
global = 8
accumulate = 1
[train]
steps = {steps}
log_every = 100000
[run]
threads = 1
"""


def train(folder, name, sets):
    run = folder / name.replace(" ", "_")
    command = [ROOT / "build" / "shardc", "run", folder / "recipe.toml", "--run-dir", run]
    for text in sets:
        command += ["--set", text]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line and "step_ms" in line]


def svg(curves):
    width, height, left, top = 800, 420, 60, 30
    steps = max(len(losses) for _, losses in curves)
    most = max(max(losses) for _, losses in curves)
    least = min(min(losses) for _, losses in curves)

    def x(step):
        return left + step * (width - left - 20) / max(steps - 1, 1)

    def y(loss):
        return top + (most - loss) * (height - top - 50) / (most - least)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">']
    for i in range(6):
        loss = least + i * (most - least) / 5
        out.append(f'<text x="8" y="{y(loss) + 4:.1f}">{loss:.2f}</text>'
                   f'<line x1="{left}" x2="{width - 20}" y1="{y(loss):.1f}" y2="{y(loss):.1f}" stroke="#ddd"/>')
    for step in range(0, steps + 1, max(steps // 5, 1)):
        out.append(f'<text x="{x(step) - 10:.1f}" y="{height - 28}">{step}</text>')
    for (name, losses), colour, i in zip(curves, COLOURS, range(len(curves))):
        points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in enumerate(losses))
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{3 - i * 0.5}" points="{points}"/>')
        out.append(f'<text x="{width - 190}" y="{top + 16 * i + 10}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{left}" y="{height - 8}">loss in nats a token, by step</text></svg>')
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "meshes.svg")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        rng = random.Random(1)
        words = ["".join(rng.choice("abcdefghijklmnop") for _ in range(rng.randint(2, 7))) for _ in range(200)]
        (folder / "tokens.u8").write_bytes(" ".join(rng.choice(words) for _ in range(200_000)).encode())
        (folder / "recipe.toml").write_text(RECIPE.format(steps=arguments.steps))
        curves = [(name, train(folder, name, sets)) for name, sets in MESHES]
    arguments.out.write_text(svg(curves))
    one = curves[0][1]
    print("| mesh | loss, last 100 steps | largest difference, first 10 steps | in all | of the last 100's mean |")
    print("|---|---|---|---|---|")
    for name, losses in curves:
        assert len(losses) == len(one) == arguments.steps, f"{name}: {len(losses)} steps"
        apart = [abs(a - b) for a, b in zip(losses, one)]
        last = sum(losses[-100:]) / len(losses[-100:])
        print(f"| {name} | {last:.4f} | {max(apart[:10]):.1e} | {max(apart):.1e} | "
              f"{abs(last - sum(one[-100:]) / len(one[-100:])):.1e} |")
    print(f"curves: {arguments.out}")


if __name__ == "__main__":
    main()
