"""Compares what tools/tokenize_text.py --chat writes with transformers: ids, targets, and its rate.

    tools/dev test-hf

Installs transformers, tokenizers, jinja2, pyarrow and wordllama's tokenizer into .deps/chat-venv on first use (250 MB). For each template of
tests/tokenize/templates it draws 2,000 conversations on a BPE of bytes that it trains on Debian's documentation, and 500 on Llama 2's tokenizer.
A turn's targets are what the ids of its rendering have after those of its prompt; where a token reaches over that border, offsets of
transformers' own encoding say it. Templates with {% generation %} are compared with transformers' assistant masks too. So are the texts that
one rendering gives of the first messages (prefix_templates.py). Then the tool and `apply_chat_template(tokenize=True)` in one process take
the same file by turns. Exit code 1 if an id, a target or a text differs.
"""

import argparse
import array
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

from chat_families import FAMILIES, Maker, write_folder
from prefix_templates import compare_prefixes

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / ".deps" / "test-chats"
VENV = ROOT / ".deps" / "chat-venv"
PACKAGES = ["transformers==5.23.0", "tokenizers==0.23.3", "jinja2==3.1.6", "pyarrow==26.0.1"]
# Its dependencies are left out.
ALONE = ["wordllama==0.4.0.post1"]
CONVERSATIONS = {"bytes": 2000, "pieces": 500}
SPEED_BYTES, ROUNDS = 100_000_000, 3
NONE = {"H": 65535, "i": -1}
BASELINE = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], local_files_only=True)
ids = 0
for line in open(sys.argv[2]):
    chat = json.loads(line)
    ids += len(tokenizer.apply_chat_template(chat["messages"], tools=chat.get("tools"), tokenize=True)["input_ids"])
print(ids)
"""


def install() -> None:
    stamp, wanted = VENV / "installed", " ".join([*PACKAGES, *ALONE])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {wanted} into {VENV}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    pip = [VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)
    subprocess.run([*pip, "--no-deps", *ALONE], check=True)
    stamp.write_text(wanted)


def licences() -> list[str]:
    """Texts that each Debian has."""
    return [path.read_text(errors="ignore") for path in sorted(pathlib.Path("/usr/share/common-licenses").iterdir()) if path.is_file()]


def tokenizer_of_bytes():
    """With tokens of several newlines, which reach over the borders of messages."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(licences(), trainers.BpeTrainer(vocab_size=4000, initial_alphabet=alphabet, show_progress=False))
    return made


def tokenizer_of_pieces():
    from tokenizers import Tokenizer

    packages = next((VENV / "lib").glob("python*/site-packages"))
    return Tokenizer.from_file(str(packages / "wordllama/tokenizers/l2_supercat_tokenizer_config.json"))


def expected(tokenizer, ends: set, messages: list[dict], tools: list | None) -> tuple[list[tuple[list, list]], int]:
    """The documents, each with its ids and whether each is a target, and how many turns have a token over a border."""
    documents, over = [], 0
    for i in reversed([i for i, message in enumerate(messages) if message["role"] == "assistant"]):
        text = tokenizer.apply_chat_template(messages[: i + 1], tools=tools, tokenize=False)
        prompt = tokenizer.apply_chat_template(messages[:i], tools=tools, tokenize=False, add_generation_prompt=True)
        assert text.startswith(prompt)
        said = text.rstrip()
        home = next((document for document in documents if document[0].startswith(said)), None)
        if home is None:
            made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            home = (text, made["input_ids"], made["offset_mapping"], [False] * len(made["input_ids"]))
            documents.append(home)
        _, ids, offsets, is_target = home
        before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        first = len(before)
        if ids[:first] != before:
            over += 1
            first = next(token for token, (begin, _) in enumerate(offsets) if begin >= len(prompt))
        last = max(token for token, (begin, _) in enumerate(offsets) if begin < len(said))
        assert ids[last] in ends, tokenizer.convert_ids_to_tokens(ids[last])
        is_target[first: last + 1] = [True] * (last + 1 - first)
    return [(ids, is_target) for _, ids, _, is_target in reversed(documents)], over


