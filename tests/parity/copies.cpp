// Parameters that begin as copies of others: a branch from its twin, permuted, transposed, cut out, made larger,
// normalised by row. Equal to what a program in Python makes of whole tensors, on every mesh, and to the bit.
#include <gtest/gtest.h>

#include "compiler/plan/local_parameter.h"
#include "runtime/init/initial_values.h"
#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"
#include "tests/support/random_page.h"

namespace shardc {
namespace {

using Sets = std::vector<std::string>;

/// The last block is a copy of the one before it; a further head begins as the model's own and continues with values of
/// its own, another as zeros.
constexpr std::string_view CopiedTables = R"toml(
[[loss.head]]
name = "wide"
vocab = 300
targets = ["wide.u16"]
[[loss.head]]
name = "zero"
vocab = 64
targets = ["zero.u16"]
[[init.rule]]
match = "heads.wide.weight"
value = "if index(0) < vocab then copy('lm_head.weight', index(0), index(1)) else normal(0, 0.25)"
[[init.rule]]
match = "heads.zero.weight"
value = "zeros()"
[[init.rule]]
match = "model.layers.2.self_attn.q_proj.weight"
value = "copy('model.layers.{layer - 1}.self_attn.q_proj.weight')"
[[init.rule]]
match = "model.layers.2.mlp.gate_proj.weight"
value = "copy('model.layers.{layer - 1}.mlp.gate_proj.weight')"
[[init.rule]]
match = "model.layers.2.input_layernorm.weight"
value = "copy('model.layers.{layer - 1}.input_layernorm.weight')"
# [out, channel, y, x] becomes [out, y, x, channel], of 12 channels and 2 x 2 places.
[[init.rule]]
match = "model.layers.0.self_attn.o_proj.weight"
value = "let channel = index(1) % 12 in let place = floor(index(1) / 12) in copy('model.layers.1.self_attn.o_proj.weight', index(0), 4 * channel + place)"
[[init.rule]]
match = "model.layers.0.self_attn.k_proj.weight"
value = "copy('model.layers.0.self_attn.q_proj.weight', index(0) + 12, index(1))"
[[init.rule]]
match = "model.layers.0.mlp.up_proj.weight"
value = "copy('model.layers.0.mlp.down_proj.weight', index(1), index(0))"
[[init.rule]]
match = "model.layers.0.mlp.gate_proj.weight"
value = "let x = copy('model.layers.1.mlp.gate_proj.weight') in x / row_norm(x)"
)toml";

/// The same in Python, of whole tensors: lists of rows.
constexpr std::string_view Reference = R"python(
def drawn(name, rows, columns, std):
    return [[normal(symmetric(KEYS[name], i * columns + j, 0), 0, std) for j in range(columns)] for i in range(rows)]

layer = "model.layers.{}.{}.weight".format
head = drawn("lm_head.weight", 257, 60, 2 / math.sqrt(60))
out = drawn(layer(1, "self_attn.o_proj"), 60, 48, 1 / math.sqrt(48))
query = drawn(layer(0, "self_attn.q_proj"), 48, 60, 1 / math.sqrt(60))
twin = drawn(layer(1, "self_attn.q_proj"), 48, 60, 1 / math.sqrt(60))
gate = drawn(layer(1, "mlp.gate_proj"), 102, 60, 1 / math.sqrt(60))
down = drawn(layer(0, "mlp.down_proj"), 60, 102, 1 / math.sqrt(102))
fill = drawn("heads.wide.weight", 300, 60, 0.25)

def permuted(row):
    channels = [row[4 * c:4 * c + 4] for c in range(12)]
    return [channel[place] for place in range(4) for channel in channels]

def normalised(row):
    squares = 0.0
    for v in row:
        squares += v * v
    return [f32(v / math.sqrt(squares)) for v in row]

tensors = {
    "heads.wide.weight": head + fill[257:],
    "heads.zero.weight": [[0.0] * 60] * 64,
    layer(2, "self_attn.q_proj"): twin,
    layer(2, "mlp.gate_proj"): gate,
    layer(0, "self_attn.o_proj"): [permuted(row) for row in out],
    layer(0, "self_attn.k_proj"): query[12:36],
    layer(0, "mlp.up_proj"): [list(column) for column in zip(*down)],
    layer(0, "mlp.gate_proj"): [normalised(row) for row in gate],
}
for name in NAMES:
    for row in tensors[name]:
        print(*map(repr, row))
)python";

constexpr const char* Copied[] = {
    "heads.wide.weight",
    "heads.zero.weight",
    "model.layers.2.self_attn.q_proj.weight",
    "model.layers.2.mlp.gate_proj.weight",
    "model.layers.0.self_attn.o_proj.weight",
    "model.layers.0.self_attn.k_proj.weight",
    "model.layers.0.mlp.up_proj.weight",
    "model.layers.0.mlp.gate_proj.weight",
};

