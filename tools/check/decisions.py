"""Checks that the records of docs/decisions/ have one form.

Usage: decisions.py [ROOT]    Prints one line for each departure from it; exit 1 if there are any.

    # 0012: what was decided

    Status: accepted, 2026-11-27.                          or: superseded by [0031](0031-its-file.md), 2026-12-04.

    **Decided.** ...

    **Why.** ...                                           or: **Why c10d.**

    **Cost.** ...                                          or **What follows.**, **Not done.**: one of them at least

Paragraphs with other heads may stand between and after these. The files are NNNN-words-of-the-title.md, numbered from 0001.
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path("docs") / "decisions"
NAME = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
STATUS = re.compile(r"Status: (?:accepted|superseded by \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\)), \d{4}-\d\d-\d\d\.")
HEAD = re.compile(r"^\*\*([^*]+)\*\*", re.MULTILINE)
CONSEQUENCES = ("Cost.", "What follows.", "Not done.")


def faults_of(path: pathlib.Path) -> list[str]:
    """What is wrong with the form of one record."""
    faults = []
    text = path.read_text()
    lines = [*text.split("\n"), "", "", ""]
    number = path.name[:4]
    if not re.fullmatch(rf"# {number}: \S.*", lines[0]):
        faults.append(f"1: the title is `{lines[0]}`, expected `# {number}: what was decided`")
    status = STATUS.fullmatch(lines[2])
    if lines[1] or lines[3] or not status:
        faults.append("3: expected `Status: accepted, 2026-11-27.` or `Status: superseded by [0031](0031-its-file.md), 2026-12-04.`, "
                      "between empty lines")
    elif status[2] and (status[1] != status[2][:4] or status[1] <= number or not (path.parent / status[2]).is_file()):
        faults.append(f"3: {status[2]} is no later decision with the number {status[1]}")
    heads = HEAD.findall(text)
    whys = [index for index, head in enumerate(heads) if re.match(r"Why\b", head)]
    if heads[:1] != ["Decided."]:
        faults.append("5: the first paragraph does not begin with **Decided.**")
    if not whys:
        faults.append("5: no paragraph begins with **Why.**")
    elif not set(heads[whys[0]:]) & set(CONSEQUENCES):
        faults.append(f"5: after **Why.** no paragraph begins with **{'**, **'.join(CONSEQUENCES)}**")
    return faults


def main(root: pathlib.Path) -> int:
    faults = []
    paths = sorted((root / FOLDER).iterdir())
    for index, path in enumerate(paths, 1):
        name = NAME.fullmatch(path.name)
        if not name or int(name[1]) != index:
            faults.append(f"{FOLDER}/{path.name}: expected {index:04}-words-of-the-title.md")
        else:
            faults += [f"{FOLDER}/{path.name}:{fault}" for fault in faults_of(path)]
    print("\n".join(faults) or f"{len(paths)} decisions have one form")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()))
