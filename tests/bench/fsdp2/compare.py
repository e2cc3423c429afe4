"""Times shardc against PyTorch FSDP2, two ranks of one thread each, the same work, rounds of both in turn.

    tools/dev bench-fsdp2 [--rounds N] [--only NAME] [--hosts 2]

With `--hosts 2` each rank has a host of its own: namespaces with addresses, joined by a bridge (tests/cluster/two_hosts.py, which needs
root). Each host has one core, and both sides speak TCP by Gloo. Without it both ranks are on this host.
Installs PyTorch's full wheel (about 3 GB) into .deps/bench-venv on first use. Both cores are probed before, between and after the two
runs of a round; a round in which their speed changed is taken again, since its ratio compares two machines. Prints a table of medians:
step time, time from launch to the end of the first step, peak resident memory (VmHWM) and proportional memory (PSS) of a rank, ours
over FSDP2's; the ratio of steps is the median of the rounds' own. Rows with adapters have peft's on the other side, or shardc's full
training of the same model; `--only adapters` is all of them.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time

from pytorch import PEFT, VENV, install, toml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from two_hosts import Hosts  # noqa: E402

SCRATCH = ROOT / ".deps" / "bench-fsdp2"

SMALL = dict(layers=4, hidden=256, heads=8, kv_heads=4, ffn=768, vocab=4096, seq=256, micro=4)
LARGE = dict(layers=8, hidden=1024, heads=16, kv_heads=8, ffn=2816, vocab=16384, seq=128, micro=1)
LONG = dict(layers=4, hidden=256, heads=8, kv_heads=4, ffn=1088, vocab=4096, seq=2048, micro=1)
# 1,024 tokens of each rank.
TUNED = dict(LARGE, seq=256, micro=4)
RANK = 16
# name, sizes, compute, recompute, steps, targets of the ratios (step, peak RSS, start)
WORK = [
    ("5.2M fp32", SMALL, "fp32", "none", 12, (0.62, 0.30, 0.25)),
    ("5.2M bf16", SMALL, "bf16", "none", 12, (0.46, 0.30, 0.25)),
    ("5.2M fp32, full recomputation", SMALL, "fp32", "full", 12, (0.62, None, None)),
    ("128M fp32", LARGE, "fp32", "none", 8, (0.31, 0.65, None)),
    ("128M bf16", LARGE, "bf16", "none", 8, (0.29, 0.65, None)),
    ("6.2M fp32, 2048 tokens", LONG, "fp32", "none", 10, (0.60, None, None)),
]
ADAPTERS_WORK = [
    ("128M bf16, adapters", TUNED, "bf16", "none", 6, (0.40, 0.40, None)),
    ("128M fp32, adapters", TUNED, "fp32", "none", 6, (0.55, None, None)),
]
AGAINST_FULL_WORK = [
    ("128M bf16, adapters against full", TUNED, "bf16", "none", 6, (0.75, None, None)),
    ("128M fp32, adapters against full", TUNED, "fp32", "none", 6, (0.75, None, None)),
]
TWO_HOSTS_WORK = [
    ("5.2M fp32", SMALL, "fp32", "none", 12, (0.50, None, None)),
    ("5.2M bf16", SMALL, "bf16", "none", 12, (0.50, None, None)),
    ("128M fp32", LARGE, "fp32", "none", 8, (0.50, None, None)),
    ("128M bf16", LARGE, "bf16", "none", 8, (0.50, None, None)),
]

RECIPE = """[model]
family = "llama"
{sizes}
[mesh]
dp = 2

[shard]
gather_into = "host"

[precision]
compute = "{compute}"
{frozen}

[recompute]
policy = "{recompute}"

[[init.rule]]
match = "*norm.weight"
value = 1

[[init.rule]]
match = "*_proj.weight"
value = "normal(0, 0.02)"

[[init.rule]]
match = "model.embed_tokens.weight"
value = "normal(0, 0.02)"

[[init.rule]]
match = "lm_head.weight"
value = "normal(0, 0.02)"

[optimizer]
lr = 3e-4

