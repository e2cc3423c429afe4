"""Tests of tools/gpu_*.py and kernel_budget.py without a GPU: programs that only pretend, records and budgets that are wrong. Run by ctest."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"

# A training that takes its losses from a file, and waits where a real one would go on.
SHARDC = """#!/usr/bin/env python3
import json, pathlib, sys, time
arguments = sys.argv[1:]
if arguments[0] == "plan":
    print("78.2 GiB that h100-sxm has for arenas (79.1 GiB less 0.9 GiB outside them)")
    sys.exit(0)
folder = pathlib.Path(arguments[arguments.index("--run-dir") + 1])
folder.mkdir()
losses = json.loads(pathlib.Path("losses.json").read_text())
with (folder / "metrics.jsonl").open("w", buffering=1) as metrics:
    for step, loss in enumerate(losses, 1):
        metrics.write(json.dumps({"step": step, "loss": loss, "step_ms": 10.0, "tokens": 64 * step, "mfu": 0.4, "arena_bytes": 0}) + "\\n")
    metrics.write(json.dumps({"step": len(losses), "eval_loss": 1.99}) + "\\n")
if "recipes/quickstart.toml" not in arguments or "precision.compute=bf16" in arguments:
    time.sleep(60)
"""
TESTS = """#!/usr/bin/env python3
import pathlib, sys, time
if "--gtest_list_tests" in sys.argv:
    print("Matmul.\\n  EqualsLoopsInF64")
    sys.exit(0)
