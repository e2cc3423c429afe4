"""The inputs of tokenize_text.py: what a job and a task of it are, and the documents of a task."""

import array
import dataclasses
import json
import pathlib
from collections.abc import Iterator

from failure import Failure

MIB = 1 << 20
# Megatron's megatron/core/datasets/indexed_dataset.py: DType.optimal_dtype.
MOST_OF_UINT16 = 65500


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
