#!/usr/bin/env bash
# TensorBoard 2.21.0 with its data server 0.7.2, which it uses where it is installed (--load_fast=auto).
#
# A run that is resumed writes a SessionLog START with the step from which it goes on, and TensorBoard purges what it has of
# later steps. The loader in Python purges every tag. The data server keeps the points of a tag that does not come again: after a
# restart from step 0 an `eval_loss` of step 5 stays on the page beside losses that end at step 4. Which of the two a user sees
# depends on a package that pip installs on some platforms only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorboard==2.21.0 tensorboard-data-server==0.7.2
cat > "$folder/look.py" <<'PY'
import importlib.metadata, json, re, subprocess, sys, time, urllib.request
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

folder, program = sys.argv[1:]
writer = EventFileWriter(folder)
def put(tag, step, value):
    writer.add_event(Event(wall_time=1000 + step, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
for step in range(1, 6):
    put("loss", step, 10 + step)
put("eval_loss", 5, 1005)
writer.add_event(Event(wall_time=2000, step=0, session_log=SessionLog(status=SessionLog.START)))
for step in range(1, 5):
    put("loss", step, 20 + step)
writer.close()

accumulator = EventAccumulator(folder)
accumulator.Reload()
by_python = {tag: [(e.step, e.value) for e in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]}

server = subprocess.Popen([program, "--logdir", folder, "--load_fast=true", "--port=0", "--host=127.0.0.1"],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
try:
    url = next(found.group() for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
    def ask(path):
        return json.load(urllib.request.urlopen(url + path))
    for _ in range(100):
        if ask("data/plugin/scalars/tags"):
            break
        time.sleep(0.2)
    time.sleep(2)
    by_server = {tag: [(step, value) for _, step, value in ask(f"data/plugin/scalars/scalars?run=.&tag={tag}")]
                 for tag in ask("data/plugin/scalars/tags")["."]}
finally:
    server.kill()

print("tensorboard", importlib.metadata.version("tensorboard"), "tensorboard-data-server", importlib.metadata.version("tensorboard-data-server"))
print("python loader:", by_python)
print("data server:  ", by_server)
resumed = [(step, 20.0 + step) for step in range(1, 5)]
same = by_python.get("loss") == resumed and by_server.get("loss") == resumed
if not (same and not by_python.get("eval_loss") and by_server.get("eval_loss") == [(5, 1005.0)]):
    sys.exit("the behaviour has changed")
PY
mkdir "$folder/logs"
"$folder/venv/bin/python" "$folder/look.py" "$folder/logs" "$folder/venv/bin/tensorboard"
# Seen on 29 November 2026:
#   python loader: {'loss': [(1, 21.0), (2, 22.0), (3, 23.0), (4, 24.0)], 'eval_loss': []}
#   data server:   {'loss': [(1, 21.0), (2, 22.0), (3, 23.0), (4, 24.0)], 'eval_loss': [(5, 1005.0)]}
