"""Checks that clang-format would change no source of compiler/, runtime/ and tests/.

A file that was well formatted is not looked at again: FOLDER/formatted.txt holds a digest for each such file, made from
its path and text, .clang-format and the version of clang-format.

Usage: format.py FOLDER [ROOT]    Prints what clang-format says of each line that it would change; exit 1 if there are any.
"""

import hashlib
import pathlib
import subprocess
import sys

TOPS = ("compiler", "runtime", "tests")
SUFFIXES = {".cpp", ".h"}


def digests_of(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """The sources, each by its digest. The path counts: by it clang-format knows which include comes first."""
    version = subprocess.run(["clang-format", "--version"], capture_output=True, check=True).stdout
    rules = hashlib.sha256(version + (root / ".clang-format").read_bytes()).digest()
    digests = {}
    for path in (path for top in TOPS for path in sorted((root / top).rglob("*")) if path.suffix in SUFFIXES):
        name = path.relative_to(root)
        digests[hashlib.sha256(rules + str(name).encode() + b"\0" + path.read_bytes()).hexdigest()] = name
    return digests


def main(folder: pathlib.Path, root: pathlib.Path) -> int:
    known = folder / "formatted.txt"
    formatted = set(known.read_text().split()) if known.exists() else set()
    digests = digests_of(root)
    new = {digest: path for digest, path in digests.items() if digest not in formatted}
    if new:
        command = ["clang-format", "--dry-run", "-Werror", *map(str, new.values())]
        if subprocess.run(command, cwd=root).returncode != 0:
            return 1
    known.write_text("\n".join(digests) + "\n")
    print(f"{len(digests)} sources are well formatted, {len(new)} of them new")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    above = pathlib.Path(__file__).resolve().parents[2]
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else above).resolve()))
