#!/usr/bin/env bash
# PyTorch 2.11.0, torch.distributed.checkpoint.state_dict, with torch.optim.AdamW on one process.
#
# get_optimizer_state_dict, which only reads by its name, gives each parameter of an optimizer without state a count of one update.
# The first real update then has the bias corrections of a second one: it moves a parameter by 0.74 of the rate and not by all of it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.11.0 numpy
cat > "$folder/look.py" <<'PY'
import sys, warnings
import torch
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

warnings.simplefilter("ignore")
RATE = 1e-3

def model_of():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
    return model, torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0)

def step(model, optimizer):
    before = model[0].weight.detach().clone()
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
    return (model[0].weight - before).abs().max().item() / RATE

model, optimizer = model_of()
plain = step(model, optimizer)
model, optimizer = model_of()
get_optimizer_state_dict(model, optimizer)
counts = [float(state["step"]) for state in optimizer.state.values()]
asked = step(model, optimizer)

print("torch", torch.__version__)
print(f"the first update moves {plain:.3f} of the rate; after get_optimizer_state_dict, with counts {counts}, {asked:.3f}")
if not (counts == [1.0, 1.0] and 0.99 < plain < 1.01 and 0.73 < asked < 0.76):
    sys.exit("the behaviour has changed")
PY
"$folder/venv/bin/python" "$folder/look.py"
