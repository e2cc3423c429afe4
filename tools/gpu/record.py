"""Compares tests/gpu/last_run.json, which says what last ran on a GPU, with the sources that no machine without one runs.

Usage: record.py [ROOT]              prints what changed since; exit 1 if the record is malformed
       record.py --sources [ROOT]    prints the hash of each of these sources, as the record keeps them
"""

import datetime
import hashlib
import json
import pathlib
import sys

RECORD = "tests/gpu/last_run.json"
# Folders whose sources run on a GPU alone, and those whose kernels run elsewhere emulated.
UNTESTED = ("runtime/cuda", "runtime/comm/cuda", "runtime/device/cuda", "runtime/kernels/cuda/cublas", "runtime/kernels/cuda/cudnn",
            "runtime/kernels/cuda/ptx", "compiler/expr/ptx")
KERNELS = ("runtime/kernels/cuda",)
SUFFIXES = (".cpp", ".cu", ".h")
OUTCOMES = ("pass", "FAIL", "figure", "not run")


def hashes(root: pathlib.Path, folders: tuple[str, ...]) -> dict[str, str]:
    files = (file for folder in folders for file in (root / folder).rglob("*") if file.suffix in SUFFIXES)
    return {file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in sorted(set(files))}


def faults(record: object) -> list[str]:
    """What is wrong with the form of a record."""
    if not isinstance(record, dict):
        return ["it is no object"]
    found = []
    for key, kind in (("date", str), ("card", str), ("driver", str), ("libraries", dict), ("rows", list), ("sources", dict)):
        if not isinstance(record.get(key), kind):
            found.append(f"`{key}` is missing, or no {kind.__name__}")
    if found:
        return found
    try:
        datetime.datetime.strptime(record["date"], "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        found.append(f"`date` is {record['date']!r}, expected 2026-11-23T00:10:07Z")
    for row in record["rows"]:
        if not isinstance(row, dict) or set(row) != {"row", "what", "outcome", "figure"} or row["outcome"] not in OUTCOMES:
            found.append(f"a row is {row}, expected row, what, outcome ({', '.join(OUTCOMES)}) and figure")
    for key in ("card", "driver", "rows", "sources"):
        if not record[key]:
            found.append(f"`{key}` is empty")
    return found


def changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def main(root: pathlib.Path) -> int:
    path = root / RECORD
    if not path.is_file():
        print("nothing has run on a GPU yet")
        return 0
    try:
        record = json.loads(path.read_text())
    except ValueError as error:
        print(f"{RECORD}: {error}")
        return 1
    if found := faults(record):
        print("\n".join(f"{RECORD}: {fault}" for fault in found))
        return 1
    failed = [row for row in record["rows"] if row["outcome"] == "FAIL"]
    print(f"last run on a GPU: {record['date']}, {record['card']}, driver {record['driver']}; {len(failed)} rows failed")
    now = hashes(root, UNTESTED + KERNELS)
    different = changed(record["sources"], now)
    for what, is_untested in (("that no machine without a GPU runs", True), ("of kernels, which other machines run emulated", False)):
        these = [path for path in different if path.startswith(UNTESTED) == is_untested]
        print(f"changed since, of {len(now)} sources, {what}: {len(these)}{':' if these else ''} {', '.join(these)}".rstrip())
    return 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--sources"]
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
    if "--sources" in sys.argv:
        print(json.dumps(hashes(folder, UNTESTED + KERNELS), indent=1))
        sys.exit(0)
    sys.exit(main(folder))
