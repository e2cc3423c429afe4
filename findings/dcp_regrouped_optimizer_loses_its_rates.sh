#!/usr/bin/env bash
# PyTorch 2.11.0, torch.distributed.checkpoint.state_dict, with torch.optim.AdamW on one process.
#
# get_optimizer_state_dict names parameters, so that an optimizer with other groups can load what it gives; set_optimizer_state_dict takes it
# without an error or a warning, with moments and counts of all parameters. Rates and decays of the groups are another matter:
#   - two groups out of one saved group: the first has no learning rate, betas or decay any more, and the next step raises a KeyError;
#   - one group out of two saved groups: it has the values of the last one, and, of the same state flattened, those of the first one.
# What the constructor of the second optimizer was given is gone in each case. AdamW.load_state_dict refuses another number of groups.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.11.0 numpy
cat > "$folder/look.py" <<'PY'
import copy, sys, warnings
import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict

def build(*groups):
    """Groups are lists of layers, with a rate and a decay for all of their weights."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=False) for _ in range(3)))
    made = [{"params": [model[i].weight for i in layers], "lr": rate, "weight_decay": decay} for layers, rate, decay in groups]
    return model, torch.optim.AdamW(made)

def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()

def values(optimizer):
    return [(group.get("lr"), group.get("weight_decay")) for group in optimizer.param_groups]

model, optimizer = build(([0], 1e-3, 0.1), ([1, 2], 5e-4, 0.2))
for _ in range(3):
    step(model, optimizer)

print("torch", torch.__version__)
print("saved:           ", values(optimizer))
others = {"split": [([0], 7e-4, 0.0), ([1], 7e-4, 0.0), ([2], 7e-4, 0.0)], "joined": [([0, 1, 2], 7e-4, 0.0)]}
found = {}
for flat in (False, True):
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    saved = get_optimizer_state_dict(model, optimizer, options=options)
    for name, groups in others.items():
        other, loaded = build(*groups)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            set_optimizer_state_dict(other, loaded, copy.deepcopy(saved), options=options)
        said = [str(one.message) for one in told if "group" in str(one.message)]
        counts = [float(loaded.state[layer.weight]["step"]) for layer in other]
        has = values(loaded)
        try:
            step(other, loaded)
            end = "steps"
        except KeyError as error:
            end = f"KeyError: {error}"
        print(f"{name}, {'flat' if flat else 'by name'}:".ljust(17), has, "counts", counts, "warnings", said, "then", end)
        found[name, flat] = (has, counts, said, end.split(":")[0])
refused = 0
for groups in others.values():
    try:
        build(*groups)[1].load_state_dict(optimizer.state_dict())
    except ValueError as error:
        print("load_state_dict: ", error)
        refused += 1

counts = [3.0, 3.0, 3.0]
expected = {("split", False): ([(1e-3, 0.1), (None, None), (5e-4, 0.2)], counts, [], "KeyError"),
            ("joined", False): ([(5e-4, 0.2)], counts, [], "steps"),
            ("split", True): ([(1e-3, 0.1), (5e-4, 0.2), (5e-4, 0.2)], counts, [], "steps"),
            ("joined", True): ([(1e-3, 0.1)], counts, [], "steps")}
if found != expected or refused != 2:
    sys.exit("the behaviour has changed")
PY
"$folder/venv/bin/python" "$folder/look.py"
