"""Checks that objects compiled for one set of vector instructions share nothing with other code.

Usage: loops.py NAMESPACE TABLE OBJECT...    Prints one line for each symbol that is shared; exit 1 if there are any.

Every symbol that an object defines, weak ones included, must lie in namespace shardc::NAMESPACE or be shardc::TABLE: of
a weak function, such as the inner loop of std::sort, the linker keeps any one copy, and a machine without these
instructions would stop in it. Local copies count too: whether one is local is the optimizer's choice.
"""

import re
import subprocess
import sys


def main(namespace: str, table: str, objects: list[str]) -> int:
    # By mangled names: they begin with the scope that the function is in, whatever its arguments are.
    allowed = re.compile(rf"_ZZ?NK?6shardc{len(namespace)}{namespace}|_ZN6shardc{len(table)}{table}E$")
    bad = 0
    found = False
    for path in objects:
        listing = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            kind, name = line.split()[-2:]
            if kind == "r":  # constants of this object alone
                continue
            if allowed.match(name):
                found = True
            else:
                readable = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()
                print(f"{path}: defines {readable}, which other code may share and run; inline it or write it out")
                bad += 1
    if not found:
        print(f"no symbol of shardc::{namespace} in {len(objects)} objects")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
