"""Trains adapters beside peft, from the same base and the same A and B, on five meshes; and opens what shardc exports with peft.

    tools/dev parity-transformers [--only NAME]      (the last part)

Installs PyTorch's full wheel (about 3 GB), transformers and peft into .deps/bench-venv on first use. shardc computes in fp32. The other
side is transformers' model in f64 with peft's adapters, which are in f64 too, torch.optim.AdamW and clip_grad_norm_. Prints a row per
family and mesh: the largest relative differences of losses and of norms over 30 steps; then, of the last checkpoint, how far peft's logits
with the exported adapter are from those of `shardc logits`, and in how many elements the merged model in bf16 differs from that of
merge_and_unload. Then peft trains adapters and saves them, and both sides go on from there. Fails if a loss differs by more than 1e-5, a
norm by more than 1e-4, a logit by more than 1e-4, or more than 1e-4 of the merged elements.
"""

import argparse
import json
import shutil
import struct
import subprocess
import sys

import compare
from compare import GLOBAL, MESHES, ROOT, SIZES
from pytorch import PEFT, TRANSFORMERS, enter, install

SCRATCH = ROOT / ".deps" / "parity-adapters"
STEPS = 30
NORM_TOLERANCE = 1e-4
LOGIT_TOLERANCE = 1e-4
# Of merged elements: sums of f32 in another order lie on the other side of a border of bf16, by one unit in its last place.
MERGED_TOLERANCE = 1e-4
# The modules of Phi-3 that are several projections of shardc's llama, one after another.
FUSED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
ALL = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj".split()
# Keys of [adapter], and what peft has for them.
ADAPTERS = {
    "all, rank 4": ('rank = 4\nalpha = 8\n', dict(r=4, lora_alpha=8, target_modules=ALL)),
    "queries and values, rslora": ('rank = 4\nalpha = 6\nscaling = "rslora"\nmatch = ["*.q_proj.weight", "*.v_proj.weight"]\n',
                                   dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "v_proj"])),
    "own ranks": ('rank = 4\nalpha = 8\n[[adapter.override]]\nmatch = "*.down_proj.weight"\nrank = 2\nalpha = 3\n',
                  dict(r=4, lora_alpha=8, target_modules=ALL, rank_pattern={"down_proj": 2}, alpha_pattern={"down_proj": 3})),
    "one A for each module": ('rank = 4\nalpha = 8\nfused = ["qkv_proj", "gate_up_proj"]\n',
                              dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])),
}
CASES = [("llama", "all, rank 4"), ("llama", "queries and values, rslora"), ("qwen2", "all, rank 4"), ("qwen3", "own ranks"),
         ("phi3", "one A for each module")]
# Adapters that peft trains first, and shardc goes on with: keys of [adapter], what peft has for them, and meshes.
STARTS = [
    ("llama", 'rank = 4\nalpha = 6\nscaling = "rslora"\nmatch = ["*.q_proj.weight", "*.v_proj.weight", "*.down_proj.weight"]\n'
     '[[adapter.override]]\nmatch = "model.layers.0.mlp.down_proj.weight"\nrank = 2\n'
     '[[adapter.override]]\nmatch = "model.layers.1.self_attn.*"\nalpha = 3\n',
     dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], rank_pattern={"0.mlp.down_proj": 2},
          alpha_pattern={r"layers\.1\.self_attn\..*": 3})),
    ("qwen2", 'rank = 4\nalpha = 8\n', dict(r=4, lora_alpha=8, target_modules="all-linear")),
    ("phi3", *ADAPTERS["one A for each module"]),
]
START_STEPS = 10
RULE_OF_B = compare.RULE.format(match="*.lora_B.weight", value="normal(0, 0.1)")


