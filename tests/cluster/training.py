"""What tests train on hosts of namespaces: the recipe of tests/support/training.cpp, with token files, in a folder that all hosts
share; processes of one launch on these hosts, and what is left of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from two_hosts import Host, Hosts  # noqa: E402

LISTENS = "0A"

# No step, evaluation or save ends these runs.
ENDLESS = ("train.steps=1000000", "train.eval_every=0", "data.eval_tokens=0", "checkpoint.every=0")


def tiny_recipe() -> str:
    """TinyRecipe of tests/support/training.cpp."""
    text = (ROOT / "tests" / "support" / "training.cpp").read_text()
    return re.search(r'R"toml\(\n(.*?)\)toml"', text, re.S)[1]


def write_tokens(path: pathlib.Path, count: int = 40_000) -> None:
    numbers = random.Random(1)
    # Magic, version, number of tokens; the rest of the 256 words is zero.
    path.write_bytes(struct.pack("<256i", 20240520, 1, count, *[0] * 253) + bytes(
        byte for _ in range(count) for byte in (numbers.choice(b"mesh axis shard gather "), 0)))


class Training:
    """A folder with tiny.toml and its tokens. `sets`: of each command that it makes."""

    def __init__(self, programs: pathlib.Path, *sets: str):
        self.shardc, self.runner = programs / "shardc", programs / "shardc-run"
        self.sets = list(sets)
        self.holder = tempfile.TemporaryDirectory(prefix="training.")
        self.folder = pathlib.Path(self.holder.name)
        self.recipe = self.folder / "tiny.toml"
        self.recipe.write_text(tiny_recipe())
        write_tokens(self.folder / "tokens.bin")

    def command(self, verb: str, *words: str, sets: tuple[str, ...] = ()) -> list[str]:
        settings = [word for one in (*self.sets, *sets) for word in ("--set", one)]
        return [str(self.shardc), verb, str(self.recipe), *settings, *words]

    def run(self, name: str, *sets: str) -> list[str]:
        """The command that trains in the run directory `name`."""
        return self.command("run", "--run-dir", str(self.folder / name), sets=sets)

    def plan(self, name: str, *sets: str) -> list[str]:
        """The command that runs the plan file, which has a time limit on silence."""
        path = str(self.folder / f"{name}.plan")
        subprocess.run(self.command("plan", "-o", path, sets=sets), check=True)
        return [str(self.runner), path, "--run-dir", str(self.folder / name), "--timeout", "5"]

    def explained(self, *sets: str) -> dict:
        done = subprocess.run(self.command("plan", "--explain", "--format", "json", sets=sets), capture_output=True, check=True)
        return json.loads(done.stdout)

    def curve(self, name: str) -> list[dict]:
        """The lines of metrics.jsonl, without what a clock and the kernel's pages say."""
        measured = ("step_ms", "tokens_per_s", "time", "elapsed_s", "resident_bytes", "mfu", "hfu")
        try:
            lines = (self.folder / name / "metrics.jsonl").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [{key: value for key, value in json.loads(line).items() if key not in measured} for line in lines]

    def last_step(self, name: str) -> int:
        return max((line["step"] for line in self.curve(name)), default=0)

    def checkpoints(self, name: str) -> list[str]:
        return sorted(path.name for path in (self.folder / name / "checkpoints").glob("step-*") if "." not in path.name)

    def last_checkpoint(self, name: str) -> dict[str, bytes]:
        """Its files."""
        newest = self.folder / name / "checkpoints" / self.checkpoints(name)[-1]
        return {path.name: path.read_bytes() for path in newest.iterdir()}

    def close(self) -> None:
        self.holder.cleanup()


class Ended:
    """How a process ended: its exit code, its messages, and when, seconds since the moment given to Launch.wait."""

    def __init__(self, code: int, text: str, seconds: float):
        self.code, self.text, self.seconds = code, text, seconds


class Launch:
    """One launch: `processes` on each host, started as by hand."""

    def __init__(self, hosts: Hosts, processes: int, command: list[str], environment: dict[str, str] | None = None,
                 master: str = "node0", port: int = 29500):
        self.started: list[tuple[subprocess.Popen, object]] = []
        world = processes * len(hosts)
        for index, host in enumerate(hosts):
            for local in range(processes):
                out = tempfile.TemporaryFile("w+")
                told = {"RANK": index * processes + local, "WORLD_SIZE": world, "LOCAL_RANK": local,
                        "LOCAL_WORLD_SIZE": processes, "MASTER_ADDR": master, "MASTER_PORT": port}
                variables = os.environ | {name: str(value) for name, value in told.items()} | (environment or {})
                self.started.append((host.start(command, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=out), out))

    def text(self, index: int) -> str:
        out = self.started[index][1]
        return os.pread(out.fileno(), 1 << 20, 0).decode()

    def is_running(self) -> bool:
        return any(process.poll() is None for process, _ in self.started)

    def wait(self, since: float | None = None, timeout_s: float = 180) -> list[Ended]:
        begin = time.monotonic() if since is None else since
        ended: dict[int, Ended] = {}
        while len(ended) < len(self.started):
            for index, (process, _) in enumerate(self.started):
                if index not in ended and process.poll() is not None:
                    ended[index] = Ended(process.returncode, self.text(index), time.monotonic() - begin)
            if time.monotonic() - begin > timeout_s:
                texts = "".join(f"--- {i}\n{self.text(i)}" for i in range(len(self.started)))
                raise TimeoutError(f"after {timeout_s} s only {sorted(ended)} have ended\n{texts}")
            time.sleep(0.02)
        for _, out in self.started:
            out.close()
        return [ended[index] for index in sorted(ended)]


def until(what: str, is_so, timeout_s: float = 180) -> None:
    end = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)


def processes_of(host: Host, program: str = "shardc") -> list[int]:
    """The processes of the host that run a program whose name begins so, by their numbers here."""
    own = os.readlink(f"/proc/{host.pid}/ns/pid")
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().split(b"\0")[0].decode()
            if os.path.basename(command).startswith(program) and os.readlink(path / "ns" / "pid") == own:
                found.append(int(path.name))
        except (OSError, UnicodeDecodeError):
            pass
    return sorted(found)


def launched_on(host: Host) -> list[int]:
    """The processes of shardc-run on the host, without the store, which has a name of its own."""
    launched = []
    for pid in processes_of(host):
        with contextlib.suppress(OSError):
            launched += [pid] if pathlib.Path(f"/proc/{pid}/comm").read_text() == "shardc-run\n" else []
    return launched


def parent_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def left_on(host: Host) -> list[str]:
    """What a launch that has ended should not leave on the host: processes, ports, shared memory."""
    left = [f"process {pid}" for pid in processes_of(host)]
    for table in ("tcp", "tcp6"):
        rows = pathlib.Path(f"/proc/{host.pid}/net/{table}").read_text().split("\n")[1:-1]
        left += [f"port {int(row.split()[1].rsplit(':', 1)[1], 16)}" for row in rows if row.split()[3] == LISTENS]
    return left + os.listdir(f"/proc/{host.pid}/root/dev/shm")