how = pathlib.Path("how").read_text()
time.sleep(60 if how == "hang" else 0)
print("[  PASSED  ] 7 tests." if how == "pass" else "[  FAILED  ] Matmul.EqualsLoopsInF64")
sys.exit(how != "pass")
"""


def run(*command, **environment) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | environment)


class GpuToolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        (self.folder / path).chmod(mode)

    def gpu_test(self, rows: str, seconds: float = 30) -> subprocess.CompletedProcess:
        return run(sys.executable, TOOLS / "gpu_test.py", "--folder", self.folder, "--out", self.folder / "out", "--only", rows, "--seconds", seconds,
                   CUDA_LIBRARIES="/nowhere")

    def pretend(self, losses: list[float], recorded: list[float]) -> None:
        self.write("bin/shardc", SHARDC, 0o755)
        self.write("losses.json", json.dumps(losses))
        self.write("tests/gpu/quickstart_losses.json", json.dumps({"tokens": hashlib.sha256(b"tokens").hexdigest(), "fp32": recorded, "bf16": recorded}))
        self.write(".deps/data/fortunes.bin", "tokens")

    def test_losses_are_compared(self):
        recorded = [5.5 - 0.1 * step for step in range(20)]
        for factor, failed in ((1 + 1e-6, 0), (1 + 1e-4, 1)):
            self.pretend([loss * factor for loss in recorded], recorded)
            result = self.gpu_test("quickstart,quickstart-bf16")
            self.assertEqual(result.returncode, failed, result.stdout)
            self.assertIn("| quickstart-bf16 | time of the row |", result.stdout)
            self.assertIn(f"| quickstart | 20 steps in fp32 against the CPU | {'FAIL' if failed else 'pass'} |", result.stdout)

    def test_losses_of_other_tokens(self):
        self.pretend([5.5] * 20, [5.5] * 20)
        self.write(".deps/data/fortunes.bin", "other tokens")
        self.assertIn("FAIL | the losses in tests/gpu/quickstart_losses.json are of other tokens", self.gpu_test("quickstart").stdout)

    def test_loss_that_does_not_fall(self):
        for losses, outcome in (([9.0 - 0.1 * step for step in range(20)], "pass"), ([9.0] * 20, "FAIL")):
            self.pretend(losses, [])
            self.assertIn(f"| llama_124m | loss falls | {outcome} |", self.gpu_test("llama_124m").stdout)

    def test_program_that_fails_or_hangs(self):
        for how, line in (("pass", "pass | 7 tests of 1 ops passed"), ("fail", "failed: Matmul |"), ("hang", "failed: Matmul |")):
            self.write("bin/tests_ops_cuda", TESTS, 0o755)
            self.write("how", how)
            result = self.gpu_test("kernels", 2)
            self.assertIn(line, result.stdout)
            self.assertEqual(result.returncode, 0 if how == "pass" else 1)
            if how != "pass":
                text = (self.folder / "out/kernels.log").read_text()
                self.assertIn("exit code 1\n[  FAILED  ] Matmul" if how == "fail" else "still running after", text)

    def test_report_is_a_record_but_for_its_card(self):
        self.write("bin/tests_ops_cuda", TESTS, 0o755)
        self.write("how", "pass")
        self.gpu_test("kernels")
        record = json.loads((self.folder / "out/last_run.json").read_text())
        record |= {"card": "NVIDIA H100", "driver": "580", "sources": {"runtime/cuda/main.cpp": "0"}}
        self.write("tests/gpu/last_run.json", json.dumps(record))
        self.assertEqual(run(sys.executable, TOOLS / "gpu_record.py", self.folder).returncode, 0)

    def test_record(self):
        self.write("runtime/device/cuda/device.cpp", "old")
        self.write("runtime/kernels/cuda/add.cu", "old")
        sources = json.loads(run(sys.executable, TOOLS / "gpu_record.py", "--sources", self.folder).stdout)
        self.assertEqual(sorted(sources), ["runtime/device/cuda/device.cpp", "runtime/kernels/cuda/add.cu"])
        row = {"row": "doctor", "what": "card", "outcome": "figure", "figure": ""}
        good = {"date": "2026-11-26T10:00:00Z", "card": "c", "driver": "d", "libraries": {}, "rows": [row], "sources": sources}
        self.write("runtime/kernels/cuda/add.cu", "new")
        for change, code, text in (
            ({}, 0, "run emulated: 1: runtime/kernels/cuda/add.cu"),
            ({}, 0, "without a GPU runs: 0\n"),
            ({"date": "today"}, 1, "`date` is 'today'"),
            ({"sources": []}, 1, "`sources` is missing, or no dict"),
            ({"rows": [row | {"outcome": "ok"}]}, 1, "a row is"),
            ({"card": ""}, 1, "`card` is empty"),
        ):
            self.write("tests/gpu/last_run.json", json.dumps(good | change))
            result = run(sys.executable, TOOLS / "gpu_record.py", self.folder)
            self.assertIn(text, result.stdout)
            self.assertEqual(result.returncode, code, result.stdout)

    def test_budget(self):
        # The tool's own folder decides where the budget lies.
        self.write("tools/kernel_budget.py", (TOOLS / "kernel_budget.py").read_text())
        resources = (
            "ptxas info    : Compiling entry function '_ZN6shardc4cuda9SumLossesIdEEvPKT_lbPS2_' for 'sm_90'\n"
            "    8 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n"
            "ptxas info    : Used 30 registers, used 1 barriers, 256 bytes smem\n"
        )
        self.write("now.resources", resources)
        for row, text in (
            ("SumLosses<double> 30 256 4\n", "1 kernels, 0 over"),
            ("SumLosses<double> 29 256 4\n", "registers 30, 29 at most"),
            ("SumLosses<double> 30 0 4\n", "shared 256, 0 at most"),
            ("SumLosses<double> 30 256 0\n", "spilled 4, 0 at most"),
            ("", "SumLosses<double> has no row"),
            ("SumLosses<double> 30 256 4\nOther 1 0 0\n", "Other is no kernel"),
        ):
            self.write("tests/gpu/kernels.txt", "# A head.\n" + row)
            result = run(sys.executable, self.folder / "tools/kernel_budget.py", self.folder / "now.resources")
            self.assertIn(text, result.stdout)
            self.assertEqual(result.returncode, 0 if "0 over" in text else 1)
        run(sys.executable, self.folder / "tools/kernel_budget.py", "--update", self.folder / "now.resources")
        self.assertEqual((self.folder / "tests/gpu/kernels.txt").read_text(), "# A head.\nSumLosses<double>   30    256    4\n")


if __name__ == "__main__":
    unittest.main()
