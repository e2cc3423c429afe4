"""Checks that no two types of compiler/ and runtime/ have one name.

Usage: type_names.py [ROOT]    Prints one line for each name that two types have; exit 1 if there are any.

Two types of one name in one namespace, each in a file of its own, are undefined behaviour ([basic.def.odr]): the linker
keeps one copy of each inline function, such as std::vector<T>::operator[], and both types get it. Types of a source file
belong into a namespace without a name, or into an inner one. Looked at are definitions that begin a line.
"""

import collections
import pathlib
import re
import sys

DEFINITION = re.compile(r"(?:struct|class|enum class|enum|union)\s+(?:alignas\(\d+\)\s+)?(\w+)\s*(?:final\s*)?(?::[^;:][^;]*)?\{")
NAMESPACE = re.compile(r"namespace ([\w:]*)\s*\{$")
END_OF_NAMESPACE = re.compile(r"\}  // namespace")


def definitions(text: str):
    """(namespace, type, line number) of each type that other files could see."""
    spaces = []
    for number, line in enumerate(text.splitlines(), 1):
        if opened := NAMESPACE.match(line):
            spaces.append(opened[1])
        elif END_OF_NAMESPACE.match(line):
            spaces.pop()
        elif (found := DEFINITION.match(line)) and "" not in spaces:
            yield "::".join(spaces), found[1], number


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    places = collections.defaultdict(list)
    for folder in ("compiler", "runtime"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu"):
                for space, name, number in definitions(path.read_text()):
                    places[space, name].append(f"{path.relative_to(root)}:{number}")
    if not places:
        sys.exit(f"{root} has no types in compiler/ and runtime/")
    repeated = {name: where for name, where in places.items() if len(where) > 1}
    for (space, name), where in sorted(repeated.items()):
        print(f"{space}::{name} is defined {len(where)} times: {', '.join(where)}")
    return 1 if repeated else 0


if __name__ == "__main__":
    sys.exit(main())
