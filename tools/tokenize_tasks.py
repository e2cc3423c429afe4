"""What tokenize_text.py does in its worker processes: reads the documents of a task, and writes their ids into a file."""

import array
import dataclasses
import json
import multiprocessing
import os
import pathlib
import queue
import signal
import threading
from collections.abc import Iterator

from failure import Failure

MIB = 1 << 20
# What a tokenizer gets at once.
BATCH_CHARACTERS, BATCH_DOCUMENTS = 1 << 19, 512
# Megatron's megatron/core/datasets/indexed_dataset.py: DType.optimal_dtype.
MOST_OF_UINT16 = 65500
INSTALL = "pip install tokenizers, or shardc[tokenize]"
# No id of a tokenizer.
LOST = (1 << 32) - 1


@dataclasses.dataclass(frozen=True)
class Job:
    """Everything that the ids depend on. A journal begins with it."""

    tokenizer: str
    tokenizer_sha256: str
    tokenizers_version: str
    vocab: int
    end_of_document: int | None
    end_of_document_token: str | None
    # Who names the token.
    end_of_document_source: str | None
    has_end_of_text: bool
    special_tokens: bool
    special_strings_as_text: bool
    field: str
    document: str
    most_document_bytes: int
    # Path, kind, size in bytes, and time of the last write.
    inputs: list[list]

    def id_type(self) -> str:
        return "H" if self.vocab < MOST_OF_UINT16 else "i"

    def id_bytes(self) -> int:
        return array.array(self.id_type()).itemsize


@dataclasses.dataclass(frozen=True)
class Task:
    """Whole inputs, `first` to before `last`. Or of one input the lines that begin in the bytes `begin` to before `end`, or the row
    group `begin`. `size` is its share of the bytes of all inputs."""

    number: int
    first: int
    last: int
    begin: int
    end: int
    size: int


def import_or_fail(name: str, remedy: str):
    try:
        return __import__(name, fromlist=["*"])
    except ImportError as error:
        raise Failure(f"the package {name.split('.')[0]} cannot be loaded ({error}): {remedy}") from None


def load_tokenizer(path: str):
    """The tokenizer, and the version of the library."""
    library = import_or_fail("tokenizers", INSTALL)
    try:
        tokenizer = library.Tokenizer.from_file(path)
    except Exception as error:  # The library raises this class.
        raise Failure(f"{path} is not read by tokenizers {library.__version__}: {error}; name a tokenizer.json that it reads") from None
    return tokenizer, library.__version__


def prepared(tokenizer, as_text: bool):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = as_text
    return tokenizer


def loss_finder(path: str):
    """The tokenizer with the id LOST for each character that the one of the file drops without a word: a BPE that has no unknown token
    drops what it has neither tokens nor bytes for. None if that one drops nothing."""
    library = import_or_fail("tokenizers", INSTALL)
    content = json.loads(pathlib.Path(path).read_text())
    model = content.get("model", {})
    if "merges" not in model or model.get("unk_token") is not None:
        return None
    vocab = model["vocab"]
    # Bytes are tokens by their own names, or as the characters of an alphabet.
    has_bytes = model.get("byte_fallback") and all(f"<0x{byte:02X}>" in vocab for byte in range(256))
    steps = json.dumps([content.get("normalizer"), content.get("pre_tokenizer")])
    if has_bytes or ('"ByteLevel"' in steps and vocab.keys() >= set(library.pre_tokenizers.ByteLevel.alphabet())):
        return None
    content["model"] = model | {"vocab": vocab | {"<lost>": LOST}, "unk_token": "<lost>", "fuse_unk": False}
    return library.Tokenizer.from_str(json.dumps(content))


def parquet_file(path: str):
    parquet = import_or_fail("pyarrow.parquet", "pip install pyarrow, or write the text as JSON lines")
    try:
        return parquet.ParquetFile(path, buffer_size=MIB)
    except (OSError, ValueError) as error:  # ValueError is the base of pyarrow's errors.
        raise Failure(f"{path} is not read as Parquet: {error}; write the file again, or name what it is by --format") from None


def failure_at(path: str, offset: int, what: str) -> Failure:
    """`what` follows the file and the line that has this byte."""
    line = 1
    with open(path, "rb") as file:
        while offset > 0 and (data := file.read(min(MIB, offset))):
            line += data.count(b"\n")
            offset -= len(data)
    return Failure(f"{path}, line {line} {what}")


