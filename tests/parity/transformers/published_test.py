"""Compares shardc with what transformers computed of the models of tests/parity/published (make_published.py). It needs no package.

Run by ctest as published_test.py FOLDER, where shardc and shardc-run are in FOLDER. For each model a recipe that `shardc new --from` made
is run on four meshes: logits, of which the largest one chooses the next id of the greedy ones, and the steps of a training. Prints how far
they differ. The tolerances are those of exchange.py, but for the losses after the first step: the recorded ones come from another CPU.
"""

import array
import concurrent.futures
import json
import pathlib
import shutil
import sys
import tempfile

import exchange
from compare import OPTIMIZER, TRAINING, steps_of
from exchange import LOGIT_TOLERANCE, LOSS_TOLERANCE, MESHES, NORM_TOLERANCE, settings, shardc
from make_published import BATCH, FOLDER, GREEDY, MODELS, PROMPT, STEPS, VOCAB

# Adam divides a gradient by its own size, so a gradient near 0 whose sign the order of sums decides moves its element by a whole step of
# lr. Losses recorded on a CPU with AVX-512 differ by at most 2.4e-5 on one with AVX2, and the difference does not grow with the steps.
TRAINED_LOSS_TOLERANCE = 5e-5


def read(path: pathlib.Path) -> dict[str, array.array]:
    """The tensors of a safetensors file as numbers."""
    content = path.read_bytes()
    data = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:data])
    header.pop("__metadata__", None)
    return {name: array.array({"F32": "f", "F64": "d", "I32": "i"}[of["dtype"]], content[data + of["data_offsets"][0]:data + of["data_offsets"][1]])
            for name, of in header.items()}


def farthest(own, expected, of=lambda a, b: abs(a - b)) -> float:
    """The largest difference; infinite if one is not a number or there are more of one kind."""
    differences = [of(a, b) for a, b in zip(own, expected, strict=True)]
    return max(differences) if all(d == d for d in differences) else float("inf")


def check(name: str) -> tuple[list[str], bool]:
    """Returns a line for each mesh, and whether all is within the tolerances."""
    lines, is_close = [], True
    expected = read(FOLDER / name / "expected.safetensors")
    ids = expected["ids"].tolist()
    greedy = ids[len(PROMPT):len(PROMPT) + GREEDY]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        recipe = folder / "r.toml"
        shardc("new", recipe, "--from", FOLDER / name)
        recipe.write_text(recipe.read_text().split("[mesh]")[0] + TRAINING.format(**OPTIMIZER, batch=BATCH, steps=STEPS))
        shutil.copy(FOLDER / "tokens.bin", folder)
        (folder / "ids.bin").write_bytes(array.array("H", ids).tobytes())
        begins = [f'start.first={{ seed = "{FOLDER / name}" }}']
        shardc("run", recipe, "--run-dir", folder / "begun", *settings([*begins, "optimizer.lr=0", "train.steps=1"]))
        for mesh, of_mesh in MESHES.items():
            asked = ["--checkpoint", folder / "begun", *settings([*begins, *of_mesh])]
            shardc("logits", recipe, "--tokens", folder / "ids.bin", "-o", folder / "logits.safetensors", *asked)
            logits = read(folder / "logits.safetensors")["logits"]
            rows = [logits[i * VOCAB:(i + 1) * VOCAB] for i in range(len(PROMPT) - 1, len(PROMPT) - 1 + GREEDY)]
            equal = sum(row.index(max(row)) == chosen for row, chosen in zip(rows, greedy, strict=True))
            shardc("run", recipe, "--run-dir", folder / mesh, *settings([*begins, *of_mesh]))
            steps = steps_of(folder / mesh)
            logit = farthest(logits, expected["logits"])
            losses = [step["loss"] for step in steps]
            first_loss = farthest(losses[:1], expected["losses"][:1])
            loss = farthest(losses, expected["losses"])
            norm = farthest([step["grad_norm"] for step in steps], expected["grad_norms"], lambda a, b: abs(a / b - 1))
            lines.append(f"| {name} | {mesh} | {logit:.1e} | {equal} of {GREEDY} | {loss:.1e} | {norm:.1e} |")
            is_close = is_close and logit <= LOGIT_TOLERANCE and equal == GREEDY and first_loss <= LOSS_TOLERANCE
            is_close = is_close and loss <= TRAINED_LOSS_TOLERANCE and norm <= NORM_TOLERANCE
        # `asked` is of the last mesh.
        sampled = shardc("sample", recipe, "--prompt-ids", ",".join(map(str, PROMPT)), "--tokens-out", str(GREEDY), "--temperature", "0", *asked)
        if [int(word) for word in sampled.split()] != greedy:
            lines.append(f"{name}: sample gives {sampled.split()} in place of {greedy}")
            is_close = False
    return lines, is_close


def main():
    exchange.BUILD = pathlib.Path(sys.argv[1])
    print("| model | mesh | logits differ by | greedy ids that are equal | losses of 30 steps | norms of gradients |")
    print("|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        are_close = []
        for lines, is_close in pool.map(check, MODELS):
            print(*lines, sep="\n")
            are_close.append(is_close)
    sys.exit(not all(are_close))


main()
