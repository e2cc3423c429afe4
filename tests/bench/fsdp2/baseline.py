"""PyTorch FSDP2 on the CPU over Gloo, doing the work of a shardc recipe: prints one JSON line (rank 0).

Run under torchrun by compare.py. The model, batch and optimizer are those of the recipe that compare.py writes beside it; it is what a
user of FSDP2 would write, with the defaults of PyTorch's own examples: a unit a block, the last one not resharded, fused AdamW.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


class Block(nn.Module):
    """Pre-norm attention with grouped kv heads and rotary positions, then SwiGLU."""

    def __init__(self, c):
        super().__init__()
        self.head_dim = c.hidden // c.heads
        self.grouped = c.heads != c.kv_heads
        kv = c.kv_heads * self.head_dim
        self.input_layernorm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.q_proj = nn.Linear(c.hidden, c.hidden, bias=False)
        self.k_proj = nn.Linear(c.hidden, kv, bias=False)
        self.v_proj = nn.Linear(c.hidden, kv, bias=False)
        self.o_proj = nn.Linear(c.hidden, c.hidden, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.gate_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.up_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.down_proj = nn.Linear(c.ffn, c.hidden, bias=False)

    def heads(self, x, table):
        x = x.view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)
        if table is None:
            return x
        first, second = x.chunk(2, dim=-1)
        cos, sin = table
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, x, table):
        a = self.input_layernorm(x)
        y = F.scaled_dot_product_attention(
            self.heads(self.q_proj(a), table), self.heads(self.k_proj(a), table), self.heads(self.v_proj(a), None),
            is_causal=True, enable_gqa=self.grouped)
        x = x + self.o_proj(y.transpose(1, 2).flatten(2))
        b = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(b)) * self.up_proj(b))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab, c.hidden)
        self.layers = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.lm_head = nn.Linear(c.hidden, c.vocab, bias=False)

    def forward(self, tokens, table):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, table)
        return self.lm_head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "micro", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--compute", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--recompute", choices=["none", "full"], required=True)
    parser.add_argument("--launched", type=float, required=True, help="time.time() of the launch")
    c = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Llama(c)
    if c.recompute == "full":
        for i, layer in enumerate(model.layers):
            model.layers[i] = checkpoint_wrapper(layer, CheckpointImpl.NO_REENTRANT, preserve_rng_state=False)
    options = {"mesh": mesh}
    if c.compute == "bf16":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, layer in enumerate(model.layers):
        fully_shard(layer, reshard_after_forward=i < c.layers - 1, **options)
    fully_shard(model, **options)
    model.to_empty(device="cpu")
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0)
            else:
                nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    head_dim = c.hidden // c.heads
    frequencies = 1.0 / 10000 ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(c.seq).float(), frequencies)
    table = (angles.cos(), angles.sin())
    if c.compute == "bf16":
        table = tuple(part.bfloat16() for part in table)

    generator = torch.Generator().manual_seed(100 + rank)
    times = []
    first = None
    loss = None
    for _ in range(c.steps):
        tokens = torch.randint(0, c.vocab, (c.micro, c.seq + 1), generator=generator)
        dist.barrier()
        begin = time.perf_counter()
        logits = model(tokens[:, :-1], table)
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.item()
        times.append((time.perf_counter() - begin) * 1e3)
        first = first or time.time() - c.launched
    if rank == 0:
        print(json.dumps({"step_ms": statistics.median(times[3:] or times), "first_step_s": first, "loss": loss,
                          "parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    # Stay until the memory has been read.
    if os.environ.get("BENCH_LINGER_S"):
        time.sleep(float(os.environ["BENCH_LINGER_S"]))
    dist.destroy_process_group()


main()
