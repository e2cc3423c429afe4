#!/usr/bin/env python3
"""Prints what a checkpoint says after a prompt: `shardc sample` with a tokenizer of the package `tokenizers` on both ends.

Usage: sample_text.py RECIPE --checkpoint DIR --tokenizer FILE|DIR --prompt TEXT [OPTION OF shardc sample ...]

Text is printed as it comes. The tokenizer is a tokenizer.json, or a folder that has one.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Text:
    """The text of ids, given out in pieces that end where characters end."""

    def __init__(self, decode, ids: list):
        self.decode, self.ids, self.told = decode, list(ids), decode(list(ids))

    def add(self, number: int) -> str:
        self.ids.append(number)
        text = self.decode(self.ids)
        # The bytes of a character may be spread over several tokens.
        if text.endswith(REPLACEMENT) or not text.startswith(self.told):
            return ""
        new, self.told = text[len(self.told):], text
        return new


def load(path: pathlib.Path):
    try:
        import tokenizers
    except ImportError:
        sys.exit("error: the package tokenizers is not installed; python3 -m pip install tokenizers")
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # Its own kind of exception is plain Exception.
        sys.exit(f"error: {file} is no tokenizer: {error}")


def program() -> str:
    beside = pathlib.Path(__file__).resolve().parent.parent / "build" / "shardc"
    found = shutil.which("shardc") or (str(beside) if beside.exists() else None)
    return found or sys.exit("error: shardc is not on the PATH")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("--tokenizer", required=True, type=pathlib.Path)
    parser.add_argument("--prompt", required=True)
    options, others = parser.parse_known_args()
    tokenizer = load(options.tokenizer)
    ids = tokenizer.encode(options.prompt).ids
    command = [program(), "sample", options.recipe, "--prompt-ids", ",".join(map(str, ids)), *others]
    text = Text(lambda numbers: tokenizer.decode(numbers), ids)
    print(options.prompt, end="", flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            print(text.add(int(line)), end="", flush=True)
    print()
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
