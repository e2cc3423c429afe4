"""Builds the image of tools/image/Containerfile and runs what is in it: `tools/dev test-image [--python]`, as root.

podman builds from the folder that `tools/dev image` makes, in chroots: neither a daemon nor control groups are needed. The base image is a
Debian that debootstrap makes, with the certificates that this machine trusts. The entrypoint of the image then runs in its root, as process 1,
with the image's environment, as a user without rights; all but /work is read-only. Without an engine's namespaces, and without a GPU.
With --python the target `python` is built instead, for which PyPI's torch is downloaded (3 GB).
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from test_package import MIB, expect, expect_refusal, output, start_in, train, write_training

BASE = "localhost/base"
USER = 1000
CERTIFICATES = pathlib.Path("/usr/local/share/ca-certificates")


class Engine:
    """podman with its images in `folder`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.podman = ["podman", "--root", str(folder / "root"), "--runroot", str(folder / "run"), "--events-backend", "none"]

    def output(self, *arguments: str, **options) -> str:
        return output(*self.podman, *arguments, **options).strip()

    def import_base(self, root: pathlib.Path) -> None:
        output("debootstrap", "--variant=minbase", "bookworm", str(root))
        if CERTIFICATES.exists():
            shutil.copytree(CERTIFICATES, root / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
        with subprocess.Popen(["tar", "--create", "--directory", str(root), "."], stdout=subprocess.PIPE) as archive:
            self.output("import", "-", BASE, stdin=archive.stdout)
        expect(archive.returncode == 0, "podman has a base image")

    def build(self, context: pathlib.Path, *arguments: str) -> None:
        self.output("build", "--isolation", "chroot", "--build-arg", f"BASE={BASE}", "--file", str(context / "Containerfile"), "--tag", "shardc",
                    *arguments, str(context))


def expect_checkpoint_at_end(folder: pathlib.Path, *start: str) -> None:
    """Ends a training as `docker stop` does: by a signal to process 1."""
    command = [*start, "run", "recipe.toml", "--run-dir", "stopped", "--set", "train.steps=1000000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as launch:
        metrics = folder / "stopped/metrics.jsonl"
        while launch.poll() is None and not (metrics.exists() and metrics.read_text()):
            time.sleep(0.1)
        (first,) = pathlib.Path(f"/proc/{launch.pid}/task/{launch.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        said = launch.stderr.read()
    expect(launch.returncode == 75 and ": saved " in said, "SIGTERM to process 1 saves")


def test_image(engine: Engine, work: pathlib.Path, is_wheel: bool) -> None:
    (inspected,) = json.loads(engine.output("image", "inspect", "shardc"))
    config = inspected["Config"]
    print(f"        {inspected['Size'] / MIB:.0f} MiB, starts {' '.join(config['Entrypoint'])}", flush=True)
    expect(config["Entrypoint"] == ["shardc"] and config["WorkingDir"] == "/work", "the image starts shardc in /work")
    labels = {name for name in config["Labels"] if name.startswith("org.opencontainers.image.")}
    expect(labels == {f"org.opencontainers.image.{name}" for name in ("title", "description", "licenses")}, "it says what it holds")

    root = pathlib.Path(engine.output("image", "mount", "shardc"))
    # `env` of the image changes the environment and the folder, and `setpriv` the user; the process stays the same one.
    inside = [*start_in(root, "/usr/bin/env", f"mount --bind {work} {root}/work; "), "--ignore-environment", "--chdir", "/work", *config["Env"]]
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    start = [*inside, *user, *config["Entrypoint"]]
    expect("Subcommands:" in output(*start, *config["Cmd"]), "without arguments it prints its help")
    expect(output(*start, "--version").startswith("shardc "), "it starts")
    expect(output(*start, "doctor").startswith("shardc "), "it looks at its host")
    (documents,) = root.glob("opt/shardc/lib/python3*/site-packages/shardc/share/doc/shardc" if is_wheel else "usr/share/doc/shardc")
    expect((documents / "LICENSE").exists(), "it has the licence")
    published = documents.relative_to(root) / "recipes/published/llama3_8b.toml"
    expect("memory per rank" in output(*start, "plan", "--explain", f"/{published}"), "it explains a published recipe")
    write_training(work)
    os.chown(work, USER, USER)
    train(work, *start)
    expect((work / "run").stat().st_uid == USER, "the run belongs to the user")
    expect_checkpoint_at_end(work, *start)
    expect_refusal("this machine has no GPU", "it finds CUDA's libraries", *start)
    # NCCL is opened when ranks of several hosts meet, and looks for InfiniBand then.
    known = output(*inside, "ldconfig", "-p")
    for name in ["libibverbs.so.1"] + ["libnccl.so.2"] * (not is_wheel):
        expect(f"{name} " in known, f"the loader knows {name}")
    if is_wheel:
        expect("--tokenizer" in output(*inside, *user, "shardc-tokenize", "--help"), "shardc-tokenize starts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("context", type=pathlib.Path)
    parser.add_argument("--python", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        engine = Engine(place / "podman")
        try:
            engine.import_base(place / "base")
            engine.build(arguments.context, *["--target", "python"] * arguments.python)
            (place / "work").mkdir()
            test_image(engine, place / "work", arguments.python)
        finally:
            # Ends the mounts too, which would keep the folder.
            engine.output("system", "reset", "--force")
    print("the image is sound")


if __name__ == "__main__":
    main()
