"""Tests the packages of a built tree as users get them: `tools/dev test-package [--torch SITE_PACKAGES]`, as root.

1. The Debian packages: their sizes, and what they ask for. Each runs in a root that has the files of the packages it depends on, and
   nothing else: what a package forgets to ask for is missing there.
2. `cmake --install`: runs from a folder that it was moved to.
3. The wheel: `pip install` into an empty environment, then `shardc run`. torch comes from PyPI (3 GB), or, with --torch, from the
   installed packages of another environment. If there are no packages of NVIDIA's beside it, the extra `cuda` brings them from PyPI.

If the build has shardc-run-cuda, 1 and 3 look whether it finds CUDA's libraries: it then reports that there is no GPU.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
MOST_COMPILER_BYTES = 30 * MIB
RECIPE = """
[model]
family = "llama"
layers = 1
hidden = 32
heads = 2
ffn = 64
vocab = 256
seq = 32

[mesh]
dp = 2

[init]
scheme = "torchtitan-llama"

[optimizer]
lr = 1e-2

[data]
tokens = ["tokens.bin"]

[batch]
micro = 2

[train]
steps = 6

[run]
threads = 1
"""
STEPS = 6
TOKENIZER = json.dumps({
    "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "normalizer": None, "post_processor": None, "decoder": None,
    "truncation": None, "padding": None,
    "model": {"type": "WordLevel", "unk_token": "water", "vocab": {"water": 0, "hill": 1, "the": 2, ".": 3}}})
CHAT_TEMPLATE = ("{% for message in messages %}{{ 'the ' if message.role == 'assistant' else 'hill ' }}{{ message.content }} .\n{% endfor %}"
                 "{% if add_generation_prompt %}the {% endif %}")
CHAT = {"messages": [{"role": "user", "content": "the water"}, {"role": "assistant", "content": "water hill"}]}
CUDA_LIBRARY = re.compile(r"^\s*(lib(?:cudart|cublasLt|cudnn|nvrtc)\.so\.\d+) => (.*?)(?: \(|$)", re.MULTILINE)
NCCL = "import ctypes; ctypes.CDLL('libnccl.so.2'); print(*(line.split()[-1] for line in open('/proc/self/maps') if 'libnccl' in line))"


def output(*command: str, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds: bool, what: str) -> None:
    print(f"{'ok    ' if holds else 'FAILED'}  {what}", flush=True)
    if not holds:
        sys.exit(1)


def write_training(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "text").write_text("Water runs down the hill and the hill stays where it is. " * 200)


def steps_of(folder: pathlib.Path) -> int:
    return len((folder / "run/metrics.jsonl").read_text().splitlines())


def train(folder: pathlib.Path, *start: str, **options) -> None:
    """`start`: what stands before the arguments of shardc; paths are relative to the folder that it begins in."""
    output(*start, "tokenize", "--bytes", "text", "-o", "tokens.bin", **options)
    output(*start, "run", "recipe.toml", "--run-dir", "run", **options)
    expect(steps_of(folder) == STEPS, f"{STEPS} steps are trained")


def cuda_libraries(program: pathlib.Path, **options) -> dict[str, str]:
    """The libraries of CUDA that a program needs, by name: their paths, or "not found"."""
    return dict(CUDA_LIBRARY.findall(output("ldd", str(program), **options)))


def expect_refusal(message: str, what: str, *start: str, **options) -> None:
    """Starts a run on a GPU on a machine without one."""
    command = [*start, "run", "recipe.toml", "--set", "run.device=cuda", "--run-dir", "cuda_run"]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    expect(done.returncode == 6 and message in done.stderr, f"{what}: {done.stderr.strip()}")


def expect_search_paths(folder: pathlib.Path, what: str) -> None:
    output(sys.executable, str(ROOT / "tools/check/search_paths.py"), str(folder))
    expect(True, f"{what} look for libraries in their own folders alone")


class Package:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.name = self.field("Package")
        # The first of alternatives, without versions.
        self.depends = [re.split(r"[ :|(]", part.strip())[0] for part in self.field("Depends").split(",") if part.strip()]
        self.files = output("dpkg-deb", "--contents", str(path))

    def field(self, name: str) -> str:
        return output("dpkg-deb", "--field", str(self.path), name).strip()


def closure(names: list[str]) -> set[str]:
    """Installed Debian packages and those that they depend on."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name in found:
            continue
        found.add(name)
        fields = output("dpkg-query", "--show", "--showformat=${Depends}, ${Pre-Depends}", name)
        names += [re.split(r"[ :|(]", part.strip())[0] for part in fields.split(",") if part.strip()]
    return found


