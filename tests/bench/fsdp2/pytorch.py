"""PyTorch's full wheel (about 3 GB), with torchrun, in a virtual environment of its own: what shardc is timed and tried against."""

import pathlib
import subprocess
import sys

VENV = pathlib.Path(__file__).resolve().parents[3] / ".deps" / "bench-venv"
TORCH = "torch==2.11.0"


def install():
    """On first use."""
    if not (VENV / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TORCH, "numpy"], check=True)
        (VENV / "installed").write_text(TORCH)
