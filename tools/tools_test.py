"""Tests of the scripts and of the configure-time checks: each breaks something and expects to be told. Run by ctest."""

import array
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


class ToolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def test_words(self):
        self.write("schemas/recipe_values.def", 'WORDS(Fruit)\nWORD(Plum, "plum")\nLATER("fig")\nEND_WORDS(Fruit)\n')
        words = """
            #define WORDS(Enum) enum class Enum {
            #define WORD(Name, word) Name,
            #define END_WORDS(Enum) };
            #include "schemas/recipe_values.def"
            """
        check = (sys.executable, ROOT / "tools" / "check_words.py", "c++", self.folder)
        cases = {
            "switch (f) { case Fruit::Plum: return 1; } return 0;": "does not compile",
            "switch (f) { case Fruit::Plum: return 1; default: return 0; }": "one more word of Fruit compiles",
            "return f == Fruit::Plum ? 1 : 0;": "no switch asks for the words of Fruit",
        }
        for body, message in cases.items():
            self.write("compiler/fruit.cpp", f"{words}\nauto Taste(Fruit f) -> int {{ {body} }}\n")
            result = run(*check)
            self.assertIn(message, result.stdout)
            self.assertEqual(result.returncode, 0 if message == "does not compile" else 1)

    def test_words_of_files_that_do_not_compile_together(self):
        self.write("schemas/recipe_values.def", "".join(
            f'WORDS({name})\nWORD(One, "one")\nEND_WORDS({name})\n' for name in ("Fruit", "Leaf")))
        check = (sys.executable, ROOT / "tools" / "check_words.py", "c++", self.folder)
        for leaf, message in {"": "2 sets does not compile", "default: return 0;": "one more word of Leaf compiles"}.items():
            for name, other in {"Fruit": "", "Leaf": leaf}.items():
                # Both define the enums, and a function of the same name.
                self.write(f"compiler/{name}.cpp", f"""
                    #define WORDS(Enum) enum class Enum {{
                    #define WORD(Name, word) Name,
                    #define END_WORDS(Enum) }};
                    #include "schemas/recipe_values.def"
                    static auto Taste({name} f) -> int {{ switch (f) {{ case {name}::One: return 1; {other} }} return 0; }}
                    static auto First() -> int {{ return Taste({name}::One); }}
                    """)
            result = run(*check)
            self.assertIn(message, result.stdout)
            self.assertEqual(result.returncode, 1 if leaf else 0)

    def test_format(self):
        check = (sys.executable, ROOT / "tools" / "check_format.py", self.folder, self.folder)
        # (.clang-format, the text of a.h, the end of what is printed): what was well formatted is looked at again if the
        # rules are others, and what was not is looked at again in any case.
        for rules, text, message in (
            ("BasedOnStyle: Google", "int a = 1;\n", "2 sources are well formatted, 2 of them new\n"),
            ("BasedOnStyle: Google", "int a = 1;\n", "2 sources are well formatted, 0 of them new\n"),
            ("BasedOnStyle: Google", "int  a=1;\n", ""),
            ("BasedOnStyle: Google", "int  a=1;\n", ""),
            ("BasedOnStyle: Google", "int a = 2;\n", "2 sources are well formatted, 1 of them new\n"),
            ("DisableFormat: true", "int  a=1;\n", "2 sources are well formatted, 2 of them new\n"),
            ("BasedOnStyle: Google", "int  a=1;\n", ""),
        ):
            self.write(".clang-format", rules + "\n")
            self.write("compiler/a.h", text)
            self.write("tests/b/b.cpp", "int b = 1;\n")
            result = run(*check)
            self.assertEqual((result.returncode, result.stdout), (0 if message else 1, message), result.stderr)
            if not message:
                self.assertIn("compiler/a.h:1:4: error: code should be clang-formatted", result.stderr)

    def test_layers(self):
        shutil.copytree(ROOT / "tools", self.folder / "tools")
        self.write("compiler/plan/plan.h", '#include "compiler/base/ids.h"\n')
        self.write("compiler/base/ids.h", "#include <vector>\n")
        check = (sys.executable, ROOT / "tools" / "check_layers.py", self.folder)
        self.assertEqual(run(*check).returncode, 0)
        for text, message in {
            '#include "compiler/plan/plan.h"': "compiler/base may not include compiler/plan",
            '#include "compiler/base/absent.h"': "no such file",
            "#include <ATen/Tensor.h>": "<ATen/> belongs to runtime/kernels, runtime/net, tests only",
        }.items():
            self.write("compiler/base/ids.h", text + "\n")
            result = run(*check)
            self.assertEqual(result.returncode, 1)
            self.assertIn("compiler/base/ids.h:1", result.stdout)
            self.assertIn(message, result.stdout)

    def test_device_bodies_are_known_to_few(self):
        shutil.copytree(ROOT / "tools", self.folder / "tools")
        self.write("runtime/device/cpu/cpu_device.h", "")
        check = (sys.executable, ROOT / "tools" / "check_layers.py", self.folder)
        for path, may in {
            "runtime/device/cpu/a.cpp": True,
            "runtime/kernels/cpu/a.cpp": True,
            "tests/device/a.cpp": True,
            "runtime/device/a.cpp": False,
            "runtime/core/a.cpp": False,
            "runtime/launch/a.cpp": False,
            "tests/run/a.cpp": False,
        }.items():
            self.write(path, '#include "runtime/device/cpu/cpu_device.h"\n')
            result = run(*check)
            self.assertEqual("belongs to runtime/device/cpu" in result.stdout, not may, path)
            (self.folder / path).unlink()

    def test_op_types(self):
        self.write("schemas/ops.def", 'OP(Matmul, matmul, Differentiable, READ(a), "")\nOP(Add, add, NotDifferentiable, READ(a), "")\n')
        places = {}
        for file, line, count in (
            ("compiler/passes/as.cpp", "const auto* sum = op.As<op::Add>();", 1),
            ("compiler/passes/kind.cpp", "return kind == OpKind::Add;", 1),
            ("compiler/passes/overload.cpp", "auto RowsOf(const op::Add& op) -> int64_t;", 1),
            ("compiler/passes/overloads.cpp", "[](op::Add& op, op::Matmul const* product) {}", 2),
            ("compiler/passes/made.cpp", "emitter.Emit(op::Add{.a = x});  // const op::Add&", 0),
            ("compiler/ops/ops.h", "auto Cost(const op::Type& op, const Plan& plan)->OpCost;", 0),
            ("compiler/ops/add.cpp", "auto RowsOf(const op::Add& op) -> int64_t;", 0),
            ("runtime/kernels/cpu/add.cpp", "auto RowsOf(const op::Add& op) -> int64_t;", 0),
            ("runtime/kernels/cpu/loops.h", "auto RowsOf(const op::Add& op) -> int64_t;", 1),
            ("runtime/kernels/reference/a.h", "auto Bind(const op::Add& op, Binder& binder) -> Kernel;", 0),
            ("runtime/core/a.h", "auto Bind(const op::Add& op, Binder& binder) -> Kernel;", 1),
        ):
            self.write(file, line + "\n")
            places[file] = count
        check = (sys.executable, ROOT / "tools" / "check_op_types.py", self.folder)
        rows = {file: f"{file}: {count}  a reason" for file, count in places.items()}
        self.write("tools/op_types.txt", "\n".join(rows.values()))
        self.assertEqual(run(*check).stdout, f"{sum(places.values())} places ask which op they have, of 30 at most\n")
        self.write("tools/op_types.txt", "")
        wanted = {f"{file}: {count} places ask" for file, count in places.items() if count > 0}
        self.assertEqual({line.split(" which")[0] for line in run(*check).stdout.splitlines()}, wanted)
        self.write("tools/op_types.txt", "\n".join((rows | {"a.h": "a.h: 31  a reason"}).values()))
        result = run(*check)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.h: 0 places ask which op they have, tools/op_types.txt allows 31", result.stdout)
        self.assertIn("places, more than 30", result.stdout)

    def test_types(self):
        def text(body):
            return "namespace shardc {\n\n" + body + "\n}  // namespace shardc\n"

        check = (sys.executable, ROOT / "tools" / "check_types.py", self.folder)
        self.assertEqual(run(*check).returncode, 1)
        self.write("compiler/a/use.h", text("struct Use {\n  int first = 0;\n};\n"))
        hidden = "namespace {\n\nclass Use {\n};\n\n}  // namespace\n"
        self.write("compiler/b/hidden.cpp", text(hidden))
        self.write("compiler/b/later.cpp", "namespace shardc::inner {\n\nstruct Use {};\n\n}  // namespace shardc::inner\n")
        self.write("runtime/a/named.h", text("struct Use;\nclass User : public Use {\n};\n"))
        self.assertEqual((run(*check).returncode, run(*check).stdout), (0, ""))
        self.write("runtime/b/b.cpp", text(hidden + "\nenum class Use : uint8_t { A };\n"))
        result = run(*check)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "shardc::Use is defined 2 times: compiler/a/use.h:3, runtime/b/b.cpp:10\n")

    def test_includes(self):
        (self.folder / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "headers.txt", self.folder / "tools")
        check = (sys.executable, ROOT / "tools" / "check_includes.py", self.folder)
        self.assertIn("has no headers", run(*check).stderr)
        self.write("compiler/a/fruit.h", """
#include <vector>
enum class Fruit { Apple, Plum };
class [[nodiscard]] Bowl {};
inline constexpr std::vector<int> Prices = {};
auto Taste(Fruit fruit) -> int;
#define WASH(fruit) fruit
""")
        self.write("tests/a/bread.h", "class Bread {};\nclass Apple {};\n")
        fruit = '#include "compiler/a/fruit.h"\n'
        for text, fault in (
            # Names of libraries.
            ("#include <vector>\nstd::vector<int> x;", ""),
            (fruit + "std::vector<int> x;", ""),
            ("\nstd::vector<int> x;", "2: std::vector needs <vector>"),
            ("#include <array>\nauto F(uint8_t x) -> void;", "2: uint8_t needs <cstdint>"),
            ("#include <vector>\nauto x = std::erase(y, 1);", ""),
            ("auto x = std::ranges::sort(y);", "1: std::ranges::sort needs <algorithm> or <ranges>"),
            ("auto x = std::frobnicate(y);", "1: std::frobnicate is not in tools/headers.txt: add it to the row of its header"),
            ("auto x = getpid();", "1: getpid needs <unistd.h>"),
            ("auto x = fork.getpid() + getpid;", ""),
            ("auto x = SIGTERM;", "1: SIGTERM needs <csignal> or <signal.h>"),
            ("auto x = fmt::format(y);", "1: fmt::format needs <fmt/core.h> or <fmt/format.h>"),
            ('// std::vector\nauto x = "std::map" /* std::set\n */; auto y = R"(std::list)";', ""),
            ("#include <llvm/Fruit.h>\n", ""),
            # Names of the project.
            (fruit + "Bowl bowl = WASH(Taste(Fruit::Plum, Prices));", ""),
            ("auto F(Fruit fruit) -> int;", "1: Fruit needs compiler/a/fruit.h"),
            ("auto F(Bowl bowl) -> int;", "1: Bowl needs compiler/a/fruit.h"),
            ("auto x = Taste(1);", "1: Taste needs compiler/a/fruit.h"),
            ("auto x = Prices;", "1: Prices needs compiler/a/fruit.h"),
            ("auto x = WASH(1);", "1: WASH needs compiler/a/fruit.h"),
            ("class Bowl;\nauto F(Bowl& bowl) -> int;", ""),
            ("class Bowl;\nauto x = Bowl{};", "2: Bowl needs compiler/a/fruit.h"),
            ("auto x = Kind::Fruit, y = bowl.Taste(1), z = bowl->Taste(1);", ""),
            ("enum class Kind : uint8_t { Fruit };\n#include <cstdint>\n", ""),
            ("struct Own {\n  auto Taste(int x) -> int;\n  auto F() -> int { return Taste(1); }\n};", ""),
            ("static const int Prices[] = {1};\nauto x = Prices[0];", ""),
            # A header of tests declares nothing for the program.
            ("auto F(Bread bread) -> int;", ""),
        ):
            self.write("compiler/b/b.cpp", text + "\n")
            result = run(*check)
            self.assertEqual(result.stdout, fault and f"compiler/b/b.cpp:{fault}\n", text)
            self.assertEqual(result.returncode, 1 if fault else 0)
        self.write("tests/b/b.cpp", "#include <gtest/gtest.h>\nTEST(Fruit, Taste) {}\nTEST_F(Bread, IsBaked) {}\n")
        self.assertEqual(run(*check).stdout, "tests/b/b.cpp:3: Bread needs tests/a/bread.h\n")

    def test_comments(self):
        check = (sys.executable, ROOT / "tools" / "check_comments.py")
        self.write("tools/comment_findings.txt", "# FOLDER: COUNT\n")
        for text, rules in (
            ("/// Returns the sum.\nauto Sum() -> int;", []),
            ("/// Requires: a > 0.\nauto Sum(int a) -> int;", []),
            ("/// Names the file.\nauto Name() -> int;", []),
            ("/// Names of files.\nauto Name() -> int;", [1]),
            ("/// Bytes of a rank.\nauto Sum() -> int;", [1]),
            ("/// The sum.\nauto Sum() -> int;", [1]),
            ("/// Is there a sum?\nauto Sum() -> int;", [1]),
            ("/// The sum,\n/// in bytes.\ntemplate <class T>\n  requires std::integral<T>\ninline auto Sum() -> int;", [1]),
            ("  /// The place.\n  explicit Place(int a);", [1]),
            ("/// The sum.\nauto Place::Sum() -> int {", [1]),
            ("/// Of two.\nfriend auto operator==(const A&, const A&) -> bool = default;", [1]),
            ("  /// The sum.\n  int sum = 0;", []),
            ("  /// Of the sum.\n  int sum = 0;", [1]),
            ("/// What a rank has.\nstruct Own {", [1]),
            ("/// The same again.\nusing Own = int;", [1]),
            ("  // Of two sums.\n  auto x = Sum();", []),
            ("// The plan is none\n// of ours.", [2]),
            ("auto x = 1;  // where there is none", [2]),
            ("auto x = 1;  // a\nauto y = 2;  // is none of it", [2]),
            ("// It is no plan.", [2]),
            ("// There is no plan; it is no longer there.", []),
            ("/// What is none.\nint x;", [1, 2]),
            ('auto x = "// is none";', []),
        ):
            self.write("compiler/a/a.h", text + "\n")
            listed = run(*check, "--list", "compiler/a", self.folder)
            self.assertEqual([int(line.split()[2][:-1]) for line in listed.stdout.splitlines()], rules, text)
        self.write("compiler/a/a.h", "// This is none.\n\n// Nor is that none.\n\n// It is no plan.\n")
        self.write("compiler/a/b/b.h", "// This is none.\n")
        for counts, returncode, message in (
            ("", 1, "compiler/a: 3 comments of a wrong shape, tools/comment_findings.txt allows 0"),
            ("compiler/a: 2", 1, "allows 2"),
            ("compiler/a: 3", 0, ""),
            ("compiler/a: 4\nruntime/a: 1", 0, "runtime/a: 0 of 1 comments of a wrong shape are left; lower the line"),
        ):
            self.write("tools/comment_findings.txt", f"# FOLDER: COUNT\n{counts}\n")
            result = run(*check, self.folder)
            self.assertEqual(result.returncode, returncode)
            self.assertIn(message, result.stdout)
        self.assertEqual(run(*check, "--update", self.folder).returncode, 0)
        self.assertEqual((self.folder / "tools/comment_findings.txt").read_text(), "# FOLDER: COUNT\ncompiler/a: 3\n")

    def test_commits(self):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        check = (sys.executable, ROOT / "tools" / "check_commits.py")
        self.assertIn("is not a clone", run(*check, self.folder).stdout)
        git = ("git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@localhost")
        run(*git, "init", "--quiet")
        run(*git, "commit", "--quiet", "--allow-empty", "--message", "What was there before the rule")
        first = run(*git, "rev-parse", "HEAD").stdout.strip()
        self.assertIn("does not reach back to", run(*check, self.folder).stdout)
        for subject, message in {
            "Add a check": "",
            "Add " + "a" * 68: "",
            "Add " + "a" * 69: "73 characters, 72 at most",
            "Added a check": "`Added` is not a verb",
            "The check is new": "`The` is not a verb",
        }.items():
            run(*git, "commit", "--quiet", "--allow-empty", "--message", subject)
            result = run(*check, self.folder, first)
            self.assertEqual(result.returncode, 1 if message else 0, subject)
            self.assertIn(message, result.stdout)
            if message:
                run(*git, "reset", "--quiet", "--hard", "HEAD~")
        # In a whole clone of this repository the commit is there.
        if (ROOT / ".git").exists() and run("git", "-C", ROOT, "rev-parse", "--is-shallow-repository").stdout == "false\n":
            self.assertNotIn("skipped", run(*check, ROOT).stdout)

    def test_slow_tests(self):
        self.write("tests/a/a.cpp", "TEST(A, Quick) {}\nTEST_F(A, Long) {}\nTEST_P(B, OfMany) {}\n")
        self.write("tests/a/b_slow.cpp", "TEST(C, Rounds) {}\n")
        check = (sys.executable, ROOT / "tools" / "check_slow_tests.py", self.folder)
        for patterns, message in {
            "# a\nA.Long\n*/B.OfMany/*\n*/large\nC.*\n": "",
            "C.*\nA.Lnog\n": "A.Lnog fits no test",
            "C.*\nB.OfMany\n": "B.OfMany fits no test",
            "C.*\nA.Long\nA.Long\n": "A.Long stands there twice",
            "A.Long\n": "C.Rounds, of a file *_slow.cpp, is missing",
            "C.*\nA.*\n*/B.OfMany/*\n": "of tests/a nothing is quick",
        }.items():
            self.write("tests/slow.txt", patterns)
            result = run(*check)
            self.assertEqual(result.stdout, message and f"tests/slow.txt: {message}\n")
            self.assertEqual(result.returncode, 1 if message else 0)

    def test_top_level(self):
        self.write("notes.txt", "")
        result = run(sys.executable, ROOT / "tools" / "check_top_level.py", self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("notes.txt: does not belong", result.stdout)
        self.assertIn("README.md: is missing", result.stdout)

    def test_loops_that_share_a_function(self):
        for text, message in {
            "auto First(float* x, long) -> void { x[0] = 0; }": None,
            "auto Sort(float* x, long n) -> void { std::sort(x, x + n); }": "defines void std::",
            "inline auto Twice(float x) -> float { return 2 * x; } auto First(float* x) -> void { x[0] = Twice(x[1]); }": None,
            "} auto Outside(float* x) -> void { x[0] = 0; } namespace avx512 { int count; ": "defines shardc::Outside(float*)",
            "": "no symbol of shardc::avx512",
        }.items():
            include = "#include <algorithm>\n" if "std::" in text else ""
            self.write("loop.cpp", f"{include}namespace shardc {{ namespace avx512 {{ {text} }} }}\n")
            loop = self.folder / "loop.o"
            self.assertEqual(run("c++", "-std=c++20", "-O2", "-c", self.folder / "loop.cpp", "-o", loop).returncode, 0)
            result = run(sys.executable, ROOT / "tools" / "check_loops.py", "avx512", "Avx512Loops", loop)
            self.assertEqual(result.returncode, 0 if message is None else 1, result.stdout + result.stderr)
            self.assertIn(message or "", result.stdout)

    def test_search_paths(self):
        check = (sys.executable, ROOT / "tools" / "check_search_paths.py", self.folder / "a", "--also", self.folder / "b")
        self.assertEqual(run(*check).returncode, 1, "no program")
        library = self.folder / "a/lib/liba.so"
        library.parent.mkdir(parents=True)
        outside = self.folder / "ab"
        for option, fault in {
            "-rpath,$ORIGIN/../lib:${ORIGIN}/deep": "",
            f"-rpath,{self.folder}/b/lib": "",
            "-rpath,::::": "the entry `` is relative",
            "-rpath,$ORIGIN:": "the entry `` is relative",
            "--disable-new-dtags,-rpath,lib": "the entry `lib` is relative",
            "-rpath,$ORIGIN/../../torch/lib": "the entry `$ORIGIN/../../torch/lib` lies outside",
            f"-rpath,{outside}": f"the entry `{outside}` lies outside",
            "-soname,./libb.so": "",
        }.items():
            linked = run("cc", "-shared", "-x", "c", "/dev/null", "-o", library, f"-Wl,{option}")
            self.assertEqual(linked.returncode, 0, linked.stderr)
            result = run(*check)
            self.assertEqual((result.returncode, fault in result.stdout), (1 if fault else 0, True), f"{option}: {result.stdout}")
        linked = run("cc", "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", library, "-o", self.folder / "a/libc.so")
        self.assertEqual(linked.returncode, 0, linked.stderr)
        self.assertIn("libc.so: it needs ./libb.so, a path", run(*check).stdout)

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
        self.write("phases.txt", "build 80 100 20\ntests 30.5 40 5\nother 1 1 0\n")
        result = run(sys.executable, self.folder / "tools/test_times.py", "--phases", self.folder / "phases.txt", "90",
                     self.folder / "times")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("      80           120        100  build +20 %\n      30            45         50  tests -10 %\n", result.stdout)
        self.assertIn("       1             1             other\n      90           166             whole run\n", result.stdout)

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
            "test-package --torch": "test-package: --torch needs a folder",
            "nonesuch": "",
        }.items():
            result = run(self.folder / "tools" / "dev", *arguments.split())
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr.startswith(f"tools/dev {message}" if message else "usage: "), result.stderr)
            self.assertIn(f"  {arguments.split()[0]} " if message else "  quickstart ", result.stderr)
            self.assertNotIn("+ ", result.stderr)

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

    def test_metrics_to_tensorboard(self):
        self.write("run/metrics.jsonl", """{"step":300,"loss":2.5,"lr":null,"skipped":"spike","time":"2026-11-23T00:00:01Z"}
            {"step":301,"eval_loss":1.25}""")
        result = run(sys.executable, ROOT / "tools" / "metrics_to_tensorboard.py", self.folder / "run", self.folder / "log")
        self.assertEqual(result.returncode, 0, result.stderr)
        (path,) = (self.folder / "log").iterdir()
        data = path.read_bytes()
        records = []
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            records.append(data[12 : 12 + size])
            data = data[16 + size :]
        self.assertEqual(records[0], b"\x1a\x0dbrain.Event:2")
        # 300 is 0xac 0x02 in protobuf; one value, as null and the word are no numbers.
        time = struct.pack("<d", 1795392001)
        loss = b"\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 2.5)
        self.assertEqual(records[1], b"\x09" + time + b"\x10\xac\x02\x2a\x0d" + loss)
        self.assertIn(b"eval_loss\x15" + struct.pack("<f", 1.25), records[2])
        # The check sums of the first record, which TensorBoard itself has accepted.
        self.assertEqual(path.read_bytes()[:31].hex(), "0f000000000000006d532b091a0d627261696e2e4576656e743a32fc985129")

    def test_metrics_to_tensorboard_without_a_run(self):
        for arguments in [], ["run"], ["missing", "log"]:
            result = run(sys.executable, ROOT / "tools" / "metrics_to_tensorboard.py", *arguments)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^usage: metrics_to_tensorboard\.py RUN_FOLDER LOG_FOLDER; .*\n$")

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


if __name__ == "__main__":
    unittest.main()
