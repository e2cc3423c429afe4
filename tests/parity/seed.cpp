// Runs that begin from another run's parameters: loaded, or made of them by rules. Equal to what a program in Python
// makes of the checkpoint's files, on every mesh and in both types, and to the bit; whatever mesh wrote the checkpoint.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/plan/init_rule.h"
#include "runtime/launch/launch.h"
#include "tests/parity/begun_parameters.h"
#include "tests/parity/compare.h"
#include "tests/parity/odd_model.h"
#include "tests/support/compile_recipe.h"
#include "tests/support/kernel_fixture.h"
#include "tests/support/random_page.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using Sets = std::vector<std::string>;

/// Without [model], [start] and rules.
constexpr std::string_view SeedSettings = R"toml(
[init]
seed = 3
scheme = "torch-default"
[optimizer]
lr = 0.01
[data]
tokens = ["tokens.u16"]
format = "u16"
[batch]
micro = 3
[train]
steps = 3
[run]
threads = 1
[[loss.head]]
name = "zero"
vocab = 64
targets = ["targets.u16"]
)toml";

const std::string SourceModel = OddModel(102, 257, 34);

/// A block more, a larger vocabulary, and rules that make of the source's parameters: a branch from its twin, permuted,
/// cut out, transposed, normalised by row, mixed, larger with fill, zeroed.
const std::string Grown = OddModel(102, 300, 34, 4) + R"toml(
[[init.rule]]
match = "model.embed_tokens.weight"
value = "if index(0) < 257 then seed('model.embed_tokens.weight', index(0), index(1)) else normal(0, 0.5)"
[[init.rule]]
match = "lm_head.weight"
value = "if index(0) < vocab - 43 then seed('lm_head.weight', index(0), index(1)) else seed('model.norm.weight', index(1))"
[[init.rule]]
match = "heads.zero.weight"
value = "zeros()"
[[init.rule]]
match = "model.layers.0.self_attn.v_proj.weight"
value = "let x = seed('model.layers.0.self_attn.v_proj.weight') in x / row_norm(x)"
[[init.rule]]
match = "model.layers.3.*norm.weight"
value = "copy('model.layers.{layer - 1}.input_layernorm.weight')"
[[init.rule]]
match = "model.layers.3.self_attn.q_proj.weight"
value = "copy('model.layers.{layer - 1}.self_attn.q_proj.weight')"
[[init.rule]]
match = "model.layers.3.self_attn.k_proj.weight"
value = "copy('model.layers.0.self_attn.q_proj.weight', index(0) + 12, index(1))"
[[init.rule]]
match = "model.layers.3.self_attn.v_proj.weight"
value = "seed('model.layers.1.self_attn.v_proj.weight')"
# [out, channel, y, x] becomes [out, y, x, channel], of 12 channels and 2 x 2 places.
[[init.rule]]
match = "model.layers.3.self_attn.o_proj.weight"
value = "let channel = index(1) % 12 in let place = floor(index(1) / 12) in copy('model.layers.1.self_attn.o_proj.weight', index(0), 4 * channel + place)"
[[init.rule]]
match = "model.layers.3.mlp.up_proj.weight"
value = "copy('model.layers.0.mlp.down_proj.weight', index(1), index(0))"
[[init.rule]]
match = "model.layers.3.mlp.gate_proj.weight"
value = "let x = copy('model.layers.1.mlp.gate_proj.weight') in x / row_norm(x)"
[[init.rule]]
match = "model.layers.3.mlp.down_proj.weight"
value = "0.5 * copy('model.layers.3.mlp.up_proj.weight', index(1), index(0)) + copy('model.layers.2.mlp.down_proj.weight') / 2"
)toml";

constexpr std::string_view GrownFirst =
    R"(missing = ["model.layers.3.*", "model.embed_tokens.weight", "lm_head.weight", "heads.zero.weight", "model.layers.0.self_attn.v_proj.weight"], unused = ["heads.*"])";

/// The same in Python, from the files: SEED, kept in bf16 or not; IS_GROWN: not of the same sizes.
constexpr std::string_view SeedReference = R"python(
import json, os, re, struct

def bf16(v):
    n = bits(f32(v))
    return from_bits((n + 0x7FFF + (n >> 16 & 1)) & 0xFFFF0000)