def is_longer(most: int) -> str:
    return (f"is longer than the {most} bytes that a document may have; cut it into documents (--document line takes each line of a text as "
            "one), or raise --most-document-bytes")


def decode(path: str, data: bytes, offset: int) -> str:
    try:
        # The mark that some programs begin a file with belongs to no document.
        return data.decode().removeprefix("\ufeff" if offset == 0 else "")
    except UnicodeDecodeError as error:
        raise failure_at(path, offset + error.start, f"is not UTF-8: it has the byte {data[error.start]:#04x}; convert the file "
                         "(iconv -f latin1 -t utf-8, for instance), or leave it out") from None


def lines_of(path: str, task: Task, most: int) -> Iterator[tuple[int, bytes]]:
    """The task's lines: where each begins, and its bytes."""
    with open(path, "rb") as file:
        offset = max(0, task.begin - 1)
        file.seek(offset)
        # The line of the byte before the range belongs to an earlier task.
        while offset < task.begin and (data := file.readline(MIB)):
            offset += len(data)
            while data and not data.endswith(b"\n"):
                data = file.readline(MIB)
                offset += len(data)
        while offset < task.end and (data := file.readline(most + 1)):
            if len(data) > most:
                raise failure_at(path, offset, is_longer(most))
            yield offset, data
            offset += len(data)