def written(out: pathlib.Path) -> list[tuple[list, list]]:
    index = pathlib.Path(f"{out}.idx").read_bytes()
    kind = {8: "H", 4: "i"}[index[17]]
    count = int.from_bytes(index[18:26], "little")
    ids, targets = (array.array(kind, pathlib.Path(f"{out}{ending}").read_bytes()) for ending in (".bin", ".targets.bin"))
    documents, begin = [], 0
    for length in array.array("i", index[34: 34 + 4 * count]):
        part, its = ids[begin: begin + length], targets[begin: begin + length]
        if any(target not in (NONE[kind], token) for token, target in zip(part, its)):
            sys.exit(f"error: {out}.targets.bin has another id than {out}.bin")
        documents.append((list(part), [target != NONE[kind] for target in its]))
        begin += length
    return documents


def tool(folder: pathlib.Path, name: str, inputs: list, out: pathlib.Path, processes: int) -> str:
    for path in out.parent.glob(f"{out.name}.*"):
        path.unlink()
    ends = [word for token in FAMILIES[name].ends for word in ("--end-of-turn", token)]
    command = [VENV / "bin/python", ROOT / "tools/tokenize_text.py", "--chat", "--tokenizer", folder, "--processes", processes, *ends, *inputs, "-o", out]
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def judge_masks(name: str, tokenizer, chats: list, documents: list) -> tuple[int, int, int]:
    """Tokens of transformers' assistant masks, those of them that are no targets, and targets that are in no mask."""
    marked = beyond = missed = 0
    for (messages, _), (ids, is_target) in zip(chats, documents, strict=True):
        mask = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)["assistant_masks"]
        marked += sum(mask)
        beyond += sum(one and not other for one, other in zip(mask, is_target, strict=True))
        missed += sum(other and not one for one, other in zip(mask, is_target))
    return marked, beyond, missed


def compare(name: str, kind: str, make) -> int:
    """Differences."""
    import pyarrow
    import pyarrow.parquet
    from transformers import AutoTokenizer

    folder = SCRATCH / f"{name}-{kind}"
    write_folder(folder, name, make())
    family, maker = FAMILIES[name], Maker(len(name), WORDS)
    chats = [maker.conversation(family) for _ in range(CONVERSATIONS[kind])]
    path = SCRATCH / f"{name}-{kind}.jsonl"
    path.write_text("".join(json.dumps(maker.spelled(*chat)) + "\n" for chat in chats))
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    ends = {tokenizer.convert_tokens_to_ids(token) for token in (family.eos, *family.ends)}
    wanted, over = [], 0
    for messages, tools in chats:
        documents, crossing = expected(tokenizer, ends, messages, tools)
        wanted, over = wanted + documents, over + crossing
    out = SCRATCH / f"{name}-{kind}-out"
    tool(folder, name, [path], out, 2)
    found = written(out)
    counts = json.loads(pathlib.Path(f"{out}.sources.json").read_text())
    ids = sum(one != other for (left, _), (right, _) in zip(wanted, found) for one, other in zip(left, right))
    ids += abs(sum(len(one) for one, _ in wanted) - sum(len(one) for one, _ in found))
    targets = sum(one != other for (_, left), (_, right) in zip(wanted, found) for one, other in zip(left, right))
    wrong = ids + targets + (len(found) != len(wanted)) + (counts["targets"] != sum(map(sum, (one for _, one in wanted))))
    text = f"{name}, {kind}: {len(chats)} conversations, {len(wanted)} documents, {counts['turns']} turns; {counts['ids']:,} ids compared, {ids} differ; "
    text += f"{counts['targets']:,} targets, {targets} differ; {over} turns with a token over a border"
    if name in ("marked", "smollm3"):
        marked, beyond, missed = judge_masks(name, tokenizer, chats, found)
        # Transformers takes tokens over a left border for answers, and what is marked of headers and of newlines.
        wrong += missed + (name == "marked" and beyond != counts["tokens_over_borders"])
        text += f"; transformers' masks have {marked:,}, {beyond} of them no targets, and lack {missed}"
    print(text, flush=True)
    if name == "qwen2_5" and kind == "bytes":
        # Without texts in place of lists, which one column cannot have beside each other.
        rows = [{"messages": messages, "tools": json.dumps(tools) if tools else None} for messages, tools in chats]
        parquet = SCRATCH / "chats.parquet"
        for row in rows:
            row["messages"] = [message | {"tool_calls": json.dumps(message["tool_calls"]) if "tool_calls" in message else None} for message in row["messages"]]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), parquet, row_group_size=300)
        tool(folder, name, [parquet], out, 2)
        differing = sum(one != other for one, other in zip(written(out), found, strict=True))
        print(f"{name}, Parquet: {differing} documents differ", flush=True)
        wrong += differing
    return wrong