keep = bf16 if IS_BF16 else f32
manifest = json.load(open(os.path.join(SEED, "manifest.json")))
files = {}
for name in manifest["files"]:
    data = open(os.path.join(SEED, name), "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    files[name] = json.loads(data[8:8 + size]), data[8 + size:]

def saved(name):
    tensor = manifest["tensors"][name]
    rows, columns = tensor["shape"] if len(tensor["shape"]) == 2 else (1, tensor["shape"][0])
    flat = [None] * (rows * columns)
    for header, data in files.values():
        if name not in header:
            continue
        # "[256, 305) of [61, 5]", or with "of columns [0, 66)" before the shape.
        numbers = [int(n) for n in re.findall(r"\d+", header["__metadata__"]["elements of " + name].rpartition(" of ")[0])]
        begin, end = header[name]["data_offsets"]
        if header[name]["dtype"] == "F32":
            values = struct.unpack("<%df" % ((end - begin) // 4), data[begin:end])
        else:
            words = struct.unpack("<%dH" % ((end - begin) // 2), data[begin:end])
            values = [from_bits(word << 16) for word in words]
        first, last = numbers[2:] or (0, columns)
        width = last - first
        for i, value in enumerate(values, numbers[0]):
            flat[i // width * columns + first + i % width] = value
    assert None not in flat
    return [flat[r * columns:(r + 1) * columns] for r in range(rows)]

def kept(rows):
    return [[keep(v) for v in row] for row in rows]

def loaded(name):
    return kept(saved(name))

def transposed(rows):
    return [list(column) for column in zip(*rows)]

def normalised(row):
    squares = 0.0
    for v in row:
        squares += v * v
    return [v / math.sqrt(squares) for v in row]

def permuted(row):
    channels = [row[4 * c:4 * c + 4] for c in range(12)]
    return [channel[place] for place in range(4) for channel in channels]

layer = "model.layers.{}.{}.weight".format
fill = [[normal(symmetric(KEY, i * 60 + j, 0), 0, 0.5) for j in range(60)] for i in range(257, 300)]
up = loaded(layer(0, "mlp.down_proj"))
tensors = {
    "model.embed_tokens.weight": saved("model.embed_tokens.weight") + fill,
    "lm_head.weight": saved("lm_head.weight") + saved("model.norm.weight") * 43,
    "heads.zero.weight": [[0.0] * 60] * 64,
    layer(0, "self_attn.v_proj"): [normalised(row) for row in saved(layer(0, "self_attn.v_proj"))],
    layer(3, "input_layernorm"): loaded(layer(2, "input_layernorm")),
    layer(3, "post_attention_layernorm"): loaded(layer(2, "input_layernorm")),
    layer(3, "self_attn.q_proj"): loaded(layer(2, "self_attn.q_proj")),
    layer(3, "self_attn.k_proj"): loaded(layer(0, "self_attn.q_proj"))[12:36],
    layer(3, "self_attn.v_proj"): saved(layer(1, "self_attn.v_proj")),
    layer(3, "self_attn.o_proj"): [permuted(row) for row in loaded(layer(1, "self_attn.o_proj"))],
    layer(3, "mlp.up_proj"): transposed(up),
    layer(3, "mlp.gate_proj"): [normalised(row) for row in loaded(layer(1, "mlp.gate_proj"))],
    layer(3, "mlp.down_proj"): [[0.5 * a + b / 2 for a, b in zip(*rows)]
                                for rows in zip(up, loaded(layer(2, "mlp.down_proj")))],
}
for name in NAMES:
    for row in kept(IS_GROWN and tensors.get(name) or saved(name)):
        print(*map(repr, row))
)python";

class SeedParity : public testing::Test {
 protected:
  SeedParity() {
    const std::vector<int32_t> tokens = RandomTokens(4000, 11, 64);
    std::string bytes;
    for (const int32_t id : tokens) {
      bytes.push_back(static_cast<char>(id));
      bytes.push_back('\0');
    }
    WriteText(folder_ / "tokens.u16", bytes);
    WriteText(folder_ / "targets.u16", bytes);
  }

  auto CompileIn(const std::string& name, std::string_view model, std::string_view start, const Sets& sets) -> Plan {
    return CompileRecipe(folder_ / (name + ".toml"), fmt::format("{}{}{}", model, SeedSettings, start), sets).plan;
  }

  /// Trains the source to its end. The start section that begins from what it leaves; `more` goes with it.
  auto MakeSeed(const std::string& name, const Sets& sets, std::string_view more = "") -> std::string {
    const Plan plan = CompileIn(name, SourceModel, "", sets);
    const auto code = LaunchThreads(plan, {.run_dir = plan.run.run_dir}, RunRank);
    CHECK(code.ok() && *code == ExitCode::Ok);
    return fmt::format("[start]\nfirst = {{ seed = \"runs/{}/checkpoints/step-00000003\"{}{} }}\n", name,
                       more.empty() ? "" : ", ", more);
  }

  auto Begin(const Plan& plan, int64_t& drawn) -> NamedNumbers {
    return BegunParameters(plan, folder_ / "none", drawn);
  }

  auto FromPython(const Plan& plan, const NamedNumbers& like, bool is_grown) -> NamedNumbers {
    const auto key = RandomKey(3, "model.embed_tokens.weight");
    std::vector<std::string> names;
    for (const auto& [name, numbers] : like) {
      names.push_back(name);
    }
    const std::vector<float> values = FromRandomPage(
        fmt::format("SEED = '{}'\nIS_BF16 = {}\nIS_GROWN = {}\nKEY = ({}, {})\nNAMES = ['{}']\n{}", plan.seed.path,
                    plan.parameters.begin()->dtype == DType::BF16 ? "True" : "False", is_grown ? "True" : "False",
                    key[0], key[1], fmt::join(names, "', '"), SeedReference));
    NamedNumbers tensors;
    size_t at = 0;
    for (const auto& [name, numbers] : like) {
      const size_t size = std::min(numbers.size(), values.size() - at);
      tensors[name].assign(values.begin() + static_cast<std::ptrdiff_t>(at),
                           values.begin() + static_cast<std::ptrdiff_t>(at + size));
      at += size;
    }
    EXPECT_EQ(at, values.size());
    return tensors;
  }

  TemporaryFolder folder_;
};

const std::string InFp32 = "precision.master=fp32";
const std::string InBf16 = "precision.master=bf16";
const Sets SeedMeshes[] = {
    {}, {"mesh.dp=2"}, {"mesh.dp=3"}, {"mesh.dp=2", "mesh.tp=2"}, {"mesh.replicate=2", "mesh.dp=2"}};

TEST_F(SeedParity, ParametersAreThoseOfAProgramInPythonOnEveryMeshAndInBothTypes) {
  const std::string of_fp32 = MakeSeed("fp32", {InFp32, "mesh.dp=2", "mesh.tp=2"}, GrownFirst);
  const std::string of_bf16 = MakeSeed("bf16", {InBf16, "mesh.dp=3"}, GrownFirst);
  for (const auto& [start, master] : {std::pair(of_fp32, InFp32), std::pair(of_fp32, InBf16),
                                      std::pair(of_bf16, InFp32), std::pair(of_bf16, InBf16)}) {
    NamedNumbers expected;
    for (const Sets& mesh : SeedMeshes) {
      Sets sets = mesh;
      sets.push_back(master);
      SCOPED_TRACE(fmt::format("{}, {}", start, fmt::join(sets, ", ")));
      const Plan plan = CompileIn("grown", Grown, start, sets);
      int64_t drawn = 0;
      const NamedNumbers begun = Begin(plan, drawn);
      if (expected.empty()) {
        expected = FromPython(plan, begun, true);
      }
      EXPECT_TRUE(SameBits(begun, expected));
      int64_t generated = 0;
      for (const Parameter& parameter : plan.parameters) {
        const AxisSet parts = AxesSharing(Shared::State) | CutAxes(parameter, plan.mesh);
        const int64_t copies = plan.mesh.size(AxisSet::All().Without(parts));
        generated += LoadedTensorOf(parameter) ? 0 : parameter.num_elements() * copies;
      }
      EXPECT_EQ(drawn, generated);
    }
  }
}

TEST_F(SeedParity, AModelOfTheSameSizesIsLoadedWhole) {
  const std::string start = MakeSeed("source", {InFp32, "mesh.tp=2"});
  NamedNumbers expected;
  for (const Sets& mesh : SeedMeshes) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(mesh, ", ")));
    const Plan plan = CompileIn("same", SourceModel, start, mesh);
    int64_t drawn = -1;
    const NamedNumbers begun = Begin(plan, drawn);
    EXPECT_EQ(drawn, 0);
    if (expected.empty()) {
      expected = FromPython(plan, begun, false);
    }
    EXPECT_TRUE(SameBits(begun, expected));
  }
}

}  // namespace
}  // namespace shardc
