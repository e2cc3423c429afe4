#!/usr/bin/env python3
"""Prints what a checkpoint says after a prompt: `shardc sample` with a tokenizer of the package `tokenizers` on both ends.

Usage: sample_text.py RECIPE --checkpoint DIR --tokenizer FILE|DIR [--chat] [--prompt TEXT] [OPTION OF shardc sample ...]

Text is printed as it comes. The tokenizer is a tokenizer.json, or a folder that has one. With --chat the prompt is what a user says, each line
of standard input if there is none. The tokenizer's chat template renders the conversation, as tokenize_text.py --chat does, and an answer
ends with the end-of-turn token.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

from chat_options import add_template_options
from chat_template import ChatTemplate, stop_tokens
from failure import end_with

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


def ids_after(recipe: str, ids: list[int], others: list[str], stops: set[int]):
    """The ids that the model says, up to an end-of-turn token. Ends with the program's exit code if it fails."""
    command = [program(), "sample", recipe, "--prompt-ids", ",".join(map(str, ids)), *others]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            if int(line) in stops:
                child.terminate()
                return
            yield int(line)
    if child.returncode != 0:
        print(flush=True)
        sys.exit(child.returncode)
    if stops:
        print("\nnote: no end-of-turn token came; --tokens-out takes more ids", file=sys.stderr)


def say(recipe: str, tokenizer, ids: list[int], others: list[str], stops: set[int]) -> str:
    """Prints what the model says, and returns it."""
    text, whole = Text(lambda numbers: tokenizer.decode(numbers), ids), ""
    for number in ids_after(recipe, ids, others, stops):
        whole += (new := text.add(number))
        print(new, end="", flush=True)
    print(flush=True)
    return whole


def chat(options: argparse.Namespace, tokenizer, others: list[str]) -> None:
    folder = options.tokenizer if options.tokenizer.is_dir() else options.tokenizer.parent
    file = options.chat_template and options.chat_template.read_text()
    template = ChatTemplate(folder, file, dict(options.template_argument), options.date)
    stops = set(stop_tokens(tokenizer, folder, template.tokenizer.eos_token, options.end_of_turn).values())
    # As tokenize_text.py has it: the template has all tokens around a text.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    messages = [{"role": "system", "content": options.system}] if options.system else []
    for question in [options.prompt] if options.prompt is not None else map(str.strip, sys.stdin):
        if not question:
            continue
        messages.append({"role": "user", "content": question})
        text, _ = template.render(messages, None, prompt=True)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        messages.append({"role": "assistant", "content": say(options.recipe, tokenizer, ids, others, stops)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--tokenizer", required=True, type=pathlib.Path)
    parser.add_argument("--prompt")
    parser.add_argument("--chat", action="store_true", help="talks by the tokenizer's chat template, through transformers")
    parser.add_argument("--system", help="what the system's message says")
    add_template_options(parser)
    options, others = parser.parse_known_args()
    if options.prompt is None and not options.chat:
        parser.error("--prompt is missing; without one, --chat reads what a user says")
    tokenizer = load(options.tokenizer)
    if options.chat:
        end_with(lambda: chat(options, tokenizer, others), options.tokenizer, "")
        return
    print(options.prompt, end="", flush=True)
    say(options.recipe, tokenizer, tokenizer.encode(options.prompt).ids, others, set())


if __name__ == "__main__":
    main()
