"""PyTorch's full wheel (about 3 GB), with torchrun, in a virtual environment of its own: what shardc is timed and tried against."""

import pathlib
import subprocess
import sys

VENV = pathlib.Path(__file__).resolve().parents[3] / ".deps" / "bench-venv"
TORCH = "torch==2.11.0"
TRANSFORMERS = "transformers==5.23.0"
PEFT = "peft==0.21.2"


def toml(values):
    """Returns numbers as lines of a recipe."""
    return "".join(f"{name} = {number}\n" for name, number in values.items())


def install(*packages):
    """On first use; what was installed before stays."""
    stamp = VENV / "-".join(["installed", *packages])
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TORCH, "numpy", *packages], check=True)
        stamp.touch()


def enter():
    """Runs the program again in that environment, unless it runs there."""
    if pathlib.Path(sys.prefix) != VENV:
        sys.exit(subprocess.run([VENV / "bin" / "python", *sys.argv]).returncode)