def measure(rounds: int) -> None:
    """Prints rates of whole commands, by the time on the clock and by that of the processors."""
    folder, name = SCRATCH / "qwen2_5-bytes", "qwen2_5"
    maker, size = Maker(1, WORDS), 0
    path = SCRATCH / "speed.jsonl"
    with open(path, "w") as file:
        lines = []
        for _ in range(2000):
            messages, tools = maker.conversation(FAMILIES[name])
            lines.append(json.dumps({"messages": messages} | ({"tools": tools} if tools else {})) + "\n")
        while size < SPEED_BYTES:
            size += file.write("".join(lines))

    def timed(work) -> tuple[float, float]:
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        work()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic() - begun, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime

    baseline = [str(VENV / "bin/python"), "-c", BASELINE, str(folder), str(path)]
    found = []
    for _ in range(rounds):
        found.append([timed(lambda: subprocess.run(baseline, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)),
                      *(timed(lambda: tool(folder, name, [path], SCRATCH / "speed-out", processes)) for processes in (1, 2))])
        rates = [f"{size / 1e6 / wall:.2f} MB/s ({size / 1e6 / processor:.2f} per second of processor)" for wall, processor in found[-1]]
        print("apply_chat_template {}, 1 process {}, 2 processes {}".format(*rates), flush=True)
    for i, what in enumerate(("by the clock", "by the time of processors")):
        one = statistics.median(base[i] / alone[i] for base, alone, _ in found)
        two = statistics.median(alone[i] / both[i] for _, alone, both in found)
        print(f"{what}: 1 process {one:.2f} of apply_chat_template's rate, 2 processes {two:.2f} of that of 1 (medians of {rounds} rounds)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only-rates", action="store_true", help="measures rates with the files of an earlier call")
    which.add_argument("--no-rates", action="store_true", help="compares ids, targets and texts, and measures no rates")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"measurements of each rate, by turns (default: {ROUNDS})")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes 1 or more")
    if options.only_rates and not (SCRATCH / "qwen2_5-bytes").exists():
        parser.error(f"--only-rates needs {SCRATCH}/qwen2_5-bytes, which a call without it makes")
    return options


def main() -> None:
    options = parse()
    if pathlib.Path(sys.prefix) != VENV:
        install()
        sys.exit(subprocess.run([VENV / "bin/python", *sys.argv]).returncode)
    global WORDS
    WORDS = " ".join(licences()).split()
    if not options.only_rates:
        shutil.rmtree(SCRATCH, ignore_errors=True)
        SCRATCH.mkdir(parents=True)
        makers = {"bytes": tokenizer_of_bytes, "pieces": tokenizer_of_pieces}
        wrong = sum(compare(name, kind, make) for name in FAMILIES for kind, make in makers.items())
        wrong += compare_prefixes(SCRATCH / "qwen2_5-bytes", WORDS)
        if wrong:
            sys.exit(f"error: {wrong} differences")
    if not options.no_rates:
        measure(options.rounds)


if __name__ == "__main__":
    main()
