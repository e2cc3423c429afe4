"""Exchanges models with huggingface/transformers in both directions: what shardc exports, transformers opens, and the other way round.

    tools/dev parity-transformers

Out: a few steps of training, `shardc export`, AutoModelForCausalLM. In: save_pretrained of a model with random weights, a run that begins
from it and keeps them. Both ways `shardc logits` on four meshes is compared with transformers' logits, and 64 ids of `shardc sample
--temperature 0` with its greedy ones. In: 30 steps of training on each mesh beside transformers' model and torch.optim.AdamW, and what
the run begins with, exported again, against the weights that were saved. All in fp32. Prints a row per model, direction and mesh. Fails
if a key is missing or unexpected, a logit differs by more than 1e-4, an id, a loss by more than 1e-5, the norm of a gradient by more
than 1e-4 of itself, or a weight that was read.
"""

import copy
import hashlib
import pathlib
import shutil
import struct
import subprocess
import sys

from compare import OPTIMIZER, ROOT, SCRATCH, TRAINING, enter, steps_of, tokens_of, train_model

BUILD = ROOT / "build"
LOGIT_TOLERANCE = 1e-4
LOSS_TOLERANCE = 1e-5
NORM_TOLERANCE = 1e-4
SEQ, VOCAB, NEW_IDS, BATCH, STEPS = 96, 256, 64, 4, 30
PROMPT = [11, 48, 85, 122]
MODELS = {
    "llama": [],
    "llama, tied": ["model.tied=true"],
    "llama, llama3 rope": ["model.rope_frequency=llama3_rope(8, 1, 4, 32)"],
    "llama, linear rope": ["model.rope_frequency=linear_rope(2)"],
    "qwen2": ["model.family=qwen2"],
    "qwen3": ["model.family=qwen3", "model.head_dim=24"],
    "phi3": [],
}
MESHES = {"one rank": [], "dp 2": ["mesh.dp=2"], "tp 2": ["mesh.tp=2"], "dp 2 x tp 2": ["mesh.dp=2", "mesh.tp=2"]}
MODEL = """[model]
family = "llama"
layers = 2
hidden = 32
heads = 4
kv_heads = 2
ffn = 64
vocab = {vocab}
seq = {seq}

[[init.rule]]
match = "*"
value = "if num_dims == 1 then normal(1, 0.1) else normal(0, 0.15)"
"""


