"""Tests of log_metrics.py on a run directory that grows and is cut as a launch cuts it. Run by ctest.

The packages of the trackers are small fakes here, which write down what they are called with.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from script_test import ROOT, ScriptTest

# Looks at the run directory more often than a user's process does.
PROGRAM = "import sys, log_metrics; log_metrics.POLL_S, log_metrics.RETRY_S = 0.05, 0.1; sys.exit(log_metrics.main())"

FAKE = """
import json, os, pathlib
def note(*call):
    if os.path.exists("no_network"):
        raise ConnectionError("no route to host")
    with open("calls.jsonl", "a") as file:
        file.write(json.dumps(call) + "\\n")
"""
FAKES = {
    "wandb": FAKE + """
class Settings:
    def __init__(self, console): pass
class Run:
    def __init__(self, project, id):
        self.path, self.offline = f"me/{project}/{id}", "WANDB_MODE" in os.environ
        self.dir = f"{os.getcwd()}/wandb/offline-run-{len(os.listdir('wandb'))}-{id}/files" if self.offline else "wandb/run"
        pathlib.Path(self.dir).mkdir(parents=True, exist_ok=True)
    def define_metric(self, name, step_metric=None): pass
    def log(self, values, step, commit): note("log", values, step)
    def finish(self): note("finish")
class Api:
    def run(self, path):
        self.path = path
        return self
    def delete(self): note("delete", self.path)
def init(project, name, id, resume, config, settings):
    note("init", project, name, id, resume, config)
    pathlib.Path("wandb").mkdir(exist_ok=True)
    return Run(project, id)
def teardown(): pass
""",
    "mlflow": FAKE + """
import types
def Metric(*fields): return fields
def Param(*fields): return fields
entities = types.SimpleNamespace(Metric=Metric, Param=Param)
class MlflowClient:
    def get_experiment_by_name(self, name): return types.SimpleNamespace(experiment_id="7") if name == "known" else None
    def create_experiment(self, name): note("create_experiment", name); return "8"
    def create_run(self, experiment, run_name):
        note("create_run", experiment, run_name)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="id%d" % len(open("calls.jsonl").readlines())))
    def update_run(self, run, status): note("update_run", run, status)
    def log_batch(self, run, metrics=(), params=()): note("log_batch", run, metrics, params)
    def set_tag(self, run, key, value): note("set_tag", run, key, value)
    def set_terminated(self, run): note("set_terminated", run)
    def delete_run(self, run): note("delete_run", run)
""",
    "trackio": FAKE + """
class Run:
    def __init__(self, name): self.name = name
    def log(self, values, step): note("log", values, step)
    def finish(self): note("finish")
    def delete(self): note("delete", self.name)
def init(project, name, resume, config):
    note("init", project, name, resume, config)
    with open("names", "a") as file:
        file.write(name + "\\n")
    return Run(name)
class Api:
    def runs(self, project): return [Run(name) for name in open("names").read().split()] + [Run("run")]
