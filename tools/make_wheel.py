"""Makes a Python wheel of a built tree: shardc and shardc-run as programs of a Python environment, which take LibTorch from PyPI's torch.
shardc-run-cuda comes along if it is built, and takes CUDA's libraries from NVIDIA's packages: those that torch asks for, or, beside
a torch for CPUs, those of the extra `cuda`. shardc-tokenize, tools/tokenize_text.py, needs what the extra `tokenize` brings, and for chats `chat` too.

Usage: make_wheel.py BUILD_FOLDER OUTPUT_FOLDER

The wheel holds what `cmake --install` installs except LibTorch, and the shared libraries of Debian that the programs need and
that no Python environment promises. It asks for the torch version that the programs were built with, whose C++ interface is
theirs. Needs no package besides Python.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# glibc 2.36, as Debian 12 has it. manylinux promises libstdc++ and libgcc_s of that age too.
PLATFORM = "manylinux_2_36_x86_64"
# A library is bundled unless its name begins so.
PROMISED = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libutil.so", "libstdc++", "libgcc_s")
# The modules of the wheel.
MAIN = '''"""shardc, a compiler for training runs: the programs of this package, started as commands."""

import importlib.util
import os
import pathlib
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "bin"


def library_folders() -> list[pathlib.Path]:
    """The folders of LibTorch and of CUDA in this Python environment; torch itself is not imported."""
    spec = importlib.util.find_spec("torch")
    torch = [pathlib.Path(folder) for folder in spec.submodule_search_locations or []] if spec else []
    # NVIDIA's packages are beside torch, which asks for them, or beside this package, whose extra does.
    places = dict.fromkeys([folder.parent for folder in torch] + [PROGRAMS.parent.parent])
    return [folder / "lib" for folder in torch] + [folder for place in places for folder in sorted(place.glob("nvidia/*/lib"))]


def start(program: str) -> None:
    environment = dict(os.environ)
    known = environment.get("LD_LIBRARY_PATH", "")
    folders = [str(folder) for folder in library_folders()] + ([known] if known else [])
    if folders:
        environment["LD_LIBRARY_PATH"] = ":".join(folders)
    os.execve(PROGRAMS / program, [program, *sys.argv[1:]], environment)


def shardc() -> None:
    start("shardc")


def shardc_run() -> None:
    start("shardc-run")


def shardc_tokenize() -> None:
    sys.path.insert(0, str(PROGRAMS.parent / "share/doc/shardc/tools"))
    import tokenize_text

    tokenize_text.main()
'''


def version_of(pattern: str, path: str) -> str:
    return re.search(pattern, (ROOT / path).read_text(), re.MULTILINE).group(1)


def install(build: pathlib.Path, prefix: pathlib.Path) -> None:
    for component in ("compiler", "runtime", "cuda"):
        command = ["cmake", "--install", str(build), "--prefix", str(prefix), "--component", component, "--strip"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def bundled_libraries(build: pathlib.Path) -> dict[str, pathlib.Path]:
    """The libraries to bundle, by the names under which the loader looks for them."""
    torch = {path.name for path in (ROOT / ".deps/libtorch/lib").iterdir()}
    found = {}
    for program in ("shardc", "shardc-run"):
        needed = subprocess.run(["ldd", str(build / program)], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"^\s*(\S+) => (\S+)", needed, re.MULTILINE):
            if name not in torch and not name.startswith(PROMISED):
                found[name] = pathlib.Path(path).resolve()
    return found


def licences_of(libraries: dict[str, pathlib.Path]) -> dict[str, bytes]:
    texts = {}
    for path in libraries.values():
        # dpkg knows files of /usr/lib by the name /lib on some systems.
        for name in (str(path), str(path).removeprefix("/usr")):
            owner = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True).stdout.split(":")[0]
            copyright_file = pathlib.Path("/usr/share/doc") / owner / "copyright"
            if owner and copyright_file.is_file():
                texts[owner] = copyright_file.read_bytes()
                break
        else:
            sys.exit(f"error: no licence text of {path} is known")
    return texts


def requirements(has_cuda: bool) -> list[str]:
    """The packages that this one needs, those of the extra `cuda`, for a torch that does not ask for them itself, `tokenize` and `chat`."""
    found = ["torch==" + version_of(r"^torch==([0-9.]+)", "tools/libtorch.txt"), 'tokenizers>=0.20,<1; extra == "tokenize"',
             'transformers>=5.23,<6; extra == "chat"', 'jinja2>=3.1.6; extra == "chat"']
    if has_cuda:
        cuda = version_of(r"^nvidia-cuda-nvrtc==(\d+\.\d+)", "tools/cuda_libraries.txt")
        cudnn = version_of(r"^nvidia-cudnn-cu13==(\d+)", "tools/cuda_libraries.txt")
        found += [f'{name}; extra == "cuda"' for name in (
            f"cuda-toolkit[cublas,cudart,nvrtc]=={cuda}.*", f"nvidia-cudnn-cu13=={cudnn}.*", "nvidia-nccl-cu13>=2.18,<3")]
    return found


def contents(build: pathlib.Path, name: str, version: str) -> list[tuple[str, bytes, bool]]:
    """Path, bytes, and whether it is a program."""
    files = []
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        install(build, prefix)
        for path in sorted(prefix.rglob("*")):
            if path.is_file():
                place = path.relative_to(prefix)
                files.append((f"shardc/{place}", path.read_bytes(), place.parts[0] == "bin"))
    libraries = bundled_libraries(build)
    files += [(f"shardc/lib/shardc/{file}", path.read_bytes(), False) for file, path in sorted(libraries.items())]
    files += [(f"{name}.dist-info/licenses/{owner}.txt", text, False) for owner, text in sorted(licences_of(libraries).items())]
    files.append(("shardc/__init__.py", MAIN.encode(), False))
    files.append(("shardc/__main__.py", b"from shardc import shardc\n\nshardc()\n", False))
    has_cuda = any(path == "shardc/bin/shardc-run-cuda" for path, _, _ in files)
    metadata = (
        f"Metadata-Version: 2.4\nName: shardc\nVersion: {version}\nSummary: a compiler for training runs\n"
        f"License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.10\n"
    ) + "Provides-Extra: tokenize\nProvides-Extra: chat\n" + "Provides-Extra: cuda\n" * has_cuda + "".join(f"Requires-Dist: {text}\n" for text in requirements(has_cuda))
    files.append((f"{name}.dist-info/METADATA", metadata.encode(), False))
    files.append((f"{name}.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: shardc\nRoot-Is-Purelib: false\nTag: py3-none-{PLATFORM}\n".encode(), False))
    scripts = b"[console_scripts]\nshardc = shardc:shardc\nshardc-run = shardc:shardc_run\nshardc-tokenize = shardc:shardc_tokenize\n"
    files.append((f"{name}.dist-info/entry_points.txt", scripts, False))
    files.append((f"{name}.dist-info/licenses/LICENSE", (ROOT / "docs/LICENSE").read_bytes(), False))
    return files


def main(build: pathlib.Path, output: pathlib.Path) -> None:
    version = version_of(r"^project\(shardc VERSION ([0-9.]+)", "CMakeLists.txt")
    name = f"shardc-{version}"
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"{name}-py3-none-{PLATFORM}.whl"
    record = ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(path: str, data: bytes, is_program: bool) -> None:
            entry = zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for path, data, is_program in contents(build, name, version):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            add(path, data, is_program)
        add(f"{name}.dist-info/RECORD", (record + f"{name}.dist-info/RECORD,,\n").encode(), False)
    print(wheel)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
