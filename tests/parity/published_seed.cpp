// Runs that begin from models of Hugging Face: each parameter has the values of its tensor in the files, to the bit, on
// every mesh, in every type, from one file and from three.
#include <gtest/gtest.h>

#include "compiler/base/bfloat16.h"
#include "compiler/plan/init_rule.h"
#include "tests/parity/begun_parameters.h"
#include "tests/parity/compare.h"
#include "tests/support/compile_recipe.h"
#include "tests/support/published_files.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using Sets = std::vector<std::string>;

const std::vector<Sets> Meshes{{}, {"mesh.dp=2"}, {"mesh.tp=2"}, {"mesh.dp=2", "mesh.tp=2"}};

constexpr std::string_view PublishedSettings = R"toml(
[model]
family = "{}"
layers = 2
hidden = {}
heads = 4
kv_heads = 2
head_dim = {}
ffn = 102
vocab = 257
seq = 32
rope_theta = 5000.0
norm_eps = 1e-5
tied = {}
[optimizer]
lr = 0.01
[data]
tokens = ["tokens.u16"]
format = "u16"
[batch]
micro = 1
[train]
steps = 1
[run]
threads = 1
[start]
first = {{ seed = "model" }}
)toml";

class PublishedSeed : public testing::Test {
 protected:
  PublishedSeed() { WriteText(folder_ / "tokens.u16", std::string(2000, '\0')); }

  /// Compiles a recipe of the model; warnings are failures.
  auto CompileFor(const std::string& family, bool is_tied, const Sets& sets) const -> Plan {
    const bool is_qwen2 = family == "qwen2";
    CompiledRecipe compiled =
        CompileRecipe(folder_ / "r.toml",
                      fmt::format(PublishedSettings, family, is_qwen2 ? 56 : 60, is_qwen2 ? 14 : 12, is_tied), sets);
    EXPECT_EQ(compiled.warnings, "");
    return std::move(compiled.plan);
  }

  /// Returns what the parameters of a run begin with, if it begins from the files.
  static auto Expected(const PublishedFiles& files, bool is_bf16) -> NamedNumbers {
    NamedNumbers tensors;
    for (const auto& [name, tensor] : files.tensors) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        BFloat16 rounded{};
        Store(rounded, tensor.At(i));
        tensors[name].push_back(is_bf16 ? Load(rounded) : tensor.At(i));
      }
    }
    return tensors;
  }

  TemporaryFolder folder_;
};

TEST_F(PublishedSeed, EqualsFilesOnEveryMesh) {
  struct Case {
    std::string family;
    std::string dtype;
    int num_files;
    bool is_tied;
    bool is_fused = false;
  };
  for (const Case& of :
       {Case{"llama", "F32", 1, false}, Case{"llama", "F16", 3, false}, Case{"llama", "BF16", 3, true},
        Case{"qwen2", "F16", 1, false}, Case{"qwen2", "BF16", 3, false}, Case{"qwen3", "F32", 3, false},
        Case{"qwen3", "BF16", 1, true}, Case{"llama", "F32", 1, false, true}, Case{"llama", "F16", 3, true, true},
        Case{"llama", "BF16", 3, false, true}}) {
    const PublishedFiles files = PublishedFiles::Make(of.family, of.dtype, of.is_tied);
    std::filesystem::remove_all(folder_ / "model");
    (of.is_fused ? files.Fused() : files).Write(folder_ / "model", of.num_files);
    for (const bool is_bf16 : {false, true}) {
      const NamedNumbers expected = Expected(files, is_bf16);
      for (const Sets& mesh : Meshes) {
        Sets sets = mesh;
        sets.emplace_back(is_bf16 ? "precision.master=bf16" : "precision.master=fp32");
        SCOPED_TRACE(fmt::format("{} {} in {} files, fused: {}, {}", of.family, of.dtype, of.num_files, of.is_fused,
                                 fmt::join(sets, ", ")));
        const Plan plan = CompileFor(of.family, of.is_tied, sets);
        int64_t drawn = -1;
        EXPECT_TRUE(SameBits(BegunParameters(plan, folder_ / "none", drawn), expected));
        EXPECT_EQ(drawn, 0);
      }
    }
  }
}

