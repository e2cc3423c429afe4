#!/bin/bash
# Runs a recipe by torchrun, which comes with PyTorch. Start this script once on every host, with NODE_RANK 0, 1, ...:
#
#     HOSTS=2 NODE_RANK=0 MASTER=node0 RANKS_PER_HOST=2 ./torchrun.sh recipe.toml [--set KEY=VALUE]...
#
# or by Slurm, one task per host: srun --ntasks-per-node=1 bash -c 'NODE_RANK=$SLURM_NODEID ... ./torchrun.sh recipe.toml'
#
# The exit code of torchrun is 1 whenever a rank's is not 0, so a run that was stopped and saved (75) looks like one that failed;
# the last lines of the log say which it was. To stop a run and save it, send SIGTERM to torchrun on any host: it hands the signal
# on, and kills its ranks 30 s later.
set -eu
: "${HOSTS:?how many hosts}"
: "${NODE_RANK:?the number of this host, from 0}"
: "${MASTER:?the name or address of host 0, which all hosts can reach}"
: "${RANKS_PER_HOST:?how many ranks each host has}"
# torchrun takes this port on host 0, and shardc the one above it.
PORT=${PORT:-29500}
# A name for the launch, the same on all hosts: processes of another launch are not let in.
LAUNCH=${LAUNCH:-train}

# On GPUs (run.device = "cuda") each rank takes the one of its number on its host. Do not give each its own CUDA_VISIBLE_DEVICES by a
# container or a control group: ranks work in the memory of each other's GPUs.

# How often torchrun starts the ranks again after any exit code but 0, so also after a run was stopped and saved. With restarts, send
# SIGTERM to torchrun of all hosts: one that is not told starts its ranks again, and they wait for the others.
RESTARTS=${RESTARTS:-0}

# --no-python: the program is no Python script.
exec torchrun \
  --nnodes="$HOSTS" --node-rank="$NODE_RANK" --nproc-per-node="$RANKS_PER_HOST" \
  --master-addr="$MASTER" --master-port="$PORT" --rdzv-id="$LAUNCH" --max-restarts="$RESTARTS" \
  --no-python "${SHARDC:-shardc}" run "$@"
