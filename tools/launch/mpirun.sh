#!/bin/bash
# Runs a recipe by the mpirun of Open MPI, or by Hydra (MPICH, Intel MPI). Start this script once, on any host that can start
# programs on the others (by ssh, or inside a job of Slurm):
#
#     HOSTS=node0,node1 RANKS_PER_HOST=2 ./mpirun.sh recipe.toml [--set KEY=VALUE]...
#
# MPI itself is not used: it only starts the ranks. The exit code is that of the ranks. To stop a run and save it, send SIGUSR1 to
# mpirun: Open MPI kills the ranks one second after a SIGTERM, which is too soon for a save. Hydra hands on either.
set -eu
: "${HOSTS:?the names of the hosts, with commas between them; rank 0 is on the first}"
: "${RANKS_PER_HOST:?how many ranks each host has}"
# A port that is free on the first host.
PORT=${PORT:-29500}
# CHANGE: the launcher, where mpirun is another one: mpirun.openmpi, mpiexec.hydra.
MPIRUN=${MPIRUN:-mpirun}

IFS=, read -r -a names <<< "$HOSTS"
ranks=$((${#names[@]} * RANKS_PER_HOST))
export MASTER_ADDR=${MASTER_ADDR:-${names[0]}} MASTER_PORT=$PORT

if "$MPIRUN" --version 2>&1 | grep -Eq 'Open MPI|OpenRTE'; then
  # ppr: so many ranks per host, host by host (--map-by node would deal them out in turn). --bind-to none: a rank that is bound to
  # one core has one thread. -x: a variable for all hosts.
  exec "$MPIRUN" -n "$ranks" --host "$(printf "%s:$RANKS_PER_HOST," "${names[@]}" | sed 's/,$//')" \
    --map-by "ppr:$RANKS_PER_HOST:node" --bind-to none -x MASTER_ADDR -x MASTER_PORT "${SHARDC:-shardc}" run "$@"
else
  exec "$MPIRUN" -n "$ranks" -hosts "$HOSTS" -ppn "$RANKS_PER_HOST" \
    -genv MASTER_ADDR "$MASTER_ADDR" -genv MASTER_PORT "$MASTER_PORT" "${SHARDC:-shardc}" run "$@"
fi
