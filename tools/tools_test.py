"""Tests of the scripts and of the configuration: each breaks something and expects to be told. Run by ctest."""

import array
import fnmatch
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import make_wheel
from script_test import ROOT, ScriptTest, run
from tokenizers_double import CHAT_TEMPLATE_UTILS, TOKENIZERS, TRANSFORMERS


class ToolsTest(ScriptTest):
    def test_folder_with_a_colon_is_refused(self):
        folder = self.folder / "a:b"
        folder.mkdir()
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        shutil.copytree(ROOT / "tools", folder / "tools")
        result = run("cmake", "-S", folder, "-B", self.folder / "build", "-G", "Ninja")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("a:b has a colon", " ".join(result.stderr.split()))

    def test_row_without_file_fails_the_configuration(self):
        for name in ("CMakeLists.txt", "compiler", "runtime", "schemas", "tests", "tools"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.folder / name)
        (self.folder / ".deps").symlink_to(ROOT / ".deps")
        (self.folder / "compiler/ops/matmul.cpp").unlink()
        result = run("cmake", "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("compiler/ops/matmul.cpp", result.stderr)

    def test_times(self):
        self.write("times/ctest.xml", """<testsuite><testcase name="tests_a" time="12.5" status="run"/>
            <testcase name="tests_b" time="0.5" status="fail"/></testsuite>""")
        self.write("times/tests_a.xml", """<testsuites><testsuite><testcase name="Slow/0" classname="A" time="11"/>
            <testcase name="Absent" classname="A" time="0"><skipped message="a.cpp:1&#x0A;x is not installed"/></testcase>
            </testsuite></testsuites>""")
        result = run(sys.executable, ROOT / "tools" / "test_times.py", self.folder / "times")
        self.assertEqual(result.returncode, 1)
        for line in ("    12.5  tests_a", "    11.0  tests_a A.Slow/0", "skipped: tests_a A.Absent: x is not installed", "failed: tests_b"):
            self.assertIn(line + "\n", result.stdout)
        self.assertTrue(result.stdout.endswith("\n1 passed, 1 failed\n"), result.stdout)
        self.write("times/ctest.xml", '<testsuite><testcase name="tests_a" time="12.5" status="run"/></testsuite>')
        result = run(sys.executable, ROOT / "tools" / "test_times.py", self.folder / "times")
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (0, "1 passed, 0 failed"))

    def test_no_tests_are_a_failure(self):
        self.write("build/a/ctest.xml", '<testsuite><testcase name="tests_a" time="2" status="run"/></testsuite>')
        self.write("build-b/a/ctest.xml", "<testsuite></testsuite>")
        for folders, failed, last in (
            ([], "no test ran", "0 passed, 1 failed"),
            (["build-b/a"], "no test ran in build-b", "0 passed, 1 failed"),
            (["build/a", "build-b/a"], "no test ran in build-b", "1 passed, 1 failed"),
        ):
            result = run(sys.executable, ROOT / "tools" / "test_times.py", *(self.folder / folder for folder in folders))
            self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (1, last), result.stderr)
            self.assertIn(f"\nfailed: {failed}\n", result.stdout)

    def test_second_runs_fail_if_many(self):
        self.write("times/ctest.xml", '<testsuite><testcase name="tests_a" time="2" status="run"/></testsuite>')
        for count, last in ((2, "1 passed, 0 failed"), (3, "1 passed, 1 failed")):
            self.write("times/second_runs.txt", "tests_a A.Shaky\n" * count)
            result = run(sys.executable, ROOT / "tools" / "test_times.py", self.folder / "times")
            self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (count - 2, last))
            self.assertIn("\npassed on its second run: tests_a A.Shaky\n", result.stdout)

    def test_phases_beside_committed_figures(self):
        self.write("times/ctest.xml", '<testsuite><testcase name="tests_a" time="2" status="run"/></testsuite>')
        self.write("tools/test_times.py", (ROOT / "tools/test_times.py").read_text())
        self.write("tests/core_seconds.txt", "build 100  # of a machine\ntests 50\n")
        phases = "build 80 100 20\ntests 30.5 40 5\nother 1 1 0\n"
        for text in (phases, phases.replace(".", ",")):
            self.write("phases.txt", text)
            result = run(sys.executable, self.folder / "tools/test_times.py", "--phases", self.folder / "phases.txt", "90",
                         self.folder / "times")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("      80           120        100  build +20 %\n      30            45         50  tests -10 %\n",
                          result.stdout)
            self.assertIn("       1             1             other\n      90           166             whole run\n", result.stdout)
            self.assertTrue(result.stdout.endswith("\n1 passed, 0 failed\n"), result.stdout)

    def test_twice(self):
        twice = ROOT / "tests/cluster/twice.py"
        # A program of three cases, of which each part runs one; the second fails in its first run, the third always.
        self.write("program.py", """
import os, pathlib, sys
case = os.environ.get("GTEST_FILTER") or "A." + "abc"[int(os.environ["GTEST_SHARD_INDEX"])]
ran = pathlib.Path(case).exists()
pathlib.Path(case).touch()
fails = case == "A.c" or case == "A.b" and not ran
if output := os.environ.get("GTEST_OUTPUT"):
    failure = "<failure/>" if fails else ""
    pathlib.Path(output.partition(":")[2]).write_text(f'<a><testcase classname="A" name="{case[2:]}">{failure}</testcase></a>')
sys.exit(fails)
""")
        second_runs = self.folder / "second_runs.txt"
        for part, code, passed_late in ((1, 0, False), (2, 0, True), (3, 1, False)):
            result = subprocess.run(
                [sys.executable, twice, "tests_a", "--part", f"{part}/3", sys.executable, "program.py"], cwd=self.folder,
                env={**os.environ, "SHARDC_TEST_TIMES": str(self.folder)}, capture_output=True, text=True)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            self.assertEqual(second_runs.read_text() if passed_late else "", "tests_a_2 A.b\n" if passed_late else "")
            self.assertTrue((self.folder / f"tests_a_{part}.xml").is_file())

    def test_arguments_are_judged_first(self):
        # A copy without anything to build or install from: what is not refused at once fails in another way.
        for name in ("tools", "tests/plan", "tests/passes", "recipes/published"):
            shutil.copytree(ROOT / name, self.folder / name)
        for arguments, message in {
            "setup --tests extra": "setup: it does not take `extra`",
            "setup --foo": "setup: it does not take `--foo`",
            "build --fuzz": "build: it does not take `--fuzz`",
            "build --debug --sanitize": "build: it does not take `--sanitize`",
            "check --foo": "check: it does not take `--foo`",
            "test --foo": "test: it does not take `--foo`",
            "test --changed nonesuch": "test: `nonesuch` is no commit",
            "test --changed HEAD x": "test: it does not take `x`",
            ("test", "--sanitize --nightly"): "test: it does not take `--sanitize --nightly`",
            ("test", "--nightly "): "test: it does not take `--nightly `",
            ("test", ""): "test: it does not take ``",
            ("build", "--debug --sanitize"): "build: it does not take `--debug --sanitize`",
            ("fuzz", "expr recipe", "1"): "fuzz: no harness is named `expr recipe`; known are",
            "fuzz nonesuch": "fuzz: no harness is named `nonesuch`; known are expr recipe plan",
            "fuzz plan soon": "fuzz: `soon` is no number of seconds",
            "fuzz plan 60 x": "fuzz: it does not take `x`",
            "goldens plan x": "goldens: it does not take `x`",
            "goldens --foo": "goldens: it does not take `--foo`",
            "docs x": "docs: it does not take `x`",
            "format x": "format: it does not take `x`",
            "syntax x": "syntax: it does not take `x`",
            "quickstart x": "quickstart: it does not take `x`",
            "package x": "package: it does not take `x`",
            "test-package --foo x": "test-package: it does not take `--foo`",
            "package --cuda x": "package: it does not take `x`",
            "test-package --cuda --foo": "test-package: it does not take `--foo`",
            "test-package --torch": "test-package: --torch needs a folder",
            "test-image --cuda": "test-image: it does not take `--cuda`",
            "nonesuch": "",
        }.items():
            arguments = arguments.split() if isinstance(arguments, str) else arguments
            result = run(self.folder / "tools" / "dev", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr.startswith(f"tools/dev {message}" if message else "usage: "), result.stderr)
            self.assertIn(f"  {arguments[0]} " if message else "  quickstart ", result.stderr)
            self.assertNotIn("+ ", result.stderr)

    def test_changed_tests(self):
        self.write("CMakeLists.txt", "\n".join((
            "cmake_minimum_required(VERSION 3.20)", "project(x CXX)", "enable_testing()", "include_directories(.)",
            "add_executable(shardc main.cpp)", "add_executable(shardc-run main.cpp)", "add_subdirectory(tests)")))
        self.write("tests/CMakeLists.txt", "\n".join((
            "foreach(name IN ITEMS a b c)", "  add_executable(tests_${name} ${name}/test.cpp)",
            "  add_test(NAME tests_${name} COMMAND tests_${name})", "endforeach()",
            "add_dependencies(tests_c shardc)", "add_test(NAME tree COMMAND true)", "add_test(NAME jobs COMMAND true)",
            "set_tests_properties(jobs PROPERTIES LABELS slow)")))
        self.write("main.cpp", '#include "plan.h"\nauto main() -> int {}\n')
        self.write("plan.h", "// Plans.\n")
        self.write("half.h", "// Halves.\n")
        self.write("tests/a/test.cpp", '#include "half.h"\nauto main() -> int {}\n')
        self.write("tests/b/test.cpp", 'const char* page = "/docs/metrics.md";\nauto main() -> int {}\n')
        self.write("tests/c/test.cpp", "auto main() -> int {}\n")
        self.write("docs/metrics.md", "A page.\n")
        self.write(".gitignore", "build/\n")

        def git(*arguments):
            run("git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@b", *arguments)

        def chosen(*arguments):
            result = run(sys.executable, ROOT / "tools/changed_tests.py", self.folder / "build", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            targets, pattern = result.stdout.splitlines()
            names = set(pattern.removeprefix("^(").removesuffix(")$").split("|"))
            self.assertEqual({name for name in names if name.startswith("tests_")},
                             set(targets.split()) - {"shardc", "shardc-run", "print_place"})
            return names, result.stderr

        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message=Begin")
        run("cmake", "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja")
        names, said = chosen()
        self.assertEqual(names, {"tests_a", "tests_b", "tests_c", "tree", "jobs"})
        self.assertIn("everything: nothing is built yet", said)
        run("cmake", "--build", self.folder / "build")
        names, said = chosen()
        self.assertEqual(names, {"tree"})
        self.assertIn("left out, as the change does not reach them: tests_a tests_b tests_c jobs\n", said)
        for path, expected in (("half.h", {"tests_a", "tree"}), ("docs/metrics.md", {"tests_b", "tree"}),
                               ("plan.h", {"tests_c", "tree", "jobs"}), ("tests/b/new.txt", {"tests_b", "tree"})):
            self.write(path, "// Other words.\n")
            self.assertEqual(chosen()[0], expected, path)
            git("add", ".")
            git("commit", "--quiet", f"--message=Change {path}")
        self.assertEqual(chosen("HEAD~2")[0], {"tests_b", "tests_c", "tree", "jobs"})
        self.write("tools/cmake/x.cmake", "")
        self.assertIn("everything: tools/cmake/x.cmake is of the build", chosen()[1])
        result = run(sys.executable, ROOT / "tools/changed_tests.py", self.folder / "build", "nonesuch")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("name a commit that is there", result.stderr)

    def test_record_of_a_gpu(self):
        shutil.copytree(ROOT / "tools", self.folder / "tools")
        self.write("tests/gpu/last_run.json", "old")
        for script, code, record in (('open(sys.argv[2] + "/last_run.json", "w").write("new"); sys.exit(3)', 3, "new"),
                                     ('open(sys.argv[2] + "/roofs.json", "w").write("other")', 0, "new")):
            self.write("pack/test.py", f"import os, sys\nos.makedirs(sys.argv[2], exist_ok=True)\n{script}\n")
            (self.folder / "build").mkdir(exist_ok=True)
            run("tar", "-cJf", self.folder / "build/gpu-pack.tar.xz", "-C", self.folder / "pack", "test.py")
            result = run(self.folder / "tools" / "dev", "gpu-test")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual((self.folder / "tests/gpu/last_run.json").read_text(), record)

    def test_image_is_made_of_packages(self):
        text = (ROOT / "tools/image/Containerfile").read_text()
        lines = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.M)).split("\n")
        self.assertEqual({line.split()[0] for line in lines if line},
                         {"ARG", "FROM", "RUN", "COPY", "ENV", "LABEL", "WORKDIR", "ENTRYPOINT", "CMD"})
        stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.M)
        self.assertEqual(stages, ["base", "python", "cuda"])
        self.assertEqual(re.findall(r"^COPY --from=(\S+)", text, re.M), ["cuda"])
        packages = set(re.findall(r"_PACKAGE_NAME (\S+)\)", (ROOT / "tools/cmake/package.cmake").read_text()))
        made = {f"{name}_0.1.0_amd64.deb" for name in packages}
        made |= {f"shardc-0.1.0-py3-none-{make_wheel.PLATFORM}.whl", "cuda_libraries.txt"}
        self.assertEqual(len(made), 5)
        used = [fnmatch.filter(made, name) for name in re.findall(r"/packages/([\w.*-]+)", text)]
        self.assertTrue(all(used), used)
        self.assertEqual({name for names in used for name in names}, made)

    def test_image_without_and_with_engine(self):
        shutil.copytree(ROOT / "tools", self.folder / "tools")
        self.write(".deps/cuda/installed.txt", "".join((ROOT / "tools" / name).read_text() for name in ("cuda.txt", "cuda_libraries.txt")))
        self.write("tools/make_wheel.py", "import sys\nopen(sys.argv[2] + '/a.whl', 'w')\n")
        self.write("build/image/old.deb", "")
        programs = {"dpkg-query": "echo installed dpkg-dev", "cmake": "", "cpack": 'mkdir -p "$4/_CPack_Packages"; touch "$4/a.deb"'}

        def image(*arguments):
            for name, text in programs.items():
                self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
                (self.folder / "bin" / name).chmod(0o755)
            return run("env", f"PATH={self.folder / 'bin'}", shutil.which("bash"), self.folder / "tools/dev", "image", *arguments)

        (self.folder / "bin").mkdir()
        for name in ("bash", "cat", "cmp", "cp", "dirname", "mkdir", "python3", "rm", "sed", "touch", "wc"):
            (self.folder / "bin" / name).symlink_to(shutil.which(name))
        result = image("--target", "python")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("podman, docker and buildah are missing", result.stderr)
        self.assertIn("docker build --file image/Containerfile --tag shardc --target python image\n", result.stderr)
        self.assertEqual({path.name for path in (self.folder / "build/image").iterdir()},
                         {"Containerfile", "cuda_libraries.txt", "a.deb", "a.whl"})
        programs["docker"] = 'echo "$@"'
        result = image("--target", "python")
        self.assertEqual((result.returncode, result.stdout),
                         (0, "build --file build/image/Containerfile --tag shardc --target python build/image\n"), result.stderr)

    def test_golden_case_that_does_not_exist(self):
        for arguments, near in {
            ("goldens", "nonesuch"): "`nonesuch` in its name",
            ("goldens", "fsdp_too_ranks"): "near it are plan_fsdp_two_ranks, ",
            ("goldens", "--update", "lamma3_8b"): "published_llama3_8b",
        }.items():
            result = run(ROOT / "tools" / "dev", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(f"tools/dev goldens: no golden case has `{arguments[-1]}` in its name", result.stderr)
            self.assertIn(near, result.stderr)

    def test_bigram(self):
        # Training part 0 1 0 1 0 1: from 0, 1 was seen three times of three; from 1, 0 twice of two. Vocabulary 2, add one.
        tokens = [0, 1, 0, 1, 0, 1, 0, 1, 1]
        header = array.array("i", [20240520, 1, len(tokens)] + [0] * 253)
        (self.folder / "t.bin").write_bytes(header.tobytes() + array.array("H", tokens).tobytes())
        self.write("r.toml", "[model]\nseq = 2\nvocab = 2\n[data]\neval_tokens = 3\n")
        self.write("m.jsonl", '{"step": 1, "eval_loss": 9}\n{"step": 2, "eval_loss": 0.5}\n{"step": 2, "loss": 7}\n')
        bigram = (sys.executable, ROOT / "tools" / "bigram.py", self.folder / "t.bin", "--recipe", self.folder / "r.toml",
                  "--metrics", self.folder / "m.jsonl")
        expected = -(math.log(4 / 5) + math.log(1 / 4)) / 2
        self.assertEqual(run(*bigram).stdout, f"validation 0.5000 nats/byte, bigram {expected:.4f}\n")
        (self.folder / "t.bin").write_bytes(header.tobytes())
        self.assertIn("cut short", run(*bigram).stderr)

    def test_sample_text(self):
        # A tokenizer of bytes, and a program that says the two bytes of an "é", and an "!".
        package = self.folder / "tokenizers"
        package.mkdir()
        (package / "__init__.py").write_text(
            "class Tokenizer:\n"
            "    def from_file(path): assert open(path).read() == '{}'; return Tokenizer()\n"
            "    def encode(self, text): self.ids = list(text.encode()); return self\n"
            "    def decode(self, ids): return bytes(ids).decode(errors='replace')\n")
        self.write("model/tokenizer.json", "{}")
        program = self.folder / "bin" / "shardc"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho "$@" >&2\nprintf "195\\n169\\n33\\n"\nexit 3\n')
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(self.folder)}
        result = subprocess.run([sys.executable, ROOT / "tools" / "sample_text.py", "r.toml", "--tokenizer", self.folder / "model", "--prompt", "caf",
                                 "--checkpoint", "run", "--sample-seed", "4"], env=environment, capture_output=True, text=True)
        self.assertEqual(result.stdout, "café!\n")
        self.assertEqual(result.stderr, "sample r.toml --prompt-ids 99,97,102 --checkpoint run --sample-seed 4\n")
        self.assertEqual(result.returncode, 3)

    def test_sample_text_chats(self):
        for name, text in {"tokenizers.py": TOKENIZERS, "transformers/__init__.py": TRANSFORMERS, "transformers/utils/__init__.py": "",
                           "transformers/utils/chat_template_utils.py": CHAT_TEMPLATE_UTILS, "jinja2.py": ""}.items():
            self.write(f"modules/{name}", text)
        vocab = {letter: i for i, letter in enumerate("abcdefghij <>")} | {"<e>": 20}
        self.write("model/tokenizer.json", json.dumps({"vocab": vocab, "first": 0, "last": (), "added": ["<e>"], "model": {}}))
        template = 'def render(messages, tools, prompt, **more):\n    yield "".join(m["role"][0] .replace("u", "a") .replace("s", "b") + m["content"] + "<e>" for m in messages) + "c"'
        self.write("model/tokenizer_config.json", json.dumps({"eos_token": "<e>", "chat_template": template}))
        # It says "de" and the token that ends a turn, and goes on.
        self.write("bin/shardc", '#!/bin/sh\necho "$@" >> asked\nprintf "3\\n4\\n20\\n5\\n"\nexec sleep 60\n')
        (self.folder / "bin/shardc").chmod(0o755)
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PYTHONPATH": str(self.folder / "modules")}
        result = subprocess.run([sys.executable, ROOT / "tools" / "sample_text.py", "r.toml", "--tokenizer", "model", "--chat", "--system", "f", "--tokens-out", "9"],
                                input="g\n\nh\n", cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("de\nde\n", "", 0))
        asked = (self.folder / "asked").read_text().splitlines()
        first = "1,5,20,0,6,20,2"
        self.assertEqual(asked, [f"sample r.toml --prompt-ids {ids} --tokens-out 9" for ids in (first, "1,5,20,0,6,20,0,3,4,20,0,7,20,2")])


if __name__ == "__main__":
    unittest.main()
