"""Trains each model family beside the model that huggingface/transformers has for it, from the same weights, on five meshes.

    tools/dev parity-transformers [--only NAME]

Installs PyTorch's full wheel (about 3 GB) and transformers into .deps/bench-venv on first use. shardc computes in fp32. The other side
is transformers' own model class with its weights in f64 (its norms and its rotary angles stay in f32), torch.optim.AdamW and
clip_grad_norm_. The initial weights are those that shardc saves after a step with a learning rate of 0. Prints a row per family and
mesh: the largest relative difference of the losses of 20 steps, that of the norms of the gradients, and the largest difference of a
trained parameter relative to how far any element of its tensor moved. Fails if a loss differs by more than 1e-5.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/bench/fsdp2"))
from pytorch import TRANSFORMERS, enter, install, toml  # noqa: E402

SCRATCH = ROOT / ".deps" / "parity-transformers"

STEPS = 20
GLOBAL = 8
LOSS_TOLERANCE = 1e-5
SIZES = dict(layers=2, hidden=48, heads=4, kv_heads=2, head_dim=16, ffn=102, vocab=101, seq=34)
OPTIMIZER = dict(lr=3e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, clip_norm=0.5)
ROPE_THETA = 1e6
NORM_EPS = 1e-6

FAMILIES = ["llama", "qwen2", "qwen3"]
MESHES = {
    "one rank": dict(),
    "dp 2": dict(dp=2),
    "tp 2": dict(tp=2),
    "dp 2 x tp 2": dict(dp=2, tp=2),
    "replicate 2 x dp 2": dict(replicate=2, dp=2),
}

MODEL = """[model]
family = "{family}"
{sizes}tied = {tied}

[mesh]
{mesh}

[init]
seed = 3

# No factor of 1 and no bias of 0, which would hide that one is missing.
[[init.rule]]
match = "*norm.weight"
value = "normal(1, 0.2)"

[[init.rule]]
match = "*_proj.weight"
value = "normal(0, 1 / sqrt(fan_in))"

[[init.rule]]
match = "model.embed_tokens.weight"
value = "normal(0, 0.5)"
{more_rules}"""
TRAINING = """
[optimizer]
lr = {lr}
betas = [{beta1}, {beta2}]
eps = {eps}
weight_decay = {weight_decay}
clip_norm = {clip_norm}

[data]
tokens = ["tokens.bin"]
format = "u16"
order = "sequential"

[batch]
global = {batch}
micro = 1

[train]
steps = {steps}
log_every = 1000

