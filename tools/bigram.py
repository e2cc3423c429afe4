"""Prints the validation loss of a run beside that of a bigram model of the same tokens.

Usage: bigram.py TOKENS.bin... --recipe RECIPE --metrics METRICS.jsonl

The bigram model counts pairs in the training part of the stream, adds one to every count, and is scored on the tokens that
the run predicts in the held-out part: the last [data] eval_tokens tokens, cut to whole samples of [model] seq.
The last line is `validation X nats/byte, bigram Y`, where X is the newest eval_loss of the metrics.
"""

import argparse
import array
import collections
import json
import math
import pathlib
import sys
import tomllib

MAGIC, VERSION, HEADER_WORDS = 20240520, 1, 256


def read_tokens(path: pathlib.Path) -> array.array:
    """The ids of a token file in llm.c's format: 256 little-endian int32 (magic, version, count), then uint16 ids."""
    with path.open("rb") as file:
        header = array.array("i", file.read(4 * HEADER_WORDS))
        tokens = array.array("H", file.read())
    if len(header) != HEADER_WORDS or header[0] != MAGIC or header[1] != VERSION or header[2] != len(tokens):
        sys.exit(f"error: {path} is not a token file of version {VERSION}, or is cut short")
    return tokens


def bigram_loss(train: array.array, held_out: array.array, vocab: int) -> float:
    """Mean of -ln p(next | previous) over the neighbours in `held_out`, in nats."""
    pairs = collections.Counter(zip(train, train[1:]))
    firsts = collections.Counter(train[:-1])
    scored = collections.Counter(zip(held_out, held_out[1:]))
    total = sum(n * math.log((firsts[a] + vocab) / (pairs[a, b] + 1)) for (a, b), n in scored.items())
    return total / scored.total()


def newest_eval_loss(path: pathlib.Path) -> float:
    losses = [line["eval_loss"] for line in map(json.loads, path.read_text().splitlines()) if "eval_loss" in line]
    if not losses:
        sys.exit(f"error: no line of {path} has an eval_loss")
    return losses[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares a run with a bigram model of the same tokens.")
    parser.add_argument("tokens", nargs="+", type=pathlib.Path, help="the recipe's token files, in its order")
    parser.add_argument("--recipe", required=True, type=pathlib.Path)
    parser.add_argument("--metrics", required=True, type=pathlib.Path)
    arguments = parser.parse_args()

    recipe = tomllib.loads(arguments.recipe.read_text())
    tokens = array.array("H")
    for path in arguments.tokens:
        tokens.extend(read_tokens(path))
    begin = len(tokens) - recipe["data"]["eval_tokens"]
    num_predicted = (len(tokens) - begin - 1) // recipe["model"]["seq"] * recipe["model"]["seq"]
    if begin < 2 or num_predicted < 1:
        sys.exit(f"error: {len(tokens)} tokens do not leave a training part and a whole held-out sample")
    bigram = bigram_loss(tokens[:begin], tokens[begin : begin + num_predicted + 1], recipe["model"]["vocab"])
    print(f"validation {newest_eval_loss(arguments.metrics):.4f} nats/byte, bigram {bigram:.4f}")


if __name__ == "__main__":
    main()
