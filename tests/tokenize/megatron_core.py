"""Reads token files of ours by Megatron-core's own IndexedDataset and GPTDataset, and files that it writes by shardc.

    tools/dev test-hf

Takes torch of .deps/bench-venv (3 GB, as parity-transformers does) and megatron-core's wheel, which is unpacked there; its C++ helper is compiled for
this Python. Files of ours are those of tests/tokenize/chats.py, which has to run before. Exit code 1 if an id or a boundary differs.
"""

import array
import json
import pathlib
import shutil
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench/fsdp2"))
from pytorch import VENV, enter, install  # noqa: E402

CHATS = ROOT / ".deps" / "test-chats"
SCRATCH = ROOT / ".deps" / "test-megatron"
PACKAGE = ROOT / ".deps" / "megatron"
WHEEL = "megatron-core==0.19.2"
SEQ = 64
RECIPE = """
[model]
family = "llama"
layers = 1
hidden = 32
heads = 2
ffn = 64
vocab = {vocab}
seq = {seq}
[data]
format = "megatron"
tokens = ["{tokens}"]
{targets}
[batch]
global = 1
[init]
scheme = "normal"
[optimizer]
name = "adamw"
lr = 1e-3
[train]
steps = 1
"""


def unpack() -> None:
    if (PACKAGE / "unpacked").exists():
        return
    shutil.rmtree(PACKAGE, ignore_errors=True)
    pip = [VENV / "bin/python", "-m", "pip", "--disable-pip-version-check"]
    # It has wheels for Python 3.12 and later, which are Python but for one helper.
    subprocess.run([*pip, "download", "--quiet", "--no-deps", "--python-version", "3.12", "--only-binary", ":all:", WHEEL, "-d", PACKAGE], check=True)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", next(PACKAGE.glob("*.whl")), PACKAGE], check=True)
    folder = PACKAGE / "megatron/core/datasets"
    for path in folder.glob("helpers_cpp.*.so"):
        path.unlink()
    includes = subprocess.run([VENV / "bin/python", "-m", "pybind11", "--includes"], check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["g++", "-O2", "-shared", "-std=c++17", "-fPIC", *includes, folder / "helpers.cpp", "-o", folder / "helpers_cpp.so"], check=True)
    (PACKAGE / "unpacked").touch()


def documents_of(stem: pathlib.Path, ending: str = "") -> list[list[int]]:
    index = pathlib.Path(f"{stem}{ending}.idx").read_bytes()
    kind, count = {8: "H", 4: "i"}[index[17]], int.from_bytes(index[18:26], "little")
    ids = array.array(kind, pathlib.Path(f"{stem}{ending}.bin").read_bytes())
    found, begin = [], 0
    for length in array.array("i", index[34: 34 + 4 * count]):
        found.append(list(ids[begin: begin + length]))
        begin += length
    return found


def judge_ours(stem: pathlib.Path) -> int:
    """Differences between what we wrote and what Megatron reads."""
    import numpy
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split

    wrong = 0
    for ending in "", ".targets":
        ours, theirs = documents_of(stem, ending), IndexedDataset(f"{stem}{ending}")
        differing = sum(list(theirs[i]) != document for i, document in enumerate(ours)) + abs(len(ours) - len(theirs))
        differing += list(theirs.document_indices) != list(range(len(ours) + 1))
        print(f"{stem.name}{ending}: IndexedDataset reads {len(theirs)} documents, {differing} differ", flush=True)
        wrong += differing

    # Megatron writes 0 over ids of padding, so no id of the files is one.
    class Tokenizer:
        eod, pad, vocab_size, unique_identifiers = 60001, 60000, 1 << 16, {"of": "ours"}

    config = GPTDatasetConfig(random_seed=1, sequence_length=SEQ, reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, split="1,0,0",
                              tokenizer=Tokenizer(), blend=([str(stem)], None), path_to_cache=str(SCRATCH / "cache"), create_attention_mask=False)
    theirs = IndexedDataset(str(stem))
    samples = GPTDataset(theirs, str(stem), numpy.arange(len(theirs), dtype=numpy.int32), None, Split.train, config)
    ours = documents_of(stem)
    stream = [token for document in samples.document_index for token in ours[document]]
    differing = 0
    for place in range(len(samples)):
        sample, begin = samples[place], SEQ * samples.shuffle_index[place]
        differing += sample["tokens"].tolist() != stream[begin: begin + SEQ] or sample["labels"].tolist() != stream[begin + 1: begin + SEQ + 1]
    print(f"{stem.name}: GPTDataset gives {len(samples)} samples, {differing} differ", flush=True)
    return wrong + differing + (len(samples) == 0)


def check(tokens: pathlib.Path, targets: pathlib.Path | None, vocab: int) -> str:
    """What shardc says of the files, whose ids it compares."""
    recipe = SCRATCH / "recipe.toml"
    recipe.write_text(RECIPE.format(tokens=tokens, vocab=vocab, seq=SEQ, targets=f'targets = ["{targets}"]' if targets else ""))
    result = subprocess.run([ROOT / "build/shardc", "check", "--data", recipe], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"error: shardc refuses {tokens}: {result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def judge_theirs(numpy_type: str) -> int:
    """Writes a dataset by Megatron, empty documents at its begin, in it and at its end, and has shardc read it."""
    import numpy
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    stem = SCRATCH / f"theirs-{numpy_type}"
    builder = IndexedDatasetBuilder(f"{stem}.bin", dtype=getattr(numpy, numpy_type))
    generator = numpy.random.default_rng(1)
    lengths = [0, *generator.integers(0, 300, 200), 0]
    items = [generator.integers(0, 1000, length) for length in lengths]
    for item in items:
        builder.add_item(torch.from_numpy(item))
        builder.end_document()
    builder.finalize(f"{stem}.idx")
    check(f"{stem}.bin", None, 1000)
    differing = sum(list(item) != document for item, document in zip(items, documents_of(stem), strict=True))
    print(f"{stem.name}: shardc takes {len(items)} documents of Megatron, {lengths.count(0)} of them empty; {differing} differ", flush=True)
    return differing


def main() -> None:
    install("pybind11", "packaging")
    unpack()
    enter()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(PACKAGE))
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    wrong = 0
    for name in ("qwen3-bytes", "qwen2_5-pieces"):
        wrong += judge_ours(CHATS / f"{name}-out")
        vocab = json.loads((CHATS / f"{name}-out.sources.json").read_text())["vocab"]
        print(check(CHATS / f"{name}-out.bin", CHATS / f"{name}-out.targets.bin", vocab), end="", flush=True)
    wrong += sum(judge_theirs(kind) for kind in ("uint16", "int32"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
