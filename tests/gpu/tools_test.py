"""Tests of tools/gpu without a GPU: programs that only pretend, records and budgets that are wrong. Run by ctest."""

import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "gpu"

# A training that takes its losses from how.json, times a factor by what the run is, and waits where a real one would go on.
SHARDC = """#!/usr/bin/env python3
import json, os, pathlib, signal, subprocess, sys, time
arguments = sys.argv[1:]
option = lambda name: arguments[arguments.index(name) + 1]
sets = dict(text.split("=", 1) for word, text in zip(arguments, arguments[1:]) if word == "--set")
comm, is_ring = sets.get("run.comm", ""), sets.get("run.comm") == "nccl-ring"
if arguments[0] == "plan" and "--format" in arguments:
    print("note: it is 10 {", file=sys.stderr)
    lines = (("all_gather", 2, 600, 200), ("reduce_scatter", 1, 300, 100), ("all_reduce", 1, 24, 16 if is_ring else 8), ("control", 1, 9, 9))
    print(json.dumps({"communication": [dict(zip(("op", "count", "wire_bytes", "between_hosts_bytes"), line)) for line in lines],
                      "time": {"step_seconds": 0.0098}, "fit": {"outside_arenas_bytes": 966367642}}))
    sys.exit(0)
if arguments[0] == "plan":
    if "-o" in arguments:
        pathlib.Path(option("-o")).write_text(json.dumps([arguments[1], *arguments[4:]]))
    sys.exit(0)
how = json.loads(pathlib.Path("how.json").read_text())
if "RANK" in os.environ and (os.environ["RANK"] != "0" or "mesh.dp" not in sets):
    # The process of another rank, which loses the first one, or one that is to run alone.
    sys.exit(6)
if how.get("does_not_fit") and "model.layers" in sets:
    sys.exit(4)
if sets.get("mesh.dp") == "2" and sets.get("run.device") == "cuda" and "run.share_gpus" not in sets:
    print("error: rank 0: ranks 0 and 1 have the same GPU (NVIDIA H200); run.share_gpus = true lets ranks share them")
    sys.exit(how.get("refusal", 6))
has_nccl = not os.path.exists(os.environ["LD_LIBRARY_PATH"].split(":")[0] + "/libnccl.so.2")
if comm == "nccl" and (not has_nccl or "NCCL_SOCKET_IFNAME" in os.environ):
    print(how.get("says", "NCCL_SOCKET_IFNAME=nowhere0 names" if has_nccl else "it cannot be loaded: libnccl.so.2: no such file"))
    sys.exit(6)
folder = pathlib.Path(option("--run-dir"))
folder.mkdir(exist_ok=True)
checkpoints = sorted(folder.glob("checkpoints/*/manifest.json"))
begun = int(checkpoints[-1].parent.name[5:]) if checkpoints else 0
if begun:
    print(f"run: resumed from {checkpoints[-1].parent} at step {begun}")
print("  0.50 s to allocate and bind, 0.25 s to", "load" if begun else "initialise, of which 0.20 s to load kernels", ", 7 elements drawn")
kinds = {"resumed": begun > 0, "guard": "run.guard" in sets, "gpu": sets.get("run.device") == "cuda", "lag": "lag" in arguments,
         "named": any(word.startswith("--tune=") for word in arguments), "graphs": "--graphs" in arguments,
         "threads": "as-threads" in arguments, "nccl": comm in ("nccl", "nccl-flat"), "ring": is_ring, "again": folder.name.endswith("again"),
         "on": begun > 0 and comm == "shm", "two": sets.get("mesh.dp") == "2" and "as-threads" in arguments and "lag" not in arguments}
factor = 1 + sum(how.get(kind, 0) for kind, applies in kinds.items() if applies)
losses = how["losses"]
steps = int(sets.get("train.steps", len(losses)))
every = int(sets.get("checkpoint.every", 0))
metrics = (folder / "metrics.jsonl")
lines = metrics.read_text().splitlines()[:begun] if begun else []
metrics.write_text("".join(line + "\\n" for line in lines))

def save(step):
    saved = folder / f"checkpoints/step-{step:08}"
    saved.mkdir(parents=True)
    (saved / "rank-00000.safetensors").write_text(str(losses[-1] * factor))
    (saved / "manifest.json").write_text("{}")

# The processes of the ranks, below those of hosts if there are any.
def start_ranks():
    if "mesh.hosts" not in sets:
        return [subprocess.Popen(["sleep", "60"]).pid for _ in range(2)], []
    store = subprocess.Popen(["sleep", "60"])
    script = "sleep 60 & echo $!; sleep 60 & echo $!; wait"
    hosts = [subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return [int(host.stdout.readline()) for host in hosts for _ in range(2)], [host.pid for host in [store, *hosts]]

def state(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"

if "--timeout" in arguments:
    # A rank is killed or stopped, or the network goes.
    ranks, others = start_ranks()
    metrics.write_text("".join(json.dumps({"step": step}) + "\\n" for step in range(3)))
    while (found := "".join(map(state, ranks)).strip("RSD")) == "" and not (folder.name == "hosts-cut" and os.path.exists("path/down")):
        time.sleep(0.01)
    who = how.get("who", len(ranks) - 1)
    print(f"error: rank {who} (host) was killed by signal 9 (SIGKILL)" if "Z" in found and others else
          f"error: rank {who} was killed by signal 9 (SIGKILL)" if "Z" in found else
          f"error: timed out after 10 s (axis dp), waiting for rank {who}, error: rank 0: waiting for rank {who} ", flush=True)
    for process in [*ranks, *others]:
        if state(process) != "Z":
            os.kill(process, signal.SIGKILL)
    sys.exit(how.get("end_code", 6))

signalled = []
signal.signal(signal.SIGTERM, lambda *_: signalled.append(1))
watched = sum(start_ranks(), []) if "mesh.hosts" in sets and int(sets.get("train.steps", 0)) >= 1000 else []
cause = "nonfinite" if "train.on_nonfinite" in sets else "spike" if "train.on_spike" in sets else ""
if "--tune" in arguments:
    times = {"bf16 1000 x 2000 x 500 nt, to bf16, aligned to 256 256 256, 7 B": dict(first_us=4e3, chosen_us=2e3, measured=9)}
    (folder / "gemm.json").write_text(json.dumps({"tuned": True, "times": times}))
with metrics.open("a", buffering=1) as sink:
    for step in range(begun + 1, steps + 1):
        loss = losses[min(step, len(losses)) - 1] * factor
        skipped = {"skipped": cause} if cause and not how.get("misses_causes") else {}
        sink.write(json.dumps({"step": step, "loss": loss, "grad_norm": 1.0, "lr": 0.1, "step_ms": 10.0, "tokens": 64 * step, "mfu": 0.4,
                               "arena_bytes": 0, "elapsed_s": step * how.get("save_s", 0)} | skipped) + "\\n")
        if every and step % every == 0:
            save(step)
        if signalled or any(state(process) == "Z" for process in watched):
            if not how.get("saves_nothing"):
                save(step)
            sys.exit(75)
        if skipped:
            print("the gradient of w is not finite: matmul made it first; the loss 7 is a spike: it lies high; the run saves and ends")
        if "stop" in (sets.get("train.on_nonfinite"), sets.get("train.on_spike")):
            sys.exit(7)
        time.sleep(how.get("pause_s", 0.002 if every or steps >= 1000 else 0))
    sink.write(json.dumps({"step": steps, "eval_loss": how.get("eval", 1.99)}) + "\\n")
if path := os.environ.get("NCCL_DEBUG_FILE"):
    others = 3 if comm == "nccl-flat" else 1
    sums = [("ReduceScatter", 25, 7), ("AllReduce", 1, 8)] if is_ring else [("AllGather", 8, 1), *[("Send", 100, 1), ("Recv", 100, 1)] * others]
    for rank in range(4):
        calls = [("AllGather", 64, 1), *(2 * [("AllGather", 100, 1)] + sums + how.get("more_calls", [])[rank:]) * steps]
        pathlib.Path(path.replace("%p", str(rank))).write_text("".join(
            f"h:1:1 [0] NCCL INFO {what}: opCount 1 sendbuff 0x1 recvbuff 0x2 count {count} datatype {kind} op 0 root 1 comm 0x3 "
            f"[nranks={others + 1}] stream 0x4\\n" for what, count, kind in calls))
print("rank 0 sent 8 B in 1 collectives" + (", as planned" if not how.get("sends_more") else ": 1 B more than planned"))
if "--trace" in arguments:
    products_ms = 54 if kinds["named"] else 60
    attention_ms = 20 if "run.deterministic" in sets else 24
    ops = [{"ph": "X", "name": name, "tid": tid, "dur": 1e3 * ms, "args": {"op": 1, "bytes": 15 << 30, "flops": flops}}
           for name, tid, ms, flops in (("matmul", 0, products_ms, 3e10), ("attention_backward", 0, attention_ms, 1e10), ("attention", 0, 1, 0),
                                        ("rope", 1, 15, 0), ("fill", 0, 0.01, 0), ("rope", 1002, 7, 0))]
    # Whole or not at all: the run is ended as soon as the file is there.
    new = pathlib.Path(option("--trace") + ".new")
    new.write_text(json.dumps({"traceEvents": [{"ph": "X", "name": "step 5", "dur": 9, "args": {}}, *ops, *ops]}))
    new.rename(option("--trace"))
print(f"  device taken 7 B of 8 B, 1 B of them outside of the arenas, {how.get('taken', 0)} B since step 2")
if "train.steps" not in sets and ("llama" in arguments[1] or "quickstart" in arguments[1] and "precision.compute=bf16" in arguments):
    time.sleep(60)
if not (every and steps % every == 0):
    save(steps)
"""
# Trains as the programs do, tests as below, or measures.
RANKS = """#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] == "rates":
    print(json.dumps({"kind": "all_gather", "bytes": 1 << 28, "seconds": 1e-3}))
elif words[0] == "train":
    recipe, *sets = json.loads(pathlib.Path(words[1]).read_text())
    os.execv("bin/shardc", ["shardc", "run", recipe, "--run-dir", words[2], *sets, "as-threads", *words[3:]])
else:
    print("[  PASSED  ] 2 tests." if "collectives" not in json.loads(pathlib.Path("how.json").read_text()) else "[  FAILED  ] 1 test")
"""
TESTS = """#!/usr/bin/env python3
import json, pathlib, sys, time
if "--gtest_list_tests" in sys.argv:
    print("".join(f"{suite}.\\n  EqualsLoopsInF64\\n" for suite in json.loads(pathlib.Path("suites").read_text())))
    sys.exit(0)
suites = [word[:-2] for word in sys.argv[-1].split("=")[1].split(":")]
how = pathlib.Path("how").read_text()
time.sleep(60 if how == "hang" else 0)
fails = how == "fail" and "Matmul" in suites
print("[  FAILED  ] Matmul.EqualsLoopsInF64" if fails else f"[  PASSED  ] {0 if how == 'skip' else 7 * len(suites)} tests.")
sys.exit(fails)
"""
CARD = """print('{"card": "NVIDIA H200", "driver": "580", "free_bytes": 0, "libraries": {}, "copy_tb_s": 1, "product_tf_s": 1}')"""
# What PyTorch would print, from theirs.json, if the parameters and tokens that it is given are there.
PYTORCH = """
import json, os, pathlib, sys
given = dict(word[2:].split("=") for word in sys.argv[1:])
assert pathlib.Path(given["weights"]).is_file() and os.path.getsize(given["tokens"]) == 4 * (20 * 8 * 2048 + 1), given
assert given["hidden"] == "2048" and given["lr"] == "3e-4", given
for mode, ms in (("eager", 40.0), ("compiled", 20.0)):
    losses = json.loads(pathlib.Path(f"{mode}.json").read_text())
    print(json.dumps({"mode": mode, "losses": losses, "step_ms": ms, "first_step_s": ms / 4, "allocated": 3 << 30, "reserved": 4 << 30}))
assert os.environ["TORCHINDUCTOR_CACHE_DIR"].endswith("1b-compiled")
"""
# The same of a launch over hosts.
LAUNCHED_PYTORCH = """
import json, os, sys
assert {"--sac", "--layers=32"} <= set(sys.argv) and not any("weights" in word for word in sys.argv), sys.argv
assert [os.environ[name] for name in ("WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")] == ["4", os.environ["RANK"], "29500"], os.environ
if os.environ["RANK"] == "0":
    print(json.dumps({"mode": "eager", "step_ms": 100.0, "allocated": 3 << 30}))
"""
# Runs what it is given, as the real one does, and then prints what how_sanitizer says.
SANITIZER = """#!/usr/bin/env python3
import pathlib, subprocess, sys
code, text = pathlib.Path("how_sanitizer").read_text().split(" ", 1)
if code == "0":
    subprocess.run(sys.argv[sys.argv.index("all") + 1:], check=True)
print(text)
sys.exit(int(code))
"""


