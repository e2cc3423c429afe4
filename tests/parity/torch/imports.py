"""Imports checkpoints that PyTorch's ranks wrote, and continues them beside PyTorch.

    .deps/bench-venv/bin/python tests/parity/torch/imports.py      (tools/dev parity-torch installs it, and runs this)

Four ranks train a Llama with torchtitan's names by FSDP2 and AdamW, whose shards are uneven, and save it by torch.distributed.checkpoint:
the optimizer's state flat by name, nested by name, by number, and in bf16. tools/import_checkpoint.py makes a checkpoint of each, and of
the same state in a file of torch.save. Fails unless the bits of parameters and moments are those of PyTorch, both in the files and
after a step of shardc with a rate of 0 on two ranks; losses of the next three steps differ by at most 1e-5 of themselves (in bf16
the first alone, by 1e-2); and torch.distributed.checkpoint loads what `--to dcp` writes back, with the same bits and the same loss of the next step.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/bench/fsdp2"), str(pathlib.Path(__file__).parent)]
from pytorch import TRANSFORMERS, enter, install  # noqa: E402

SCRATCH = ROOT / ".deps" / "parity-torch"
STEPS, TOLERANCE, TOLERANCE_BF16 = 5, 1e-5, 1e-2
CASES = {
    "flat": dict(optimizer="flat", dtype="float32"),
    "nested": dict(optimizer="nested", dtype="float32"),
    "numbers": dict(optimizer="numbers", dtype="float32"),
    "bf16": dict(optimizer="flat", dtype="bfloat16"),
}
RECIPE = """[model]
family = "llama"
{sizes}
[mesh]
dp = 2
[init]
scheme = "torchtitan-llama"
[optimizer]
lr = {rate}
betas = [{betas[0]}, {betas[1]}]
eps = {eps}
weight_decay = {decay}
clip_norm = {clip}
[precision]
compute = "{compute}"
[data]
tokens = ["tokens.bin"]
format = "u16"
order = "sequential"
[batch]
global = {batch}
micro = {half}
[train]
steps = 3
[run]
threads = 1
[start]
first = {{ continue = "imported" }}
"""
MOMENTS = ("exp_avg", "exp_avg_sq")


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def here(name: str) -> str:
    """Returns the name in shardc of a parameter of torchtitan."""
    for there, own in (("tok_embeddings", "model.embed_tokens"), ("output", "lm_head"), ("layers.", "model.layers."), ("attention_norm", "input_layernorm"),
                       ("ffn_norm", "post_attention_layernorm"), ("attention.w", "self_attn."), ("feed_forward.w1", "mlp.gate_proj"),
                       ("feed_forward.w2", "mlp.down_proj"), ("feed_forward.w3", "mlp.up_proj")):
        name = name.replace(there, own)
    name = "model." + name if name.startswith("norm") else name
    return name.replace(".weight", "_proj.weight") if "self_attn" in name else name


def in_halves(name: str, tensor, size: int):
    """Returns rows of q and k as Hugging Face has them."""
    if "self_attn.q" not in name and "self_attn.k" not in name:
        return tensor
    return tensor.view(tensor.shape[0] // size, size // 2, 2, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)


def tensors_of(folder: pathlib.Path):
    """Returns the tensors of a checkpoint of shardc, with the shapes of its manifest."""
    import torch
    from safetensors.torch import load_file

    tensors: dict = {}
    for path in sorted(folder.glob("rank-*.safetensors")):
        for name, piece in load_file(path).items():
            tensors[name] = torch.cat([tensors[name], piece]) if name in tensors else piece
    return tensors


def compare_bits(whole: dict, folder: pathlib.Path, size: int, roles, what: str) -> None:
    import torch

    tensors = tensors_of(folder)
    for there, value in whole["model"].items():
        name = here(there)
        wanted = {name: value} | {f"{name}.{role}": whole["optimizer"]["state"][there][role].float() for role in roles}
        for key, tensor in wanted.items():
            if not torch.equal(in_halves(name, tensor, size).flatten(), tensors[key].to(tensor.dtype)):
                sys.exit(f"{what}: {key} differs from {there}")


def load_back(case: pathlib.Path, settings: dict, tokens: list[int], model_py) -> float:
    """Loads what --to dcp wrote into a model and an optimizer of PyTorch; returns the loss of the next step after one update."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = model_py.make_model(model_py.SIZES, settings["dtype"])
    optimizer = model_py.make_optimizer(model)
    model_py.train_step(model, optimizer, model_py.batch_of(tokens, 0, model_py.SIZES["seq"]))
    parameters, state = get_state_dict(model, optimizer)
    whole = {**parameters, "optimizer": {"state": state["state"]}}
    dcp.load(whole, checkpoint_id=str(case / "back"), no_dist=True)
    set_state_dict(model, optimizer, model_state_dict=parameters, optim_state_dict=state)
    return [model_py.train_step(model, optimizer, model_py.batch_of(tokens, STEPS + i, model_py.SIZES["seq"])) for i in range(3)]


