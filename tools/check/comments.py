"""Counts comments of the wrong shape by folder, against tools/check/comment_findings.txt: a folder's count may only fall.

Usage: comments.py [--list FOLDER | --update] [ROOT]    Exit 1 if a folder has more findings than its line says, or fewer.

Two shapes are counted, in comments of C++ and of tables (docs/style.md, "Comments"):
  1. a `///` comment of a function that does not begin with a verb in the third person or with a label ("Requires:"), and
     one of anything else that begins with Of, The same, What, Who, Whether or Where
  2. "is none" and "is no X"
--list prints the findings of a folder. --update lowers the counts of the file to what is found, and raises none.
"""

import argparse
import collections
import pathlib
import re
import sys

COUNTS = pathlib.Path("tools") / "check" / "comment_findings.txt"
FOLDERS = ("compiler", "runtime", "schemas", "tests")

LITERAL_OR_COMMENT = re.compile(
    r"""(//[^\n]*)|/\*.*?\*/|R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.S)
# After its template head and attributes.
FUNCTION = re.compile(
    r"(?:(?:virtual|static|inline|constexpr|consteval|explicit|friend|extern|\[\[[\w:, ]+\]\])\s+)*"
    r"(?:auto\s+(?:\w+::)*(?:operator\b|~?\w+\s*\()|(?:\w+::)?operator\b|~?[A-Z]\w*\()")
TEMPLATE = re.compile(
    r"template <(?:[^<>]|<[^<>]*>)*>\s*(?:requires .*?\s(?=auto|struct|class|constexpr|inline|static|using))?")

LABEL = re.compile(r"(?:Shapes|Units|Requires|Errors|Source|Cost):")
VERB = re.compile(r"(?:[A-Z][a-z-]*[a-rt-z]|CHECK)s\b")
# Words that end as verbs do.
NOT_VERBS = set("""
    Addresses Always Angles Arguments As Axes Axis Barriers Bars Bases Bias Bits Boxes Buffers Bytes Cases Categories
    Characters Chunks Columns Constants Contenders Cores Defaults Devices Diagnostics Digits Dims Distributions
    Docs Does Elements Entries Errors Events Families Faults Files Findings Flags Floats FLOPs Folders Formulas Functions
    Gradients Groups Has Heads Hosts Ids Indices Intervals Is Its Kernels Keys Kinds Launchers Layouts Letters Lines
    Logits Losses Messages Microbatches Minus Moments Norms Numerals Offsets Operands Ops Options Pages Parameters Parts
    Paths Peers Pieces Plurals Plus Ports Positions Processes Quotients Ranges Ranks Recipes Requests Rows Rules Samples
    Scalars Seconds Sections Segments Sequences Settings Shapes Shares Signals Sizes Slices Slots Sockets Sources Status
    Steps Streams Symbols Targets Tasks Tensors Terms Texts This Threads Tokens Types Units Unless Values Variables
    Vectors Views Warnings Was Weights Words Zeros
    """.split())
# What follows tells the noun from the verb: "Names of files", "Names the file".
NOUN_OR_VERB = re.compile(r"(?:Accesses|Changes|Copies|Counts|Names|Numbers|Passes|Results|Rounds|Sums|Turns)"
                          r"[,:]?\s+(?:and|by|for|from|in|of|on|or|per|that|which|with)\b")
NO_NOUN = re.compile(r"(?:Of|The same|What|Who|Whom|Whose|Whether|Where)\b")
NONE = re.compile(r"\b(?:is|are|was|were) none\b|(?<!there )\b(?:is|are|was|were) no "
                  r"(?!longer|more|less|fewer|later|earlier|sooner|larger|smaller|greater|shorter|better|worse|further)", re.I)


def comments(text: str):
    """(line, text, what follows) of each comment; lines of their own that follow each other are one comment."""
    lines = text.splitlines()
    last, mark, words = 0, "", []
    found = [(text.count("\n", 0, one.start()) + 1, one[1]) for one in LITERAL_OR_COMMENT.finditer(text) if one[1]]
    for number, comment in [*found, (len(lines) + 2, "//")]:
        is_own_line = number <= len(lines) and lines[number - 1].lstrip().startswith("//")
        mark_now = ("///" if comment.startswith("///") else "//") if is_own_line else ""
        if words and not (mark_now and mark_now == mark and number == last + 1):
            yield last - len(words) + 1, mark, " ".join(words), " ".join(lines[last : last + 4])
            words = []
        last, mark = number, mark_now
        words.append(comment.lstrip("/").strip())


def findings(text: str):
    """(line, rule, comment) of each comment of a wrong shape."""
    for line, mark, comment, after in comments(text):
        if mark == "///":
            after = TEMPLATE.sub("", after.strip(), count=1)
            if not FUNCTION.match(after):
                is_wrong = NO_NOUN.match(comment)
            else:
                verb = VERB.match(comment)
                is_verb = verb and verb[0] not in NOT_VERBS and not NOUN_OR_VERB.match(comment)
                is_wrong = not is_verb and not LABEL.match(comment)
            if is_wrong:
                yield line, 1, comment
        if NONE.search(comment):
            yield line, 2, comment


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", metavar="FOLDER")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    arguments = parser.parse_args()
    listed = arguments.list and arguments.list.rstrip("/")
    found = collections.Counter()
    folders = set()
    for top in FOLDERS:
        for path in sorted((arguments.root / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".def"):
                file = path.relative_to(arguments.root)
                folder = "/".join(file.parts[:-1][:2])
                folders.add(folder)
                for line, rule, comment in findings(path.read_text()):
                    found[folder] += 1
                    if folder == listed:
                        print(f"{file.as_posix()}:{line}: rule {rule}: {comment}")
    if listed is not None:
        if listed not in folders:
            parser.error(f"comments of {listed} are not counted; folders are {', '.join(sorted(folders))}")
        return 0

    allowed = {}
    for number, line in enumerate((arguments.root / COUNTS).read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            if not (row := re.fullmatch(r"([\w/]+): (\d+)", line)):
                sys.exit(f"{COUNTS}:{number}: expected FOLDER: COUNT")
            allowed[row[1]] = int(row[2])
    if arguments.update:
        head = [line for line in (arguments.root / COUNTS).read_text().splitlines() if line.startswith("#")]
        rows = [f"{folder}: {min(found[folder], count)}" for folder, count in allowed.items() if found[folder]]
        (arguments.root / COUNTS).write_text("\n".join([*head, *rows]) + "\n")
    is_wrong = False
    for folder in sorted(found | allowed):
        if found[folder] > allowed.get(folder, 0):
            print(f"{folder}: {found[folder]} comments of a wrong shape, {COUNTS} allows {allowed.get(folder, 0)}; "
                  f"`tools/check/comments.py --list {folder}` prints them")
            is_wrong = True
        elif found[folder] < allowed.get(folder, 0) and not arguments.update:
            line = f"write `{folder}: {found[folder]}` there" if found[folder] else f"delete the line of {folder} there"
            print(f"{folder}: {found[folder]} comments of a wrong shape, {COUNTS} allows {allowed[folder]}; {line}, "
                  "or run `tools/check/comments.py --update`")
            is_wrong = True
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