def run(*command, **environment) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | environment)


# Stands for unshare and nsenter, and ip, which tells the trainings that the network goes.
WITHIN = """#!/bin/sh
shift
exec "$@"
"""
IP = """#!/bin/sh
if [ "$4" = down ]; then touch "$(dirname "$0")/down"; fi
"""


class GpuToolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        (self.folder / path).chmod(mode)

    def gpu_test(self, rows: str, seconds: float = 30, **environment) -> subprocess.CompletedProcess:
        return run(sys.executable, TOOLS / "test.py", "--folder", self.folder, "--out", self.folder / "out", "--only", rows, "--seconds", seconds,
                   CUDA_LIBRARIES="/nowhere", **environment)

    def pretend(self, losses: list[float], recorded: list[float], **how) -> None:
        self.write("bin/shardc", SHARDC, 0o755)
        self.write("how.json", json.dumps({"losses": losses} | how))
        self.write("tests/gpu/quickstart_losses.json", json.dumps({"tokens": hashlib.sha256(b"tokens").hexdigest(), "fp32": recorded, "bf16": recorded}))
        self.write(".deps/data/fortunes.bin", "tokens")

    def test_losses_are_compared(self):
        recorded = [5.5 - 0.1 * step for step in range(20)]
        for factor, failed in ((1 + 1e-6, 0), (1 + 1e-4, 1)):
            self.pretend([loss * factor for loss in recorded], recorded)
            result = self.gpu_test("quickstart,quickstart-bf16")
            self.assertEqual(result.returncode, failed, result.stdout)
            self.assertIn("| quickstart-bf16 | time of the row |", result.stdout)
            self.assertIn(f"| quickstart | 20 steps in fp32 against the CPU | {'FAIL' if failed else 'pass'} |", result.stdout)

    def test_losses_of_other_tokens(self):
        self.pretend([5.5] * 20, [5.5] * 20)
        self.write(".deps/data/fortunes.bin", "other tokens")
        self.assertIn("FAIL | the losses in tests/gpu/quickstart_losses.json are of other tokens", self.gpu_test("quickstart").stdout)
        self.write("tests/gpu/quickstart_losses.json", "[]")
        printed = self.gpu_test("quickstart,shares").stdout
        self.assertIn("| quickstart |  | FAIL | TypeError", printed)
        self.assertIn("| shares | step of llama_1b, op by op | figure |", printed)

    def test_loss_that_does_not_fall(self):
        for losses, outcome in (([9.0 - 0.1 * step for step in range(20)], "pass"), ([9.0] * 20, "FAIL")):
            self.pretend(losses, [])
            self.assertIn(f"| llama_124m | loss falls | {outcome} |", self.gpu_test("llama_124m").stdout)

    def test_times_and_memory(self):
        falls = [9.0 - 0.1 * step for step in range(20)]
        for how, rows in (({}, ("llama_1b | step | pass | 10.0 ms (280 at most)", "llama_1b | launch to the end of the first step | pass |",
                                "llama_1b | initial values | pass | 0.50 s to allocate and bind, 0.25 s to initialise",
                                "quickstart | validation after 300 steps | pass | 1.9900", "| pass | 0 B |")),
                          ({"eval": 2.03, "taken": 512}, ("quickstart | validation after 300 steps | FAIL | 2.0300", "| FAIL | 512 B |"))):
            self.pretend(falls, falls, **how)
            printed = self.gpu_test("quickstart,llama_1b").stdout
            for row in rows:
                self.assertIn(row, printed)

    def test_without_a_card(self):
        self.pretend([5.5], [])
        self.write("card.py", "import sys; sys.exit('no driver')")
        result = self.gpu_test("doctor,quickstart,llama_1b")
        for row in ("doctor |  | FAIL | exit code 1", "quickstart |  | not run | the doctor found no card", "1 failed"):
            self.assertIn(row, result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_goals_are_those_of_one_card(self):
        falls = [9.0 - 0.1 * step for step in range(20)]
        self.pretend(falls, falls)
        self.write("card.py", CARD)
        printed = self.gpu_test("doctor,llama_124m,llama_124m_16").stdout
        for row in ("doctor | copy | figure |", "llama_124m | step | figure |", "llama_124m_16 | loss falls | pass |"):
            self.assertIn(row, printed)

    def test_bits(self):
        for how, found in (({}, ""), ({"resumed": 1e-15}, "killed after a save, and resumed"), ({"guard": 1e-15}, "under the guard")):
            self.pretend([5.5, 5.25, 4.5], [], **how)
            result = self.gpu_test("bits")
            self.assertEqual(result.stdout.count("the same metrics and parameters") // 2, 2 if found else 3, result.stdout)
            self.assertEqual(result.returncode, 1 if found else 0)
            if found:
                self.assertIn(f"{found} | FAIL | step ", result.stdout)

    def test_features(self):
        for how, figure in (({"gpu": 5e-5}, "pass | 34 of 34 trainings equal the CPU's; they differ by at most 5.0e-05 in fp32 (1e-04)"),
                            ({"gpu": 1e-3, "misses_causes": True}, "FAIL | 10 of 34 trainings equal")):
            self.pretend([5.5, 5.25, 4.5], [], **how)
            result = self.gpu_test("features", 60)
            self.assertIn(figure, result.stdout)
            self.assertEqual(result.returncode == 0, "pass" in figure)
        self.assertIn("| features | qwen2 | FAIL | differs by 1.0e-03 of itself, 1e-04 at most |", result.stdout)
        self.assertIn("| features | spikes left out | FAIL | ` is a spike: it lies ` is nowhere", result.stdout)
        self.assertIn("==== rules that read a seed: differs by", (self.folder / "out/features.log").read_text())

    def test_ranks(self):
        for how, failed, figures in (
            ({}, 0, ("dp 4: processes, threads, lagging streams | pass | the same bits; losses and norms differ from the CPU's by 0.0e+00",
                     "rank 1 of 2 is stopped | pass | exit code 6 (6 expected), the rank is named",
                     "two ranks, one GPU, not shared | pass | exit code 6; ranks and remedy are named")),
            ({"lag": 1e-15, "who": 0, "refusal": 1}, 11,
             ("tp 2: processes, threads, lagging streams | FAIL | threads and lagging streams: step 1 has loss",
              "rank 1 of 2 is killed | FAIL | `error: rank 1 was killed by signal 9", "two ranks, one GPU, not shared | FAIL | exit code 1")),
            ({"threads": 1e-15, "end_code": 1, "collectives": "fail"}, 12,
             ("tp 2: processes, threads, lagging streams | FAIL | threads and processes: step 1 has loss",
              "rank 1 of 2 is stopped | FAIL | exit code 1 (6 expected), the rank is named",
              "collectives among threads, against the host's sums | FAIL | 0 meshes")),
            ({"gpu": 1e-3, "two": 1e-4}, 10,
             ("tp 2: processes, threads, lagging streams | FAIL | the same bits; losses and norms differ from the CPU's by 1.0e-03",
              "one after another | FAIL | losses and norms differ from the CPU's by 1.0e-03",
              "dp 2 against one rank | FAIL | losses differ by 1.0e-04")),
        ):
            with self.subTest(how=how):
                self.pretend([5.5, 5.25, 4.5], [], **how)
                self.write("bin/tests_ranks_cuda", RANKS, 0o755)
                result = self.gpu_test("ranks", 60)
                for figure in figures:
                    self.assertIn(figure, result.stdout)
                self.assertEqual(result.returncode, failed, result.stdout)

    def test_hosts(self):
        for how, has_namespaces, figures in (
            ({}, True, {
                "rank 3 of 4 is stopped | pass | exit code 6 (6 expected), the rank is named",
                "2 hosts x 2 ranks: nccl, nccl-flat, nccl-ring against shm | pass | nccl and nccl-flat have the bits of shm",
                "the network is cut | pass |",
                "SIGTERM to the process of rank 3, and on without hosts | pass | saved step ",
                "SIGTERM to the process of host 1, and on without hosts | pass | saved step ",
                "nccl: calls of NCCL against the plan | pass | a step has 3 AllGather, 1 Recv, 1 Send, 308 bytes by the plan, and by NCCL's logs",
                "nccl-flat: calls of NCCL against the plan | pass | a step has 3 AllGather, 3 Recv, 3 Send, 924 bytes",
                "nccl-ring: calls of NCCL against the plan | pass | a step has 2 AllGather, 1 AllReduce, 1 ReduceScatter, 316 bytes",
                "no interface has the name in NCCL_SOCKET_IFNAME | pass | exit code 6 after",
                "libnccl.so.2 is no library | pass | exit code 6 after"}),
            ({"nccl": 1e-15, "who": 0, "on": 1e-15, "more_calls": [["Send", 1, 1]], "says": "it failed"}, False, {
                "rank 3 of 4 is stopped | FAIL | `error: rank .*(waiting for rank 3",
                "rank 3 of 4 is killed | FAIL | `error: rank 3 ",
                "2 hosts x 1 rank: nccl, nccl-flat, nccl-ring against shm | FAIL | shm and nccl: step 1 has loss",
                "the network is cut | not run | not possible here: a network namespace",
                "SIGTERM to the process of host 1, and on without hosts | FAIL | step ",
                "nccl: calls of NCCL against the plan | FAIL | a step has 3 AllGather, 1 Recv, 1 Send, 308 bytes by the plan, and two steps",
                "no interface has the name in NCCL_SOCKET_IFNAME | FAIL | exit code 6 after",
                "libnccl.so.2 is no library | FAIL | exit code 6 after"}),
            ({"ring": 2e-6, "saves_nothing": True, "end_code": 1}, True, {
                "2 hosts x 1 rank: nccl, nccl-flat, nccl-ring against shm | FAIL | nccl and nccl-flat have the bits of shm, nccl-ring the same "
                "ones twice; its losses differ from shm's by 2.0e-06",
                "SIGTERM to the process of rank 3, and on without hosts | FAIL | step ",
                "rank 3 of 4 is killed | FAIL | exit code 1 (6 expected)"}),
            ({"again": 1e-15, "sends_more": True}, False, {
                "2 hosts x 1 rank: nccl, nccl-flat, nccl-ring against shm | FAIL | shm: rank 0 did not send as planned"}),
            ({"again": 1e-15}, False, {
                "2 hosts x 2 ranks: nccl, nccl-flat, nccl-ring against shm | FAIL | nccl-ring and nccl-ring again: step 1 has loss"}),
        ):
            with self.subTest(how=how):
                self.pretend([5.5, 5.25, 4.5], [], **how)
                for name in ("unshare", "nsenter"):
                    self.write(f"path/{name}", WITHIN if has_namespaces else "#!/bin/sh\nexit 1\n", 0o755)
                self.write("path/ip", IP, 0o755)
                result = self.gpu_test("hosts", 100, PATH=f"{self.folder / 'path'}:{os.environ['PATH']}")
                (self.folder / "path/down").unlink(missing_ok=True)
                for figure in figures:
                    self.assertIn(figure, result.stdout)
                self.assertEqual(result.returncode == 0, not how, result.stdout)

    def test_roofs(self):
        self.pretend([9.0 - 0.1 * step for step in range(20)], [])
        self.write("card.py", CARD)
        command = (sys.executable, TOOLS / "test.py", "--folder", self.folder, "--out", self.folder / "out", "--roofs", "--only")
        result = run(*command, "doctor,roofs_1b", CUDA_LIBRARIES="/nowhere")
        for row in ("step, products by measurement | figure | 10.00 ms; 10.00 before and 10.00 after it without: 1.000",
                    "product bf16 1000 x 2000 x 500 nt, to bf16 | figure | first answer 4000.0 us, 0 TF/s, 50 % of the product; "
                    "chosen of 9: 2000.0 us, 1 TF/s, 100 % of the product",
                    "op matmul, 1 in a step | figure | 60.00 ms, 0 TF/s, 50 % of the product; 60.0 % of the step",
                    "op rope, 1 in a step | figure | 15.00 ms, 1.07 TB/s, 107 % of the copy",
                    "losses with the file of that measurement | pass | 20 losses",
                    "op products, by measurement | figure | 54.00 ms, 1 TF/s, 56 % of the product; 60.00 ms",
                    "op attention_backward, not deterministic | figure | 20.00 ms"):
            self.assertIn(f"| roofs_1b | {row}", result.stdout)
        self.assertNotIn("op fill", result.stdout)
        self.pretend([9.0 - 0.1 * step for step in range(20)], [], named=1e-15)
        self.assertIn("losses with the file of that measurement | FAIL |", run(*command, "doctor,roofs_1b", CUDA_LIBRARIES="/nowhere").stdout)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue((self.folder / "out/roofs.json").is_file() and (self.folder / "out/roofs.md").is_file())
        self.assertIn("the row doctor has to run before", run(*command, "roofs_1b", CUDA_LIBRARIES="/nowhere").stdout)

    def test_graphs(self):
        for how, outcome in (({}, "pass | equal to the bit"), ({"graphs": 1e-15}, "FAIL | differ")):
            self.pretend([9.0 - 0.1 * step for step in range(20)], [], **how)
            result = run(sys.executable, TOOLS / "test.py", "--folder", self.folder, "--out", self.folder / "out", "--roofs", "--only", "graphs",
                         CUDA_LIBRARIES="/nowhere")
            self.assertIn("| graphs | step of quickstart | figure | 10.000 ms; 10.000 before and 10.000 after it without: 1.000; the card has 0.0 MiB more",
                          result.stdout)
            for name in ("quickstart", "llama_124m"):
                self.assertIn(f"| graphs | losses of {name} | {outcome} |", result.stdout)
            self.assertEqual(result.returncode, 2 if how else 0, result.stdout)

    def test_several_gpus(self):
        falls = [9.0 - 0.1 * step for step in range(20)]
        self.pretend(falls, falls)
        self.write("bin/tests_ranks_cuda", RANKS, 0o755)
        self.write("card.py", CARD)
        command = (sys.executable, TOOLS / "test.py", "--folder", self.folder, "--out", self.folder / "out", "--gpus")
        rows = ("rates | all_gather of 256 MiB over 4 GPUs | figure | 201 GB/s per GPU, 45 % of its link's 450, 1000 us",
                "exposed | communication of a step of llama_8b_slice, dp 4 | figure | 0.0 ms of 10.0; one GPU takes 10.0, of which 0.0",
                "llama_8b | step of Llama 3 8B, dp 4, 8192 tokens per GPU, torchtitan's selective recomputation | figure | 10.0 ms, estimated 9.8 ms, 6400 tokens/s")
        result = run(*command, 4, "--only", "doctor,rates,exposed,llama_8b", CUDA_LIBRARIES="/nowhere")
        for row in rows:
            self.assertIn(row, result.stdout)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertTrue((self.folder / "out/4_gpus.json").is_file())
        self.assertFalse((self.folder / "out/last_run.json").exists())
        self.pretend(falls, falls, does_not_fit=True)
        result = run(*command, 2, "--only", "llama_8b", CUDA_LIBRARIES="/nowhere")
        self.assertIn("| llama_8b |  | not run | it does not fit 2 of these GPUs", result.stdout)
        self.assertIn("known are doctor, rates, exposed, llama_8b, fsdp2", run(*command, 2, "--only", "ranks").stderr)

    def test_launch_over_hosts(self):
        falls = [9.0 - 0.1 * step for step in range(20)]
        self.pretend(falls, falls, pause_s=0.05)
        self.write("tests/gpu/llama_8b_slice.toml", (ROOT / "tests/gpu/llama_8b_slice.toml").read_text())
        self.write("tests/bench/fsdp2/baseline_gpu.py", LAUNCHED_PYTORCH)
        self.write("modules/torch/__init__.py", "")

        def launch(row: str, rank: int, **more: str) -> subprocess.CompletedProcess:
            place = {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
            if row == "fsdp2":
                place = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": str(rank), "SLURM_STEP_NUM_NODES": "2"}
            return run(sys.executable, TOOLS / "test.py", "--folder", self.folder, "--out", self.folder / "out", "--hosts", row,
                       CUDA_LIBRARIES="/nowhere", PYTHONPATH=str(self.folder / "modules"), **place, **more)

        for row, lines in (
            ("exposed", ("exposed | bytes that host 0 sends in a step | figure |", "planned 0.000", "exposed | loss falls on 4 GPUs | pass |",
                         "communication of a step of llama_8b_slice, dp 4 | figure | 0.0 ms of 10.0; one GPU takes 10.0, of which 0.0")),
            ("llama_8b", ("llama_8b | bytes that host 0", "llama_8b | step of Llama 3 8B, dp 4, 8192 tokens per GPU", "figure | 10.0 ms, estimated 9.8 ms, 6400 tokens/s")),
            ("fsdp2", ("fsdp2 | step of Llama 3 8B in PyTorch FSDP2, eager, selective recomputation | figure | 100.0 ms, 327680 tokens/s, allocated 3.0",)),
        ):
            other = launch(row, 1, MASTER_ADDR="node0")
            self.assertEqual((other.returncode, other.stdout), (0, ""), other.stderr)
            self.assertFalse((self.folder / f"out/hosts_{row}.md").exists())
            result = launch(row, 0, MASTER_ADDR="node0")
            for line in lines:
                self.assertIn(line, result.stdout, result.stderr)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertIn(lines[0], (self.folder / f"out/hosts_{row}.md").read_text())
        self.assertIn("or MASTER_ADDR is not set", launch("fsdp2", 0).stdout)
        self.assertIn("--hosts takes a launch by torchrun or srun", run(sys.executable, TOOLS / "test.py", "--hosts", "exposed").stderr)
        self.pretend(falls, falls, does_not_fit=True)
        self.assertIn("| llama_8b |  | FAIL | exit code 4", launch("llama_8b", 0).stdout)

    def test_bytes_that_were_sent(self):
        self.write("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "250\n")
        self.write("net/eth0/device/vendor", "0x15b3")
        self.write("net/eth0/statistics/tx_bytes", "7\n")
        self.write("net/lo/statistics/tx_bytes", "100000\n")
        self.write("infiniband/mlx5_1/ports/1/counters/port_xmit_data", "N/A\n")
        sys.path.insert(0, str(TOOLS))
        import launched
        self.assertEqual(launched.sent_bytes(self.folder), 1007)
        self.assertIn("0.200 GB, planned 0.100 (+100.0 %)", launched.of_network("exposed", 2e8, 10**8).figure)
        self.assertIn("nothing counted", launched.of_network("exposed", 0, 10**8).figure)

    def test_save(self):
        losses = [5.5 - 0.1 * step for step in range(20)]
        for save_s, outcome in ((0.01, "pass"), (5, "FAIL")):
            self.pretend(losses, [], save_s=save_s, pause_s=0.05)
            printed = self.gpu_test("save").stdout
            self.assertIn(f"| save | time against cp and sync of its files | {outcome} |", printed)
            self.assertIn("| save | step after a load | pass | loss equal to the bit; 0.25 s to load |", printed)
        self.pretend(losses, [], resumed=1e-15, pause_s=0.05)
        self.assertIn("| save | step after a load | FAIL | loss differs;", self.gpu_test("save").stdout)

    def test_shares(self):
        self.pretend([5.5], [])
        self.assertIn("100 ms: products 60 (60 %), attention 25 (25 %), optimizer 0 (0 %), rest 15 (15 %)", self.gpu_test("shares").stdout)

    def test_sanitizer(self):
        self.pretend([5.5, 5.0], [])
        self.write("path/compute-sanitizer", SANITIZER, 0o755)
        path = f"{self.folder / 'path'}:{os.environ['PATH']}"
        none = "===== RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n===== ERROR SUMMARY: 0 errors"
        for how, outcome, failed in ((f"0 {none}", "pass | 0 reports in 2 steps", 0),
                                     (f"0 {none.replace('0 hazards', '3 hazards')}", "FAIL | 3 reports in 2 steps", 2),
                                     (f"9 {none.replace('0 errors', '12 errors')}", "FAIL | 12 reports in 0 steps", 2),
                                     (f"9 ===== Internal Sanitizer Error: it failed.\n{none.replace('0 hazards', '1 hazard')}",
                                      "not run | not possible here: Internal Sanitizer Error: it failed.", 0),
                                     ("1 ===== Error: Device not supported.", "not run | not possible here: Error: Device not supported.", 0)):
            self.write("how_sanitizer", how)
            result = self.gpu_test("sanitizer", PATH=path)
            self.assertEqual(result.stdout.count(outcome) // 2, failed or 4, result.stdout)
            self.assertEqual(result.returncode, failed, result.stdout)

    def test_comparison(self):
        losses = [9.0 - 0.1 * step for step in range(20)]
        self.pretend(losses, [])
        self.write("tests/bench/fsdp2/baseline_gpu.py", PYTORCH)
        self.write("tests/gpu/llama_1b.toml", (ROOT / "tests/gpu/llama_1b.toml").read_text())
        for eager, compiled, code, figure in ((1, 1, 0, "0.0e+00, 0.0e+00"), (1.05, 1.05, 1, "4.8e-02, 4.8e-02"), (1, 1.05, 0, "0.0e+00, 4.8e-02"),
                                              (1.07, 1.05, 1, "6.5e-02, 4.8e-02"), (1.5, 1.2, 1, "3.3e-01, 1.7e-01"),
                                              (math.nan, math.nan, 1, "inf, inf")):
            self.write("eager.json", json.dumps([loss * eager for loss in losses]))
            self.write("compiled.json", json.dumps([loss * compiled for loss in losses]))
            result = run(sys.executable, TOOLS / "test.py", "--compare", "--folder", self.folder, "--out", self.folder / "out", "--only", "1b",
                         CUDA_LIBRARIES="/nowhere")
            line = "| 1b | 10.0 ms | 40.0 ms | 20.0 ms | 0.25, 0.50 | 6.4 k, 1.6 k, 3.2 k | 0.0 (0.0), 3.0 (4.0), 3.0 (4.0) | "
            self.assertRegex(result.stdout, re.escape(line) + r"\d\.\d s, 10\.0 s, 5\.0 s \| " + re.escape(figure), result.stderr)
            self.assertEqual(result.returncode, code)
        head, rule, row = (self.folder / "out/compare.md").read_text().splitlines()
        self.assertEqual({head.count("|"), rule.count("|"), row.count("|")}, {10})
        self.assertFalse((self.folder / "out/last_run.json").exists())

    def test_program_that_fails_or_hangs(self):
        self.write("bin/tests_ops_cuda", TESTS, 0o755)
        for how, suites, line in (("pass", 1, "pass | 7 tests of 1 ops passed"), ("pass", 17, "pass | 119 tests of 17 ops passed"),
                                  ("fail", 17, "FAIL | 112 tests of 16 ops passed; failed: Matmul |"), ("hang", 1, "failed: Matmul |"),
                                  ("skip", 1, "FAIL | 0 tests of 0 ops passed; failed: Matmul |")):
            self.write("suites", json.dumps(["Matmul", *(f"Op{number}" for number in range(1, suites))]))
            self.write("how", how)
            result = self.gpu_test("kernels", 2 if how == "hang" else 30)
            self.assertIn(line, result.stdout)
            self.assertEqual(result.returncode, 0 if how == "pass" else 1)
            if how != "pass":
                text = (self.folder / "out/kernels.log").read_text()
                said = {"fail": "exit code 1\n[  FAILED  ] Matmul", "hang": "still running after", "skip": "no test passed"}
                self.assertIn(said[how], text)

    def test_run_that_is_killed_leaves_its_rows(self):
        self.write("bin/tests_ops_cuda", TESTS, 0o755)
        self.write("suites", '["Matmul"]')
        self.write("how", "pass")
        self.pretend([5.5] * 20, [5.5] * 20)
        self.write("bin/shardc", "#!/bin/sh\nkill -9 $PPID\n", 0o755)
        self.assertEqual(self.gpu_test("kernels,quickstart").returncode, -9)
        record = json.loads((self.folder / "out/last_run.json").read_text())
        self.assertEqual([row["outcome"] for row in record["rows"]], ["pass", "figure"])
        self.assertIn("7 tests of 1 ops passed", (self.folder / "out/report.md").read_text())

    def test_program_that_does_not_end_is_left(self):
        process = subprocess.Popen(["true"], start_new_session=True)
        self.addCleanup(process.wait)

        class Stuck:
            """A program in a call of the driver, which no signal ends."""
            pid = process.pid

            def wait(self, timeout: float | None = None) -> int:
                assert timeout is not None, "waits for ever"
                raise subprocess.TimeoutExpired("program", timeout)

        sys.path.insert(0, str(TOOLS))
        import bench
        bench.stop(Stuck())

    def test_tasks_after_the_time_of_their_row(self):
        sys.path.insert(0, str(TOOLS))
        import bench
        import ranks
        ends = bench.Deadline(0)
        results = list(ranks.outcomes(None, "ranks", {"dp 2": lambda: (True, "ran")}, ends))
        self.assertEqual([(result.outcome, result.figure) for result in results], [("not run", "the time of the row is over")])

    def test_report_is_a_record_but_for_its_card(self):
        self.write("bin/tests_ops_cuda", TESTS, 0o755)
        self.write("suites", '["Matmul"]')
        self.write("how", "pass")
        self.gpu_test("kernels")
        record = json.loads((self.folder / "out/last_run.json").read_text())
        record |= {"card": "NVIDIA H100", "driver": "580", "sources": {"runtime/cuda/main.cpp": "0"}}
        self.write("tests/gpu/last_run.json", json.dumps(record))
        self.assertEqual(run(sys.executable, TOOLS / "record.py", self.folder).returncode, 0)

    def test_record(self):
        self.write("runtime/device/cuda/device.cpp", "old")
        self.write("runtime/kernels/cuda/add.cu", "old")
        sources = json.loads(run(sys.executable, TOOLS / "record.py", "--sources", self.folder).stdout)
        self.assertEqual(sorted(sources), ["runtime/device/cuda/device.cpp", "runtime/kernels/cuda/add.cu"])
        row = {"row": "doctor", "what": "card", "outcome": "figure", "figure": ""}
        good = {"date": "2026-11-26T10:00:00Z", "card": "c", "driver": "d", "libraries": {}, "rows": [row], "sources": sources}
        self.write("runtime/kernels/cuda/add.cu", "new")
        for change, code, text in (
            ({}, 0, "run emulated: 1: runtime/kernels/cuda/add.cu"),
            ({}, 0, "without a GPU runs: 0\n"),
            ({"date": "today"}, 1, "`date` is 'today'"),
            ({"sources": []}, 1, "`sources` is missing, or no dict"),
            ({"rows": [row | {"outcome": "ok"}]}, 1, "a row is"),
            ({"card": ""}, 1, "`card` is empty"),
        ):
            self.write("tests/gpu/last_run.json", json.dumps(good | change))
            result = run(sys.executable, TOOLS / "record.py", self.folder)
            self.assertIn(text, result.stdout)
            self.assertEqual(result.returncode, code, result.stdout)

    def test_budget(self):
        # The tool's own folder decides where the budget lies.
        self.write("tools/gpu/kernel_budget.py", (TOOLS / "kernel_budget.py").read_text())
        resources = (
            "ptxas info    : Compiling entry function '_ZN6shardc4cuda9SumLossesIdEEvPKT_lbPS2_' for 'sm_90'\n"
            "    8 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n"
            "ptxas info    : Used 30 registers, used 1 barriers, 256 bytes smem\n"
        )
        self.write("now.resources", resources)
        for row, text in (
            ("SumLosses<double> 30 256 4\n", "1 kernels, 0 over"),
            ("SumLosses<double> 29 256 4\n", "registers 30, 29 at most"),
            ("SumLosses<double> 30 0 4\n", "shared 256, 0 at most"),
            ("SumLosses<double> 30 256 0\n", "spilled 4, 0 at most"),
            ("", "SumLosses<double> has no row"),
            ("SumLosses<double> 30 256 4\nOther 1 0 0\n", "Other is no kernel"),
        ):
            self.write("tests/gpu/kernels.txt", "# A head.\n" + row)
            result = run(sys.executable, self.folder / "tools/gpu/kernel_budget.py", self.folder / "now.resources")
            self.assertIn(text, result.stdout)
            self.assertEqual(result.returncode, 0 if "0 over" in text else 1)
        run(sys.executable, self.folder / "tools/gpu/kernel_budget.py", "--update", self.folder / "now.resources")
        self.assertEqual((self.folder / "tests/gpu/kernels.txt").read_text(), "# A head.\nSumLosses<double>   30    256    4\n")


if __name__ == "__main__":
    unittest.main()
