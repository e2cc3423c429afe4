"""PyTorch FSDP2 on the CPU over Gloo, doing the work of a shardc recipe: prints one JSON line (rank 0).

Run under torchrun by compare.py. The model, batch and optimizer are those of the recipe that compare.py writes beside it; it is what a
user of FSDP2 would write, with the defaults of PyTorch's own examples: a unit a block, the last one not resharded, fused AdamW. With
adapters it is what a user of peft would: the base in the type that is computed in, adapters by peft, which keeps them in fp32.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama import Llama, rope_table
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def adapted(model, c):
    """Returns the model with adapters on all projections of all blocks, and all else frozen."""
    from peft import LoraConfig, get_peft_model

    projections = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    if c.compute == "bf16":
        model = model.bfloat16()
    config = LoraConfig(r=c.adapter_rank, lora_alpha=2 * c.adapter_rank, target_modules=projections)
    return get_peft_model(model, config).get_base_model()


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq", "micro", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--compute", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--recompute", choices=["none", "full"], required=True)
    parser.add_argument("--adapter_rank", type=int, default=0, help="of LoRA on all projections; 0 trains all parameters")
    parser.add_argument("--launched", type=float, required=True, help="time.time() of the launch")
    c = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Llama(c)
        if c.adapter_rank:
            model = adapted(model, c)
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
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.zero_()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    table = rope_table(c.seq, c.hidden // c.heads)
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
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.item()
        times.append((time.perf_counter() - begin) * 1e3)
        first = first or time.time() - c.launched
    if rank == 0:
        print(json.dumps({"step_ms": statistics.median(times[3:] or times), "first_step_s": first, "loss": loss,
                          "parameters": sum(p.numel() for p in trained)}), flush=True)
    # Stay until the memory has been read.
    if os.environ.get("BENCH_LINGER_S"):
        time.sleep(float(os.environ["BENCH_LINGER_S"]))
    dist.destroy_process_group()


main()
