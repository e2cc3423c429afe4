"""A Llama with the names and the rotary pairs of torchtitan, its training, and the checkpoint that ranks write of it.

    python3 torchtitan_model.py FOLDER TOKENS STEPS [--ranks N] [--dtype bfloat16] [--optimizer NAMES] [--sizes JSON]

Trains STEPS steps by FSDP2 and AdamW on ranks that are processes of this machine, and writes FOLDER/dcp by torch.distributed.checkpoint,
FOLDER/whole.pt by torch.save, and the loss of the next step into FOLDER/next.json. imports.py uses it, and so does a fixture.
"""

import argparse
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

SIZES = {"layers": 2, "hidden": 24, "heads": 3, "kv_heads": 1, "ffn": 42, "vocab": 61, "seq": 16}
BATCH, RATE, BETAS, EPS, DECAY, CLIP = 4, 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0
THETA, NORM_EPS = 10000.0, 1e-5


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return functional.rms_norm(x, (x.shape[-1],), self.weight, NORM_EPS)


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


class Attention(nn.Module):
    def __init__(self, sizes: dict):
        super().__init__()
        self.heads, self.kv_heads = sizes["heads"], sizes["kv_heads"]
        self.size = sizes["hidden"] // sizes["heads"]
        self.wq = linear(sizes["hidden"], self.heads * self.size)
        self.wk = linear(sizes["hidden"], self.kv_heads * self.size)
        self.wv = linear(sizes["hidden"], self.kv_heads * self.size)
        self.wo = linear(self.heads * self.size, sizes["hidden"])

    def forward(self, x, frequencies):
        def heads_of(y, count):
            return y.view(*y.shape[:2], count, self.size).transpose(1, 2)

        def rotated(y):
            pairs = torch.view_as_complex(y.float().reshape(*y.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * frequencies).flatten(-2).type_as(y)

        q, k, v = heads_of(self.wq(x), self.heads), heads_of(self.wk(x), self.kv_heads), heads_of(self.wv(x), self.kv_heads)
        out = functional.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, sizes: dict):
        super().__init__()
        self.w1, self.w3 = (linear(sizes["hidden"], sizes["ffn"]) for _ in range(2))
        self.w2 = linear(sizes["ffn"], sizes["hidden"])

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, sizes: dict):
        super().__init__()
        self.attention, self.feed_forward = Attention(sizes), FeedForward(sizes)
        self.attention_norm, self.ffn_norm = Norm(sizes["hidden"]), Norm(sizes["hidden"])

    def forward(self, x, frequencies):
        x = x + self.attention(self.attention_norm(x), frequencies)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, sizes: dict):
        super().__init__()
        self.sizes = sizes
        self.tok_embeddings = nn.Embedding(sizes["vocab"], sizes["hidden"])
        self.layers = nn.ModuleDict({str(i): Block(sizes) for i in range(sizes["layers"])})
        self.norm = Norm(sizes["hidden"])
        self.output = linear(sizes["hidden"], sizes["vocab"])

    def forward(self, ids):
        size = self.sizes["hidden"] // self.sizes["heads"]
        angles = torch.outer(torch.arange(ids.shape[1]).float(), THETA ** (-torch.arange(0, size, 2).float() / size))
        frequencies = torch.polar(torch.ones_like(angles), angles)
        x = self.tok_embeddings(ids)
        for block in self.layers.values():
            x = block(x, frequencies)
        return self.output(self.norm(x))


def batch_of(tokens: list[int], step: int, seq: int):
    """Returns the samples of a step, as shardc takes them in sequential order."""
    begin = step * BATCH * seq
    return torch.tensor([tokens[begin + i * seq:begin + (i + 1) * seq + 1] for i in range(BATCH)])


def make_model(sizes: dict, dtype: str) -> Llama:
    torch.manual_seed(1)
    return Llama(sizes).to(getattr(torch, dtype))


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, eps=EPS, weight_decay=DECAY)


def train_step(model, optimizer, rows) -> float:
    loss = functional.cross_entropy(model(rows[:, :-1]).float().flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    return loss.item()


def write(rank: int, options: argparse.Namespace) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks, store=dist.FileStore(str(options.folder / "store"), options.ranks))
    torch.set_num_threads(1)
    tokens = list(options.tokens.read_bytes())
    model = make_model(options.sizes, options.dtype)
    for block in model.layers.values():
        fully_shard(block)
    fully_shard(model)
    optimizer = make_optimizer(model)
    # Each rank has the whole batch, so that all have its gradient.
    for step in range(options.steps):
        train_step(model, optimizer, batch_of(tokens, step, options.sizes["seq"]))
    names = options.optimizer
    parameters, state = get_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=names == "flat"))
    if names == "numbers":
        state = optimizer.state_dict()
    # torchtitan has the model's names at the top.
    whole = {**parameters, "optimizer": state, "lr_scheduler": {"last_epoch": options.steps, "name": "linear"},
             "train_state": {"step": options.steps}} if names == "flat" else {"model": parameters, "optimizer": state}
    dcp.save(whole, checkpoint_id=str(options.folder / "dcp"))
    parameters, state = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        torch.save({"model": parameters, "optimizer": state, "step": options.steps}, options.folder / "whole.pt")
    losses = [train_step(model, optimizer, batch_of(tokens, options.steps + i, options.sizes["seq"])) for i in range(3)]
    if rank == 0:
        (options.folder / "next.json").write_text(json.dumps(losses))
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tokens", type=pathlib.Path, help="ids as bytes")
    parser.add_argument("steps", type=int)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--optimizer", default="flat", choices=("flat", "nested", "numbers"))
    parser.add_argument("--sizes", type=lambda text: SIZES | json.loads(text), default=SIZES)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "store").unlink(missing_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    processes.spawn(write, (options,), nprocs=options.ranks)


if __name__ == "__main__":
    sys.exit(main())