def main() -> None:
    # It brings safetensors.
    install(TRANSFORMERS)
    enter()
    import torch
    import torchtitan_model as there

    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(there.SIZES["vocab"], (8192,), generator=generator).tolist()
    (SCRATCH / "tokens.u8").write_bytes(bytes(tokens))
    begin = STEPS * there.BATCH * there.SIZES["seq"]
    size = there.SIZES["hidden"] // there.SIZES["heads"]
    tool, shardc = ROOT / "tools/import_checkpoint.py", ROOT / "build/shardc"
    for name, settings in CASES.items():
        case = SCRATCH / name
        run(sys.executable, pathlib.Path(__file__).with_name("torchtitan_model.py"), case, SCRATCH / "tokens.u8", STEPS, "--dtype", settings["dtype"],
            "--optimizer", settings["optimizer"])
        (case / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens) - begin}H", *tokens[begin:]))
        sizes = "".join(f"{key} = {value}\n" for key, value in there.SIZES.items())
        (case / "recipe.toml").write_text(RECIPE.format(
            sizes=sizes, rate=there.RATE, betas=there.BETAS, eps=there.EPS, decay=there.DECAY, clip=there.CLIP, batch=there.BATCH, half=there.BATCH // 2,
            compute="bf16" if settings["dtype"] == "bfloat16" else "fp32"))
        for source, out in (("dcp", "imported"), ("whole.pt", "imported_file")):
            run(sys.executable, tool, source, "-o", out, "--recipe", "recipe.toml", "--shardc", shardc, cwd=case)
        whole = torch.load(case / "whole.pt", weights_only=True)
        compare_bits(whole, case / "imported", size, MOMENTS, name)
        if (case / "imported/rank-00000.safetensors").read_bytes() != (case / "imported_file/rank-00000.safetensors").read_bytes():
            sys.exit(f"{name}: whole.pt and dcp differ")
        run(shardc, "run", "recipe.toml", "--run-dir", "still", "--set", "optimizer.lr=0", "--set", "train.steps=1", cwd=case)
        compare_bits(whole, case / "still/checkpoints/step-00000001", size, (), f"{name}, loaded")
        run(shardc, "run", "recipe.toml", "--run-dir", "next", cwd=case)
        losses = [json.loads(line) for line in (case / "next/metrics.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in losses if "grad_norm" in line]
        wanted = json.loads((case / "next.json").read_text())
        run(sys.executable, tool, "--to", "dcp", "imported", "-o", "back", "--names-of", "torchtitan-0.2", "--shardc", shardc, cwd=case)
        back = load_back(case, settings, tokens, there)
        differences = [max(abs(a - b) / b for a, b in zip(own, wanted)) for own in (losses, back)]
        print(f"{name:8} losses of shardc differ by {differences[0]:.1e} of themselves, those of PyTorch after --to dcp by {differences[1]:.1e}")
        tolerance = TOLERANCE_BF16 if settings["dtype"] == "bfloat16" else TOLERANCE
        if len(losses) != 3 or max(differences) > tolerance:
            sys.exit(f"{name}: more than {tolerance:.0e}: {losses} and {back}, PyTorch {wanted}")


if __name__ == "__main__":
    main()
