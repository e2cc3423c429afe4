"""What tokenize_text.py does in its worker processes: writes the ids of a task's documents into a file."""

import array
import contextlib
import json
import multiprocessing
import os
import pathlib
import queue
import signal
import threading
from collections.abc import Iterator

from failure import Failure
from tokenize_inputs import Job, Task, documents_of, import_or_fail

# What a tokenizer gets at once.
BATCH_CHARACTERS, BATCH_DOCUMENTS = 1 << 19, 512
INSTALL = "pip install tokenizers, or shardc[tokenize]"
# No id of a tokenizer.
LOST = (1 << 32) - 1


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


class Worker:
    """Writes the ids of a task into a file NUMBER.ids, and the lengths of its documents into NUMBER.lengths."""

    FILES = ("ids", "lengths")

    @staticmethod
    def warm_up() -> None:
        """Loads what takes long, before the job is known."""

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

    def pieces_of(self, task: Task) -> Iterator[tuple[int, object]]:
        """What is encoded together, with its number of characters."""
        for piece in documents_of(task, self.job):
            yield len(piece[1]), piece

    def write_document(self, i: int, ids: list[int]) -> None:
        self.files["ids"].write(array.array(self.job.id_type(), ids))
        self.files["lengths"].write(array.array("i", [len(ids)]))
        self.counts[i]["documents"] += 1
        self.counts[i]["ids"] += len(ids)

    def write(self, batch: list[tuple[int, str]]) -> None:
        texts = [text for _, text in batch]
        for (i, text), ids, is_lossy in zip(batch, self.ids_of(texts), self.are_lossy(texts)):
            count = self.counts[i]
            count["documents_with_lost_characters"] += is_lossy
            if ids:
                self.write_document(i, ids)
                count["documents_with_special_strings"] += self.has_control_ids(text, ids)
            else:
                count["empty_documents"] += 1

    def run(self, task: Task) -> dict:
        """For each input its number and its counts, as Job.count_names lists them."""
        self.counts = {i: dict.fromkeys(self.job.count_names(), 0) for i in range(task.first, task.last)}
        with contextlib.ExitStack() as stack:
            self.files = {name: stack.enter_context(open(f"{self.folder}/{task.number}.{name}", "wb")) for name in self.FILES}
            batch, characters = [], 0
            for size, piece in self.pieces_of(task):
                if batch and (characters + size > BATCH_CHARACTERS or len(batch) == BATCH_DOCUMENTS):
                    self.write(batch)
                    batch, characters = [], 0
                batch.append(piece)
                characters += size
            self.write(batch)
        return {"counts": [[i, *count.values()] for i, count in self.counts.items()]}


def work(make_worker, pipe) -> None:
    """Runs the tasks that come by the pipe, after the job and the folder, and sends back what each counts, or its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    # A task whose ids nobody waits for.
    def follow_parent() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=follow_parent, daemon=True).start()
    make_worker.warm_up()
    job, folder = pipe.recv()
    worker = None
    while True:
        task = pipe.recv()
        try:
            worker = worker or make_worker(job, folder)
            result = worker.run(task)
        except Exception as error:  # The other process has the remedy, or ends by it.
            result = error
        pipe.send(result)


class Workers:
    """Processes with a pipe to each. The queues and events of multiprocessing would have named semaphores, which stay in /dev/shm when all
    processes are killed."""

    def __init__(self, make_worker, processes: int):
        # The library would use all processors in each process.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        context = multiprocessing.get_context("spawn")
        self.processes, self.pipes, self.idle = [], [], queue.SimpleQueue()
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=work, args=(make_worker, there), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self.pipes.append(here)

    def begin(self, job: Job, folder: str) -> None:
        for pipe in self.pipes:
            # One that was killed is told of by its first task.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                pipe.send((job, folder))
            self.idle.put(pipe)

    def run(self, task: Task) -> dict:
        """What a worker says of a task. Called by as many threads as there are processes."""
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