def shardc(*arguments) -> str:
    done = subprocess.run([BUILD / "shardc", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"shardc {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def settings(sets: list[str]) -> list[str]:
    return [word for text in sets for word in ("--set", text)]


def digest(folder: pathlib.Path) -> str:
    """Hashes the weights of an exported model, which depend on no mesh."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:8]


def train_beside(model, tokens: list[int], saved: pathlib.Path, sets: list[str]) -> dict[str, tuple[float, float, str, bool]]:
    """Trains a model that transformers saved, on each mesh. Returns how far losses (absolutely) and norms of gradients (relatively) differ,
    the digest of what the run begins with, and whether that has the bits that were saved."""
    import torch
    from safetensors.torch import load_file

    losses, norms = train_model(copy.deepcopy(model).train(), tokens, SEQ, BATCH, STEPS)
    of_file = {name: tensor for file in saved.glob("*.safetensors") for name, tensor in load_file(file).items()}
    rows = {}
    run, exported = SCRATCH / "trained", SCRATCH / "begun"
    for mesh, of_mesh in MESHES.items():
        shutil.rmtree(run, ignore_errors=True)
        shardc("run", SCRATCH / "exchange.toml", "--run-dir", run, *settings([*sets, *of_mesh]))
        steps = steps_of(run)
        loss = max(abs(step["loss"] - theirs) for step, theirs in zip(steps, losses, strict=True))
        norm = max(abs(step["grad_norm"] / theirs - 1) for step, theirs in zip(steps, norms, strict=True))
        shutil.rmtree(run)
        shutil.rmtree(exported, ignore_errors=True)
        shardc("run", SCRATCH / "exchange.toml", "--run-dir", run, *settings([*sets, *of_mesh, "optimizer.lr=0", "train.steps=1"]))
        shardc("export", run, "-o", exported)
        begun = load_file(exported / "model.safetensors")
        is_saved = begun.keys() == of_file.keys() and all(torch.equal(begun[name], of_file[name]) for name in begun)
        rows[mesh] = (loss, norm, digest(exported), is_saved)
    return rows


def compare(name: str, direction: str, model, run: pathlib.Path, sets: list[str], trained: dict) -> bool:
    """Returns whether transformers' model and the checkpoint of a run say the same on all meshes."""
    import torch
    from safetensors.torch import load_file

    ids = [(37 * i + 11) % VOCAB for i in range(2 * SEQ + 10)]
    (SCRATCH / "ids.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    with torch.no_grad():
        expected = torch.cat([model(torch.tensor([ids[begin:begin + SEQ]])).logits[0] for begin in range(0, len(ids), SEQ)])
        greedy = model.generate(torch.tensor([PROMPT]), attention_mask=torch.ones(1, len(PROMPT)), do_sample=False, max_new_tokens=NEW_IDS,
                                pad_token_id=0, eos_token_id=None)[0, len(PROMPT):].tolist()
    is_same = True
    for mesh, of_mesh in MESHES.items():
        asked = ["--checkpoint", run, *settings([*sets, *of_mesh])]
        shardc("logits", SCRATCH / "exchange.toml", "--tokens", SCRATCH / "ids.bin", "-o", SCRATCH / "logits.safetensors", *asked)
        difference = (load_file(SCRATCH / "logits.safetensors")["logits"] - expected).abs().max().item()
        sampled = shardc("sample", SCRATCH / "exchange.toml", "--prompt-ids", ",".join(map(str, PROMPT)), "--tokens-out", str(NEW_IDS),
                         "--temperature", "0", *asked)
        equal = sum(a == b for a, b in zip(map(int, sampled.split()), greedy, strict=True))
        cells = " | | |"
        if mesh in trained:
            loss, norm, weights, is_saved = trained[mesh]
            cells = f" {loss:.1e} | {norm:.1e} | {weights}{'' if is_saved else ', not those saved'} |"
            is_same = is_same and loss <= LOSS_TOLERANCE and norm <= NORM_TOLERANCE and is_saved
        print(f"| {name} | {direction} | {mesh} | {difference:.1e} | {equal} of {NEW_IDS} |{cells}", flush=True)
        is_same = is_same and difference <= LOGIT_TOLERANCE and equal == NEW_IDS
    return is_same


def main():
    enter()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    tokens = tokens_of(VOCAB, STEPS * BATCH * SEQ + 1)
    (SCRATCH / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    (SCRATCH / "exchange.toml").write_text((MODEL + TRAINING).format(**OPTIMIZER, vocab=VOCAB, seq=SEQ, batch=BATCH, steps=STEPS))
    run, model_dir = SCRATCH / "exchange", SCRATCH / "model"
    is_same = True
    print(f"| model | direction | mesh | logits differ by | greedy ids that are equal | losses of {STEPS} steps | norms of gradients | weights |")
    print("|---|---|---|---|---|---|---|---|")
    for name, sets in MODELS.items():
        for folder in (run, model_dir):
            shutil.rmtree(folder, ignore_errors=True)
        shardc("run", SCRATCH / "exchange.toml", "--run-dir", run, *settings([*sets, "mesh.dp=2", "optimizer.lr=1e-2", "train.steps=5"]))
        shardc("export", run, "-o", model_dir)
        model, told = transformers.AutoModelForCausalLM.from_pretrained(model_dir, output_loading_info=True, dtype=torch.float32)
        if told["missing_keys"] or told["unexpected_keys"] or told["mismatched_keys"]:
            sys.exit(f"{name}: transformers finds keys missing, unexpected or of another shape: {told}")
        is_same = compare(name, "out", model, run, sets, {}) and is_same

        torch.manual_seed(1)
        if name == "phi3":  # A run from scratch is exported as a Llama; only one that began from a Phi-3 is one again.
            sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                     "rms_norm_eps", "max_position_embeddings")
            model = transformers.Phi3ForCausalLM(transformers.Phi3Config(pad_token_id=None, **{key: getattr(model.config, key) for key in sizes}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        model.save_pretrained(SCRATCH / "saved", max_shard_size="40KB")
        shutil.rmtree(run)
        begins = [*sets, "init.rule=[]", f'start.first={{ seed = "{SCRATCH / "saved"}" }}']
        shardc("run", SCRATCH / "exchange.toml", "--run-dir", run, *settings([*begins, "mesh.tp=2", "optimizer.lr=0", "train.steps=1"]))
        is_same = compare(name, "in", model, run, sets, train_beside(model, tokens, SCRATCH / "saved", begins)) and is_same
        shutil.rmtree(SCRATCH / "saved")
    if not is_same:
        sys.exit("a figure is beyond what the first lines of this script allow")


if __name__ == "__main__":
    main()
