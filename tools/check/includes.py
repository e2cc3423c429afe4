"""Checks that each file includes what it names, itself or by the project's headers that it includes.

Usage: includes.py [ROOT]    Prints one line for each name whose header is missing; exit 1 if there are any.

The build hides a forgotten include twice: precompiled headers and files that are compiled as one give a file what it did
not ask for. This check reads texts only. A file is in order if its own #include lines, followed through the headers of
the project, lead to
  - a header that gives each name of the standard library, of the system and of fmt, gtest and JSON: tools/check/headers.txt.
    What one library's header includes in turn does not count. A name of std that the table lacks is reported too.
  - a header that declares each type, function, constant and macro of the project, if only headers declare it.
It does not see what a template or macro needs where it is used, nor which overload of a name. `tools/dev syntax` asks the
compiler, which takes minutes.
"""

import collections
import fnmatch
import functools
import pathlib
import re
import sys

TABLE = pathlib.Path("tools") / "check" / "headers.txt"
FOLDERS = ("compiler", "runtime", "tests")

# Comments and literals. A quote after a digit separates digits.
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', re.M)
TEST_NAME = re.compile(r"\b(?:(?:TEST|INSTANTIATE_TEST_SUITE_P)\(\s*\w+,\s*\w+|TEST_[FP]\((\s*\w+),\s*\w+)")

# What other files can see: clang-format lets it begin a line.
SPECIFIERS = r"^(?:\[\[.*?\]\]\s*)?(?:(?:inline|constexpr|consteval|static|extern|const)\s+)"
TYPE = re.compile(
    r"^(?:class|struct|enum class|enum|union|using|concept)\s+(?:alignas\(\w+\)\s+|\[\[\w+\]\]\s+)?(?!alignas)(\w+)\b(?!\s*(?:;|::|<))",
    re.M)
FORWARD = re.compile(r"^(?:class|struct)\s+(\w+);", re.M)
FUNCTION = re.compile(SPECIFIERS + r"*auto\s+(\w+)\s*\(", re.M)
CONSTANT = re.compile(SPECIFIERS + r"+(?!auto\s+\w+\()[\w:<>,*& ]*?\s(\w+)(?:\s*=|\{|;|\[)", re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.M)
# What a class, a function or a macro declares inside, which hides an outer name.
INNER = re.compile(
    r"\bauto\s+(\w+)\s*[(=]|\b(?:class|struct|union|enum class|enum|typename|using|concept|namespace)\s+(?!class\b)(\w+)"
    r"|\bconst(?:expr)?\s+[\w:<>,.() ]+\s(\w+)(?=\s*=|\{|;|\[)|\bauto\s+\w+::(\w+)\(|\busing\s+[\w:]+::(\w+);", re.M)
ENUMERATORS = re.compile(r"\benum\b[^;{()]*\{([^}]*)\}")

