"""What a command line of tokenize_text.py asks for, as a job: the tokenizer, the inputs, and how chats are rendered."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import stat

from chat_template import INSTALL, ChatTemplate, stop_tokens
from failure import Failure
from tokenize_inputs import MIB, Chat, Job, import_or_fail
from tokenize_tasks import load_tokenizer

KINDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
MOST_IDS = 1 << 31
NAMED, END_OF_TEXT = "named by --eod", "<|endoftext|>"


class Stopped(Exception):
    """The end of a digest that nobody waits for."""


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


def look_at_chats(options: argparse.Namespace, tokenizer, folder: pathlib.Path) -> Chat:
    text = options.chat_template and options.chat_template.read_text()
    date = options.date or str(datetime.date.today())
    template = ChatTemplate(folder, text, options.template_argument, date)
    ends = None if options.no_end_of_turn else stop_tokens(tokenizer, folder, template.tokenizer.eos_token, options.end_of_turn)
    return Chat(f"{template.version} with jinja2 {import_or_fail('jinja2', INSTALL).__version__}", text,
                hashlib.sha256(template.all_text().encode()).hexdigest(), options.template_argument, date if template.reads_date() else None,
                options.train_on, options.reasoning, options.generation_marks, ends, options.skip_bad)


def make_job(options: argparse.Namespace) -> Job:
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
    eod = (None, None, None) if options.no_eod or options.chat else end_of_document(tokenizer, path, options.eod)
    inputs = [look_at(path, options.format) for path in options.inputs]
    if options.chat and (texts := [path for path, kind, _, _ in inputs if kind == "text"]):
        raise Failure(f"{texts[0]} is taken as text, which has no messages; name it .jsonl or .parquet, or say what it is by --format")
    switched_off = [name for name in ("truncation", "padding") if getattr(tokenizer, name)]
    chat = look_at_chats(options, tokenizer, path.parent) if options.chat else None
    return Job(str(path), digest, version, vocab, *eod, tokenizer.token_to_id(END_OF_TEXT) is not None, options.add_special_tokens,
               options.special_strings_as_text, options.field or ("messages" if options.chat else "text"), options.document,
               options.most_document_bytes, switched_off, chat, inputs)
