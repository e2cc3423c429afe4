"""Checks that a word of the recipe which is accepted and not handled does not compile.

For each set of words in schemas/recipe_values.def it finds a file with a switch over the set's enum, and compiles these
files with one more word in each set. Every set has to be named in a warning of a switch. Words that are refused for now
(LATER) are tried the same way: each is moved to the accepted ones. The files are compiled as one text, because most of
the time goes into the headers that they share; files that do not compile together are compiled one by one.

Usage: words.py COMPILER [ROOT]    Prints one line for each set that no switch guards; exit 1 if there are any.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

VALUES = pathlib.Path("schemas") / "recipe_values.def"
UNHANDLED = re.compile(r"enumeration value .(\w+). not handled in switch")
# Rows of a table of their own, found by their number: there is nothing else to handle.
FROM_ROWS = {"InitSchemeName": "schemas/init_schemes.def", "Family": "schemas/families.def",
             "ModelPreset": "schemas/presets.def",
             "Optimizer": "schemas/optimizers.def"}


def sets_of(text: str) -> list[str]:
    return [name for name in re.findall(r"^WORDS\((\w+)\)$", text, re.M) if name not in FROM_ROWS]


def with_more_words(text: str) -> tuple[str, dict[str, str]]:
    """The table with what is to be refused by the compiler, and the set of each enumerator that was added."""
    added: dict[str, str] = {}
    lines, current = [], ""
    for line in text.splitlines():
        if opened := re.fullmatch(r"WORDS\((\w+)\)", line):
            current = opened[1]
        if later := re.fullmatch(r'LATER\("(\w+)"\)', line):
            name = f"Later{current}{later[1].capitalize()}"
            line = f'WORD({name}, "{later[1]}")'
            added[name] = current
        if re.fullmatch(r"END_WORDS\(\w+\)", line) and current not in FROM_ROWS:
            lines.append(f'WORD(More{current}, "one-more")')
            added[f"More{current}"] = current
        lines.append(line)
    return "\n".join(lines) + "\n", added


def switches(root: pathlib.Path, sets: list[str]) -> dict[str, str]:
    """For each set the first file with a case of its enum."""
    found: dict[str, str] = {}
    case = re.compile(r"\bcase (\w+)::")
    for top in ("compiler", "runtime"):
        for file in sorted((root / top).rglob("*.cpp")):
            for name in case.findall(file.read_text()):
                if name in sets:
                    found.setdefault(name, file.relative_to(root).as_posix())
    return found


def main(compiler: str, root: pathlib.Path) -> int:
    text = (root / VALUES).read_text()
    sets = sets_of(text)
    files = switches(root, sets)
    faults = [f"{VALUES}: no switch asks for the words of {name}" for name in sets if name not in files]
    changed, added = with_more_words(text)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "schemas").mkdir()
        (pathlib.Path(folder) / VALUES).write_text(changed)
        # A missing enumerator is a warning: the compiler fails only when the files do not go together.
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wswitch", "-I", folder, "-I", ".", "-x", "c++", "-"]

        def compiled(*of_text: str) -> tuple[bool, set[str]]:
            """Do these files compile as one text, and which enumerators do their switches miss?"""
            includes = "".join(f'#include "{file}"\n' for file in of_text)
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, input=includes)
            return done.returncode == 0, set(UNHANDLED.findall(done.stderr))

        one_by_one = sorted(set(files.values()))
        together, reported = compiled(*one_by_one)
        if not together:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                reported = set().union(*(missed for _, missed in pool.map(compiled, one_by_one)))
    for name, of_set in added.items():
        if of_set in files and name not in reported:
            faults.append(f"{files[of_set]}: one more word of {of_set} compiles")
    print("\n".join(faults) if faults else f"one more word in any of {len(sets)} sets does not compile")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    above = pathlib.Path(__file__).resolve().parents[2]
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else above).resolve()))
