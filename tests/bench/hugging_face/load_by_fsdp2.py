"""Starts a model of Hugging Face on transformers and PyTorch FSDP2, as their users do, up to the first step: each rank loads all of it in
bf16, and then keeps its shards. Rank 0 prints one JSON line: when the step could begin, and the VmHWM of the larger rank in MiB.

Run under torchrun by figures.py: load_by_fsdp2.py MODEL
"""

import json
import pathlib
import re
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
for layer in model.model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
dist.barrier()
ready = time.time()
peak = torch.tensor(int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1)))
dist.all_reduce(peak, dist.ReduceOp.MAX)
if dist.get_rank() == 0:
    print(json.dumps({"ready": ready, "peak": peak.item() / 1024}), flush=True)
dist.barrier()
dist.destroy_process_group()
