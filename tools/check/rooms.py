"""Finds circles among the rooms of compiler/ and runtime/, for layers.py. A room is a header with the sources of its name beside it.

Rooms that include each other in a circle can only be read together. So can a folder and a folder in it, if the first includes
several headers of the second. The circles and folders that are left are rows of tools/check/circles.txt. A row may lose names, and
a row may go; nothing may be added.
"""

import collections
import pathlib
import re

CIRCLES = pathlib.Path("tools") / "check" / "circles.txt"
CIRCLE_ROW = re.compile(r"^([\w/]+): (.+)$")
FOLDER_ROW = re.compile(r"^([\w/]+) -> ([\w/]+): (.+)$")


class Rooms:
    """Which room includes which, and where."""

    def __init__(self) -> None:
        # For each room the rooms that it includes, each with the first place that includes it.
        self.arrows: dict[str, dict[str, str]] = {}
        # For a folder and a folder in it: the headers of the second that files of the first include.
        self.folders: dict[tuple[str, str], set[str]] = collections.defaultdict(set)

    def add(self, path: str, number: int, header: str) -> None:
        """Adds the include of `header` in a line of the file `path`."""
        source, target = room_of(path), room_of(header)
        if source != target:
            self.arrows.setdefault(source, {}).setdefault(target, f"{path}:{number}")
            self.arrows.setdefault(target, {})
        outer, inner = folder_of(path), folder_of(header)
        if inner.startswith(outer + "/"):
            self.folders[outer, inner].add(header)

    def circles(self) -> list[frozenset[str]]:
        """Returns the largest sets of rooms each of which leads to all others."""
        ends = {room: self.ends_of(room) for room in self.arrows}
        found = {frozenset(end for end in ends[room] if room in ends[end]) for room in self.arrows if room in ends[room]}
        return sorted(found, key=sorted)

    def ends_of(self, room: str) -> set[str]:
        """Returns the rooms that a room leads to by one include or more."""
        found: set[str] = set()
        waiting = [room]
        while waiting:
            new = self.arrows[waiting.pop()].keys() - found
            found |= new
            waiting += new
        return found

    def way_round(self, circle: frozenset[str]) -> list[str]:
        """Returns one of the shortest ways from the first room of a circle to itself: `FILE:LINE includes ROOM`."""
        start = min(circle)
        reached = {start: []}
        queue = collections.deque([start])
        while queue:
            room = queue.popleft()
            for target, place in sorted(self.arrows[room].items()):
                way = [*reached[room], f"{place} includes {target}"]
                if target == start:
                    return way
                if target in circle and target not in reached:
                    reached[target] = way
                    queue.append(target)
        raise ValueError("not a circle")


def room_of(path: str) -> str:
    return path.rsplit(".", 1)[0]


def folder_of(path: str) -> str:
    return path.rsplit("/", 1)[0]


def circle_row(circle: frozenset[str]) -> str:
    """The row of a circle: the folder that holds all of its rooms, and their names in it."""
    folder = folder_of(min(circle))
    while not all(room.startswith(folder + "/") for room in circle):
        folder = folder_of(folder)
    return f"{folder}: {' '.join(sorted(room.removeprefix(folder + '/') for room in circle))}"


def folder_row(outer: str, inner: str, headers: frozenset[str]) -> str:
    return f"{outer} -> {inner}: {' '.join(sorted(header.removeprefix(inner + '/') for header in headers))}"


class Rows:
    """The rows of circles.txt."""

    def __init__(self, path: pathlib.Path):
        # The row of each circle, and the headers and the row of each pair of folders.
        self.circles: dict[frozenset[str], str] = {}
        self.folders: dict[tuple[str, str], tuple[frozenset[str], str]] = {}
        self.faults: list[str] = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if match := FOLDER_ROW.match(line):
                self.folders[match[1], match[2]] = frozenset(f"{match[2]}/{name}" for name in match[3].split()), line
            elif match := CIRCLE_ROW.match(line):
                self.circles[frozenset(f"{match[1]}/{name}" for name in match[2].split())] = line
            elif line:
                self.faults.append(f"{CIRCLES}:{number}: not a row: {line}")


def circle_faults(rooms: Rooms, rows: dict[frozenset[str], str]) -> list[str]:
    """What differs between the circles and their rows."""
    circles = rooms.circles()
    faults = []
    for circle in circles:
        if circle not in rows and not any(circle < known for known in rows):
            title = f"{circle_row(circle)}: a new circle of {len(circle)} rooms; cut one of its arrows"
            faults.append("\n  ".join((title, *rooms.way_round(circle))))
    for known, row in rows.items():
        if known not in circles:
            left = [circle_row(circle) for circle in circles if circle < known]
            remedy = f"write `{'` and `'.join(left)}` there in the place of `{row}`" if left else f"delete `{row}` there"
            faults.append(f"{CIRCLES}: this circle is no longer in the code; {remedy}")
    return faults


def folder_faults(rooms: Rooms, rows: dict[tuple[str, str], tuple[frozenset[str], str]]) -> list[str]:
    """What differs between the folders with folders in them and their rows."""
    several = {pair: headers for pair, headers in rooms.folders.items() if len(headers) > 1}
    faults = []
    for (outer, inner), headers in sorted(several.items()):
        known, _ = rows.get((outer, inner), (frozenset(), ""))
        if new := headers - known:
            faults.append(f"{outer} includes {len(headers)} headers of {inner}, a folder in it; one is allowed; new: "
                          f"{', '.join(sorted(new))}")
    for pair, (known, row) in rows.items():
        headers = several.get(pair, set())
        if not headers:
            faults.append(f"{CIRCLES}: {pair[0]} includes one header of {pair[1]} at most; delete `{row}` there")
        elif known - headers:
            faults.append(f"{CIRCLES}: write `{folder_row(*pair, known & headers)}` there in the place of `{row}`")
    return faults


def faults_of(rooms: Rooms, root: pathlib.Path) -> list[str]:
    """What differs between the rooms and the rows of circles.txt."""
    rows = Rows(root / CIRCLES)
    return rows.faults + circle_faults(rooms, rows.circles) + folder_faults(rooms, rows.folders)
