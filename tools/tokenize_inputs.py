"""The inputs of tokenize_text.py: what a job and a task of it are, and the documents or conversations of a task."""

import array
import dataclasses
import importlib
import json
import pathlib
from collections.abc import Callable, Iterator

from chat_messages import texts_of, without_null
from failure import Failure

MIB = 1 << 20
# Megatron's megatron/core/datasets/indexed_dataset.py: DType.optimal_dtype.
MOST_OF_UINT16 = 65500
# The field of the tools that a conversation may call.
TOOLS = "tools"
# What OUT.sources.json counts, of each input and of all.
COUNTS = ("documents", "ids", "empty_documents", "documents_with_special_strings", "documents_with_lost_characters")
# Turns are those that are trained. A conversation of more than one document has a template that writes its earlier turns in another way.
CHAT_COUNTS = ("conversations", "skipped_conversations", "turns", "targets", "least_targets", "most_targets", "conversations_of_more_documents",
               "conversations_without_last_answer", "tokens_over_borders", "turns_with_wrong_marks")


@dataclasses.dataclass(frozen=True)
class Chat:
    """How conversations are rendered, and what of them is trained."""

    transformers_version: str
    # Null for the tokenizer's own.
    template: str | None
    template_sha256: str
    template_arguments: dict
    # What a template that asks for the date is given.
    date: str | None
    train_on: str
    reasoning: str
    generation_marks: str
    # The tokens that end a turn, with their ids. Null if turns may end with any.
    end_of_turn: dict[str, int] | None
    skip_bad: bool


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
    # What the tokenizer.json asks for and is not done: truncation, padding.
    switched_off: list[str]
    chat: Chat | None
    # Path, kind, size in bytes, and time of the last write.
    inputs: list[list]

    def id_type(self) -> str:
        return "H" if self.vocab < MOST_OF_UINT16 else "i"

    def id_bytes(self) -> int:
        return array.array(self.id_type()).itemsize

    def folder(self) -> pathlib.Path:
        """That of the tokenizer."""
        return pathlib.Path(self.tokenizer).parent

    def count_names(self) -> tuple[str, ...]:
        return COUNTS + (CHAT_COUNTS if self.chat else ())


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
        return importlib.import_module(name)
    except ImportError as error:
        raise Failure(f"the package {name.split('.')[0]} cannot be loaded ({error}): {remedy}") from None


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


def object_in_json(path: str, line: str, offset: int, field: str, what_field: str) -> dict:
    """One that has the field."""
    try:
        value = json.loads(line.removesuffix("\n"))
    except (ValueError, RecursionError) as error:
        what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise failure_at(path, offset, f"is not JSON: {what}; each line is an object, and --format text takes a file as text") from None
    if not isinstance(value, dict):
        raise failure_at(path, offset, "is not a JSON object; each line is one, and --format text takes a file as text")
    if field not in value:
        names = ", ".join(f"`{name}`" for name in value) or "none"
        raise failure_at(path, offset, f"has no field `{field}`; its fields are: {names}{remedy_for(field, what_field)}")
    return value


def remedy_for(field: str, what_field: str) -> str:
    return f"; mend it, or name the field of the {what_field} by --field (now `{field}`)"


def judge_surrogates(path: str, text: str, offset: int, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise failure_at(path, offset, f"has half of a surrogate pair (\\u{ord(text[error.start]):04x}) in its field `{field}`; mend it") from None


def text_in_json(path: str, line: str, offset: int, field: str) -> str:
    text = object_in_json(path, line, offset, field, "text")[field]
    if not isinstance(text, str):
        raise failure_at(path, offset, f"has a field `{field}` that is not a text{remedy_for(field, 'text')}")
    judge_surrogates(path, text, offset, field)
    return text


def rows_of(path: str, group: int, fields: list[str], takes) -> Iterator[tuple[str, list]]:
    """The place of each row, and its values: those of the first field, whose type `takes` has to take, and of the others that there are."""
    file = parquet_file(path)
    types = {column.name: str(column.type) for column in file.schema_arrow}
    field = fields[0]
    if not takes(types.get(field, "")):
        columns = ", ".join(f"`{name}` ({kind})" for name, kind in types.items())
        what = "texts" if takes is is_text else "lists or texts"
        raise Failure(f"{path} has no column `{field}` of {what}; its columns are: {columns}; name the right one by --field")
    row = 1 + sum(file.metadata.row_group(i).num_rows for i in range(group))
    there = [name for name in fields if name in types]
    batches = file.iter_batches(256, row_groups=[group], columns=there, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, ValueError) as error:
            raise Failure(f"{path}, row group {group} is damaged: {error}; write the file again") from None
        if batch is None:
            return
        for number in range(batch.num_rows):
            where = f"{path}, row {row} of column `{field}`"
            try:
                values = [batch.column(name)[number].as_py() for name in there]
            except UnicodeDecodeError:
                raise Failure(f"{where} is not UTF-8; write the file again") from None
            if values[0] is None:
                raise Failure(f"{where} is null; write the file without such rows")
            yield where, values
            row += 1


def is_text(kind: str) -> bool:
    return kind in ("string", "large_string", "string_view")


def texts_in_rows(path: str, task: Task, job: Job) -> Iterator[str]:
    for where, (text,) in rows_of(path, task.begin, [job.field], is_text):
        if len(text) > job.most_document_bytes:
            raise Failure(f"{where} {is_longer(job.most_document_bytes)}")
        yield text


def documents_of(task: Task, job: Job) -> Iterator[tuple[int, str]]:
    """The number of the input, and the text."""
    most = job.most_document_bytes
    for i in range(task.first, task.last):
        path, kind, size, _ = job.inputs[i]
        if kind == "parquet":
            yield from ((i, text) for text in texts_in_rows(path, task, job))
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


def is_list_or_text(kind: str) -> bool:
    return is_text(kind) or kind.startswith(("list<", "large_list<"))


def chats_of(task: Task, job: Job) -> Iterator[tuple[int, Callable[[str], Failure], object, object]]:
    """The number of the input, what makes a message of what is wrong there, and the values of messages and tools."""
    for i in range(task.first, task.last):
        path, kind, _, _ = job.inputs[i]
        if kind == "parquet":
            for where, (messages, *tools) in rows_of(path, task.begin, [job.field, TOOLS], is_list_or_text):
                yield i, lambda what, where=where: Failure(f"{where} {what}"), without_null(messages), without_null(tools[0] if tools else None)
            continue
        for offset, data in lines_of(path, task, job.most_document_bytes):
            text = decode(path, data, offset)
            if text.strip():
                value = object_in_json(path, text, offset, job.field, "messages")
                # What a surrogate begins with.
                if "\\ud" in text or "\\uD" in text:
                    judge_surrogates(path, texts_of([value[job.field], value.get(TOOLS)]), offset, job.field)
                yield i, lambda what, offset=offset: failure_at(path, offset, what), value[job.field], value.get(TOOLS)
