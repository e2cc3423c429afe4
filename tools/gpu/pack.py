"""Makes the archive that is carried to a machine with a GPU: programs, the libraries that no PyTorch installation has, what they read.

Usage: pack.py BUILD ARCHIVE.tar.xz

There: mkdir pack; tar -xf ARCHIVE.tar.xz -C pack; python3 pack/test.py --out FOLDER; python3 pack/compare.py --out FOLDER
"""

import io
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import record

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("shardc", "shardc-run-cuda", "tests/tests_ops_cuda", "tests/tests_ranks_cuda")
# Read there under the names that they have here; the scripts lie at the top.
READ = ("recipes/quickstart.toml", *(f"tests/gpu/{name}" for name in ("llama_124m.toml", "llama_1b.toml", "llama_8b_slice.toml", "tiny.toml")),
        "tests/gpu/quickstart_losses.json", "tests/bench/fsdp2/llama.py", "tests/bench/fsdp2/baseline_gpu.py", ".deps/data/fortunes.bin")
SCRIPTS = ("test", "compare", "card", "bench", "training", "bits", "features", "ranks",
           "hosts", "launched", "several", "sanitizer", "roofs")
FILES = {path: path for path in READ} | {f"{name}.py": f"tools/gpu/{name}.py" for name in SCRIPTS}
# Each system has these, or PyTorch's installation, or the driver.
ELSEWHERE = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+|torch\w*|c10\w*|gomp|cu\w+|nv\w+|nccl))\.so")
MOST_BYTES = 50 << 20


def libraries_of(program: pathlib.Path) -> dict[str, pathlib.Path]:
    """The libraries that are carried with a program, by name."""
    output = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (\S+) \(", output, re.MULTILINE):
        if not ELSEWHERE.match(name):
            found[name] = pathlib.Path(path)
    return found


def stripped(program: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    target = folder / program.name
    subprocess.run(["strip", "--strip-unneeded", "-o", target, program], check=True)
    return target


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


def main(build: pathlib.Path, target: pathlib.Path) -> int:
    libraries: dict[str, pathlib.Path] = {}
    with tempfile.TemporaryDirectory() as scratch, lzma.open(target, "wb", preset=2) as sink, tarfile.open(fileobj=sink, mode="w") as archive:
        for name in PROGRAMS:
            program = build / name
            libraries |= libraries_of(program)
            add(archive, f"bin/{program.name}", stripped(program, pathlib.Path(scratch)).read_bytes(), 0o755)
        # It trains on the CPU too, where `shardc run` looks for a program of this name.
        link = tarfile.TarInfo("bin/shardc-run")
        link.type, link.linkname = tarfile.SYMTYPE, "shardc-run-cuda"
        archive.addfile(link)
        for name, path in sorted(libraries.items()):
            add(archive, f"lib/{name}", path.read_bytes(), 0o755)
        for name, path in FILES.items():
            add(archive, name, (ROOT / path).read_bytes())
        add(archive, "sources.json", json.dumps(record.hashes(ROOT, record.UNTESTED + record.KERNELS)).encode())
    size = target.stat().st_size
    print(f"{target}: {size / (1 << 20):.1f} MiB; carried libraries: {', '.join(sorted(libraries))}")
    if size > MOST_BYTES:
        print(f"error: more than {MOST_BYTES >> 20} MiB")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
