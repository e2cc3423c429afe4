"""What tokenize_text.py has finished: OUT.partial with its journal, and at the end OUT.bin, OUT.idx and OUT.sources.json."""

import array
import dataclasses
import fcntl
import functools
import itertools
import json
import os
import pathlib
import shutil
import struct
import time

from failure import Failure
from tokenize_inputs import MIB, Job, Task

# Megatron's codes of the types of ids.
TYPE_CODES = {"H": 8, "i": 4}
ENTRIES_AT_ONCE = 1 << 16
SYNC_S = 1.0
LENGTH_BYTES = 4
# How two counts become one, if they are not added. A conversation has a target at least, and 0 stands for none yet.
COMBINED = {"least_targets": lambda one, other: min(one, other) or max(one, other), "most_targets": max}


class Output:
    """Ids and lengths of the tasks that are finished, in order, and the journal, which says how many of both are sound: the job, then
    one line for each task and each digest. A line is written when that which it says is on the disk."""

    def __init__(self, out: str, job: Job):
        finals = {"ids": ".bin", "targets": ".targets.bin", "sources": ".sources.json", "targets_index": ".targets.idx", "index": ".idx"}
        # The index is the last: nothing reads ids without one.
        self.finals = {name: out + ending for name, ending in finals.items() if job.chat or "targets" not in name}
        self.folder = pathlib.Path(f"{out}.partial")
        self.job = job
        self.tasks, self.is_finished = 0, False
        self.digests: dict[int, str] = {}
        self.names = job.count_names()
        self.counts = [[0] * len(self.names) for _ in job.inputs]
        # The first conversation that is left out, and why.
        self.first_skipped = ""
        self.lines: list[dict] = []
        self.synced = time.monotonic()
        if not (self.folder / "journal").exists():
            self.refuse_finals()
        if self.folder.is_symlink():
            raise Failure(f"{self.folder} is a link, and this program removes that folder when it ends; remove the link, or name another -o")
        self.folder.mkdir(exist_ok=True)
        self.lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure(f"another process works in {self.folder}; wait for it, or name another -o") from None
        if not (self.folder / "journal").exists() and (others := sorted({path.name for path in self.folder.iterdir()} - {"journal.new"})):
            raise Failure(f"{self.folder} has {others[0]} and no journal, so this program did not make it; remove it, or name another -o")
        if not (self.folder / "journal").exists() or b'"task"' not in (self.folder / "journal").read_bytes():
            (self.folder / "journal.new").write_text(json.dumps(dataclasses.asdict(job)) + "\n")
            os.replace(self.folder / "journal.new", self.folder / "journal")
        self.journal = open(self.folder / "journal", "r+b")
        self.read_journal()
        if not self.is_finished:
            self.refuse_finals()
            self.files = {"lengths": self.open_at("lengths", self.total("documents") * LENGTH_BYTES)}
            for name in ("ids", "targets") if job.chat else ("ids",):
                self.files[name] = self.open_at(name, self.total("ids") * job.id_bytes())

    def combined(self, counts: list[list[int]]) -> list[int]:
        return [functools.reduce(COMBINED.get(name, int.__add__), column) for name, column in zip(self.names, zip(*counts))]

    def total(self, name: str) -> int:
        return self.combined(self.counts)[self.names.index(name)]

    def refuse_finals(self) -> None:
        for path in self.finals.values():
            if os.path.lexists(path):
                raise Failure(f"{path} exists; remove it, or name another -o")

    def read_journal(self) -> None:
        lines = self.journal.readlines()
        sound = 0
        try:
            self.compare(json.loads(lines[0]))
            for line in lines:
                # The last line of a process that was killed.
                if not line.endswith(b"\n"):
                    break
                self.take(json.loads(line))
                sound += len(line)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError):
            raise Failure(f"{self.folder}/journal is damaged; remove {self.folder} to begin again") from None
        self.journal.seek(sound)
        self.journal.truncate()

    def compare(self, there: dict) -> None:
        whole = dataclasses.asdict(self.job)
        # What is in `chat` is named by itself.
        pairs = [(there.get("chat") or {}, whole["chat"] or {}), (there, whole)]
        for before, here, key in ((old.get(key), new[key], key) for old, new in pairs for key in new):
            if before == here:
                continue
            if key == "inputs":
                before, here = next((a, b) for a, b in itertools.zip_longest(before, here, fillvalue=["nothing"]) if a != b)
                before, here = before[0], here[0] if before[0] != here[0] else "that file with another size or time of writing"
            raise Failure(f"{self.folder} belongs to a command with another {key}: there {before}, here {here}; give that command "
                          f"again, or remove {self.folder} to begin again")

    def open_at(self, name: str, size: int):
        file = open(self.folder / name, "ab")
        if file.tell() < size:
            raise Failure(f"{self.folder}/{name} is cut short; remove {self.folder} to begin again")
        file.truncate(size)
        return file

    def take(self, line: dict) -> None:
        if "task" in line:
            self.tasks = line["task"] + 1
            for i, *counts in line["counts"]:
                self.counts[i] = self.combined([self.counts[i], counts])
            self.first_skipped = self.first_skipped or line.get("skipped", "")
        elif "input" in line:
            self.digests[line["input"]] = line["sha256"]
        elif "finished" in line:
            self.is_finished = True

    def note(self, line: dict) -> None:
        self.take(line)
        self.lines.append(line)
        if time.monotonic() - self.synced > SYNC_S:
            self.sync()

    def append(self, task: Task, result: dict) -> None:
        """Takes what a worker has made of a task, and says of it."""
        for kind, file in self.files.items():
            path = self.folder / f"{task.number}.{kind}"
            with open(path, "rb") as source:
                shutil.copyfileobj(source, file, MIB)
            path.unlink()
        self.note({"task": task.number, **result})

    def sync(self) -> None:
        for file in self.files.values():
            file.flush()
            os.fdatasync(file.fileno())
        self.journal.write(b"".join(json.dumps(line).encode() + b"\n" for line in self.lines))
        self.journal.flush()
        os.fdatasync(self.journal.fileno())
        self.lines, self.synced = [], time.monotonic()

    def write(self, name: str, chunks) -> None:
        with open(self.folder / name, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())

    def index(self):
        """Megatron's index, as compiler/data/megatron_index.h describes it; each document is a sequence."""
        documents = self.total("documents")
        yield b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, TYPE_CODES[self.job.id_type()], documents, documents + 1)
        with open(self.folder / "lengths", "rb") as file:
            while data := file.read(MIB):
                yield data
            file.seek(0)
            begin = 0
            while data := file.read(LENGTH_BYTES * ENTRIES_AT_ONCE):
                sizes = (self.job.id_bytes() * length for length in array.array("i", data))
                begins = array.array("q", itertools.accumulate(sizes, initial=begin))
                begin = begins.pop()
                yield begins
        for first in range(0, documents + 1, ENTRIES_AT_ONCE):
            yield array.array("q", range(first, min(first + ENTRIES_AT_ONCE, documents + 1)))

    def sources(self) -> dict:
        value = dataclasses.asdict(self.job)
        value |= {"id_bytes": self.job.id_bytes(), **{name: self.total(name) for name in self.names}}
        if self.job.chat:
            value["truncated_conversations"] = 0
        value["inputs"] = [{"path": path, "bytes": size, "sha256": self.digests[i], **dict(zip(self.names, counts))}
                           for i, ((path, _, size, _), counts) in enumerate(zip(self.job.inputs, self.counts))]
        return value

    def finish(self) -> None:
        """Gives the files their final names."""
        if not self.is_finished:
            self.sync()
            for name in ("index", "targets_index") if self.job.chat else ("index",):
                self.write(name, self.index())
            self.write("sources", [(json.dumps(self.sources(), indent=1) + "\n").encode()])
            self.note({"finished": True})
            self.sync()
        for name, path in self.finals.items():
            if (self.folder / name).exists():
                os.rename(self.folder / name, path)
        parent = os.open(self.folder.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.folder)