def shardc(*arguments):
    done = subprocess.run([ROOT / "build" / "shardc", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"shardc {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def train(family, tied, mesh, keys, steps, start="", **changes):
    """Runs shardc with adapters; gives the lines of its metrics. What it saved is in the folder of the run."""
    rules = compare.RULE.format(match="*.bias", value="normal(0, 0.5)") if family == "qwen2" else ""
    rules += "" if tied else compare.RULE.format(match="lm_head.weight", value="normal(0, 1 / sqrt(fan_in))")
    sizes = compare.toml(dict(SIZES, rope_theta=compare.ROPE_THETA, norm_eps=compare.NORM_EPS))
    settings = dict(compare.OPTIMIZER, family="llama" if family == "phi3" else family, sizes=sizes, tied=str(tied).lower(), batch=GLOBAL, steps=steps,
                    more_rules=rules + RULE_OF_B, mesh=compare.toml(mesh), eps=1e-6)
    recipe, run_dir = SCRATCH / "run.toml", SCRATCH / "run"
    if start:
        settings["more_rules"] = ""
    recipe.write_text((compare.MODEL + compare.TRAINING).format(**dict(settings, **changes)) + f'{start}\n[adapter]\nkind = "lora"\n{keys}')
    shutil.rmtree(run_dir, ignore_errors=True)
    shardc("run", recipe, "--run-dir", run_dir)
    return compare.steps_of(run_dir)


def saved_tensors(family):
    """The parameters of the last checkpoint, by the names that transformers and peft have."""
    import torch

    tensors = compare.saved_tensors(max((SCRATCH / "run" / "checkpoints").glob("step-*")))
    for module, parts in FUSED.items() if family == "phi3" else ():
        for first in [name for name in tensors if f".{parts[0]}." in name]:
            own = [tensors.pop(first.replace(parts[0], part)) for part in parts]
            tensors[first.replace(parts[0], module)] = torch.cat(own)
    return tensors


def peft_model(family, tied, tensors, config):
    """transformers' model with peft's adapters and the numbers that shardc saved, in f64."""
    import peft
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_config(compare.config_of(family, tied, SIZES["seq"]), attn_implementation="eager",
                                                          dtype=torch.float64).train()
    base = {name: tensor for name, tensor in tensors.items() if ".lora_" not in name}
    missing, unexpected = model.load_state_dict(base, strict=False)
    if unexpected or set(missing) - ({"lm_head.weight"} if tied else set()):
        sys.exit(f"{family}: the parameters differ: transformers lacks {unexpected}, shardc lacks {missing}")
    model = peft.get_peft_model(model, peft.LoraConfig(**config), autocast_adapter_dtype=False)
    own = {f"base_model.model.{name}": tensor for name, tensor in tensors.items() if ".lora_" in name}
    theirs = peft.get_peft_model_state_dict(model)
    if own.keys() != theirs.keys():
        sys.exit(f"{family}: peft's adapters have other names: {own.keys() ^ theirs.keys()}")
    peft.set_peft_model_state_dict(model, own)
    return model


def train_peft(model, tokens, steps=STEPS):
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    c = compare.OPTIMIZER
    optimizer = torch.optim.AdamW(trained, lr=c["lr"], betas=(c["beta1"], c["beta2"]), eps=1e-6, weight_decay=c["weight_decay"])
    losses, norms = [], []
    seq = SIZES["seq"]
    for step in range(steps):
        begin = step * GLOBAL * seq
        rows = torch.tensor([tokens[begin + i * seq:begin + (i + 1) * seq + 1] for i in range(GLOBAL)])
        loss = torch.nn.functional.cross_entropy(model(input_ids=rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(trained, c["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def open_exports(family, tied):
    """Compares the exports of the last run with peft: the largest difference of a logit, and the share of merged elements that do."""
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file

    for name in ["adapter", "base", "merged", "merged_f32"]:
        shutil.rmtree(SCRATCH / name, ignore_errors=True)
    run = SCRATCH / "run"
    shardc("export", run, "-o", SCRATCH / "adapter", "--adapter")
    shardc("export", run, "-o", SCRATCH / "merged", "--merge", "--dtype", "bf16")
    shardc("export", run, "-o", SCRATCH / "merged_f32", "--merge", "--dtype", "f32")
    # The base, by the model that transformers has in the merged one's configuration and the numbers of the checkpoint.
    tensors = saved_tensors(family)
    base = transformers.AutoModelForCausalLM.from_pretrained(SCRATCH / "merged_f32", dtype=torch.float32)
    base.load_state_dict({name: tensor.float() for name, tensor in tensors.items() if ".lora_" not in name}, strict=not tied)
    base.save_pretrained(SCRATCH / "base")

    def opened(dtype):
        model = transformers.AutoModelForCausalLM.from_pretrained(SCRATCH / "base", dtype=dtype)
        return peft.PeftModel.from_pretrained(model, SCRATCH / "adapter").eval()

    ids = torch.arange(SIZES["seq"])[None] % SIZES["vocab"]
    merged = transformers.AutoModelForCausalLM.from_pretrained(SCRATCH / "merged_f32", dtype=torch.float32).eval()
    with torch.no_grad():
        logits = (opened(torch.float32)(ids).logits - merged(ids).logits).abs().max().item()
    theirs = opened(torch.bfloat16).merge_and_unload().state_dict()
    # The base of a run in fp32 is rounded once, with the adapter added; theirs before and after.
    own = load_file(SCRATCH / "merged" / "model.safetensors")
    exact = {name: (tensors[name].float() + delta_of(name, tensors)).bfloat16() for name in own}
    differing = sum((own[name] != exact[name]).sum().item() for name in own)
    return logits, differing / sum(tensor.numel() for tensor in own.values()), set(own) ^ (set(theirs) - ({"lm_head.weight"} if tied else set()))


def delta_of(name, tensors):
    """scale B A of a matrix as peft computes it, or 0."""
    import math

    module = name.removesuffix(".weight")
    if f"{module}.lora_A.weight" not in tensors:
        return 0
    config = json.loads((SCRATCH / "adapter" / "adapter_config.json").read_text())
    rank = config["rank_pattern"].get(module, config["r"])
    alpha = config["alpha_pattern"].get(module, config["lora_alpha"])
    scale = alpha / (math.sqrt(rank) if config["use_rslora"] else rank)
    return tensors[f"{module}.lora_B.weight"].float() @ tensors[f"{module}.lora_A.weight"].float() * scale


def begin_from_peft(family, keys, config, mesh, tokens):
    """peft trains and saves an adapter; both go on from it. Gives both sides' losses and norms, and how far the logits of the export are
    from those of peft's own trained model."""
    import peft
    import torch
    import transformers

    for name in ["peft_base", "peft_adapter", "adapter"]:
        shutil.rmtree(SCRATCH / name, ignore_errors=True)
    torch.manual_seed(1)
    base = transformers.AutoModelForCausalLM.from_config(compare.config_of(family, False, SIZES["seq"]), dtype=torch.float32)
    with torch.no_grad():
        for parameter in base.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.15)
    base.save_pretrained(SCRATCH / "peft_base")

    def opened():
        return transformers.AutoModelForCausalLM.from_pretrained(SCRATCH / "peft_base", attn_implementation="eager", dtype=torch.float64)

    first = peft.get_peft_model(opened().train(), peft.LoraConfig(**config), autocast_adapter_dtype=False)
    train_peft(first, tokens, START_STEPS)
    first.float().save_pretrained(SCRATCH / "peft_adapter")
    model = peft.PeftModel.from_pretrained(opened(), SCRATCH / "peft_adapter", is_trainable=True, autocast_adapter_dtype=False).double().train()
    start = f"""
[start]
first = {{ seed = "{SCRATCH / 'peft_base'}", adapter = "{SCRATCH / 'peft_adapter'}" }}
"""
    lines = train(family, False, mesh, keys, STEPS, start)
    losses, norms = train_peft(model, tokens)
    shardc("export", SCRATCH / "run", "-o", SCRATCH / "adapter", "--adapter")
    ids = torch.arange(SIZES["seq"])[None] % SIZES["vocab"]
    with torch.no_grad():
        own = peft.PeftModel.from_pretrained(opened(), SCRATCH / "adapter").double().eval()(ids).logits
        logits = (own - model.eval()(ids).logits).abs().max().item()
    return lines, losses, norms, logits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a family's name")
    options = parser.parse_args()
    install(TRANSFORMERS, PEFT)
    enter()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tokens = compare.tokens_of(SIZES["vocab"], STEPS * GLOBAL * SIZES["seq"] + 1)
    (SCRATCH / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    failures = []
    print("| family | adapters | mesh | loss, first and last | losses differ by | norms by | logits of the export by | merged elements that differ, of 1 |")
    print("|---|---|---|---|---|---|---|---|")
    for family, adapters in CASES:
        keys, config = ADAPTERS[adapters]
        for i, (mesh_name, mesh) in enumerate(MESHES.items()):
            if options.only not in family:
                continue
            tied = i % 2 == 1
            train(family, tied, mesh, keys, steps=1, lr=0)
            initial = saved_tensors(family)
            lines = train(family, tied, mesh, keys, STEPS)
            losses, norms = train_peft(peft_model(family, tied, initial, config), tokens)
            loss = compare.largest_difference([line["loss"] for line in lines], losses)
            norm = compare.largest_difference([line["grad_norm"] for line in lines], norms)
            logits, merged, names = open_exports(family, tied)
            row = f"| {family}{', tied' if tied else ''} | {adapters} | {mesh_name} |"
            print(f"{row} {losses[0]:.3f}, {losses[-1]:.3f} | {loss:.1e} | {norm:.1e} | {logits:.1e} | {merged:.1e} |", flush=True)
            if not (loss <= compare.LOSS_TOLERANCE and norm <= NORM_TOLERANCE and logits <= LOGIT_TOLERANCE and merged <= MERGED_TOLERANCE and not names):
                failures.append(f"{row} {names or ''}")
    print("\nBegun from peft's adapters:\n\n| family | mesh | loss, first and last | losses differ by | norms by | logits after it by |\n|---|---|---|---|---|---|")
    for family, keys, config in STARTS:
        for mesh_name, mesh in MESHES.items():
            if options.only not in family:
                continue
            lines, losses, norms, logits = begin_from_peft(family, keys, config, mesh, tokens)
            loss = compare.largest_difference([line["loss"] for line in lines], losses)
            norm = compare.largest_difference([line["grad_norm"] for line in lines], norms)
            row = f"| {family} | {mesh_name} |"
            print(f"{row} {losses[0]:.3f}, {losses[-1]:.3f} | {loss:.1e} | {norm:.1e} | {logits:.1e} |", flush=True)
            if not (loss <= compare.LOSS_TOLERANCE and norm <= NORM_TOLERANCE and logits <= LOGIT_TOLERANCE):
                failures.append(f"begun from peft {row}")
    if failures:
        sys.exit("out of tolerance:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