STD_NAME = re.compile(r"\bstd::(\w+(?:::\w+)?)")
QUALIFIED_NAME = re.compile(r"\b(?:fmt|nlohmann|testing|benchmark|toml)::\w+")
# Neither a member nor a name of a class or of another namespace.
PLAIN_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)(?:shardc::|::)?([A-Za-z_]\w*)\b(\s*\()?")
# How a type is used that has to be known in full: it is made, or a member of it is named.
FULL_USE = re.compile(r"\s*(?:::|[({])")


class Headers:
    """The rows of tools/check/headers.txt: names, or patterns with `*`, and the headers that give each."""

    def __init__(self, path: pathlib.Path):
        self.rows = collections.defaultdict(set)
        self.patterns = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if not (row := re.fullmatch(r"([\w+./ ]+): (.+)", line)):
                sys.exit(f"{path}:{number}: expected HEADERS: NAMES")
            for name in row[2].split():
                self.rows[name] |= set(row[1].split())
        self.patterns = [name for name in self.rows if "*" in name]

    @functools.cache
    def of(self, name: str) -> frozenset[str]:
        """The headers that give the name; empty for a name that the table does not have."""
        return frozenset(self.rows.get(name, ())).union(
            *(self.rows[pattern] for pattern in self.patterns if fnmatch.fnmatchcase(name, pattern)))


class File:
    def __init__(self, text: str):
        code = NOT_CODE.sub(lambda found: ('""' if found[0][0] in 'R"' else " ") + "\n" * found[0].count("\n"), text)
        self.includes = INCLUDE.findall(text)
        self.declared = {name for kind in (TYPE, FUNCTION, CONSTANT, MACRO) for name in kind.findall(code)}
        self.forward = set(FORWARD.findall(code))
        code = FORWARD.sub("", code)
        self.inner = {name for names in INNER.findall(code) for name in names if name}
        self.inner |= {name for body in ENUMERATORS.findall(code) for name in re.findall(r"\w+", body)}
        self.code = TEST_NAME.sub(lambda test: test[1] or "", INCLUDE.sub("", code))


class Tree:
    def __init__(self, root: pathlib.Path):
        self.headers = Headers(root / TABLE)
        self.files = {}
        for top in (*FOLDERS, "schemas"):
            for path in sorted((root / top).rglob("*")):
                if path.suffix in (".h", ".cpp", ".cu", ".def"):
                    self.files[path.relative_to(root).as_posix()] = File(path.read_text())
        # By name: the headers that declare it.
        self.declaring = collections.defaultdict(list)
        for path, file in self.files.items():
            if path.endswith(".h"):
                for name in file.declared:
                    self.declaring[name].append(path)

    def closure(self, path: str) -> set[str]:
        """The file itself and all that it includes, libraries' headers without what these include."""
        reached, left = {path}, [path]
        while left:
            for include in self.files[left.pop()].includes:
                if include not in reached:
                    reached.add(include)
                    if include in self.files:
                        left.append(include)
        return reached

    def missing(self, name: str, reached: set[str]) -> str | None:
        """What a file that reaches these headers has to include for a name of the table."""
        headers = self.headers.of(name)
        return None if not headers or headers & reached else " or ".join(f"<{header}>" for header in sorted(headers))

    def faults(self, path: str):
        """(position, what is missing) of each name of the file, where the name is used first."""
        code, reached = self.files[path].code, self.closure(path)
        known = [self.files[other] for other in reached if other in self.files]
        own = set().union(*(file.declared | file.inner for file in known))
        forward = set().union(*(file.forward for file in known))
        seen = set()

        def is_new(name: str) -> bool:
            return not (name in seen or seen.add(name))

        for found in STD_NAME.finditer(code):
            name, short = found[0], "::".join(found[0].split("::")[:2])
            if is_new(name):
                name = name if self.headers.of(name) else short
                if not self.headers.of(name):
                    yield found.start(), f"{name} is not in {TABLE}: add it to the row of its header"
                elif headers := self.missing(name, reached):
                    yield found.start(), f"{name} needs {headers}"
        for found in QUALIFIED_NAME.finditer(code):
            if is_new(found[0]) and (headers := self.missing(found[0], reached)):
                yield found.start(), f"{found[0]} needs {headers}"
        for found in PLAIN_NAME.finditer(code):
            name = found[1]
            if name in own:
                continue
            key = name + "()" if found[2] and name.islower() and not name.endswith("_t") else name
            if self.headers.of(key):
                if is_new(key) and (headers := self.missing(key, reached)):
                    yield found.start(), f"{name} needs {headers}"
            # (A matcher such as Not(...) of a matcher is found in testing.)
            elif name[0].isupper() and name in self.declaring and not self.headers.of("testing::" + name):
                declaring = [header for header in self.declaring[name]
                             if path.startswith("tests/") or not header.startswith("tests/")]
                is_enough = name in forward and not FULL_USE.match(code, found.end(1))
                if declaring and not is_enough and is_new(name):
                    yield found.start(), f"{name} needs {' or '.join(declaring)}"


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    tree = Tree(root)
    if not tree.declaring:
        sys.exit(f"{root} has no headers in {', '.join(FOLDERS)}")
    is_faulty = False
    for path, file in tree.files.items():
        if path.endswith(".def"):
            continue
        for position, text in tree.faults(path):
            print(f"{path}:{file.code.count(chr(10), 0, position) + 1}: {text}")
            is_faulty = True
    return 1 if is_faulty else 0


if __name__ == "__main__":
    sys.exit(main())
