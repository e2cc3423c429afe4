"""Makes tokens of text, or of chats, by a tokenizer of the package `tokenizers` (Hugging Face), as a dataset in Megatron's indexed format.

Usage: tokenize_text.py --tokenizer FILE|DIR [--chat] INPUT... -o OUT

Writes OUT.bin and OUT.idx, which `data.format = "megatron"` reads, and OUT.sources.json: the inputs and the tokenizer with their SHA-256.
Inputs are text files, JSON lines (.jsonl, .ndjson, .json) and Parquet files (.parquet, by the package pyarrow). Each text file is a
document, or each of its lines, each JSON line, each row. Documents without text are left out, and counted.

A document's ids are those that the tokenizer gives for it alone, without truncation and padding, and the end-of-document token, if they
do not end with it: the eos_token of the tokenizer_config.json beside the tokenizer, if --eod names no other. Ids take 2 bytes if the vocabulary has less than
65,500 of them, as in Megatron, and else 4.

With --chat, JSON lines and Parquet have messages in a field, `messages` if --field names no other, and tools in `tools`. The tokenizer's own
chat template renders them, through the package transformers. OUT.targets.bin and OUT.targets.idx say what is trained, for `data.targets`:
what the assistant says, and the token that ends its turn. A conversation is a document, or as many as it has trained turns if the template
writes earlier turns in another way (docs/fine_tuning.md).

The ids are the same for any number of processes. OUT.partial has what is finished; when the program is stopped or killed, the same
command goes on from there. OUT.bin, OUT.idx and OUT.sources.json appear when all of it is finished.
"""

import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import sys
import threading
import time
from collections.abc import Iterator

from chat_options import add_template_options
from failure import Failure, end_with
from tokenize_chats import ChatWorker
from tokenize_inputs import MIB, Job, Task, parquet_file
from tokenize_job import MOST_IDS, Stopped, look_at, make_job, sha256
from tokenize_output import Output
from tokenize_report import refuse_loss, report
from tokenize_tasks import Worker, Workers

MOST_DOCUMENT_BYTES = 1 << 30
# A task has a share of the inputs, in bytes, between these.
SHARE, LEAST_TASK, MOST_TASK = 1024, MIB // 4, 8 * MIB
# For each process. A long document keeps one of them, and the others go on.
TASKS_AHEAD = 64
BAR_WIDTH = 30


