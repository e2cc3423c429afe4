#!/usr/bin/env python3
"""Follows metrics.jsonl of a run into TensorBoard's events, or by the package of that name into wandb, MLflow or trackio.

Usage: log_metrics.py RUN_FOLDER tensorboard|wandb|mlflow|trackio [DEST] [--once]

DEST is the folder of the events (logs/NAME_OF_RUN_FOLDER), an experiment of MLflow, or a project of wandb or trackio (shardc). Ends when
the run is complete, has diverged or has failed; waits for one that was stopped, or whose launcher was killed. With --once sends the lines
that are there.

The run directory is only read, so the run never waits. A file in $XDG_STATE_HOME/shardc (~/.local/state/shardc) notes what was sent: the
script may be stopped and started again, and sends no line twice. If a launch takes lines out of metrics.jsonl, or has another recipe, all
lines are sent again, in place of those that were sent.
"""

import argparse
import contextlib
import datetime
import fcntl
import hashlib
import importlib
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import sys
import time
import zlib

POLL_S, RETRY_S = 2, 10
MOST_BYTES = 1 << 18
# A line has the time since its launch began, in nanoseconds: no other lines end in the bytes of those that were sent.
COMPARED_BYTES = 4096
STATE_BYTES = 1 << 14
# What MLflow takes at once, and of one text.
MOST_METRICS, MOST_PARAMS, MOST_CHARACTERS = 1000, 100, 5000


def numbers(line: dict) -> dict:
    return {name: value for name, value in line.items() if isinstance(value, (int, float)) and name != "step"}


def texts(line: dict) -> dict:
    return {name: value for name, value in line.items() if isinstance(value, str) and name != "time"}


def seconds(line: dict) -> float:
    return datetime.datetime.fromisoformat(line.get("time", "1970-01-01T00:00:00Z").replace("Z", "+00:00")).timestamp()


def crc_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


