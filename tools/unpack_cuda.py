"""Takes out of NVIDIA's wheels what compiles and links programs for GPUs, and lays it out as a toolkit.

Usage: unpack_cuda.py WHEELS_FOLDER TARGET_FOLDER   (TARGET_FOLDER gets bin/, include/, lib/, nvvm/ and licences/)

A wheel has libX.so.N alone; libX.so is made beside it, by which a linker finds the library.
"""

import pathlib
import re
import shutil
import sys
import zipfile

# What lies under these folders of a wheel lies under the target.
ROOTS = ("nvidia/cu13/", "nvidia/cudnn/", "nvidia/nccl/")
# cudnn-frontend has its headers at the top, beside a Python module.
HEADERS = "include/"
FOLDERS = ("bin/", "include/", "lib/", "nvvm/")
VERSIONED = re.compile(r"(lib\w+\.so)\.[\d.]+")


def destination(member: str, target: pathlib.Path) -> pathlib.Path | None:
    """Where a wheel's member goes; None if it is not wanted."""
    if member.endswith("/"):
        return None
    if ".dist-info/licenses/" in member:
        return target / "licences" / f"{member.split('-', 1)[0]}-{member.rsplit('/', 1)[-1]}"
    for root in ROOTS:
        if member.startswith(root) and member.removeprefix(root).startswith(FOLDERS):
            return target / member.removeprefix(root)
    return target / member if member.startswith(HEADERS) else None


def main(wheels: pathlib.Path, target: pathlib.Path) -> None:
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                path = destination(info.filename, target)
                if path is None:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as source, path.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
                if "bin" in path.parts:
                    path.chmod(0o755)
                if linked := VERSIONED.fullmatch(path.name):
                    link = path.with_name(linked[1])
                    link.unlink(missing_ok=True)
                    link.symlink_to(path.name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
