#!/usr/bin/env bash
# PyTorch 2.11.0, torch.distributed.checkpoint.state_dict, with torch.optim.AdamW on one process.
#
# A stage trains with a frozen layer, the next one unfreezes it. set_optimizer_state_dict refuses the saved state, as the layer
# has none, and its message says to load anyway with StateDictOptions(strict=False). With that it raises KeyError('exp_avg').
# And whoever only asks a fresh optimizer for its state, with get_optimizer_state_dict, finds that its parameters count one
# update: they would be updated with the bias corrections of a second step.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.11.0 numpy
cat > "$folder/look.py" <<'PY'
import sys, warnings
import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict

warnings.simplefilter("ignore")

def model_of(frozen):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
    model[0].weight.requires_grad_(not frozen)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)

model, optimizer = model_of(frozen=True)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
saved = get_optimizer_state_dict(model, optimizer)

def outcome(strict):
    unfrozen, fresh = model_of(frozen=False)
    try:
        set_optimizer_state_dict(unfrozen, fresh, saved, options=StateDictOptions(strict=strict))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "loaded"

refused, anyway = outcome(True), outcome(False)
unfrozen, fresh = model_of(frozen=False)
before = len(fresh.state)
get_optimizer_state_dict(unfrozen, fresh)
steps = [float(state["step"]) for state in fresh.state.values()]
print("torch", torch.__version__)
print("strict=True: ", refused)
print("strict=False:", anyway)
print("a fresh optimizer, once asked: counts", steps, "and before:", before, "states")
if not ("strict=False" in refused and anyway == "KeyError: 'exp_avg'" and before == 0 and steps == [1.0, 1.0]):
    sys.exit("the behaviour has changed")
PY
"$folder/venv/bin/python" "$folder/look.py"