""",
}


class LogMetricsTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.launches, self.step = 0, 0
        for name, text in FAKES.items():
            self.write(f"fakes/{name}/__init__.py", text)
        self.environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tools'}:{self.folder / 'fakes'}",
                            "XDG_STATE_HOME": str(self.folder / "state")}

    def launch(self, began_from: int = 0, recipe: str = 'model.layers = 2\noptimizer.betas = [0.9, 0.95]\n') -> None:
        """What a launch does before its first step."""
        self.launches, self.step = self.launches + 1, began_from
        self.write(f"run/attempts/{self.launches:04}/resolved.toml", recipe)
        self.put_attempt({})
        path = self.folder / "run/metrics.jsonl"
        lines = path.read_text().splitlines(True) if path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= began_from]
        if kept != lines or not lines:
            self.write("run/metrics.jsonl.tmp", "".join(kept))
            (self.folder / "run/metrics.jsonl.tmp").rename(path)

    def put_attempt(self, end: dict) -> None:
        folder = f"run/attempts/{self.launches:04}"
        self.write(f"{folder}/attempt.json.tmp", json.dumps({"began_at": f"2026-11-29T09:{self.launches:02}:00Z", **end}))
        (self.folder / folder / "attempt.json.tmp").rename(self.folder / folder / "attempt.json")

    def put(self, text: str) -> None:
        with (self.folder / "run/metrics.jsonl").open("a") as file:
            file.write(text)

    def put_steps(self, count: int, **more) -> None:
        for self.step in range(self.step + 1, self.step + 1 + count):
            self.put(json.dumps({"step": self.step, "loss": self.launches + self.step / 8, "grad_norm": None, "tokens": 64 * self.step,
                                 "time": f"2026-11-29T09:16:{self.step % 60:02}Z", "elapsed_s": time.perf_counter(), **more}) + "\n")

    def put_evaluation(self) -> None:
        self.put(json.dumps({"step": self.step, "eval_loss": 10.0 * self.launches, "elapsed_s": time.perf_counter()}) + "\n")

    def start(self, *arguments) -> subprocess.Popen:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, "run", *arguments], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def call(self, *arguments, code: int = 0) -> str:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (code, ""), err)
        return err

    def wait_for(self, condition, what: str) -> None:
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def calls(self, *names) -> list:
        path = self.folder / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [call for call in map(json.loads, lines) if not names or call[0] in names]

    def lines(self) -> list[dict]:
        """What metrics.jsonl has, without nulls."""
        lines = map(json.loads, (self.folder / "run/metrics.jsonl").read_text().splitlines())
        return [{name: value for name, value in line.items() if value is not None and name != "time"} for line in lines]

    def records(self) -> list[bytes]:
        data, records = (self.folder / "logs/run/events.out.tfevents.0.shardc").read_bytes(), []
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            records.append(data[12:12 + size])
            data = data[16 + size:]
        return records

    def losses(self) -> list[tuple]:
        """The steps and losses that TensorBoard shows: those after the last mark of a start."""
        records = self.records()
        starts = [i for i, record in enumerate(records) if record.endswith(b"\x3a\x02\x08\x01")]
        marks = ((record.find(b"\x0a\x04loss\x15"), record) for record in records[starts[-1] + 1:])
        return [(record[10], struct.unpack("<f", record[at + 7:at + 11])[0]) for at, record in marks if at > 0]

    def expected_losses(self) -> list[tuple]:
        return [(line["step"], line["loss"]) for line in self.lines() if "loss" in line]

    def test_events(self):
        self.write("run/metrics.jsonl", '{"step":300,"loss":2.5,"lr":null,"skipped":"spike","time":"2026-11-23T00:00:01Z"}\n'
                   '{"step":301,"eval_loss":1.25}\n{"step":302,"grad_norm":1e300}\n')
        self.call("tensorboard", "--once")
        records = self.records()
        self.assertEqual(records[0], b"\x1a\x0dbrain.Event:2")
        self.assertEqual((records[1][:1], records[1][9:]), (b"\x09", b"\x3a\x02\x08\x01"))
        # 300 is 0xac 0x02 in protobuf; one value, as null and the word are no numbers.
        time = struct.pack("<d", 1795392001)
        loss = b"\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 2.5)
        self.assertEqual(records[2], b"\x09" + time + b"\x10\xac\x02\x2a\x0d" + loss)
        self.assertIn(b"eval_loss\x15" + struct.pack("<f", 1.25), records[3])
        self.assertIn(b"grad_norm\x15" + struct.pack("<f", float("inf")), records[4])
        # The check sums of the first record, which TensorBoard itself has accepted.
        data = (self.folder / "logs/run/events.out.tfevents.0.shardc").read_bytes()
        self.assertEqual(data[:31].hex(), "0f000000000000006d532b091a0d627261696e2e4576656e743a32fc985129")

    def test_tensorboard_follows(self):
        process = self.start("tensorboard")
        self.assertEqual(process.stderr.readline(), "waiting for run/metrics.jsonl\n")
        self.launch()
        self.put_steps(5)
        self.put('{"step":6,"loss":')
        events = self.folder / "logs/run/events.out.tfevents.0.shardc"
        self.wait_for(lambda: events.exists() and len(self.records()) == 7, "five lines")
        self.put('0.5}\n')
        self.wait_for(lambda: len(self.records()) == 8, "a line that was half written")
        self.put_attempt({"ended": "stopped"})
        self.launch(began_from=3)
        self.put_steps(4)
        self.wait_for(lambda: self.losses() == self.expected_losses(), "a launch from step 3")
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.communicate(timeout=60), process.returncode), (("", ""), 0))
        # A process that was killed as it wrote: its last bytes go.
        with events.open("ab") as file:
            file.write(b"\x99" * 9)
        self.launch(began_from=7)
        self.put_steps(2)
        self.put_attempt({"ended": "complete"})
        before = {path: path.stat().st_mtime_ns for path in (self.folder / "run").rglob("*")}
        for _ in range(2):
            self.call("tensorboard")
            # Of the first curve six lines, of the second nine, each once.
            self.assertEqual(self.losses(), self.expected_losses())
            self.assertEqual(len(self.records()), 1 + 1 + 6 + 1 + 9)
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in (self.folder / "run").rglob("*")})
        shutil.rmtree(self.folder / "logs")
        self.call("tensorboard")
        self.assertEqual(self.losses(), self.expected_losses())

    def test_wandb(self):
        self.launch()
        self.put_steps(2)
        self.put_evaluation()
        self.put_steps(1, skipped="spike")
        self.call("wandb", "words", "--once")
        (name, project, run, first_id, resume, config), *logs, finish = self.calls()
        self.assertEqual((name, project, run, resume), ("init", "words", "run", "allow"))
        self.assertEqual(config, {"model.layers": 2, "optimizer.betas": [0.9, 0.95]})
        self.assertEqual(logs, [["log", line, row] for row, line in enumerate(self.lines(), 1)])
        self.assertEqual((logs[2][1]["eval_loss"], logs[3][1]["skipped"]), (10.0, "spike"))
        self.assertEqual(finish, ["finish"])
        # A launch from where the curve ends goes on with the run.
        self.launch(began_from=3)
        self.put_steps(1)
        self.call("wandb", "words", "--once")
        self.assertEqual(self.calls()[6:], [["init", "words", "run", first_id, "allow", config], ["log", self.lines()[-1], 5], ["finish"]])
        # A launch from an earlier step begins another, and the old one goes. So does a launch with another recipe.
        for recipe, layers in (("model.layers = 2\n", 2), ("model.layers = 3\n", 3)):
            (self.folder / "calls.jsonl").unlink()
            self.launch(began_from=2, recipe=recipe)
            self.put_steps(1)
            self.call("wandb", "words", "--once")
            (init, delete, *logs, _) = self.calls()
            self.assertNotEqual(init[3], first_id)
            self.assertEqual(init[5], {"model.layers": layers})
            self.assertEqual(delete, ["delete", f"me/words/{first_id}"])
            self.assertEqual(logs, [["log", line, row] for row, line in enumerate(self.lines(), 1)])
            first_id = init[3]

    def test_wandb_offline(self):
        self.environment["WANDB_MODE"] = "offline"
        self.launch()
        for _ in range(2):
            self.put_steps(2)
            self.call("wandb", "--once")
        folders = sorted(path.name for path in (self.folder / "wandb").iterdir())
        self.assertEqual(len(folders), 2)
        self.launch(began_from=1)
        self.put_steps(1)
        self.call("wandb", "--once")
        (folder,) = (self.folder / "wandb").iterdir()
        self.assertNotIn(folder.name, folders)
        # What a server has cannot be taken back from here.
        (folder / "run-x.wandb.synced").touch()
        self.launch(began_from=0)
        self.put_steps(1)
        self.assertRegex(self.call("wandb", "--once"), r"^wandb: the run that is replaced .* delete it by hand: me/shardc/\w+ was synchronized\n$")
        self.assertTrue(folder.exists())

    def test_mlflow(self):
        self.launch(recipe='model.layers = 2\ninit.rule = [{ match = "*" }]\n')
        self.put_steps(1, skipped="spike")
        self.put_evaluation()
        self.call("mlflow", "--once")
        line, evaluation = self.lines()
        time_ms = 1795943761000
        self.assertEqual(self.calls(), [
            ["create_experiment", "shardc"], ["create_run", "8", "run"], ["update_run", "id2", "RUNNING"],
            ["log_batch", "id2", [], [["model.layers", "2"], ["init.rule", "[{'match': '*'}]"]]],
            ["set_tag", "id2", "skipped.1", "spike"],
            ["log_batch", "id2", [["loss", line["loss"], time_ms, 1], ["tokens", 64, time_ms, 1], ["elapsed_s", line["elapsed_s"], time_ms, 1],
                                  ["eval_loss", 10.0, 0, 1], ["elapsed_s", evaluation["elapsed_s"], 0, 1]], []],
            ["set_terminated", "id2"]])
        self.launch(began_from=0)
        self.put_steps(1000)
        self.call("mlflow", "--once")
        batches = [len(call[2]) for call in self.calls("log_batch") if call[1] != "id2" and call[2]]
        self.assertEqual((sum(batches), max(batches)), (3000, 1000))
        self.assertEqual(self.calls("delete_run"), [["delete_run", "id2"]])

    def test_trackio(self):
        self.launch()
        self.put_steps(2)
        self.put_evaluation()
        self.call("trackio", "--once")
        self.launch(began_from=1)
        self.put_steps(1)
        self.call("trackio", "--once")
        (_, project, first, resume, config), (_, _, second, _, _) = self.calls("init")
        self.assertEqual((project, resume, config), ("shardc", "allow", {"model.layers": 2, "optimizer.betas": [0.9, 0.95]}))
        self.assertRegex(f"{first} {second}", r"^run-\w{8} run-\w{8}$")
        self.assertNotEqual(first, second)
        self.assertEqual(self.calls("delete"), [["delete", first]])
        self.assertEqual([call[2] for call in self.calls("log")], [1, 2, 2, 1, 2])

    def test_network_that_fails(self):
        self.launch()
        self.put_steps(2)
        (self.folder / "no_network").touch()
        self.assertEqual(self.call("trackio", "--once", code=1), "trackio: ConnectionError: no route to host\n")
        process = self.start("trackio")
        self.assertEqual(process.stderr.readline(), "trackio: ConnectionError: no route to host; trying again in 0.1 s\n")
        (self.folder / "no_network").unlink()
        self.put_attempt({"ended": "failed"})
        self.assertNotIn("Traceback", process.communicate(timeout=60)[1])
        self.assertEqual((process.returncode, [call[2] for call in self.calls("log")]), (0, [1, 2]))

    def test_interrupt_while_lines_are_sent(self):
        self.write("fakes/trackio/__init__.py", FAKES["trackio"].replace("note(\"log\", values, step)",
                   "note(\"log\", values, step); import time; time.sleep(0.1)"))
        self.launch()
        self.put_steps(9)
        process = self.start("trackio")
        self.wait_for(lambda: self.calls("log"), "a line")
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.communicate(timeout=60), process.returncode), (("", ""), 0))
        self.call("trackio", "--once")
        self.assertEqual([call[2] for call in self.calls("log")], list(range(1, 10)))

    def test_another_run_in_the_folder(self):
        self.launch()
        self.put_steps(2)
        self.call("trackio", "--once")
        shutil.rmtree(self.folder / "run")
        self.launch()
        self.put_steps(1)
        self.call("trackio", "--once")
        self.assertEqual((len(self.calls("init")), self.calls("delete")), (2, []))

    def test_lines_of_no_step(self):
        self.write("run/metrics.jsonl", '\n[1]\n{"loss":1}\n\xff\n{"step":1,"loss":2}\n{"step":2')
        self.call("trackio", "--once")
        self.assertEqual(self.calls("log"), [["log", {"loss": 2}, 1]])

    def test_mistakes(self):
        self.assertEqual(self.call("wandb", "--once", code=1), "error: run has no metrics.jsonl; name the directory of a run\n")
        self.assertIn("/run/logs lies in the run directory", self.call("tensorboard", "run/logs", code=1))
        self.write("fakes/wandb/__init__.py", "import nonesuch_of_wandb")
        self.assertRegex(self.call("wandb", code=1), r"^error: the package wandb cannot be loaded \(.*\): pip install wandb\n$")
        self.assertIn("invalid choice: 'nonesuch'", self.call("nonesuch", code=2))
        (self.folder / "run").mkdir(exist_ok=True)
        os.mkfifo(self.folder / "run/metrics.jsonl")
        self.assertEqual(self.call("tensorboard", "--once", code=1),
                         "error: run/metrics.jsonl is no regular file; name the directory of a run\n")
        (self.folder / "run/metrics.jsonl").unlink()
        self.launch()
        self.put_steps(1)
        process = self.start("trackio")
        self.wait_for(lambda: self.calls("log"), "a line")
        self.assertIn("another process sends the lines", self.call("trackio", code=1))
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual((process.returncode, self.calls()[-1]), (0, ["finish"]))


if __name__ == "__main__":
    unittest.main()
