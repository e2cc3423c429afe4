#!/usr/bin/env python3
"""Prints schemas/op_constraints.def: the constraints of the ops, as the comments at the heads of compiler/ops/<op>.cpp number them.

Usage: op_constraints.py [--check] [ROOT]

The head of an op's file is "<mnemonic>. [what holds for all:] C1: text. C2: text." --check compares with the file and prints
what differs; exit code 1 if anything does, or if a head does not number its constraints from 1.
"""

import argparse
import pathlib
import re
import sys

HEAD = """// The constraints of the ops: OP_CONSTRAINT("label", mnemonic, "what it asks"). Made by tools/op_constraints.py, which
// `tools/dev docs` runs, from the comments at the heads of compiler/ops/<mnemonic>.cpp; a test checks that it is current.
// `shardc help LABEL` prints a row.
"""


def head_of(path: pathlib.Path) -> str:
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return " ".join(lines)


def constraints(mnemonic: str, head: str) -> list[str]:
    title, *parts = re.split(r"\bC(\d+): ", head)
    if not title.startswith(f"{mnemonic}.") or parts[::2] != [str(n + 1) for n in range(len(parts) // 2)]:
        sys.exit(f"compiler/ops/{mnemonic}.cpp: the head is not `{mnemonic}. C1: ... C2: ...`")
    for_all = title.removeprefix(f"{mnemonic}.").strip()
    # Sentences before C1 that do not lead to it are about the op.
    lead = f"{for_all} " if for_all.endswith(":") else ""
    rows = []
    for number, text in zip(parts[::2], parts[1::2]):
        text = (lead + text.strip()).replace("\\", "\\\\").replace('"', '\\"')
        rows.append(f'OP_CONSTRAINT("{mnemonic}-c{number}", {mnemonic}, "{text}")')
    return rows


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = (arguments.root / "schemas" / "ops.def").read_text()
    lines = []
    for mnemonic in sorted(re.findall(r"^OP\(\w+, (\w+),", rows, re.M)):
        lines += constraints(mnemonic, head_of(arguments.root / "compiler" / "ops" / f"{mnemonic}.cpp"))
    text = HEAD + "\n".join(lines) + "\n#undef OP_CONSTRAINT\n"
    if not arguments.check:
        sys.stdout.write(text)
        return 0
    path = arguments.root / "schemas" / "op_constraints.def"
    differing = set(text.splitlines()) ^ set(path.read_text().splitlines())
    for line in sorted(differing):
        print(f"schemas/op_constraints.def is not what the heads of the ops say (tools/dev docs makes it again): {line}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
