"""Counts the places outside of an op's own files that ask which op they have before them, against tools/check/op_types.txt.

Usage: op_types.py [ROOT]    Exit 1 if a file has more or fewer places than the list says.

A place of compiler/ or runtime/ names the type or the kind of a concrete op in a question, As<op::, get_if<op::,
holds_alternative<op::, is_same_v<..., op:: and OpKind::, or in an overload, whose parameter is `const op::Matmul&` or
the like. The files of an op, compiler/ops/<mnemonic>.* and runtime/kernels/**/<mnemonic>.*, may, and so may Bind in
runtime/kernels, which makes the kernel of its op.
"""

import collections
import pathlib
import re
import sys

QUESTION = re.compile(r"(As<op::|get<op::|get_if<op::|holds_alternative<op::|is_same_v<[^>]*\bop::|same_as<[^>]*\bop::|\bOpKind::)")
# `op::Type` is the parameter of the macros that go over all rows of ops.def.
OVERLOAD = re.compile(r"\bop::(?!Type\b)[A-Z]\w*\s*(?:const\s*)?[&*]")
KERNEL = re.compile(r"\bBind\(const op::\w+&")
MOST = 30


def own_files(root: pathlib.Path) -> set[str]:
    """The mnemonics, after which the files of ops are named."""
    rows = (root / "schemas" / "ops.def").read_text()
    return set(re.findall(r"^OP\(\w+, (\w+),", rows, re.MULTILINE))


def allowed(path: pathlib.Path) -> dict[str, int]:
    """The rows of op_types.txt: how many places each file may have."""
    places = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\S+): (\d+)\s+(\S.*)", line)
        if not match:
            sys.exit(f"{path}:{number}: expected FILE: PLACES  reason")
        places[match[1]] = int(match[2])
    return places


def places_in(line: str, is_kernel_file: bool) -> int:
    """How often a line asks which op it has."""
    code = line.split("//")[0]
    if is_kernel_file:
        code = KERNEL.sub("", code)
    return len(QUESTION.findall(code)) + len(OVERLOAD.findall(code))


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    mnemonics = own_files(root)
    found = collections.Counter()
    for folder in ("compiler", "runtime"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h") or path.stem in mnemonics:
                continue
            file = str(path.relative_to(root))
            for line in path.read_text().splitlines():
                found[file] += places_in(line, file.startswith("runtime/kernels/"))
    found = +found
    places = allowed(root / "tools" / "check" / "op_types.txt")
    faults = []
    for file in sorted(set(found) | set(places)):
        if found[file] != places.get(file, 0):
            faults.append(f"{file}: {found[file]} places ask which op they have, tools/check/op_types.txt allows {places.get(file, 0)}")
    if sum(places.values()) > MOST:
        faults.append(f"tools/check/op_types.txt allows {sum(places.values())} places, more than {MOST}")
    print("\n".join(faults) or f"{sum(found.values())} places ask which op they have, of {MOST} at most")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
