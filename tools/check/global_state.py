"""Finds what a process of the programs keeps outside of objects, and compares it with the table of docs/non_goals.md.

Usage: global_state.py [ROOT]    Prints one line for each difference; exit 1 if there are any.

Global state is a variable of a namespace, of a class (static) or of a function (static, thread_local) that is not constant. The table
names the file and the variables, and gives the reason. The check reads lines, and knows their form from docs/style.md: what stands in
a namespace begins in the first column, and a function is `auto Name(...) -> ...`.
"""

import pathlib
import re
import sys

PAGE = pathlib.Path("docs") / "non_goals.md"
ROW = re.compile(r"^\| `((?:compiler|runtime)/[^`]+)` \| ([^|]+) \| [^|\s]", re.MULTILINE)
FOLDERS = ("compiler", "runtime")
SUFFIXES = (".h", ".cpp", ".cu")
TEXT = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"')
# A declaration that says so, in a function or class too; and one in the first column that begins with a type.
STATIC = re.compile(r"^\s*(?:\[\[\w+\]\]\s*)?(?:inline\s+|constinit\s+)*(?:static|thread_local)\b")
OTHER = ("auto", "break", "case", "class", "concept", "constexpr", "else", "enum", "extern", "friend", "namespace", "private", "public",
         "requires", "return", "static_assert", "struct", "template", "typedef", "union", "using")
IN_NAMESPACE = re.compile(rf"^(?!(?:{'|'.join(OTHER)})\b)[A-Za-z_][\w:]*[\s<*&]")
# Up to its value: a type, then a name.
DECLARATION = re.compile(r"^(.*[\s*&])([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


def without_arguments(text: str) -> str:
    """A type without the arguments of its templates."""
    text = text.replace("->", "  ")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def variable_of(line: str) -> str | None:
    """The name of the variable that a line declares as global state; None if it declares none."""
    if not STATIC.match(line) and not IN_NAMESPACE.match(line):
        return None
    head = re.split(r"[={;]", without_arguments(line), maxsplit=1)[0]
    # A function, or a macro.
    if "(" in head or head == line:
        return None
    declaration = DECLARATION.match(head.rstrip())
    if not declaration or "constexpr" in declaration[1].split():
        return None
    # `const char*` is a variable, `const char* const` is none.
    pointed = declaration[1].rsplit("*", 1)
    return None if re.search(r"\bconst\b", pointed[-1]) else declaration[2]


def state_of(text: str) -> set[str]:
    """The names of the global state of a source."""
    lines = [TEXT.sub("", line) for line in text.splitlines()]
    found = set()
    for index, line in enumerate(lines):
        if STATIC.match(line) and not re.search(r"[=({;]", without_arguments(line)):
            # clang-format broke the line.
            line += " " + "".join(lines[index + 1:index + 2]).strip()
        if name := variable_of(line):
            found.add(name)
    return found


def main(root: pathlib.Path) -> int:
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and (names := state_of(path.read_text())):
                found[path.relative_to(root).as_posix()] = names
    rows = {file: set(re.findall(r"`([^`]+)`", names)) for file, names in ROW.findall((root / PAGE).read_text())}
    faults = []
    for file in sorted(found.keys() | rows.keys()):
        for name in sorted(found.get(file, set()) - rows.get(file, set())):
            faults.append(f"{file}: `{name}` is global state; pass it on, or give it a row with its reason in {PAGE}")
        for name in sorted(rows.get(file, set()) - found.get(file, set())):
            faults.append(f"{PAGE}: `{name}` of {file} is no global state there; delete it from its row")
    print("\n".join(faults) or f"{sum(map(len, found.values()))} variables of {len(found)} files are global state, each with its reason")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