[data]
tokens = ["tokens.bin"]
format = "u16"

[batch]
micro = {micro}

[train]
steps = {steps}
log_every = 1000

[run]
threads = 1
"""
ADAPTERS = """
[adapter]
kind = "lora"
rank = {rank}
alpha = {alpha}
"""

BURN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
end = time.perf_counter() + 0.3
n = 0
while time.perf_counter() < end:
    for i in range(1000):
        n += i & 3
    n += 1000
print(n)
"""


def probe():
    """Work that two cores at once get done in 0.3 s: the slower of them."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    burners = [subprocess.Popen([sys.executable, "-c", BURN, str(core)], stdout=subprocess.PIPE) for core in cores]
    return min(int(burner.communicate()[0]) for burner in burners)


def descendants(pid):
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in children] + [d for child in children for d in descendants(int(child))]


def field(path, name):
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class MemoryWatch(threading.Thread):
    """Peak VmHWM and last PSS, in KiB, of some processes and those below them, by pid."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.pids, self.peak, self.pss, self.done = pids, {}, {}, False

    def run(self):
        while not self.done:
            for pid in [*self.pids, *(below for pid in self.pids for below in descendants(pid))]:
                self.peak[pid] = max(self.peak.get(pid, 0), field(f"/proc/{pid}/status", "VmHWM"))
                self.pss[pid] = max(self.pss.get(pid, 0), field(f"/proc/{pid}/smaps_rollup", "Pss"))
            time.sleep(0.25)

    def of_a_rank(self):
        """MiB of the largest process: launchers are smaller."""
        return max(self.peak.values(), default=0) / 1024, max(self.pss.values(), default=0) / 1024


def watched(commands):
    """Runs the commands, pairs of what starts a process and its words, side by side; the first one's output, and the memory."""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes = [start([str(word) for word in words], **pipes) for start, words in commands]
    watch = MemoryWatch([process.pid for process in processes])
    watch.start()
    outputs = [process.communicate() for process in processes]
    watch.done = True
    watch.join()
    for (_, words), process, (out, err) in zip(commands, processes, outputs):
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}\nfailed with {process.returncode}:\n{out}\n{err}")
    return outputs[0][0], watch.of_a_rank()


class ThisHost:
    """Both ranks here: shardc starts its ranks itself, and torchrun those of FSDP2."""

    def shardc(self, *words):
        return watched([(subprocess.Popen, [ROOT / "build" / "shardc", *words])])

    def python(self, *words):
        return watched([(subprocess.Popen, ["env", "OMP_NUM_THREADS=1", "BENCH_LINGER_S=0.6", VENV / "bin" / "python", "-m",
                                            "torch.distributed.run", "--nproc-per-node=2", "--master-port=29581", *words])])


class TwoHosts:
    """One rank and one core per host; the variables that a launcher sets, and no launcher."""

    def __init__(self, hosts):
        self.hosts, self.port = hosts, 29581

    def each(self, *words):
        # A port of its own for each launch: the store of the launch before may not be gone.
        self.port += 1
        cores = sorted(os.sched_getaffinity(0))
        return watched([(host.start, ["taskset", "--cpu-list", cores[rank], "env", f"RANK={rank}", "WORLD_SIZE=2", "LOCAL_RANK=0",
                                      "LOCAL_WORLD_SIZE=1", f"MASTER_ADDR={self.hosts[0].name}", f"MASTER_PORT={self.port}", *words])
                        for rank, host in enumerate(self.hosts)])

    def shardc(self, *words):
        return self.each(ROOT / "build" / "shardc", *words)

    def python(self, *words):
        return self.each("OMP_NUM_THREADS=1", "BENCH_LINGER_S=0.6", VENV / "bin" / "python", *words)