auto CaseOf(std::string name, Sets sets) -> TrainingCase {
  sets.insert(sets.end(), {"model.ffn=102", "model.seq=34"});
  return {.name = std::move(name), .sets = std::move(sets), .tables = std::string(CopiedTables)};
}

/// Of what is copied; `like` has the sizes.
auto FromPython(const NamedNumbers& like) -> NamedNumbers {
  std::string program = "KEYS = {\n";
  for (const char* source : {"lm_head.weight", "heads.wide.weight", "model.layers.1.self_attn.o_proj.weight",
                             "model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.q_proj.weight",
                             "model.layers.1.mlp.gate_proj.weight", "model.layers.0.mlp.down_proj.weight"}) {
    const auto key = RandomKey(3, source);
    program += fmt::format("    '{}': ({}, {}),\n", source, key[0], key[1]);
  }
  program += fmt::format("}}\nNAMES = ['{}']\n{}", fmt::join(Copied, "', '"), Reference);
  const std::vector<float> values = FromRandomPage(program);
  NamedNumbers tensors;
  size_t at = 0;
  for (const char* name : Copied) {
    const size_t size = std::min(like.at(name).size(), values.size() - at);
    tensors[name].assign(values.begin() + static_cast<std::ptrdiff_t>(at),
                         values.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  }
  EXPECT_EQ(at, values.size());
  return tensors;
}

TEST(Copies, AreThoseOfWholeTensorsInPython) {
  const TrainingRun run = RunTraining(CaseOf("one rank", {}));
  for (const auto& [name, expected] : FromPython(run.initial)) {
    EXPECT_TRUE(SameBits(run.initial.at(name), expected)) << name;
  }
  EXPECT_TRUE(SameBits(run.initial.at("model.layers.2.input_layernorm.weight"),
                       run.initial.at("model.layers.1.input_layernorm.weight")));
  EXPECT_FALSE(SameBits(run.initial.at("model.layers.2.self_attn.o_proj.weight"),
                        run.initial.at("model.layers.1.self_attn.o_proj.weight")));
}

TEST(Copies, AreTheSameBitsOnEveryMesh) {
  for (const char* master : {"precision.master=fp32", "precision.master=bf16"}) {
    const TrainingRun one = RunTraining(CaseOf("one rank", {master}));
    for (const Sets& mesh : std::vector<Sets>{{"mesh.dp=2"},
                                              {"mesh.dp=3"},
                                              {"mesh.dp=4"},
                                              {"mesh.tp=2"},
                                              {"mesh.dp=2", "mesh.tp=2"},
                                              {"mesh.replicate=2", "mesh.dp=2"}}) {
      Sets sets = mesh;
      sets.emplace_back(master);
      const std::string name = fmt::format("{}", fmt::join(sets, ", "));
      EXPECT_TRUE(SameBits(one.initial, RunTraining(CaseOf(name, sets)).initial)) << name;
    }
  }
}

/// What each rank of a plan makes of its own, without starting one.
auto MadeByRanks(const Plan& plan) -> NamedNumbers {
  const auto kernels = SharedInitKernels();
  NamedNumbers tensors;
  for (const Parameter& parameter : plan.parameters) {
    tensors[parameter.name].assign(static_cast<size_t>(parameter.num_elements()), NAN);
  }
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    for (const SubVector& sub_vector : plan.sub_vectors) {
      for (const Segment& segment : sub_vector.segments) {
        const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
        const Parameter& parameter = plan.parameters[segment.parameter];
        InitialValues values(plan, parameter);
        ForEachMatrixInterval(LogicalInterval(plan, segment, owned, rank), [&](int64_t begin, int64_t end, int64_t) {
          std::vector<float> made(static_cast<size_t>(end - begin));
          EXPECT_TRUE(values.Fill({begin, end}, made.data()).ok()) << parameter.name;
          std::copy(made.begin(), made.end(), tensors[parameter.name].begin() + begin);
        });
      }
    }
  }
  return tensors;
}

TEST(Copies, AreTheSameBitsOnMeshesThatAreNotStarted) {
  const NamedNumbers one = MadeByRanks(CompileTraining(CaseOf("one rank", {})));
  EXPECT_TRUE(SameBits(one, RunTraining(CaseOf("one rank", {})).initial));
  for (const Sets& mesh : std::vector<Sets>{{"mesh.dp=8"}, {"mesh.dp=64"}, {"mesh.dp=32", "mesh.tp=2"}}) {
    const std::string name = fmt::format("{}", fmt::join(mesh, ", "));
    EXPECT_TRUE(SameBits(one, MadeByRanks(CompileTraining(CaseOf(name, mesh))))) << name;
  }
}

}  // namespace
}  // namespace shardc
