"""Trains three stages in a row beside transformers' model with one AdamW of PyTorch that is carried through them.

    .deps/bench-venv/bin/python tests/parity/transformers/stages.py      (tools/dev parity-transformers installs it, and runs this too)

Stage 1 trains with a frozen embedding, stage 2 with longer samples and the embedding trained, whose moments begin as 0, stage 3 with a
falling rate and all of it kept. Each stage of shardc is a run of its own, which continues the one before (`start.first`), the second on
another mesh. Prints a row per stage: the largest relative difference of its losses and norms, and the norm of the difference of a tensor of moments
relative to its own, at most. Fails if a loss or a norm differs by more than 1e-5, or moments by more than 5e-5: in stage 1 alone,
where nothing is carried, they differ by 1e-5, as shardc's gradients are f32.
"""

import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent))
import compare  # noqa: E402
from compare import MODEL, OPTIMIZER, ROOT, RULE, SCRATCH, SIZES, TRAINING, largest_difference, saved_tensors, steps_of, tokens_of, toml  # noqa: E402
from pytorch import TRANSFORMERS, enter, install  # noqa: E402

TOLERANCE = 1e-5
TOLERANCE_OF_MOMENTS = 5e-5
STAGES = [
    dict(name="first", seq=34, batch=8, steps=12, lr="3e-3", rate=lambda step: 3e-3, mesh=dict(dp=2), frozen=["model.embed*"]),
    dict(name="second", seq=68, batch=4, steps=10, lr="1e-3", rate=lambda step: 1e-3, mesh=dict(tp=2), frozen=[]),
    dict(name="third", seq=68, batch=8, steps=8, lr="'1e-3 * (1 - step / steps)'", rate=lambda step: 1e-3 * (1 - step / 8), mesh=dict(dp=2, tp=2),
         frozen=[]),
]


def run_stage(stage, before):
    """Runs shardc; gives the lines of its metrics and its last checkpoint."""
    sizes = toml(dict(SIZES, seq=stage["seq"], rope_theta=compare.ROPE_THETA, norm_eps=compare.NORM_EPS))
    rules = RULE.format(match="lm_head.weight", value="normal(0, 1 / sqrt(fan_in))")
    settings = dict(OPTIMIZER, family="llama", sizes=sizes, tied="false", batch=stage["batch"], steps=stage["steps"], more_rules=rules,
                    mesh=toml(stage["mesh"]), lr=stage["lr"])
    recipe, run_dir = SCRATCH / f"{stage['name']}.toml", SCRATCH / "runs" / stage["name"]
    recipe.write_text((MODEL + TRAINING).format(**settings))
    sets = [f"optimizer.frozen={stage['frozen']}".replace("'", '"')]
    sets += [f'start.first={{ continue = "runs/{before}" }}'] if before else []
    done = subprocess.run([ROOT / "build" / "shardc", "run", recipe, "--run-dir", run_dir, *(a for s in sets for a in ("--set", s))],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"shardc ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return steps_of(run_dir), max((run_dir / "checkpoints").glob("step-*"))


def train_stage(model, optimizer, tokens, stage):
    """The same steps by transformers and PyTorch: losses and norms."""
    import torch

    losses, norms = [], []
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not (stage["frozen"] and name.startswith("model.embed")))
    for step in range(stage["steps"]):
        begin = step * stage["batch"] * stage["seq"]
        rows = torch.tensor([tokens[begin + i * stage["seq"]:begin + (i + 1) * stage["seq"] + 1] for i in range(stage["batch"])])
        logits = model(input_ids=rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        trained = [p for p in model.parameters() if p.requires_grad]
        norms.append(torch.nn.utils.clip_grad_norm_(trained, OPTIMIZER["clip_norm"]).item())
        for group in optimizer.param_groups:
            group["lr"] = stage["rate"](step)
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def main():
    install(TRANSFORMERS)
    enter()
    import torch
    import transformers

    shutil.rmtree(SCRATCH / "runs", ignore_errors=True)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tokens = tokens_of(SIZES["vocab"], 12 * 8 * 68 + 1)
    (SCRATCH / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    _, initial = run_stage(dict(STAGES[0], name="initial", steps=1, lr="0"), None)
    model = transformers.AutoModelForCausalLM.from_config(compare.config_of("llama", False, 68), attn_implementation="eager",
                                                          dtype=torch.float64).train()
    model.load_state_dict(saved_tensors(initial), strict=True)
    c = OPTIMIZER
    optimizer = torch.optim.AdamW(model.parameters(), lr=0, betas=(c["beta1"], c["beta2"]), eps=c["eps"], weight_decay=c["weight_decay"])

    print("| stage | loss, first and last | losses differ by | norms by | moments by |")
    print("|---|---|---|---|---|")
    worst, before = 0, None
    for stage in STAGES:
        lines, checkpoint = run_stage(stage, before)
        losses, norms = train_stage(model, optimizer, tokens, stage)
        loss = largest_difference([line["loss"] for line in lines], losses)
        norm = largest_difference([line["grad_norm"] for line in lines], norms)
        moments = 0
        for role in ("exp_avg", "exp_avg_sq"):
            own = saved_tensors(checkpoint, role)
            for name, parameter in model.named_parameters():
                if state := optimizer.state.get(parameter):
                    if not parameter.requires_grad:
                        continue
                    moments = max(moments, ((own[name] - state[role]).norm() / state[role].norm()).item())
        print(f"| {stage['name']} | {losses[0]:.3f}, {losses[-1]:.3f} | {loss:.1e} | {norm:.1e} | {moments:.1e} |", flush=True)
        worst, before = max(worst, loss, norm, moments * TOLERANCE / TOLERANCE_OF_MOMENTS), stage["name"]
    if not worst <= TOLERANCE:
        sys.exit(f"a figure differs by {worst / TOLERANCE:.1f} times what is allowed")


if __name__ == "__main__":
    main()