[run]
threads = 1
"""
RULE = """
[[init.rule]]
match = "{match}"
value = "{value}"
"""


def steps_of(run_dir):
    """The lines that a run wrote about its steps."""
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "grad_norm" in line]


def train(family, tied, mesh, **changes):
    """Runs shardc; gives the lines of its metrics and the parameters that it saved last."""
    rules = RULE.format(match="*.bias", value="normal(0, 0.5)") if family == "qwen2" else ""
    rules += "" if tied else RULE.format(match="lm_head.weight", value="normal(0, 1 / sqrt(fan_in))")
    sizes = toml(dict(SIZES, rope_theta=ROPE_THETA, norm_eps=NORM_EPS))
    settings = dict(OPTIMIZER, family=family, sizes=sizes, tied=str(tied).lower(), batch=GLOBAL, steps=STEPS, more_rules=rules,
                    mesh=toml(mesh))
    recipe, run_dir = SCRATCH / "run.toml", SCRATCH / "run"
    recipe.write_text((MODEL + TRAINING).format(**dict(settings, **changes)))
    shutil.rmtree(run_dir, ignore_errors=True)
    done = subprocess.run([ROOT / "build" / "shardc", "run", recipe, "--run-dir", run_dir], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"shardc ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return steps_of(run_dir), saved_tensors(max((run_dir / "checkpoints").glob("step-*")))


def saved_tensors(checkpoint, role=""):
    """The whole parameters of a checkpoint in f64, or what the optimizer keeps of them: docs/checkpoint_format.md."""
    import torch
    from safetensors import safe_open

    manifest = json.loads((checkpoint / "manifest.json").read_text())
    tensors = {}
    for name, tensor in manifest["tensors"].items():
        tensors[name] = torch.full(tensor["shape"], float("nan"), dtype=torch.float64)
    for file in manifest["files"]:
        with safe_open(checkpoint / file, framework="pt") as stored:
            elements = stored.metadata()
            for name in tensors.keys():
                stored_name = f"{name}.{role}" if role else name
                if stored_name not in stored.keys():
                    continue
                # "[256, 305) of [61, 5]", or with "of columns [0, 66)" before the shape.
                begin, end, *columns = map(int, re.findall(r"\d+", elements["elements of " + stored_name].rpartition(" of ")[0]))
                box = tensors[name][..., slice(*columns)] if columns else tensors[name]
                values = box.contiguous().view(-1)
                values[begin:end] = stored.get_tensor(stored_name).double().view(-1)
                box.copy_(values.view(box.shape))
    return tensors


def tokens_of(vocab, count):
    """A chain in which the next token follows from the last two, so that there is something to learn."""
    generator = random.Random(1)
    tokens = [3, 5]
    while len(tokens) < count:
        follows = (7 * tokens[-1] + 3 * tokens[-2]) % vocab
        tokens.append(follows if generator.random() < 0.8 else generator.randrange(vocab))
    return tokens


def train_model(model, tokens, seq, batch, steps):
    """Trains a model of transformers on the batches that shardc takes with order = "sequential"; gives losses and norms of gradients."""
    import torch

    c = OPTIMIZER
    optimizer = torch.optim.AdamW(model.parameters(), lr=c["lr"], betas=(c["beta1"], c["beta2"]), eps=c["eps"], weight_decay=c["weight_decay"])
    losses, norms = [], []
    for step in range(steps):
        begin = step * batch * seq
        rows = torch.tensor([tokens[begin + i * seq:begin + (i + 1) * seq + 1] for i in range(batch)])
        logits = model(input_ids=rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), c["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def config_of(family, tied, seq):
    """The configuration of transformers' model of the sizes above."""
    import transformers

    return getattr(transformers, f"{family.capitalize()}Config")(
        num_hidden_layers=SIZES["layers"], hidden_size=SIZES["hidden"], num_attention_heads=SIZES["heads"],
        num_key_value_heads=SIZES["kv_heads"], head_dim=SIZES["head_dim"], intermediate_size=SIZES["ffn"], vocab_size=SIZES["vocab"],
        max_position_embeddings=seq, rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA}, rms_norm_eps=NORM_EPS,
        tie_word_embeddings=tied, attention_dropout=0.0, pad_token_id=None, eos_token_id=None)


def train_transformers(family, tied, initial, tokens):
    """The same 20 steps by transformers' model: losses, norms, parameters."""
    import torch
    import transformers

    config = config_of(family, tied, SIZES["seq"])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float64).train()
    missing, unexpected = model.load_state_dict(initial, strict=False)
    if unexpected or set(missing) - ({"lm_head.weight"} if tied else set()):
        sys.exit(f"{family}: the parameters differ: transformers lacks {unexpected}, shardc lacks {missing}")
    losses, norms = train_model(model, tokens, SIZES["seq"], GLOBAL, STEPS)
    return losses, norms, {name: tensor.detach() for name, tensor in model.state_dict().items()}


def largest_difference(own, theirs):
    return max(abs(a / b - 1) for a, b in zip(own, theirs, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a family's name")
    options = parser.parse_args()
    install(TRANSFORMERS)
    enter()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tokens = tokens_of(SIZES["vocab"], STEPS * GLOBAL * SIZES["seq"] + 1)
    (SCRATCH / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))

    print("| family | mesh | loss, first and last | losses differ by | norms by | parameters by |")
    print("|---|---|---|---|---|---|")
    worst = 0
    for family in FAMILIES:
        for i, (mesh_name, mesh) in enumerate(MESHES.items()):
            if options.only not in family:
                continue
            tied = i % 2 == 1
            _, initial = train(family, tied, mesh, steps=1, lr=0)
            lines, trained = train(family, tied, mesh)
            losses, norms, theirs = train_transformers(family, tied, initial, tokens)
            loss = largest_difference([line["loss"] for line in lines], losses)
            norm = largest_difference([line["grad_norm"] for line in lines], norms)
            moved = max(((trained[n] - theirs[n]).abs().max() / (theirs[n] - initial[n]).abs().max()).item() for n in trained)
            print(f"| {family}{', tied' if tied else ''} | {mesh_name} | {losses[0]:.3f}, {losses[-1]:.3f} | {loss:.1e} | {norm:.1e} | {moved:.1e} |", flush=True)
            worst = max(worst, loss)
    if not worst <= LOSS_TOLERANCE:
        sys.exit(f"a loss differs by {worst:.1e}, more than {LOSS_TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
