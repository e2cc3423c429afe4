"""Tests of side_by_side.py and load.py: what a failure, a second failure, a skip and a busy machine come to. Run by ctest."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import side_by_side  # noqa: E402
from load import Load  # noqa: E402

# A program that leaves a file when it starts, and does as the name of its test says.
PROGRAM = """
import os, pathlib, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
starts = len(list(folder.glob(name + ".*")))
(folder / f"{name}.{starts}").write_text(str(len(list(folder.glob("busy.*")))))
busy = folder / f"busy.{name}"
busy.touch()
time.sleep(0.5)
busy.unlink()
print("what", name, "says")
if name == "Skips":
    print("test_x (a.Skips.test_x) ... skipped 'missing: srun'")
sys.exit(name == "Fails" or (name == "FailsOnce" and starts == 0))
"""


class SideBySideTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "program.py").write_text(PROGRAM)

    def run_all(self, *names: str) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.dict(os.environ, SHARDC_TEST_TIMES=str(self.folder)):
            code = side_by_side.main([sys.executable, str(self.folder / "program.py"), str(self.folder)], list(names))
        return code, out.getvalue()

    def starts(self, name: str) -> list[int]:
        """How many others ran at each start."""
        return [int(path.read_text()) for path in sorted(self.folder.glob(f"{name}.*"))]

    def test_all_pass(self):
        code, text = self.run_all("A", "B", "Skips")
        self.assertEqual(code, 0, text)
        self.assertIn("3 of 3 passed, 0 of them the second time", text)
        self.assertRegex(text, r"(?m)^ +\d+\.\d  A  ok$")
        self.assertRegex(text, r"(?m)^ +\d+\.\d  Skips  skipped: missing: srun$")
        self.assertNotIn("what A says", text)
        self.assertGreater(max(starts[0] for starts in map(self.starts, ("A", "B", "Skips"))), 0)

    def test_a_failure_runs_again_by_itself(self):
        code, text = self.run_all("FailsOnce", "A", "B")
        self.assertEqual(code, 0, text)
        self.assertIn("3 of 3 passed, 1 of them the second time", text)
        self.assertEqual((self.folder / "second_runs.txt").read_text(), "FailsOnce\n")
        self.assertIn("what FailsOnce says", text)
        self.assertEqual((len(self.starts("FailsOnce")), self.starts("FailsOnce")[1], len(self.starts("A"))), (2, 0, 1))

    def test_a_second_failure_decides(self):
        code, text = self.run_all("Fails", "A")
        self.assertEqual(code, 1, text)
        self.assertIn("1 of 2 passed, 0 of them the second time", text)
        self.assertEqual(text.count("what Fails says"), 2)

    def test_no_tests_are_no_success(self):
        self.assertEqual(self.run_all()[0], 1)


class LoadTest(unittest.TestCase):
    def test_a_busy_machine_lengthens_bounds(self):
        """Three programs on one processor: each gets a third of it."""
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(own)})
        self.addCleanup(os.sched_setaffinity, 0, own)
        burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            with Load() as load:
                time.sleep(2)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        self.assertGreater(load.factor(), 1.3)
        self.assertLessEqual(load.factor(), 8)
        self.assertEqual(load.longer(10), 10 * load.factor())


if __name__ == "__main__":
    unittest.main()
