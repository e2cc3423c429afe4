"""Makes tokens of text by a tokenizer of the package `tokenizers` (Hugging Face), as a dataset in Megatron's indexed format.

Usage: tokenize_text.py --tokenizer FILE|DIR INPUT... -o OUT

Writes OUT.bin and OUT.idx, which `data.format = "megatron"` reads, and OUT.sources.json: the inputs and the tokenizer with their SHA-256.
Inputs are text files, JSON lines (.jsonl, .ndjson, .json) and Parquet files (.parquet, by the package pyarrow). Each text file is a
document, or each of its lines, each JSON line, each row. Documents without text are left out, and counted.

A document's ids are those that the tokenizer gives for it alone, without truncation and padding, and the end-of-document token, if they
do not end with it: the eos_token of the tokenizer_config.json beside the tokenizer, if --eod names no other. Ids take 2 bytes if the vocabulary has less than
65,500 of them, as in Megatron, and else 4.

The ids are the same for any number of processes. OUT.partial has what is finished; when the program is stopped or killed, the same
command goes on from there. OUT.bin, OUT.idx and OUT.sources.json appear when all of it is finished.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import stat
import sys
import threading
import time
from collections.abc import Iterator

from failure import Failure, end_with
from tokenize_inputs import MIB, Job, Task, parquet_file
from tokenize_output import Output
from tokenize_tasks import Workers, load_tokenizer

KINDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
MOST_IDS = 1 << 31
MOST_DOCUMENT_BYTES = 1 << 30
# A task has a share of the inputs, in bytes, between these.
SHARE, LEAST_TASK, MOST_TASK = 1024, MIB // 4, 8 * MIB
# For each process. A long document keeps one of them, and the others go on.
TASKS_AHEAD = 64
BAR_WIDTH = 30
# Documents that may lose characters.
MOST_LOSSY = 0.01
NAMED, END_OF_TEXT = "named by --eod", "<|endoftext|>"


class Stopped(Exception):
    """The end of a digest that nobody waits for."""


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


def sha256(path: str, stop=None) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(MIB):
            digest.update(data)
            if stop and stop.is_set():
                raise Stopped
    return digest.hexdigest()


def look_at(path: str, kind: str) -> list:
    """An input as jobs have it."""
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        raise Failure(f"{path} is a folder; name its files, {path.rstrip('/')}/* for instance")
    if not stat.S_ISREG(found.st_mode):
        raise Failure(f"{path} is not a regular file, and a run that is stopped could not read it again; write it into a file first")
    with open(path, "rb") as file:
        begin = file.read(8)
    for magic, name in PACKED.items():
        if begin.startswith(magic):
            raise Failure(f"{path} is packed by {name}; unpack it first")
    return [path, kind or KINDS.get(pathlib.Path(path).suffix.lower(), "text"), found.st_size, found.st_mtime_ns]


def tokenizer_path(path: pathlib.Path) -> pathlib.Path:
    if not path.is_dir():
        return path
    if not (path / "tokenizer.json").exists():
        made = f'transformers makes it: AutoTokenizer.from_pretrained("{path}").save_pretrained("{path}")'
        raise Failure(f"{path} has no tokenizer.json, the one file that tokenizers reads; {made}")
    return path / "tokenizer.json"


def end_of_document(tokenizer, path: pathlib.Path, named: str | None) -> tuple[int, str, str]:
    """Its id, the token, and who names it."""
    token, source = named, NAMED
    if token is None:
        config = path.parent / "tokenizer_config.json"
        source = f"the eos_token of {config}"
        try:
            token = json.loads(config.read_text()).get("eos_token") if config.exists() else None
        except (ValueError, AttributeError) as error:
            raise Failure(f"{config} is not a JSON object ({error}); mend it, or remove it and give --eod") from None
        if isinstance(token, dict):
            token = token.get("content")
        if not isinstance(token, str):
            raise Failure(f"no eos_token in {config}, so it is not known what ends a document; give --eod TOKEN, or --no-eod")
    if (found := tokenizer.token_to_id(token)) is None:
        raise Failure(f"the end-of-document token {token} is no token of {path}; give --eod TOKEN, or --no-eod")
    return found, token, source


def make_job(options: argparse.Namespace):
    path = tokenizer_path(options.tokenizer)
    digest = sha256(str(path))
    tokenizer, version = load_tokenizer(str(path))
    tokens: dict[int, str] = {}
    for token, i in tokenizer.get_vocab(with_added_tokens=True).items():
        if (other := tokens.setdefault(i, token)) != token:
            raise Failure(f"{path} gives the id {i} to two tokens, {' and '.join(sorted((other, token)))}; number its tokens again")
    vocab = 1 + max(tokens, default=-1)
    if vocab > MOST_IDS:
        raise Failure(f"{path} has the id {vocab - 1}, and the format takes ids below {MOST_IDS}; number its tokens again")
    if options.vocab is not None and vocab > options.vocab:
        raise Failure(f"{path} has ids up to {vocab - 1}, and --vocab is {options.vocab}; set `model.vocab` to at least {vocab}, or take the "
                      "model's own tokenizer")
    eod = (None, None, None) if options.no_eod else end_of_document(tokenizer, path, options.eod)
    return Job(str(path), digest, version, vocab, *eod, tokenizer.token_to_id(END_OF_TEXT) is not None, options.add_special_tokens, options.special_strings_as_text,
               options.field, options.document, options.most_document_bytes, [look_at(path, options.format) for path in options.inputs])


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


def run_tasks(output: Output, processes: int) -> None:
    job = output.job
    tasks = tasks_of(job)
    bar = Bar(sum(task.size for task in itertools.islice(tasks, output.tasks)), sum(size for _, _, size, _ in job.inputs))
    # The library would use all processors in each process.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    stop = threading.Event()
    workers = Workers(job, str(output.folder), processes)
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
    parser.add_argument("--field", default="text", help="field of JSON lines, or column, that has the text (default: text)")
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
    options = parser.parse_args()
    if options.no_eod and options.eod is not None:
        parser.error("--eod and --no-eod exclude each other")
    return options


def about_ends(job: Job) -> str:
    """A line about what ends each document."""
    if job.end_of_document is None:
        return "nothing is put after a document (--no-eod)"
    line = f"each document ends with {job.end_of_document_token} ({job.end_of_document}), {job.end_of_document_source}"
    if job.end_of_document_source == NAMED:
        return line
    # Chat models name the end of a turn.
    if job.has_end_of_text and job.end_of_document_token != END_OF_TEXT:
        return f"{line}; the vocabulary has {END_OF_TEXT} too, with which base models end documents: --eod '{END_OF_TEXT}' takes it"
    return f"{line}; --eod names another"


def refuse_loss(output: Output) -> None:
    """Refuses a tokenizer that is made for another kind of text."""
    documents = output.total(0) + output.total(2)
    if output.total(4) > MOST_LOSSY * documents:
        output.remove()
        raise Failure(f"{output.job.tokenizer} loses characters of {output.total(4):,} of {documents:,} documents: it has neither tokens nor "
                      "bytes for them, and no unknown token; take the model's own tokenizer, or mend this one")


def run(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    output = Output(options.out, make_job(options))
    if not output.is_finished:
        if output.tasks > 0:
            print(f"going on from {output.folder}: {output.total(1):,} ids are there", file=sys.stderr)
        try:
            run_tasks(output, options.processes)
            refuse_loss(output)
            if output.total(1) == 0:
                raise Failure("no document has text; name inputs that have some")
        finally:
            if output.total(1) == 0 and output.folder.exists():
                output.remove()
    output.finish()
    job, size, seconds = output.job, sum(size for _, _, size, _ in output.job.inputs), time.monotonic() - begun
    empty = f", {output.total(2):,} without text left out" if output.total(2) else ""
    documents = f"{output.total(0):,} document{'s' * (output.total(0) != 1)}{empty}"
    print(f"{options.out}.bin, {options.out}.idx: {output.total(1):,} ids of {job.id_bytes()} bytes in {documents}; the vocabulary has "
          f"{job.vocab:,}; {size / MIB:.1f} MiB in {seconds:.1f} s")
    print(about_ends(job))
    if special := output.total(3):
        print(f"{special:,} of them have special tokens in their text, which became control ids; --special-strings-as-text takes them as text")
    if lossy := output.total(4):
        print(f"{lossy:,} of them lost characters that the tokenizer has neither tokens nor bytes for")


def main() -> None:
    options = parse()
    end_with(lambda: run(options), options.out, "stopped; the same command goes on from here")


if __name__ == "__main__":
    main()
