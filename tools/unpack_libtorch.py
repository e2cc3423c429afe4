"""Takes out of the downloaded wheels what the CPU runtime links: headers, and five shared libraries in one folder; and ptxas.

Usage: unpack_libtorch.py WHEELS_FOLDER TARGET_FOLDER   (TARGET_FOLDER gets include/, lib/, bin/ and licences/)

libtorch_cpu.so carries an RPATH that ends in $ORIGIN, so libraries that lie beside it are found without further settings.
"""

import pathlib
import shutil
import sys
import zipfile

LIBRARIES = ("libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13")
PROGRAMS = ("ptxas",)
# Packages of shardc have the licences of the libraries.
LICENCES = ("LICENSE", "NOTICE", "License.txt")
HEADERS = "torch/include/"
# LibTorch brings headers of a newer fmt than the one that this project links; they would shadow it.
LEFT_OUT = "torch/include/fmt/"


def destination(member: str, target: pathlib.Path) -> pathlib.Path | None:
    """Where a wheel's member goes; None if it is not wanted."""
    if member.endswith("/") or member.startswith(LEFT_OUT):
        return None
    if member.startswith(HEADERS):
        return target / "include" / member.removeprefix(HEADERS)
    name = member.rsplit("/", 1)[-1]
    if ".dist-info/" in member and name in LICENCES:
        return target / "licences" / f"{member.split('-', 1)[0]}-{name}"
    if name in PROGRAMS:
        return target / "bin" / name
    return target / "lib" / name if name in LIBRARIES else None


def main(wheels: pathlib.Path, target: pathlib.Path) -> None:
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                path = destination(member, target)
                if path is None:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, path.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
                if path.parent.name == "bin":
                    path.chmod(0o755)
    wanted = [target / "lib" / name for name in LIBRARIES] + [target / "bin" / name for name in PROGRAMS]
    missing = [path.name for path in wanted if not path.is_file()]
    if missing or not (target / "include" / "ATen" / "Tensor.h").is_file():
        sys.exit(f"error: the wheels in {wheels} lack {', '.join(missing) or 'the headers'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
