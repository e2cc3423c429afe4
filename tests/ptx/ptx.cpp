// What expressions become for NVIDIA's processors: NVIDIA's assembler takes it, and no operation in it is fused,
// rounded twice or flushed to zero. (That it leaves the host's bits needs such a processor.)
#include "compiler/expr/ptx/element_ptx.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "tests/support/temporary_folder.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

auto PtxOf(std::string_view rule) -> std::string {
  static const ElementSource other = VectorOf("normal(0, 1)", 3, "other", {64, 64});
  static const std::vector<int64_t> loaded{64, 64};
  const FindElementSource find = [](std::string_view) { return &other; };
  const FindLoadedShape find_loaded = [](std::string_view) { return &loaded; };
  return ElementPtx(MakeElementProgram(VectorOf(rule, 1, "w", {64, 64}), find, find_loaded).value, "sm_90");
}

constexpr const char* Rules[] = {
    "normal(0, 0.02)",
    "trunc_normal(0, 0.02, -0.04, 0.04)",
    "trunc_normal(0, 1, 2, 3)",
    "uniform(-1, 1)",
    "normal(index(0) / 64, abs(uniform(0, 1)))",
    "copy('other', index(1), index(0)) * sqrt(index(0)) + floor(normal(0, 1)) % 3",
    "0.5 * seed('loaded', index(1), index(0)) + seed('loaded') / 3",
    "500000 ^ (-2 * index(1) / 64)",
    "sin(index(0)) + cos(index(1)) + exp(-index(0)) * log(1 + index(1)) + tanh(normal(0, 1)) + erf(uniform(-1, 1))",
    "if index(0) < 3 and not index(1) == 2 then erfinv(uniform(-1, 1)) else ceil(uniform(0, 9))",
};

TEST(Ptx, IsAssembled) {
  const TemporaryFolder folder;
  for (const char* rule : Rules) {
    WriteText(folder / "kernel.ptx", PtxOf(rule));
    const std::string command = fmt::format("{}/.deps/libtorch/bin/ptxas -arch=sm_90 {} -o {}", SHARDC_SOURCE_DIR,
                                            folder / "kernel.ptx", folder / "kernel.cubin");
    EXPECT_EQ(std::system(command.c_str()), 0) << rule;
    EXPECT_GT(std::filesystem::file_size(folder / "kernel.cubin"), 1000U) << rule;
  }
}

TEST(Ptx, ReadsParametersAsDocumented) {
  const auto reads = [](const std::string& ptx, int parameter) {
    return ptx.find(fmt::format("[elements_param_{}]", parameter)) != std::string::npos;
  };
  const std::string drawn = PtxOf("normal(0, 1)");
  const std::string loaded = PtxOf("seed('loaded')");
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(
        std::regex_search(drawn, std::regex(fmt::format(R"(\.param \.u64 (\.\w+ |1 )*elements_param_{}\b)", i))))
        << i;
    // A rule that loads nothing reads no `loaded`; one that only loads reads no number, key or `first`.
    EXPECT_EQ(reads(drawn, i), i != 2) << i;
    EXPECT_EQ(reads(loaded, i), i == 2 || i > 3) << i;
  }
  EXPECT_EQ(drawn.find("elements_param_7"), std::string::npos);
}

TEST(Ptx, RoundsEveryOperationOnceToTheNearest) {
  // Sums and products without .rn may be fused by the assembler; the others have approximations.
  const std::regex loose(
      R"(\b(add|sub|mul|div|sqrt)(\.approx|\.full|\.ftz|\.rz)*\.f(32|64)|\.ftz|\.approx|\bfma\.\w+\.f32)");
  for (const char* rule : Rules) {
    const std::string ptx = PtxOf(rule);
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, loose)) << rule << ": " << found.str();
    EXPECT_NE(ptx.find(".target sm_90"), std::string::npos);
    EXPECT_NE(ptx.find("mul.rn.f"), std::string::npos) << rule;
  }
  // The search finds what it looks for.
  EXPECT_TRUE(std::regex_search(std::string("add.f32 a"), loose));
  EXPECT_TRUE(std::regex_search(std::string("div.approx.f32 a"), loose));
  EXPECT_TRUE(std::regex_search(std::string("fma.rn.f32 a"), loose));
  EXPECT_FALSE(std::regex_search(std::string("mul.rn.f64 a; fma.rn.f64 b; mul.wide.u32"), loose));
}

}  // namespace
}  // namespace shardc