def text_in_json(path: str, line: str, offset: int, field: str) -> str:
    remedy = f"; mend it, or name the field of the text by --field (now `{field}`)"
    try:
        value = json.loads(line.removesuffix("\n"))
    except (ValueError, RecursionError) as error:
        what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise failure_at(path, offset, f"is not JSON: {what}; each line is an object, and --format text takes a file as text") from None
    if not isinstance(value, dict):
        raise failure_at(path, offset, "is not a JSON object; each line is one, and --format text takes a file as text")
    if field not in value:
        names = ", ".join(f"`{name}`" for name in value) or "none"
        raise failure_at(path, offset, f"has no field `{field}`; its fields are: {names}{remedy}")
    text = value[field]
    if not isinstance(text, str):
        raise failure_at(path, offset, f"has a field `{field}` that is not a text{remedy}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise failure_at(path, offset, f"has half of a surrogate pair (\\u{ord(text[error.start]):04x}) in its field `{field}`; mend it") from None
    return text


def rows_of(path: str, group: int, field: str, most: int) -> Iterator[str]:
    file = parquet_file(path)
    types = {column.name: str(column.type) for column in file.schema_arrow}
    if types.get(field) not in ("string", "large_string", "string_view"):
        columns = ", ".join(f"`{name}` ({kind})" for name, kind in types.items())
        raise Failure(f"{path} has no column `{field}` of texts; its columns are: {columns}; name that of the text by --field")
    row = 1 + sum(file.metadata.row_group(i).num_rows for i in range(group))
    batches = file.iter_batches(256, row_groups=[group], columns=[field], use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, ValueError) as error:
            raise Failure(f"{path}, row group {group} is damaged: {error}; write the file again") from None
        if batch is None:
            return
        for value in batch.column(0):
            where = f"{path}, row {row} of column `{field}`"
            try:
                text = value.as_py()
            except UnicodeDecodeError:
                raise Failure(f"{where} is not UTF-8; write the file again") from None
            if text is None:
                raise Failure(f"{where} is null; write the file without such rows")
            if len(text) > most:
                raise Failure(f"{where} {is_longer(most)}")
            yield text
            row += 1


def documents_of(task: Task, job: Job) -> Iterator[tuple[int, str]]:
    """The number of the input, and the text."""
    most = job.most_document_bytes
    for i in range(task.first, task.last):
        path, kind, size, _ = job.inputs[i]
        if kind == "parquet":
            yield from ((i, text) for text in rows_of(path, task.begin, job.field, most))
        elif kind == "text" and job.document == "file":
            if size > most:
                raise Failure(f"{path} {is_longer(most)}")
            yield i, decode(path, pathlib.Path(path).read_bytes(), 0)
        else:
            for offset, data in lines_of(path, task, most):
                text = decode(path, data, offset)
                if kind == "text":
                    yield i, text.removesuffix("\n").removesuffix("\r")
                elif text.strip():
                    yield i, text_in_json(path, text, offset, job.field)


class Worker:
    """Writes the ids of a task into a file NUMBER.ids, and the lengths of its documents into NUMBER.lengths."""

    def __init__(self, job: Job, folder: str):
        self.job = job
        self.folder = folder
        self.tokenizer = prepared(load_tokenizer(job.tokenizer)[0], job.special_strings_as_text)
        finder = loss_finder(job.tokenizer)
        self.loss_finder = finder and prepared(finder, job.special_strings_as_text)
        # Special tokens that a text may have, by their ids.
        self.special = {i: token.content for i, token in self.tokenizer.get_added_tokens_decoder().items()
                        if token.special and not job.special_strings_as_text}

    def ids_of(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text and the end-of-document token, which is put once, or nothing for a text without ids."""
        job = self.job
        try:
            encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=job.special_tokens)
        except Exception as error:  # The library raises this class.
            raise Failure(f"{job.tokenizer} cannot encode a text: {error}; mend the tokenizer") from None
        found = [encoding.ids if text else [] for text, encoding in zip(texts, encodings)]
        for ids in found:
            if ids and job.end_of_document not in (None, ids[-1]):
                ids.append(job.end_of_document)
            if ids and max(ids) >= job.vocab:
                raise Failure(f"{job.tokenizer} gives the id {max(ids)}, and its vocabulary ends at {job.vocab - 1}: its post-processor adds a "
                              "token that is not there; leave out --add-special-tokens")
        return found

    def has_control_ids(self, text: str, ids: list[int]) -> bool:
        """Whether the text itself has a special token, not the tokenizer around it."""
        return any(self.special[i] in text for i in self.special.keys() & ids)

    def are_lossy(self, texts: list[str]) -> list[bool]:
        """Whether characters of each text have no ids."""
        if self.loss_finder is None:
            return [False] * len(texts)
        return [LOST in encoding.ids for encoding in self.loss_finder.encode_batch_fast(texts, add_special_tokens=False)]

    def run(self, task: Task) -> list[list[int]]:
        """For each input: its number, and its counts, which Output lists."""
        counts = {i: [i, 0, 0, 0, 0, 0] for i in range(task.first, task.last)}
        path = f"{self.folder}/{task.number}"
        with open(f"{path}.ids", "wb") as ids_file, open(f"{path}.lengths", "wb") as lengths_file:

            def write(batch: list[tuple[int, str]]) -> None:
                texts = [text for _, text in batch]
                for (i, text), ids, is_lossy in zip(batch, self.ids_of(texts), self.are_lossy(texts)):
                    count = counts[i]
                    count[5] += is_lossy
                    if ids:
                        ids_file.write(array.array(self.job.id_type(), ids))
                        lengths_file.write(array.array("i", [len(ids)]))
                        count[1] += 1
                        count[2] += len(ids)
                        count[4] += self.has_control_ids(text, ids)
                    else:
                        count[3] += 1

            batch, characters = [], 0
            for i, text in documents_of(task, self.job):
                if batch and (characters + len(text) > BATCH_CHARACTERS or len(batch) == BATCH_DOCUMENTS):
                    write(batch)
                    batch, characters = [], 0
                batch.append((i, text))
                characters += len(text)
            write(batch)
        return list(counts.values())


def work(job: Job, folder: str, pipe) -> None:
    """Runs the tasks that come by the pipe, and sends back what each counts, or its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    # A task whose ids nobody waits for.
    def follow_parent() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=follow_parent, daemon=True).start()
    worker = None
    while True:
        task = pipe.recv()
        try:
            worker = worker or Worker(job, folder)
            result = worker.run(task)
        except Exception as error:  # The other process has the remedy, or ends by it.
            result = error
        pipe.send(result)


class Workers:
    """Processes with a pipe to each. The queues and events of multiprocessing would have named semaphores, which stay in /dev/shm when all
    processes are killed."""

    def __init__(self, job: Job, folder: str, processes: int):
        context = multiprocessing.get_context("spawn")
        self.processes, self.idle = [], queue.SimpleQueue()
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=work, args=(job, folder, there), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self.idle.put(here)

    def run(self, task: Task) -> list[list[int]]:
        """The counts of a task. Called by as many threads as there are processes."""
        pipe = self.idle.get()
        try:
            pipe.send(task)
            result = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise Failure("a process was killed, perhaps for its memory; the same command goes on, and fewer --processes need less") from None
        finally:
            self.idle.put(pipe)
        if isinstance(result, Exception):
            raise result
        return result

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
