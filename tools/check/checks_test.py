"""Tests of the checks of sources: each breaks something and expects to be told. Run by ctest."""

import pathlib
import shutil
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import global_state  # noqa: E402
from script_test import ROOT, ScriptTest, run  # noqa: E402


class ChecksTest(ScriptTest):
    def test_words(self):
        self.write("schemas/recipe_values.def", 'WORDS(Fruit)\nWORD(Plum, "plum")\nLATER("fig")\nEND_WORDS(Fruit)\n')
        words = """
            #define WORDS(Enum) enum class Enum {
            #define WORD(Name, word) Name,
            #define END_WORDS(Enum) };
            #include "schemas/recipe_values.def"
            """
        check = (sys.executable, ROOT / "tools" / "check" / "words.py", "c++", self.folder)
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
        check = (sys.executable, ROOT / "tools" / "check" / "words.py", "c++", self.folder)
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
        check = (sys.executable, ROOT / "tools" / "check" / "format.py", self.folder, self.folder)
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

    def layers_check(self, layers: str | None = None) -> tuple:
        """The command, with the rows `layers`, those of this repository if None, and no row of circles."""
        self.write("tools/layers.txt", (ROOT / "tools" / "layers.txt").read_text() if layers is None else layers)
        self.write("tools/check/circles.txt", "")
        return sys.executable, ROOT / "tools" / "check" / "layers.py", self.folder

    def test_layers(self):
        self.write("compiler/plan/plan.h", '#include "compiler/base/ids.h"\n')
        self.write("compiler/base/ids.h", "#include <vector>\n")
        check = self.layers_check()
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

    def test_layers_of_every_kind_of_source(self):
        check = self.layers_check("compiler/a:\nruntime/b: compiler/a\n")
        self.write("runtime/b/b.h", "")
        for path, fault in (("a.h", 1), ("a.cpp", 1), ("a.cu", 1), ("a.def", 1), ("a.txt", 0)):
            self.write(f"compiler/a/{path}", '#include "runtime/b/b.h"\n')
            result = run(*check)
            self.assertEqual(("compiler/a may not include runtime/b" in result.stdout, result.returncode), (fault, fault), path)
            (self.folder / "compiler/a" / path).unlink()

    def test_circles(self):
        check = self.layers_check("compiler/a:\nruntime/b: compiler/a\n")

        def include(path, *headers):
            self.write(path, "".join(f'#include "{header}"\n' for header in headers))

        def judge(rows, *texts):
            self.write("tools/check/circles.txt", rows)
            result = run(*check)
            self.assertEqual(result.returncode, 1 if texts else 0, result.stdout)
            for text in texts or ("every circle is known\n",):
                self.assertIn(text, result.stdout)

        # The headers alone make no circle: a source does, of C++ or of CUDA.
        include("compiler/a/one.h", "compiler/a/two.h")
        include("compiler/a/two.h", "compiler/a/three.h")
        include("compiler/a/three.h")
        include("compiler/a/out.cpp", "compiler/a/one.h")
        judge("")
        for suffix in "cpp", "cu":
            include(f"compiler/a/three.{suffix}", "compiler/a/three.h", "compiler/a/one.h")
            judge("", "compiler/a: one three two: a new circle of 3 rooms; cut one of its arrows\n"
                      "  compiler/a/one.h:1 includes compiler/a/two\n"
                      "  compiler/a/two.h:1 includes compiler/a/three\n"
                      f"  compiler/a/three.{suffix}:2 includes compiler/a/one\n")
            (self.folder / f"compiler/a/three.{suffix}").unlink()
        include("compiler/a/three.cpp", "compiler/a/one.h")
        judge("# They are one.\ncompiler/a: two one three  # why\n")
        judge("compiler/a one two three\n", "circles.txt:1: not a row: compiler/a one two three", "a new circle")
        # A circle that grows is a new one, and the row of the smaller one is stale.
        judge("compiler/a: one two\n", "a new circle of 3 rooms", "circle is no longer in the code; delete `compiler/a: one two` there")
        # A circle that shrinks, or falls into two.
        row = "compiler/a: one three two"
        include("compiler/a/two.h", "compiler/a/one.h")
        judge(row, f"write `compiler/a: one two` there in the place of `{row}`")
        four = "compiler/a: four one three two"
        include("compiler/a/three.cpp", "compiler/a/four.h")
        include("compiler/a/four.h", "compiler/a/three.h")
        judge(four, f"write `compiler/a: four three` and `compiler/a: one two` there in the place of `{four}`")
        include("compiler/a/two.h")
        include("compiler/a/four.h")
        judge(four, f"circles.txt: this circle is no longer in the code; delete `{four}` there")
        judge("")
        # Folders in folders: the row names the rooms from the folder that holds them all.
        include("compiler/a/four.h", "compiler/a/deep/deep.h")
        include("compiler/a/deep/deep.h", "compiler/a/four.h")
        judge("compiler/a: deep/deep four\n")

    def test_folders_in_folders(self):
        check = self.layers_check("compiler/a:\n")
        for header in "one", "two", "three":
            self.write(f"compiler/a/in/{header}.h", "")
        self.write("compiler/a/x.cpp", '#include "compiler/a/in/one.h"\n')
        self.write("compiler/a/y.h", '#include "compiler/a/in/one.h"\n')
        self.write("compiler/a/beside/z.h", '#include "compiler/a/in/two.h"\n')
        self.assertEqual(run(*check).returncode, 0)
        row = "compiler/a -> compiler/a/in: one.h two.h"
        for header, rows, message in (
            ("two", "", "compiler/a includes 2 headers of compiler/a/in, a folder in it; one is allowed; new: compiler/a/in/one.h, "
                        "compiler/a/in/two.h"),
            ("two", row, ""),
            ("three", row, "one is allowed; new: compiler/a/in/three.h"),
            ("two", row + " three.h", f"write `{row}` there in the place of `{row} three.h`"),
            ("one", row, f"compiler/a includes one header of compiler/a/in at most; delete `{row}` there"),
        ):
            self.write("compiler/a/y.h", f'#include "compiler/a/in/{header}.h"\n')
            self.write("tools/check/circles.txt", rows + "\n")
            result = run(*check)
            self.assertEqual(result.returncode, 1 if message else 0, result.stdout)
            self.assertIn(message, result.stdout)

    def test_device_bodies_are_known_to_few(self):
        self.write("runtime/device/cpu/cpu_device.h", "")
        check = self.layers_check()
        for path, may in {
            "runtime/device/cpu/a.cpp": True,
            "runtime/kernels/machine/a.cpp": True,
            "runtime/kernels/cpu/a.cpp": False,
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
        check = (sys.executable, ROOT / "tools" / "check" / "op_types.py", self.folder)
        rows = {file: f"{file}: {count}  a reason" for file, count in places.items()}
        self.write("tools/check/op_types.txt", "\n".join(rows.values()))
        self.assertEqual(run(*check).stdout, f"{sum(places.values())} places ask which op they have, of 30 at most\n")
        self.write("tools/check/op_types.txt", "")
        wanted = {f"{file}: {count} places ask" for file, count in places.items() if count > 0}
        self.assertEqual({line.split(" which")[0] for line in run(*check).stdout.splitlines()}, wanted)
        self.write("tools/check/op_types.txt", "\n".join((rows | {"a.h": "a.h: 31  a reason"}).values()))
        result = run(*check)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.h: 0 places ask which op they have, tools/check/op_types.txt allows 31", result.stdout)
        self.assertIn("places, more than 30", result.stdout)

    def test_types(self):
        def text(body):
            return "namespace shardc {\n\n" + body + "\n}  // namespace shardc\n"

        check = (sys.executable, ROOT / "tools" / "check" / "type_names.py", self.folder)
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
        self.write("tools/check/headers.txt", (ROOT / "tools" / "check" / "headers.txt").read_text())
        check = (sys.executable, ROOT / "tools" / "check" / "includes.py", self.folder)
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
            ("auto x = std::frobnicate(y);", "1: std::frobnicate is not in tools/check/headers.txt: add it to the row of its header"),
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
        check = (sys.executable, ROOT / "tools" / "check" / "comments.py")
        self.write("tools/check/comment_findings.txt", "# FOLDER: COUNT\n")
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
            ("", 1, "compiler/a: 3 comments of a wrong shape, tools/check/comment_findings.txt allows 0"),
            ("compiler/a: 2", 1, "allows 2"),
            ("compiler/a: 3", 0, ""),
            ("compiler/a: 4", 1, "compiler/a: 3 comments of a wrong shape, tools/check/comment_findings.txt allows 4; "
                                 "write `compiler/a: 3` there, or run"),
            ("compiler/a: 3\nruntime/a: 1", 1, "allows 1; delete the line of runtime/a there, or run"),
            ("compiler/a: 4\nruntime/a: 1", 1, "write `compiler/a: 3` there"),
        ):
            self.write("tools/check/comment_findings.txt", f"# FOLDER: COUNT\n{counts}\n")
            result = run(*check, self.folder)
            self.assertEqual(result.returncode, returncode)
            self.assertIn(message, result.stdout)
        self.assertEqual(run(*check, "--update", self.folder).returncode, 0)
        self.assertEqual((self.folder / "tools/check/comment_findings.txt").read_text(), "# FOLDER: COUNT\ncompiler/a: 3\n")
        for folder, returncode, lines in (("compiler/a", 0, 3), ("compiler/a/", 0, 3), ("compiler/a/b", 2, 0), ("absent", 2, 0)):
            result = run(*check, "--list", folder, self.folder)
            self.assertEqual((result.returncode, len(result.stdout.splitlines())), (returncode, lines), folder)
            self.assertIn("are not counted; folders are compiler/a" if returncode else "", result.stderr)

    def test_commits(self):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        check = (sys.executable, ROOT / "tools" / "check" / "commits.py")
        self.assertIn("is not a clone", run(*check, self.folder).stdout)
        git = ("git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@localhost")
        run(*git, "init", "--quiet")
        run(*git, "commit", "--quiet", "--allow-empty", "--message", "What was there before the rule")
        first = run(*git, "rev-parse", "HEAD").stdout.strip()
        for commit in (), ("nonesuch",):
            result = run(*check, self.folder, *commit)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, "^the history of .* does not reach back to")
            self.assertIn("fatal: ", result.stdout)
        run(*git, "commit", "--quiet", "--allow-empty", "--message", "Add a check")
        run("git", "clone", "--quiet", "--depth", "1", f"file://{self.folder}", self.folder / "shallow")
        result = run(*check, self.folder / "shallow", first)
        self.assertEqual(result.returncode, 0)
        self.assertIn("skipped: the history of", result.stdout)
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
        check = (sys.executable, ROOT / "tools" / "check" / "slow_tests.py", self.folder)
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

    def test_json_parse(self):
        check = (sys.executable, ROOT / "tools" / "check" / "json_parse.py", self.folder)
        self.write("compiler/base/json_reader.cpp", "json::sax_parse(text, &builder);\n")
        self.write("compiler/a/a.cpp", "const auto json = ParseJson(text, code);\n")
        self.assertEqual(run(*check).returncode, 0)
        self.write("runtime/b/b.cpp", "\nauto value = nlohmann::ordered_json::parse(text, nullptr, false);\n")
        result = run(*check)
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stdout.startswith("runtime/b/b.cpp:2: parses JSON without a limit of its depth; call ParseJson"))

    def test_global_state(self):
        check = (sys.executable, ROOT / "tools" / "check" / "global_state.py", self.folder)
        head = "| file | variables | reason |\n|---|---|---|\n"
        for text, name in (
            # Of a namespace.
            ("int count = 0;", "count"),
            ("static std::atomic<int64_t> count{1};", "count"),
            ("std::map<int, std::function<auto()->int>> count;", "count"),
            ("std::optional<const Api*> table;", "table"),
            ("static struct sigaction action_before {};", "action_before"),
            ('const char* name = "const";', "name"),
            ("const char* const name = nullptr;", ""),
            ("static const std::vector<int> rows{1};", ""),
            ("inline constexpr int Most = 4;", ""),
            ("extern int elsewhere;", ""),
            ("int counts[2][3];", "counts"),
            ("static std::array<const Parts*, NumFamilies>\n    parts_of_families{};", "parts_of_families"),
            # Of a class, of a function.
            ("struct A {\n  inline static int count = 0;\n  int member = 0;\n};", "count"),
            ("auto F() -> int {\n  static thread_local bool is_set = false;\n  int local = 0;\n}", "is_set"),
            ("auto F() -> A& {\n  static A a;\n  return a;\n}", "a"),
            ("auto F() -> A& {\n  static const A a = [] { return A(); }();\n}", ""),
            ("  static thread_local std::map<decltype(KeyOf(a)), int> of_thread;", "of_thread"),
            ("auto F(const A& a) -> int;\nstatic auto G(int a = 0) -> int {", ""),
            ("static void Handle(int signal) {", ""),
            ("static __global__ void __launch_bounds__(Threads)\n    Fill(int a) {", ""),
            ("  extern __shared__ char shared[];", ""),
            ("using A = int;\nnamespace a = b;\nstruct B;\ntemplate <class T>\nconcept C = true;", ""),
            ("// static int count = 0;\nstatic_assert(true);", ""),
        ):
            self.assertEqual(global_state.state_of(text + "\n"), {name} if name else set(), text)
        self.write("runtime/a/a.cu", "static int first = 0;\n")
        for row, message in (
            ("| `runtime/a/a.cu` | `first` | it counts |", ""),
            ("| `runtime/a/a.cu` | `first`, `second` | they count |", "`second` of runtime/a/a.cu is no global state there"),
            ("| `runtime/a/b.cu` | `first` | it counts |", "`first` of runtime/a/b.cu is no global state there"),
            ("| `runtime/a/a.cu` | `first` | |", "runtime/a/a.cu: `first` is global state"),
        ):
            self.write("docs/non_goals.md", head + row + "\n")
            result = run(*check)
            self.assertEqual(result.returncode, 1 if message else 0, row)
            self.assertIn(message or "1 variables of 1 files", result.stdout)

    def test_pages(self):
        check = (sys.executable, ROOT / "tools" / "check" / "pages.py", self.folder)
        self.write("docs/architecture.md", "`compiler/a`, `compiler/a/in`, `runtime/a`")
        self.write("compiler/a/in/one.h", "")
        self.write("schemas/rows.def", "// Read by compiler/a/in/one.h.\n")
        for text, path in (
            ("See compiler/a/in/one.h, schemas/rows.def.", ""),
            ("See `a/in/one.h`, `in/one.h` and `compiler/a/in`.", ""),
            ("See compiler/a/in/two.h.", "compiler/a/in/two.h"),
            ("See `in/two.h`, and `n/one.h`.", "in/two.h is not there\nREADME.md:2: n/one.h"),
            ("See compiler/in/one.h.", "compiler/in/one.h"),
            ("As in `compiler/a/x.cpp`, `compiler/a/<mnemonic>.cpp`, and/or one.h.", ""),
            ("Of another project: https://example.org/docs/two.md, their/compiler/two.h.", ""),
            ("Its tests are tests/a/two.cpp.", "tests/a/two.cpp"),
        ):
            self.write("README.md", f"# A\n{text}\n")
            result = run(*check)
            self.assertEqual(result.stdout, f"README.md:2: {path} is not there\n" if path else "every path leads to a file, and every folder has a name\n")
            self.assertEqual(result.returncode, 1 if path else 0)
        self.write("README.md", "")
        self.write("runtime/a/a.cu", "// As compiler/a/two.h and in/two.h have it.\n")
        self.assertEqual(run(*check).stdout, "runtime/a/a.cu:1: compiler/a/two.h is not there\n")

    def test_folders_of_the_architecture(self):
        check = (sys.executable, ROOT / "tools" / "check" / "pages.py", self.folder)
        for path in ("README.md", "compiler/a/in/deep/one.h", "compiler/b/two.cpp", "runtime/c/three.cu", "runtime/CMakeLists.txt"):
            self.write(path, "")
        rows = "| `compiler/a` | `in/` |\n| `compiler/b` | b |\n"
        for text, fault in (
            (rows + "`runtime/c`", ""),
            (rows.replace("`in/`", "in") + "`runtime/c`, `compiler/a/in`", ""),
            (rows, "it does not name runtime/c"),
            (rows.replace("`in/`", "in") + "`runtime/c`", "it does not name compiler/a/in"),
            (rows + "`runtime/c`\n| `runtime/d` | d |", "runtime/d has a row and is not there"),
        ):
            self.write("docs/architecture.md", text + "\n")
            result = run(*check)
            self.assertEqual(result.stdout, f"docs/architecture.md: {fault}\n" if fault else
                             "every path leads to a file, and every folder has a name\n")

    def test_decisions(self):
        check = (sys.executable, ROOT / "tools" / "check" / "decisions.py", self.folder)
        good = "# 0001: a thing\n\nStatus: accepted, 2026-11-27.\n\n**Decided.** It.\n\n**Why c10d.** So.\n\n**Cost.** None.\n"
        other = "docs/decisions/0002-b.md"
        self.write(other, good.replace("0001", "0002"))
        for old, new, message in (
            ("", "", ""),
            ("accepted", "superseded by [0002](0002-b.md)", ""),
            ("**Cost.** None.", "**Not measured.** A.\n\n**Not done.** B.", ""),
            ("# 0001: a", "# A", "0001-a.md:1: the title is `# A thing`"),
            ("0001", "0002", "0001-a.md:1: the title is"),
            ("Status: accepted, 2026-11-27.\n\n", "", "0001-a.md:3: expected `Status: accepted"),
            ("2026-11-27.", "yesterday.", "0001-a.md:3: expected `Status: accepted"),
            ("accepted", "superseded by [0003](0003-c.md)", "0001-a.md:3: 0003-c.md is no later decision"),
            ("accepted", "superseded by [0001](0001-a.md)", "0001-a.md:3: 0001-a.md is no later decision"),
            ("**Decided.**", "**Decision.**", "the first paragraph does not begin with **Decided.**"),
            ("**Why c10d.**", "Why:", "no paragraph begins with **Why.**"),
            ("**Cost.** None.", "", "after **Why.** no paragraph begins with **Cost.**, **What follows.**, **Not done.**"),
        ):
            self.write("docs/decisions/0001-a.md", good.replace(old, new))
            result = run(*check)
            self.assertEqual(result.returncode, 1 if message else 0, result.stdout)
            self.assertIn(message, result.stdout)
        self.write("docs/decisions/0001-a.md", good)
        (self.folder / other).rename(self.folder / "docs/decisions/0003-b.md")
        self.assertIn("0003-b.md: expected 0002-words-of-the-title.md", run(*check).stdout)

    def test_top_level(self):
        check = (sys.executable, ROOT / "tools" / "check" / "top_level.py", self.folder)
        self.write("notes.txt", "")
        result = run(*check)
        self.assertEqual(result.returncode, 1)
        self.assertIn("notes.txt: does not belong", result.stdout)
        self.assertIn("README.md: is missing", result.stdout)
        (self.folder / "notes.txt").unlink()
        for name in ("compiler", "runtime", "schemas", "recipes", "tests", "tools", "docs", "build-debug", ".git"):
            (self.folder / name).mkdir()
        for name in ("CMakeLists.txt", "README.md"):
            self.write(name, "")
        self.assertEqual(run(*check).returncode, 0)
        # The folder of findings may be there.
        self.write("findings/first.md", "")
        self.assertEqual(run(*check).returncode, 0)

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
            result = run(sys.executable, ROOT / "tools" / "check" / "loops.py", "avx512", "Avx512Loops", loop)
            self.assertEqual(result.returncode, 0 if message is None else 1, result.stdout + result.stderr)
            self.assertIn(message or "", result.stdout)

    def test_search_paths(self):
        check = (sys.executable, ROOT / "tools" / "check" / "search_paths.py", self.folder / "a", "--also", self.folder / "b")
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


if __name__ == "__main__":
    unittest.main()