// A block of columns, one of rows and columns, and a transposed tensor: the blocks are loaded.
TEST_F(PublishedSeed, RulesTakeBlocksAndTransposedTensors) {
  const PublishedFiles files = PublishedFiles::Make("llama", "F16");
  const NamedNumbers expected = Expected(files, false);
  PublishedFiles kept = files;
  const std::string block = "model.layers.1.";
  // Where nothing of the parameter lies, `source_of` is less than 0.
  const auto keep_as = [&](const std::string& name, int64_t rows, int64_t columns, const auto& source_of) {
    const std::string& own = files.tensors.at(name).bytes;
    PublishedTensor other{.shape = {rows, columns}, .dtype = "F16", .bytes = {}};
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t element = source_of(i / columns, i % columns);
      other.bytes += element < 0 ? "ab" : own.substr(static_cast<size_t>(element) * 2, 2);
    }
    kept.tensors["kept." + name] = other;
    kept.tensors.at(name).bytes.assign(own.size(), '\0');
  };
  keep_as(block + "mlp.down_proj.weight", 60, 107,
          [](int64_t r, int64_t c) { return c < 3 || c > 104 ? -1 : r * 102 + c - 3; });
  keep_as(block + "self_attn.k_proj.weight", 29, 61,
          [](int64_t r, int64_t c) { return r < 5 || c == 0 ? -1 : (r - 5) * 60 + c - 1; });
  keep_as(block + "mlp.up_proj.weight", 60, 102, [](int64_t r, int64_t c) { return c * 60 + r; });
  kept.Write(folder_ / "model");
  const std::string others =
      fmt::format(R"(["{0}mlp.down_proj.weight", "{0}self_attn.k_proj.weight", "{0}mlp.up_proj.weight"])", block);
  std::string rules;
  for (const auto& [name, indices] : {std::pair("mlp.down_proj.weight", "index(0), index(1) + 3"),
                                      std::pair("self_attn.k_proj.weight", "index(0) + 5, index(1) + 1"),
                                      std::pair("mlp.up_proj.weight", "index(1), index(0)")}) {
    rules +=
        fmt::format(R"toml({{ match = "{0}{1}", value = "seed('kept.{0}{1}', {2})" }}, )toml", block, name, indices);
  }
  for (const Sets& mesh : Meshes) {
    Sets sets = mesh;
    sets.push_back(fmt::format(R"(start.first={{ seed = "model", missing = {0}, unused = {0} }})", others));
    sets.push_back(fmt::format("init.rule=[{}]", rules));
    int64_t drawn = -1;
    EXPECT_TRUE(SameBits(BegunParameters(CompileFor("llama", false, sets), folder_ / "none", drawn), expected));
    EXPECT_EQ(drawn, 102 * 60);
  }
}

TEST_F(PublishedSeed, RulesReadItsTensors) {
  const PublishedFiles files = PublishedFiles::Make("llama", "F16");
  files.Write(folder_ / "model", 3);
  Sets sets{R"(start.first={ seed = "model", missing = ["lm_head.weight"] })",
            R"toml(init.rule=[{ match = "lm_head.weight", value = "2 * seed('lm_head.weight')" }])toml"};
  NamedNumbers expected = Expected(files, false);
  for (auto& number : expected["lm_head.weight"]) {
    number *= 2;
  }
  for (const char* const mesh : {"mesh.dp=1", "mesh.tp=2"}) {
    sets.emplace_back(mesh);
    int64_t drawn = -1;
    EXPECT_TRUE(SameBits(BegunParameters(CompileFor("llama", false, sets), folder_ / "none", drawn), expected));
    EXPECT_GT(drawn, 0);
  }
}

}  // namespace
}  // namespace shardc