def masked(data: bytes, table: list = crc_table()) -> bytes:
    """The check sum of a TFRecord, of CRC-32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def event(line: dict) -> bytes:
    """The protobuf Event: wall_time = 1, step = 2, summary = 5, of values with tag = 1, simple_value = 2."""
    found = [(name.encode(), value if abs(value) < 3e38 else math.copysign(math.inf, value)) for name, value in numbers(line).items()]
    values = [b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", value) for tag, value in found]
    summary = b"".join(b"\x0a" + varint(len(value)) + value for value in values)
    return b"\x09" + struct.pack("<d", seconds(line)) + b"\x10" + varint(line["step"]) + b"\x2a" + varint(len(summary)) + summary


def append_events(kept: dict, events: list[bytes]) -> None:
    with open(kept["file"], "r+b") as file:
        # A process that was killed may have left half a record.
        file.truncate(kept["size"])
        file.seek(kept["size"])
        for data in events:
            file.write((size := struct.pack("<Q", len(data))) + masked(size) + data + masked(data))
        kept["size"] = file.tell()


# Each tracker has a function that opens a run, the old one if it is in `kept`, and returns what sends lines and what closes it; and one
# that removes the run of `kept`.


def open_tensorboard(_, dest: str, name: str, recipe: dict, kept: dict, replaced: dict):
    path = pathlib.Path(dest) / "events.out.tfevents.0.shardc"
    if not kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        kept |= {"file": str(path), "size": min(replaced.get("size", math.inf), path.stat().st_size)}
        # An Event with session_log = 7 of status START and step 0: TensorBoard drops what is before it. If the file were replaced, a
        # TensorBoard that runs would keep what it has read.
        start = b"\x09" + struct.pack("<d", time.time()) + b"\x3a\x02\x08\x01"
        append_events(kept, [start] if kept["size"] else [b"\x1a\x0dbrain.Event:2", start])
    return lambda lines: append_events(kept, [event(line) for line in lines]), lambda: None


def remove_tensorboard(*_) -> None:
    pass


def open_wandb(wandb, dest: str, name: str, recipe: dict, kept: dict, _):
    kept.setdefault("id", os.urandom(4).hex())
    try:
        run = wandb.init(project=dest, name=name, id=kept["id"], resume="allow", config=recipe, settings=wandb.Settings(console="off"))
    except Exception:
        # Without this the id is in use when it is tried again.
        wandb.teardown()
        raise
    kept["path"] = run.path
    if run.offline:
        kept["folder"] = str(pathlib.Path(run.dir).parent.parent)
    run.define_metric("step")
    run.define_metric("*", step_metric="step")

    def send(lines: list[dict]) -> None:
        for line in lines:
            # wandb's own step is the number of the line: wandb refuses steps that do not grow, and evaluations share theirs with a step.
            kept["lines"] = kept.get("lines", 0) + 1
            run.log({"step": line["step"], **numbers(line), **texts(line)}, step=kept["lines"], commit=True)

    return send, run.finish


def remove_wandb(wandb, _, kept: dict) -> None:
    if "folder" not in kept:
        return wandb.Api().run(kept["path"]).delete()
    # Each start of this script made one.
    for folder in pathlib.Path(kept["folder"]).glob(f"offline-run-*-{kept['id']}"):
        if any(folder.glob("*.wandb.synced")):
            raise RuntimeError(f"{kept['path']} was synchronized")
        shutil.rmtree(folder)


def open_mlflow(mlflow, dest: str, name: str, recipe: dict, kept: dict, _):
    client = mlflow.MlflowClient()
    if "id" not in kept:
        experiment = client.get_experiment_by_name(dest)
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(dest)
        kept["id"] = client.create_run(experiment_id, run_name=name).info.run_id
    client.update_run(kept["id"], status="RUNNING")
    params = [mlflow.entities.Param(key, str(value)[:MOST_CHARACTERS]) for key, value in recipe.items()]
    for begin in range(0, len(params), MOST_PARAMS):
        client.log_batch(kept["id"], params=params[begin:begin + MOST_PARAMS])

    def send(lines: list[dict]) -> None:
        # Metrics are numbers; a text becomes a tag.
        for line in lines:
            for key, text in texts(line).items():
                client.set_tag(kept["id"], f"{key}.{line['step']}", text)
        metrics = [mlflow.entities.Metric(key, value, int(1000 * seconds(line)), line["step"])
                   for line in lines for key, value in numbers(line).items()]
        for begin in range(0, len(metrics), MOST_METRICS):
            client.log_batch(kept["id"], metrics=metrics[begin:begin + MOST_METRICS])

    return send, lambda: client.set_terminated(kept["id"])


def remove_mlflow(mlflow, _, kept: dict) -> None:
    mlflow.MlflowClient().delete_run(kept["id"])


def open_trackio(trackio, dest: str, name: str, recipe: dict, kept: dict, _):
    # trackio finds a run by its name, so the name has to be that of one run.
    kept.setdefault("id", f"{name}-{os.urandom(4).hex()}")
    run = trackio.init(project=dest, name=kept["id"], resume="allow", config=recipe)

    def send(lines: list[dict]) -> None:
        for line in lines:
            run.log(numbers(line) | texts(line), step=line["step"])

    return send, run.finish


def remove_trackio(trackio, dest: str, kept: dict) -> None:
    for run in trackio.Api().runs(dest):
        if run.name == kept["id"]:
            run.delete()


TRACKERS = {
    "tensorboard": (open_tensorboard, remove_tensorboard),
    "wandb": (open_wandb, remove_wandb),
    "mlflow": (open_mlflow, remove_mlflow),
    "trackio": (open_trackio, remove_trackio),
}


def attempts(run: pathlib.Path) -> list[pathlib.Path]:
    """The folders of launches, oldest first. A launch writes attempt.json after its recipe."""
    return sorted((path.parent for path in run.glob("attempts/[0-9]*/attempt.json")), key=lambda path: (len(path.name), path.name))


def has_ended(run: pathlib.Path) -> bool:
    folders = attempts(run)
    return bool(folders) and json.loads((folders[-1] / "attempt.json").read_text()).get("ended") in ("complete", "diverged", "failed")


def recipe_values(text: str) -> dict:
    """The values of resolved.toml by their dotted keys."""
    try:
        import tomllib
    except ImportError:  # Before Python 3.11: the values as text.
        return dict(line.split(" = ", 1) for line in text.splitlines())

    def flat(table: dict, prefix: str) -> dict:
        found = {}
        for key, value in table.items():
            found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        return found

    return flat(tomllib.loads(text), "")


def next_lines(path: pathlib.Path, state: dict) -> tuple[list[dict], dict] | None:
    """The next whole lines, and what the state is when they are sent. None if the file does not begin with what was sent."""
    begin = max(0, state["sent"] - COMPARED_BYTES)
    with path.open("rb") as file:
        file.seek(begin)
        before = file.read(state["sent"] - begin)
        data = file.read(MOST_BYTES)
    if zlib.crc32(before) != state["compared"]:
        return None
    data = data[:data.rfind(b"\n") + 1]
    lines = []
    for text in data.splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and isinstance(line.get("step"), int):
                lines.append(line)
    return lines, {"sent": state["sent"] + len(data), "compared": zlib.crc32((before + data)[-COMPARED_BYTES:])}


def new_state(began: str, replaced: dict) -> dict:
    """Nothing is sent. `kept` is what a tracker needs to find its run again, `replaced` that of the run which this one replaces."""
    return {"began": began, "sent": 0, "compared": 0, "recipe": 0, "kept": {}, "replaced": replaced}


def report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Sender:
    """Sends the lines of a run to a tracker, and keeps the file of its state. One process at a time has it."""

    def __init__(self, run: pathlib.Path, tracker: str, package, dest: str):
        self.run, self.tracker, self.package, self.dest = run, tracker, package, dest
        self.open, self.remove = TRACKERS[tracker]
        self.send, self.close_run, self.is_sending, self.is_stopped = None, None, False, False
        folder = pathlib.Path(os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local/state") / "shardc"
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(json.dumps([str(run), tracker, dest]).encode()).hexdigest()[:12]
        self.file = os.open(folder / f"{run.name}.{tracker}.{digest}.json", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"error: another process sends the lines of {run} there")
        text = os.pread(self.file, STATE_BYTES, 0)
        self.state = json.loads(text) if text else new_state("", {})

    def step(self) -> bool:
        """Sends lines, or finds that all have to be sent again. Is there more to do?"""
        folders, state = attempts(self.run), self.state
        text = (folders[-1] / "resolved.toml").read_text() if self.package and folders and (folders[-1] / "resolved.toml").exists() else ""
        began = json.loads((folders[0] / "attempt.json").read_text()).get("began_at", "") if folders else ""
        recipe = zlib.crc32(text.encode())
        new = next_lines(self.run / "metrics.jsonl", state)
        is_lost = "file" in state["kept"] and not os.path.exists(state["kept"]["file"])
        if began != state["began"]:
            # Another run has the folder now. What was sent of the one before stays.
            return self.restart(began, {})
        if new is None or is_lost or state["kept"] and recipe != state["recipe"]:
            return self.restart(began, state["kept"] or state["replaced"])
        lines, sent = new
        if sent["sent"] == state["sent"]:
            return False
        self.is_sending = True
        try:
            if lines and not self.send:
                state["recipe"] = recipe
                self.send, self.close_run = self.open(
                    self.package, self.dest, self.run.name, recipe_values(text), state["kept"], state["replaced"])
            if lines and state["replaced"]:
                self.remove_replaced()
            if lines:
                self.send(lines)
            state.update(sent)
            # One write, so that a process which is killed leaves the old state or the new one.
            os.pwrite(self.file, json.dumps(state).encode().ljust(STATE_BYTES), 0)
        finally:
            self.is_sending = False
            if self.is_stopped:
                raise KeyboardInterrupt
        return True

    def stop(self, *_) -> None:
        """Ends the script on a signal: lines that are being sent are noted first, unless a second signal comes."""
        if not self.is_sending or self.is_stopped:
            raise KeyboardInterrupt
        self.is_stopped = True

    def restart(self, began: str, replaced: dict) -> bool:
        self.close()
        self.state = new_state(began, replaced)
        return True

    def remove_replaced(self) -> None:
        try:
            self.remove(self.package, self.dest, self.state["replaced"])
        except Exception as error:
            report(f"{self.tracker}: the run that is replaced could not be deleted, delete it by hand: {error}")
        self.state["replaced"] = {}

    def close(self) -> None:
        close_run, self.send, self.close_run = self.close_run, None, None
        if close_run:
            close_run()


def follow(sender: Sender, is_once: bool) -> int:
    while True:
        try:
            # Asked before lines are read: a run ends after its last line.
            is_last = is_once or has_ended(sender.run)
            while sender.step():
                pass
            if is_last:
                sender.close()
                return 0
        except Exception as error:
            report(f"{sender.tracker}: {type(error).__name__}: {error}" + ("" if is_once else f"; trying again in {RETRY_S} s"))
            with contextlib.suppress(Exception):
                sender.close()
            if is_once:
                return 1
            time.sleep(RETRY_S - POLL_S)
        time.sleep(POLL_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path, metavar="RUN_FOLDER", help="the directory of a run")
    parser.add_argument("tracker", choices=TRACKERS)
    parser.add_argument("dest", nargs="?", metavar="DEST", help="folder of the events (logs/NAME_OF_RUN_FOLDER), experiment or project (shardc)")
    parser.add_argument("--once", action="store_true", help="send the lines that are there, and end")
    options = parser.parse_args()
    run, package = options.run.resolve(), None
    if options.tracker != "tensorboard":
        try:
            package = importlib.import_module(options.tracker)
        except ImportError as error:
            sys.exit(f"error: the package {options.tracker} cannot be loaded ({error}): pip install {options.tracker}")
    dest = options.dest or "shardc" if package else os.path.abspath(options.dest or f"logs/{run.name}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not package and pathlib.Path(dest).resolve().is_relative_to(run):
        sys.exit(f"error: {dest} lies in the run directory; name a folder outside of it")
    with contextlib.suppress(KeyboardInterrupt):
        if not (run / "metrics.jsonl").exists():
            if options.once:
                sys.exit(f"error: {options.run} has no metrics.jsonl; name the directory of a run")
            report(f"waiting for {options.run}/metrics.jsonl")
        while not (run / "metrics.jsonl").exists():
            time.sleep(POLL_S)
        if not (run / "metrics.jsonl").is_file():
            sys.exit(f"error: {options.run}/metrics.jsonl is no regular file; name the directory of a run")
        sender = Sender(run, options.tracker, package, dest)
        for number in signal.SIGINT, signal.SIGTERM:
            signal.signal(number, sender.stop)
        try:
            return follow(sender, options.once)
        finally:
            with contextlib.suppress(Exception):
                sender.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