def ours(place, sizes, compute, recompute, steps, rank=0):
    recipe = SCRATCH / "run.toml"
    run_dir = SCRATCH / "run"
    of_model = toml({name: size for name, size in sizes.items() if name != "micro"})

    def run(count):
        text = RECIPE.format(sizes=of_model, micro=sizes["micro"], compute=compute, recompute=recompute, steps=count,
                             frozen=f'frozen = "{compute}"' if rank else "")
        recipe.write_text(text + (ADAPTERS.format(rank=rank, alpha=2 * rank) if rank else ""))
        shutil.rmtree(run_dir, ignore_errors=True)
        launched = time.time()
        _, memory = place.shardc("run", recipe, "--run-dir", run_dir, "--set", "checkpoint.keep=1")
        lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if "step_ms" in line]
        return lines, memory, (run_dir / "metrics.jsonl").stat().st_mtime - launched

    lines, memory, _ = run(steps)
    first = run(1)[2]
    times = [line["step_ms"] for line in lines]
    return {"step_ms": statistics.median(times[3:]), "first_step_s": first, "loss": lines[-1]["loss"], "memory": memory}


def fsdp2(place, sizes, compute, recompute, steps, rank=0):
    given = dict(sizes, steps=steps, compute=compute, recompute=recompute, adapter_rank=rank)
    arguments = [f"--{name}={value}" for name, value in given.items()]
    out, memory = place.python(ROOT / "tests/bench/fsdp2/baseline.py", *arguments, f"--launched={time.time()}")
    result = json.loads(out.strip().splitlines()[-1])
    return dict(result, memory=memory)


def steady_round(theirs, own, tries=6):
    """A round in which both sides had the same machine, or the steadiest of some."""
    best = None
    for _ in range(tries):
        probes = [probe()]
        results = []
        for run in (theirs, own):
            results.append(run())
            probes.append(probe())
        steadiness = min(probes) / max(probes)
        if best is None or steadiness > best[0]:
            best = (steadiness, results)
        if steadiness >= 0.85:
            break
        print(f"  the cores' speed changed (to {steadiness:.0%}), once more", file=sys.stderr)
    return best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a row's name")
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    install(PEFT)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    generator = random.Random(1)
    ids = [generator.randrange(4096) for _ in range(1 << 18)]
    (SCRATCH / "tokens.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))

    with Hosts(2) if options.hosts == 2 else contextlib.nullcontext() as hosts:
        place = TwoHosts(hosts) if hosts else ThisHost()
        compare("FSDP2", fsdp2, ours, place, TWO_HOSTS_WORK if hosts else WORK, options)
        if not hosts:
            tuned = functools.partial(ours, rank=RANK)
            compare("peft + FSDP2", functools.partial(fsdp2, rank=RANK), tuned, place, ADAPTERS_WORK, options)
            compare("shardc, all trained,", ours, tuned, place, AGAINST_FULL_WORK, options)


def compare(other, theirs, own, place, work, options):
    """Prints a table of the rows that are asked for."""
    work = [row for row in work if options.only in row[0]]
    if not work:
        return
    print(f"| work (2 ranks, 1 thread each) | {other} ms | shardc ms | ratio | target | peak RSS MiB | ratio | target | PSS MiB | launch to first step s | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, sizes, compute, recompute, steps, targets in work:
        row = (place, sizes, compute, recompute, steps)
        rounds = [steady_round(lambda: theirs(*row), lambda: own(*row)) for _ in range(options.rounds)]
        median = lambda pick: [statistics.median(pick(side) for side in sides) for sides in zip(*rounds)]
        step = median(lambda r: r["step_ms"])
        ratio = statistics.median(b["step_ms"] / a["step_ms"] for a, b in rounds)
        rss = median(lambda r: r["memory"][0])
        pss = median(lambda r: r["memory"][1])
        first = median(lambda r: r["first_step_s"])
        show = lambda target: "" if target is None else f"{target:.2f}"
        print(f"| {name} | {step[0]:.0f} | {step[1]:.0f} | **{ratio:.2f}** | {show(targets[0])} | {rss[0]:.0f} / {rss[1]:.0f} | "
              f"{rss[1] / rss[0]:.2f} | {show(targets[1])} | {pss[0]:.0f} / {pss[1]:.0f} | {first[0]:.2f} / {first[1]:.2f} | {first[1] / first[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
