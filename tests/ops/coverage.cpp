// Every op that computes numbers in this process has tests: a suite that bears the name of its type, in a file that
// bears its mnemonic.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "compiler/ops/op_facts.h"
#include "runtime/kernels/reference/reference.h"

namespace shardc {

constexpr std::string_view TypeNames[] = {
#define OP(Type, mnemonic, differentiable, fields, doc) #Type,
#include "schemas/ops.def"
};

/// Ops that compute no numbers of their own: structure, data, collectives, and the life of the state. Their tests run
/// with the executor, the communicators, the data, init and checkpoint folders.
constexpr OpKind NotNumeric[] = {
    OpKind::Repeat,       OpKind::EndRepeat,      OpKind::Carry,      OpKind::Release,       OpKind::Control,
    OpKind::LoadTokens,   OpKind::LoadTargets,    OpKind::AllGather,  OpKind::ReduceScatter, OpKind::AllReduce,
    OpKind::Initialize,   OpKind::LoadParameter,  OpKind::SaveBegin,  OpKind::SaveShard,     OpKind::SaveCommit,
    OpKind::RestoreShard, OpKind::RestoreScalars, OpKind::LoadMoment, OpKind::LoadDocuments,
};

TEST(Coverage, EveryNumericOpHasCases) {
  std::set<std::string> suites;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    suites.insert(tests.GetTestSuite(i)->name());
  }
  for (int i = 0; i < NumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (std::find(std::begin(NotNumeric), std::end(NotNumeric), kind) == std::end(NotNumeric)) {
      const std::string type(TypeNames[i]);
      EXPECT_TRUE(suites.contains(type)) << "no TEST(" << type << ", ...) in tests/ops/" << ToText(kind) << ".cpp";
      const std::string file = std::string(SHARDC_SOURCE_DIR "/tests/ops/") + std::string(ToText(kind)) + ".cpp";
      EXPECT_TRUE(std::filesystem::exists(file)) << file << " is missing";
    }
  }
}

/// Single numbers, and bytes that are moved or looked at, with one way to do it.
constexpr OpKind NoReference[] = {OpKind::Copy,       OpKind::Increment, OpKind::Reset,      OpKind::ReadScalar,
                                  OpKind::ClipFactor, OpKind::Divide,    OpKind::CheckFinite};

constexpr bool HasReference[] = {
#define OP(Type, mnemonic, differentiable, fields, doc) reference::HasKernel<op::Type>,
#include "schemas/ops.def"
};

TEST(Coverage, EveryNumericOpHasAReferenceKernel) {
  for (int i = 0; i < NumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const auto is_kind = [&](OpKind other) { return other == kind; };
    EXPECT_NE(HasReference[i], std::ranges::any_of(NotNumeric, is_kind) || std::ranges::any_of(NoReference, is_kind))
        << ToText(kind)
        << (HasReference[i] ? " has a reference kernel and is listed as one without"
                            : " has no kernel declared in runtime/kernels/reference/reference.h");
  }
}

/// Headers through which a kernel shares its work among threads.
constexpr std::string_view SharingHeaders[] = {"kernels/machine/parallel.h",   "kernels/cpu/gemm.h",
                                               "kernels/cpu/attention_view.h", "kernels/cpu/elementwise.h",
                                               "kernels/cpu/rms_norm.h",       "kernels/parts.h"};

TEST(Coverage, EveryOpWhoseKernelSharesItsWorkSaysHow) {
  for (int i = 0; i < NumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const auto file_in = [&](std::string_view folder) {
      return fmt::format("{}/runtime/kernels/{}/{}.cpp", SHARDC_SOURCE_DIR, folder, ToText(kind));
    };
    const std::string of_cpu = file_in("cpu");
    const std::string file = std::filesystem::exists(of_cpu) ? of_cpu : file_in("host");
    std::ifstream stream(file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    ASSERT_FALSE(text.empty()) << file;
    const bool shares =
        std::ranges::any_of(SharingHeaders, [&](auto header) { return text.find(header) != std::string::npos; });
    EXPECT_EQ(shares, FactsOf(kind).threads.cut != WorkCut::None) << "`threads` in the facts of " << ToText(kind);
  }
}

// Sums of floats in the order in which threads come would have other bits each time. The one atomic operation takes the
// least of bad ids.
TEST(Coverage, KernelsAddNoFloatsAtomically) {
  const std::regex atomic(R"(\b_*(?:nv_)?atomic\w*\s*\(|\b(?:atom|red)\.|atomic_ref|cuda/atomic)");
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SHARDC_SOURCE_DIR "/runtime/kernels/cuda")) {
    if (!entry.is_regular_file()) {
      continue;
    }
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    for (auto match = std::sregex_iterator(text.begin(), text.end(), atomic); match != std::sregex_iterator();
         ++match) {
      found.push_back(entry.path().filename().string() + ": " + match->str());
    }
  }
  EXPECT_EQ(found,
            std::vector<std::string>({"digest.cu: atomicAdd(", "digest.cu: atomicAdd(", "token_ids.h: atomicMin("}));
}

TEST(Coverage, AnOpHasAFormulaOfItsThreadsIfItsFactsSaySo) {
  for (int i = 0; i < NumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const ThreadFact& threads = FactsOf(kind).threads;
    EXPECT_EQ(threads.formula != nullptr, threads.cut == WorkCut::Formula) << ToText(kind);
  }
}

}  // namespace shardc
