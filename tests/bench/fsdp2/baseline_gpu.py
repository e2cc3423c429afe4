"""PyTorch FSDP2 on one GPU, or one per process of torchrun, from the parameters and tokens that tools/gpu/compare.py wrote, or from its own
parameters: one JSON line per mode.

What a user of FSDP2 would write, as torchtitan does: bf16 compute, fp32 parameters, moments and reductions, units of the embedding, each
block, and norm with head, which stay gathered; RoPE and loss in fp32, clipping, fused AdamW. Modes: eager, and compiled (each block, and
the loss). Attention is cuDNN's, which is the faster one, or flash where cuDNN's does not run.
"""

import argparse
import collections
import gc
import json
import os
import re
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama import Llama, rope_table
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

WARM_UP = 5


def seconds_since_launch():
    """Returns how long ago this process was started."""
    with open("/proc/self/stat") as stat:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def load(model, path):
    """Copies the parameters of a checkpoint's file, which is in the format of safetensors."""
    content = torch.from_file(path, size=os.path.getsize(path), dtype=torch.uint8)
    begin = 8 + int.from_bytes(bytes(content[:8].tolist()), "little")
    header = json.loads(bytes(content[8:begin].tolist()))
    pieces = {re.sub(r"\b(model|self_attn|mlp)\.", "", name): piece for name, piece in header.items() if name != "__metadata__"}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            piece = pieces.pop(name)
            assert piece["dtype"] == "F32", piece
            first, last = piece["data_offsets"]
            parameter.copy_(content[begin + first:begin + last].clone().view(torch.float32).view(parameter.shape))
    assert not pieces, f"no parameters: {', '.join(pieces)}"


def attention_that_runs(c):
    """Returns the backend of attention, and whether it needs kv heads that are repeated."""
    def runs(backend, kv_heads):
        q, k = (torch.randn(1, heads, 128, c.hidden // c.heads, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                for heads in (c.heads, kv_heads))
        try:
            with sdpa_kernel([backend]):
                y = F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=kv_heads != c.heads)
                y.backward(torch.randn_like(y))
        except RuntimeError:
            return False
        return True

    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        for kv_heads in dict.fromkeys((c.kv_heads, c.heads)):
            if runs(backend, kv_heads):
                return backend, kv_heads != c.kv_heads
    raise RuntimeError("no attention runs")


def loss_of(logits, targets):
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def sharded(model, device):
    options = dict(mesh=init_device_mesh(device, (dist.get_world_size(),)),
                   # The table of rotations is an argument, and stays in fp32.
                   mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False))
    fully_shard(model.embed_tokens, **options)
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard([model.norm, model.lm_head], reshard_after_forward=False, **options)
    return fully_shard(model, reshard_after_forward=False, **options)


def recomputed(layer):
    """Keeps of a block its input, attention, every second matrix product and what is reduced, and computes the rest again."""
    aten = torch.ops.aten
    kept = {aten.mm.default, aten._scaled_dot_product_cudnn_attention.default, aten._scaled_dot_product_flash_attention.default,
            torch.ops._c10d_functional.reduce_scatter_tensor.default}

    def contexts():
        products = collections.Counter()

        def policy(context, function, *_, **__):
            products[context.is_recompute] += function == aten.mm.default
            keeps = function in kept and not (function == aten.mm.default and products[context.is_recompute] % 2 == 0)
            return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    return checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)


def batches(c):
    """Sample k begins at token k * seq. Each rank takes as many in turn."""
    tokens = torch.from_file(c.tokens, size=os.path.getsize(c.tokens) // 4, dtype=torch.int32)
    for step in range(c.steps):
        first = (step * dist.get_world_size() + dist.get_rank()) * c.micro
        starts = [sample * c.seq for sample in range(first, first + c.micro)]
        batch = torch.stack([tokens[start:start + c.seq + 1] for start in starts]).long().to(c.device)
        yield batch[:, :-1].contiguous(), batch[:, 1:].contiguous()


def train(c, mode):
    """Trains in one mode. Returns its figures: `first_step_s` from here to the end of the first step, compilation included."""
    began = time.perf_counter()
    on_gpu = c.device == "cuda"
    torch._dynamo.reset()
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(7)
    with torch.device(c.device):
        model = Llama(c)
    if c.weights:
        load(model, c.weights)
    if c.sac:
        for i, layer in enumerate(model.layers):
            model.layers[i] = recomputed(layer)
    loss_function = loss_of
    if mode == "compiled":
        for i, layer in enumerate(model.layers):
            model.layers[i] = torch.compile(layer, fullgraph=True)
        loss_function = torch.compile(loss_of, fullgraph=True)
    model = sharded(model, c.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    table = rope_table(c.seq, c.hidden // c.heads, c.rope_theta, c.device)
    losses, ends = [], []
    for tokens, targets in batches(c):
        loss = loss_function(model(tokens, table), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if on_gpu:
            ends.append(torch.cuda.Event(enable_timing=True))
            ends[-1].record()
        else:
            ends.append(time.perf_counter())
        if len(losses) == 1:
            # The read waits for the step.
            loss.item()
            first_s = time.perf_counter() - began
    losses = torch.stack(losses)
    dist.all_reduce(losses)
    losses /= dist.get_world_size()
    if on_gpu:
        torch.cuda.synchronize()
    times = [before.elapsed_time(after) if on_gpu else 1e3 * (after - before) for before, after in zip(ends, ends[1:])]
    return dict(mode=mode, losses=losses.tolist(), step_ms=statistics.median(times[WARM_UP:]), first_step_s=first_s,
                allocated=torch.cuda.max_memory_allocated() if on_gpu else 0, reserved=torch.cuda.max_memory_reserved() if on_gpu else 0)


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "micro", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--rope_theta", type=float, default=10000.0)
    parser.add_argument("--weights", help="a file of a checkpoint")
    parser.add_argument("--sac", action="store_true", help="recompute as torchtitan's selective checkpointing by op does")
    parser.add_argument("--tokens", required=True, help="numbers of 4 bytes")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--modes", required=True)
    c = parser.parse_args()
    alone = dict(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000))
    os.environ |= {} if "RANK" in os.environ else alone
    if c.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if c.device == "cuda" else "gloo")
    backend, c.repeat_kv = attention_that_runs(c) if c.device == "cuda" else (SDPBackend.MATH, False)
    # What each mode by itself would take to come here.
    start_s = seconds_since_launch()
    for mode in c.modes.split(","):
        with sdpa_kernel([backend]):
            result = train(c, mode) | {"attention": backend.name, "torch": torch.__version__}
            result["first_step_s"] += start_s
            if dist.get_rank() == 0:
                print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