class BareRoot:
    """A root folder with the files of some packages alone, with /proc, /dev and /tmp of its own while a program runs."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        for folder in ("usr/lib", "usr/lib64", "usr/bin", "usr/sbin", "proc", "dev", "tmp", "work"):
            (root / folder).mkdir(parents=True)
        # As Debian has them.
        for link in ("lib", "lib64", "bin", "sbin"):
            (root / link).symlink_to(f"usr/{link}")

    def copy(self, packages: set[str]) -> None:
        for package in sorted(packages):
            for line in output("dpkg-query", "--listfiles", package).splitlines():
                path = pathlib.Path(line)
                to = self.root / line.lstrip("/")
                if path.is_dir() and not path.is_symlink() or not (path.is_file() or path.is_symlink()):
                    continue
                to.parent.mkdir(parents=True, exist_ok=True)
                if not to.is_symlink() and not to.exists():
                    shutil.copy2(path, to, follow_symlinks=False)

    def unpack(self, package: Package) -> None:
        # --extract of dpkg-deb would replace the links to /usr.
        with tempfile.TemporaryDirectory() as folder:
            output("dpkg-deb", "--extract", str(package.path), folder)
            shutil.copytree(folder, self.root, symlinks=True, dirs_exist_ok=True)

    def start(self, program: str) -> list[str]:
        # The bare root has no shell that could change the folder: env of the package coreutils would be one more package.
        return start_in(self.root, program)


def start_in(root: pathlib.Path, program: str, more_mounts: str = "") -> list[str]:
    """A command that starts a program as process 1 in a root folder."""
    mounts = 'mount -t proc proc "$0/proc"; mount -t tmpfs none "$0/dev"; mkdir "$0/dev/shm"; touch "$0/dev/null"; '
    mounts += f'mount --bind /dev/null "$0/dev/null"; {more_mounts}exec chroot "$0" {program} "$@"'
    return ["unshare", "--mount", "--pid", "--fork", "bash", "-ec", mounts, str(root)]


def make_packages(build: pathlib.Path, folder: pathlib.Path) -> dict[str, Package]:
    output("cpack", "--config", str(build / "CPackConfig.cmake"), "-B", str(folder))
    packages = [Package(path) for path in folder.glob("*.deb")]
    for package in packages:
        print(f"        {package.path.name}: {package.path.stat().st_size / MIB:.1f} MiB, needs {', '.join(package.depends)}")
    return {package.name: package for package in packages}


def test_debian(build: pathlib.Path, folder: pathlib.Path) -> None:
    packages = make_packages(build, folder / "debian")
    has_cuda = (build / "shardc-run-cuda").exists()
    expect(sorted(packages) == ["shardc", *["shardc-cuda"] * has_cuda, "shardc-runtime"],
           "there are a package of the compiler, one of the runtime, and one for GPUs if its program is built")
    compiler, runtime = packages["shardc"], packages["shardc-runtime"]
    expect(compiler.path.stat().st_size < MOST_COMPILER_BYTES, "the compiler takes less than 30 MiB")
    expect("libtorch" not in compiler.files and "shardc-run\n" not in compiler.files, "the compiler's package has no LibTorch")
    expect(runtime.depends.count("shardc") == 1, "the runtime asks for the compiler")
    expect("shardc-run-cuda" not in runtime.files, "the runtime's package has no program for GPUs")
    for package in packages.values():
        expect(f"/share/doc/{package.name}/LICENSE" in package.files, f"{package.name} has its licence")
    for licence in ("libtomlplusplus-dev", "libcli11-dev", "nlohmann-json3-dev"):
        expect(f"/licences/{licence}.txt" in compiler.files, f"shardc has the licence of {licence}")
    for licence in ("llvm-19-dev", "torch-LICENSE", "nvidia_cuda_runtime-License", "nvidia_cuda_cupti-License"):
        expect(f"/licences/{licence}" in runtime.files, f"shardc-runtime has the licence of {licence}")

    for package in packages.values():
        output("dpkg-deb", "--extract", str(package.path), str(folder / "extracted"))
    expect_search_paths(folder / "extracted", "programs of the Debian packages")

    bare = BareRoot(folder / "bare")
    bare.copy(closure(list(compiler.depends)))
    bare.unpack(compiler)
    write_training(bare.root)
    shardc = bare.start("/usr/bin/shardc")
    expect(output(*shardc, "--version").startswith("shardc "), "shardc starts in a bare root")
    output(*shardc, "tokenize", "--bytes", "/text", "-o", "/tokens.bin")
    output(*shardc, "check", "/recipe.toml")
    expect("memory per rank" in output(*shardc, "plan", "--explain", "/recipe.toml"), "it explains a plan there")
    without = subprocess.run([*shardc, "run", "/recipe.toml"], capture_output=True, text=True)
    expect(without.returncode == 6 and "cannot start /usr/bin/shardc-run" in without.stderr, "it says what is missing to train")
    bare.copy(closure([name for name in runtime.depends if name != "shardc"]))
    bare.unpack(runtime)
    train(bare.root, *shardc)
    if has_cuda:
        test_debian_cuda(build, packages["shardc-cuda"], bare)


def test_debian_cuda(build: pathlib.Path, cuda: Package, bare: BareRoot) -> None:
    """`bare` has what the package depends on."""
    expect(cuda.depends == ["shardc-runtime"], "the package for GPUs asks for the runtime")
    expect("libcudnn9-cuda-13" in cuda.field("Recommends"), "it recommends NVIDIA's packages")
    expect("/licences/nvidia_cudnn_frontend-LICENSE" in cuda.files, "it has the licence of cudnn-frontend")
    bare.unpack(cuda)
    shardc = bare.start("/usr/bin/shardc")
    expect_refusal("libcublasLt.so.13, libcudnn.so.9, libnvrtc.so.13", "it names the libraries that are missing", *shardc)
    # As NVIDIA's packages have them.
    for name, path in cuda_libraries(build / "shardc-run-cuda").items():
        if "cudart" not in name:
            shutil.copy2(path, bare.root / "usr/lib/x86_64-linux-gnu" / name)
    expect_refusal("this machine has no GPU", "it starts with them", *shardc)


def broken_links(document: pathlib.Path) -> list[str]:
    """What an installed Markdown file, or the first line of an installed recipe, points to and is not there."""
    text = document.read_text()
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if document.suffix == ".md" else re.findall(r"^#:schema (.*)$", text, re.M)
    return [f"{document.name}: {target}" for target in targets
            if not target.startswith("http") and not (document.parent / target).exists()]


def test_prefix(build: pathlib.Path, folder: pathlib.Path) -> None:
    output("cmake", "--install", str(build), "--prefix", str(folder / "first"))
    moved = folder / "moved"
    (folder / "first").rename(moved)
    expect_search_paths(moved, "installed programs")
    documents = [path for path in (moved / "share/doc/shardc").rglob("*") if path.suffix in (".md", ".toml")]
    broken = [link for document in documents for link in broken_links(document)]
    expect(len(documents) > 20 and not broken, f"links of the installed documents hold {broken or ''}".strip())
    write_training(folder / "training")
    train(folder / "training", str(moved / "bin/shardc"), cwd=folder / "training", env={"PATH": "/nowhere"})
    found = output("ldd", str(moved / "bin/shardc-run"))
    expect(str(moved / "lib/shardc/libtorch_cpu.so") in found.replace("/bin/..", ""), "it takes the LibTorch beside it")


def test_wheel(build: pathlib.Path, folder: pathlib.Path, torch: pathlib.Path | None) -> None:
    wheel = output(sys.executable, str(ROOT / "tools/make_wheel.py"), str(build), str(folder / "wheel")).strip()
    print(f"        {pathlib.Path(wheel).name}: {pathlib.Path(wheel).stat().st_size / MIB:.1f} MiB")
    shutil.unpack_archive(wheel, folder / "unpacked", "zip")
    expect_search_paths(folder / "unpacked", "programs of the wheel")
    environment = folder / "environment"
    output(sys.executable, "-m", "venv", str(environment))
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    has_cuda = (build / "shardc-run-cuda").exists()
    packages = pathlib.Path(output(str(environment / "bin/python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    links = [packages / name for name in ("torch", "nvidia") if torch and (torch / name).exists()]
    if torch:
        output(*pip, "--no-index", "--no-deps", wheel)
        for link in links:
            link.symlink_to(torch / link.name)
        if has_cuda and len(links) == 1:
            output(*pip, *requirements_of("cuda", packages))
    else:
        output(*pip, wheel + "[cuda]" * has_cuda)
    # Nothing of the build, nothing of the system's environment.
    bare = {"PATH": str(environment / "bin")}
    write_training(folder / "wheel_training")
    train(folder / "wheel_training", "shardc", cwd=folder / "wheel_training", env=bare)
    attempt = json.loads((folder / "wheel_training/run/attempts/0001/attempt.json").read_text())
    expect(attempt["ended"] == "complete", "the wheel trains with PyPI's torch")
    if has_cuda:
        test_wheel_cuda(environment, (environment, torch or environment), cwd=folder / "wheel_training", env=bare)
    test_tokenizer(folder / "wheel_training", pip, packages, env=bare)
    test_chats(folder / "wheel_training", pip, packages, torch, env=bare)
    # torch in another folder of the path.
    if torch:
        for link in links:
            link.unlink()
        shutil.rmtree(folder / "wheel_training/run")
        elsewhere = {**bare, "PYTHONPATH": str(torch)}
        train(folder / "wheel_training", "shardc", cwd=folder / "wheel_training", env=elsewhere)
        if has_cuda:
            test_wheel_cuda(environment, (environment, torch), cwd=folder / "wheel_training", env=elsewhere)
    output(*pip[:3], "uninstall", "--quiet", "--yes", "--disable-pip-version-check", "shardc")
    expect(not (environment / "bin/shardc").exists(), "pip removes it again")


def requirements_of(extra: str, packages: pathlib.Path) -> list[str]:
    (metadata,) = packages.glob("shardc-*.dist-info/METADATA")
    return re.findall(rf"^Requires-Dist: (.*); extra == .{extra}.$", metadata.read_text(), re.MULTILINE)


def test_tokenizer(folder: pathlib.Path, pip: list[str], packages: pathlib.Path, **options) -> None:
    """The extra `tokenize`, whose package comes from PyPI in any case."""
    (folder / "tokenizer.json").write_text(TOKENIZER)
    command = ["shardc-tokenize", "--tokenizer", "tokenizer.json", "--eod", ".", "text", "-o", "words"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **options)
    expect(done.returncode == 1 and "shardc[tokenize]" in done.stderr, "shardc-tokenize names its extra")
    output(*pip, *requirements_of("tokenize", packages))
    printed = output(*command, cwd=folder, **options)
    expect(" ids of 2 bytes in 1 document; the vocabulary has 4;" in printed, "shardc-tokenize makes tokens with it")
    output("shardc", "check", "--data", "recipe.toml", "--set", 'data.tokens=["words*.bin"]', "--set", "data.format=megatron", cwd=folder, **options)
    expect(True, "shardc reads these tokens")


def test_chats(folder: pathlib.Path, pip: list[str], packages: pathlib.Path, torch: pathlib.Path | None, **options) -> None:
    """The extra `chat`, beside `tokenize`. Its packages come from PyPI in any case."""
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": ".", "chat_template": CHAT_TEMPLATE}))
    (folder / "chats.jsonl").write_text(json.dumps(CHAT) + "\n")
    command = ["shardc-tokenize", "--chat", "--tokenizer", ".", "chats.jsonl", "-o", "chats"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **options)
    expect(done.returncode == 1 and "shardc[tokenize,chat]" in done.stderr, "shardc-tokenize --chat names its extra")
    output(*pip, *requirements_of("chat", packages))
    if torch:
        # Transformers imports torch where it is, and torch what is beside it: after what pip installs here.
        (packages / "torch.pth").write_text(f"{torch}\n")
    printed = output(*command, cwd=folder, **options)
    expect("1 conversation, 1 trained turn" in printed and "3 targets" in printed, "shardc-tokenize makes tokens and targets of a chat with it")
    output("shardc", "check", "--data", "recipe.toml", *(word for key in ('tokens=["chats.bin"]', 'targets=["chats.targets.bin"]', "format=megatron")
                                                         for word in ("--set", f"data.{key}")), "--set", "model.seq=6", cwd=folder, **options)
    expect(True, "shardc reads its tokens and targets")
    (packages / "torch.pth").unlink(missing_ok=True)


def test_wheel_cuda(environment: pathlib.Path, places: tuple[pathlib.Path, ...], env: dict[str, str], **options) -> None:
    """`places`: the folders that CUDA's libraries have to come from; this machine may have others."""
    python = [str(environment / "bin/python"), "-c"]
    program = output(*python, "import shardc; print(shardc.PROGRAMS / 'shardc-run-cuda')", env=env, **options).strip()
    folders = output(*python, "import shardc; print(*shardc.library_folders(), sep=':')", env=env, **options).strip()
    # ldd is the machine's.
    searched = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": folders}
    found = cuda_libraries(pathlib.Path(program), env=searched, **options)
    found["NCCL"] = output(*python, NCCL, env=searched, **options).split()[0]
    wrong = [f"{name}: {path}" for name, path in found.items()
             if not any(pathlib.Path(path).resolve().is_relative_to(place.resolve()) for place in places)]
    expect(len(found) == 5 and not wrong, f"the wheel takes CUDA's libraries from Python packages {wrong or ''}".strip())
    expect_refusal(" no GPU", "it starts with them", "shardc", env={**env, "CUDA_VISIBLE_DEVICES": ""}, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--torch", type=lambda text: pathlib.Path(text).resolve(), help="site-packages with torch and nvidia, in the place of PyPI")
    parser.add_argument("--only", choices=["debian", "prefix", "wheel"])
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    tests = {"debian": test_debian, "prefix": test_prefix, "wheel": lambda b, f: test_wheel(b, f, arguments.torch)}
    for name, test in tests.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                test(build, pathlib.Path(folder))
    print("the packages are sound")


if __name__ == "__main__":
    main()