class Bar:
    """A line on the terminal that says how far the work is. If standard error is no terminal, nothing is printed."""

    def __init__(self, done: int, size: int):
        self.is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.begun, self.before, self.done, self.size = time.monotonic(), done, done, max(size, 1)

    def add(self, size: int) -> None:
        self.done += size
        if self.is_terminal:
            rate = (self.done - self.before) / max(time.monotonic() - self.begun, 1e-9)
            left = (self.size - self.done) / max(rate, 1)
            filled = BAR_WIDTH * self.done // self.size
            print(f"\r\x1b[Ktokenizing [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {100 * self.done // self.size:3} %, {self.done / MIB:.0f} of "
                  f"{self.size / MIB:.0f} MiB, {rate / 1e6:.1f} MB/s, {left / 60:.0f} min left", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def tasks_of(job: Job) -> Iterator[Task]:
    number, i = itertools.count(), 0
    most = min(max(sum(one[2] for one in job.inputs) // SHARE, LEAST_TASK), MOST_TASK)
    while i < len(job.inputs):
        path, kind, size, _ = job.inputs[i]
        last = i + 1
        if kind == "parquet":
            groups = parquet_file(path).num_row_groups
            for group in range(groups):
                yield Task(next(number), i, last, group, group + 1, size * (group + 1) // groups - size * group // groups)
        elif kind == "text" and job.document == "file":
            while last < len(job.inputs) and job.inputs[last][1] == "text" and size + job.inputs[last][2] <= most:
                size += job.inputs[last][2]
                last += 1
            yield Task(next(number), i, last, 0, 0, size)
        else:
            for begin in range(0, size, most):
                end = min(begin + most, size)
                yield Task(next(number), i, last, begin, end, end - begin)
        i = last


def run_tasks(output: Output, workers: Workers) -> None:
    job = output.job
    tasks = tasks_of(job)
    bar = Bar(sum(task.size for task in itertools.islice(tasks, output.tasks)), sum(size for _, _, size, _ in job.inputs))
    stop, processes = threading.Event(), len(workers.processes)
    workers.begin(job, str(output.folder))
    # A thread waits for each process.
    pool = concurrent.futures.ThreadPoolExecutor(processes)
    hasher = concurrent.futures.ThreadPoolExecutor(1)
    digests = collections.deque((i, hasher.submit(sha256, one[0], stop)) for i, one in enumerate(job.inputs) if i not in output.digests)
    waiting: collections.deque = collections.deque()

    def take() -> None:
        task, result = waiting.popleft()
        output.append(task, result.result())
        bar.add(task.size)
        while digests and digests[0][1].done():
            take_digest()

    def take_digest() -> None:
        i, digest = digests.popleft()
        output.note({"input": i, "sha256": digest.result()})

    try:
        for task in tasks:
            waiting.append((task, pool.submit(workers.run, task)))
            if len(waiting) > TASKS_AHEAD * processes:
                take()
        while waiting:
            take()
        while digests:
            take_digest()
    finally:
        bar.clear()
        stop.set()
        workers.end()
        pool.shutdown(cancel_futures=True)
        hasher.shutdown(cancel_futures=True)
        output.sync()
    for path, kind, *known in job.inputs:
        if look_at(path, kind)[2:] != known:
            raise Failure(f"{path} was written to while it was read; remove {output.folder} to begin again")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def number(least: int, most: int):
        def convert(text: str) -> int:
            if not text.isdecimal() or not least <= int(text) <= most:
                raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {most}")
            return int(text)
        return convert

    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("--tokenizer", required=True, type=pathlib.Path, metavar="FILE|DIR", help="a tokenizer.json, or its folder")
    parser.add_argument("-o", dest="out", required=True, metavar="OUT", help="the outputs without their endings")
    parser.add_argument("--format", default="", choices=("text", "jsonl", "parquet"), help="of all inputs; by default by their endings")
    parser.add_argument("--field", help="field of JSON lines, or column, that has the text (default: text), or the messages (default: messages)")
    parser.add_argument("--document", default="file", choices=("file", "line"), help="a document of a text file (default: file)")
    parser.add_argument("--eod", metavar="TOKEN", help="the end-of-document token")
    parser.add_argument("--no-eod", action="store_true", help="nothing is put after a document")
    parser.add_argument("--add-special-tokens", action="store_true", help="lets the tokenizer add what it does around a text, such as a "
                        "beginning-of-text token")
    parser.add_argument("--special-strings-as-text", action="store_true", help="takes a special token that a text has, such as <|endoftext|>, "
                        "as the text that it is; by default it becomes the id of that token")
    parser.add_argument("--vocab", type=number(1, MOST_IDS), help="the `model.vocab` of the recipe: a tokenizer with greater ids is refused")
    parser.add_argument("--processes", type=number(1, 4096), default=len(os.sched_getaffinity(0)), help="default: the processors that there are")
    parser.add_argument("--most-document-bytes", type=number(1, MOST_DOCUMENT_BYTES), default=16 * MIB,
                        help="longer documents and JSON lines are refused (default: 16 MiB). A process takes up to 150 bytes of memory for "
                        "each byte of one")
    chat = parser.add_argument_group("chats")
    chat_options = [
        chat.add_argument("--train-on", default="all", choices=("all", "last"), help="turns of the assistant that are trained (default: all)"),
        chat.add_argument("--reasoning", default="keep", choices=("keep", "drop"), help="of the assistant's messages (default: keep)"),
        chat.add_argument("--no-end-of-turn", action="store_true", help="trained turns need not end with such a token"),
        chat.add_argument("--generation-marks", default="use", choices=("use", "ignore"), help="a template's {%% generation %%}: by default only "
                          "what it marks is trained"),
        *add_template_options(chat),
        chat.add_argument("--skip-bad", action="store_true", help="leaves out conversations that are not sound, at most 1 %% of them; by "
                          "default the first ends the program"),
    ]
    chat.add_argument("--chat", action="store_true", help="the inputs are conversations")
    options = parser.parse_args()
    for option in chat_options:
        if not options.chat and getattr(options, option.dest) != option.default:
            parser.error(f"{option.option_strings[0]} needs --chat")
    options.template_argument = dict(options.template_argument)
    for name in ("eod", "no_eod", "add_special_tokens", "special_strings_as_text"):
        if options.chat and getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} and --chat exclude each other: the chat template puts all tokens around a message")
    if options.no_end_of_turn and options.end_of_turn:
        parser.error("--end-of-turn and --no-end-of-turn exclude each other")
    if options.no_eod and options.eod is not None:
        parser.error("--eod and --no-eod exclude each other")
    return options


def tokenize(output: Output, workers: Workers) -> None:
    if output.tasks > 0:
        print(f"going on from {output.folder}: {output.total('ids'):,} ids are there", file=sys.stderr)
    try:
        run_tasks(output, workers)
        refuse_loss(output)
        if output.total("ids") == 0:
            raise Failure("no document has text; name inputs that have some")
    finally:
        if output.total("ids") == 0 and output.folder.exists():
            output.remove()


def run(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    # They load libraries while the job is made.
    workers = Workers(ChatWorker if options.chat else Worker, options.processes)
    try:
        output = Output(options.out, make_job(options))
        if not output.is_finished:
            tokenize(output, workers)
    finally:
        workers.end()
    output.finish()
    report(output, options.out, time.monotonic() - begun)


def main() -> None:
    options = parse()
    end_with(lambda: run(options), options.out, "stopped; the same command goes on from here")


if __name__ == "__main__":
    main()
