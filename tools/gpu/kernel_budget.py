"""Holds each kernel for GPUs to tests/gpu/kernels.txt: the registers, the shared memory and the spilled bytes that it may take at most.

Usage: kernel_budget.py [--update] RESOURCES...   (what ptxas said of each batch of kernels: build/runtime/cuda_*.resources)

A kernel without a row fails, and so does a row without a kernel. --update writes the rows as they are now.
"""

import pathlib
import re
import subprocess
import sys

BUDGET = pathlib.Path(__file__).resolve().parents[2] / "tests" / "gpu" / "kernels.txt"
HEAD = """# What ptxas gives each kernel for sm_90: the most that a change may make of it without a change of this file.
# `python3 tools/gpu/kernel_budget.py --update build/runtime/cuda_*.resources` writes it.
"""
ENTRY = re.compile(r"Compiling entry function '(\w+)' for")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
COLUMNS = ("registers", "shared", "spilled")
Row = tuple[int, int, int]


def short_names(mangled: list[str]) -> list[str]:
    """The names without namespaces, parameters and result."""
    shown = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.splitlines()
    names = []
    for name in shown:
        name = name.replace("(anonymous namespace)::", "").replace("shardc::cuda::", "").replace("shardc::", "").removeprefix("void ")
        depth = 0
        for position, character in enumerate(name):
            depth += {"<": 1, ">": -1}.get(character, 0)
            if character == "(" and depth == 0:
                name = name[:position]
                break
        names.append(name.replace(" ", ""))
    return names


def read_resources(paths: list[pathlib.Path]) -> dict[str, Row]:
    mangled: list[str] = []
    rows: list[list[int]] = []
    for path in paths:
        for line in path.read_text().splitlines():
            if found := ENTRY.search(line):
                mangled.append(found[1])
                rows.append([0, 0, 0])
            elif rows and (found := SPILLS.search(line)):
                rows[-1][2] = max(int(found[1]), int(found[2]))
            elif rows and (found := USED.search(line)):
                shared = SHARED.search(line)
                rows[-1][0], rows[-1][1] = int(found[1]), int(shared[1]) if shared else 0
    return {name: (row[0], row[1], row[2]) for name, row in zip(short_names(mangled), rows)}


def read_budget(path: pathlib.Path) -> dict[str, Row]:
    budget = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *numbers = line.split()
            budget[name] = tuple(int(number) for number in numbers)
    return budget


def comments(path: pathlib.Path) -> str:
    """What stands at the head of the file, which people write."""
    if not path.is_file():
        return HEAD
    return "".join(line for line in path.read_text().splitlines(keepends=True) if line.startswith("#"))


def text_of(head: str, rows: dict[str, Row]) -> str:
    width = max(len(name) for name in rows)
    return head + "".join(f"{name:<{width}} {row[0]:>4} {row[1]:>6} {row[2]:>4}\n" for name, row in sorted(rows.items()))


def faults(rows: dict[str, Row], budget: dict[str, Row]) -> list[str]:
    found = [f"{name} has no row" for name in sorted(rows.keys() - budget.keys())]
    found += [f"{name} is no kernel" for name in sorted(budget.keys() - rows.keys())]
    for name in sorted(rows.keys() & budget.keys()):
        for what, is_now, may_be in zip(COLUMNS, rows[name], budget[name]):
            if is_now > may_be:
                found.append(f"{name}: {what} {is_now}, {may_be} at most")
    return found


def main(arguments: list[str]) -> int:
    update = "--update" in arguments
    rows = read_resources([pathlib.Path(argument) for argument in arguments if argument != "--update"])
    if not rows:
        print("error: no kernel in these files")
        return 1
    if update:
        BUDGET.write_text(text_of(comments(BUDGET), rows))
        return 0
    found = faults(rows, read_budget(BUDGET))
    print("\n".join([*(f"{BUDGET.name}: {fault}" for fault in found), f"{len(rows)} kernels, {len(found)} over their budget"]))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
