// initialize on each device against the values that the host makes for the whole parameter, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/base/bfloat16.h"
#include "compiler/expr/moments.h"
#include "compiler/plan/init_rule.h"
#include "runtime/init/drawn.h"
#include "runtime/init/initial_values.h"
#include "tests/support/kernel_fixture.h"
#include "tests/support/owned_intervals.h"

namespace shardc {
namespace {

struct DrawCase {
  std::string_view rule = "normal(0, 0.02)";
  Dims shape = {24, 40};
  DType dtype = DType::F32;
  int64_t dp = 1;
  int64_t tp = 1;
  /// The dim that tp cuts.
  int cut = 0;
  /// False if the host does it, whatever the device is.
  bool on_device = true;
  /// True if the kernel may be there already.
  bool is_kept = false;
};

class DrawFixture : public KernelFixture {
 public:
  DrawFixture(const Backend& backend, const DrawCase& test, int64_t rank) : KernelFixture(backend, rank) {
    Plan& plan = mutable_plan();
    plan.mesh.sizes = {1, test.dp, test.tp};
    plan.run.init_seed = 5;
    plan.parameters.Add({.name = "other", .shape = test.shape, .dtype = DType::BF16, .init = "normal(0, 1)"});
    Parameter parameter{.name = "w", .shape = test.shape, .dtype = test.dtype, .init = std::string(test.rule)};
    SubVector sub_vector;
    if (test.tp > 1) {
      parameter.placement[static_cast<size_t>(Axis::Tp)] = Placement::Shard(test.cut);
      sub_vector.cut = AxisSet::Of(Axis::Tp);
    }
    constexpr int64_t Before = 128;
    const int64_t local = NumElements(LocalShape(parameter, plan.mesh));
    op_.parameter = plan.parameters.Add(parameter);
    sub_vector.length = RoundUp(Before + local + 1, 128 * test.dp);
    sub_vector.segments = {{Before, Before + local, op_.parameter, true}};
    op_.sub_vector = plan.sub_vectors.Add(sub_vector);
    op_.shard = Add(test.dtype, {sub_vector.length / test.dp});
  }

  auto DrawnOf(ParameterId parameter) -> Drawn* override { return parameter == op_.parameter ? &drawn : nullptr; }

  auto Draw() -> Status {
    drawn = {};
    return TryRun(op_);
  }

  /// Returns the elements of the slice as the host makes them; nothing but the owned ones is written.
  template <class T>
  auto Expected() -> std::vector<T> {
    std::vector<T> slice(static_cast<size_t>(plan().values[op_.shard].num_elements()));
    // As fresh memory of the fixture is.
    std::memset(slice.data(), 0xFF, slice.size() * sizeof(T));
    const Parameter& parameter = plan().parameters[op_.parameter];
    std::vector<float> values(static_cast<size_t>(parameter.num_elements()));
    const Status made = InitialValues(plan(), parameter).Fill({0, parameter.num_elements()}, values.data());
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    const double center = Center();
    ForEachOwnedInterval(plan(), plan().sub_vectors[op_.sub_vector], rank(),
                         [&](const Parameter&, int64_t begin, int64_t end, int64_t at) {
                           for (int64_t i = begin; i < end; ++i) {
                             T& element = slice[static_cast<size_t>(at + i - begin)];
                             Store(element, values[static_cast<size_t>(i)]);
                             const double off = static_cast<double>(Load(element)) - center;
                             ++expected_.count;
                             expected_.sum += off;
                             expected_.squares += off * off;
                           }
                         });
    return slice;
  }

  auto Center() const -> double {
    const auto distribution = InitDistribution(plan().parameters[op_.parameter]);
    return distribution ? MomentsOf(*distribution).mean : 0;
  }

  /// Expects the sums of the elements that Expected() has returned.
  auto ExpectSums() -> void {
    EXPECT_EQ(drawn.count, expected_.count);
    const double n = static_cast<double>(expected_.count);
    EXPECT_NEAR(drawn.sum, expected_.sum, 1e-12 * std::sqrt(n * expected_.squares));
    EXPECT_NEAR(drawn.squares, expected_.squares, 1e-12 * expected_.squares);
  }

  template <class T>
  auto Shard() -> std::vector<uint8_t> {
    return BitsOf(At<T>(op_.shard));
  }
  template <class Elements>
  static auto BitsOf(const Elements& elements) -> std::vector<uint8_t> {
    const auto bytes = std::as_bytes(std::span(elements));
    const auto* const first = reinterpret_cast<const uint8_t*>(bytes.data());
    return {first, first + bytes.size()};
  }

  Drawn drawn;

 private:
  op::Initialize op_;
  Drawn expected_;
};

template <class T>
auto ExpectDrawn(const Backend& backend, const DrawCase& test, int64_t rank) -> void {
  DrawFixture fixture(backend, test, rank);
  const bool on_device = test.on_device && FactsOf(backend.device).family == DeviceFamily::Cuda;
  const Status status = fixture.Draw();
  ASSERT_TRUE(status.ok()) << status.error().message;
  if (!test.is_kept) {
    EXPECT_EQ(fixture.drawn.load_time > Seconds{}, on_device);
  }
  const Drawn first = fixture.drawn;
  const auto bits = fixture.Shard<T>();
  EXPECT_EQ(bits, DrawFixture::BitsOf(fixture.Expected<T>()));
  fixture.ExpectSums();
  ASSERT_TRUE(fixture.Draw().ok());
  EXPECT_EQ(fixture.Shard<T>(), bits);
  EXPECT_EQ(fixture.drawn.sum, first.sum);
  EXPECT_EQ(fixture.drawn.squares, first.squares);
}

auto ExpectDrawnByAll(const DrawCase& test) -> void {
  ForBackends([&](const Backend& backend) {
    for (int64_t rank = 0; rank < test.dp * test.tp; ++rank) {
      SCOPED_TRACE(fmt::format("{} of {} {} on rank {} of dp {} x tp {} (dim {})", test.rule, ToText(test.dtype),
                               ToText(test.shape), rank, test.dp, test.tp, test.cut));
      if (test.dtype == DType::F32) {
        ExpectDrawn<float>(backend, test, rank);
      } else {
        ExpectDrawn<BFloat16>(backend, test, rank);
      }
    }
  });
}

TEST(Initialize, DrawsByEveryFormOfRule) {
  for (const std::string_view rule :
       {"0.5", "normal(0.25, 2)", "trunc_normal(0, 0.02, -0.04, 0.04)", "trunc_normal(0, 1, 2, 3)", "uniform(-1, 3)",
        "normal(index(0) / 64, abs(uniform(0, 1)))",
        "copy('other', 23 - index(0), index(1)) * sqrt(index(0)) + floor(normal(0, 1)) % 3", "copy('other')",
        "500000 ^ (-2 * index(1) / 64)",
        "if index(0) < 3 and not index(1) == 2 then erfinv(uniform(-1, 1)) else ceil(uniform(0, 9))",
        "sin(index(0)) + cos(index(1)) + exp(-index(0)) * log(1 + index(1)) + tanh(normal(0, 1))"}) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      ExpectDrawnByAll({.rule = rule, .dtype = dtype});
    }
  }
}

TEST(Initialize, LeavesNormsOfRowsToHost) {
  ExpectDrawnByAll({.rule = "let x = normal(0, 1) in x / row_norm(x)", .on_device = false});
}

TEST(Initialize, DrawsWhatARankOwns) {
  const auto kept = SharedInitKernels();
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Dims& shape : {Dims{24, 40}, Dims{21, 6}, Dims{6, 200}, Dims{130, 2}}) {
      for (const int64_t dp : {1, 3}) {
        for (const int cut : {0, 1}) {
          ExpectDrawnByAll({.shape = shape, .dtype = dtype, .dp = dp, .tp = 2, .cut = cut, .is_kept = true});
        }
      }
    }
    ExpectDrawnByAll({.shape = {37}, .dtype = dtype, .is_kept = true});
    ExpectDrawnByAll({.shape = {1}, .dtype = dtype, .dp = 2, .is_kept = true});
    ExpectDrawnByAll({.shape = {1000}, .dtype = dtype, .dp = 4, .is_kept = true});
  }
}

TEST(Initialize, DrawsMoreThanOneLaunchMakes) {
  ExpectDrawnByAll({.rule = "normal(1, 2)", .shape = {1250, 4001}});
  ExpectDrawnByAll({.rule = "normal(1, 2)", .shape = {1251, 4000}, .dtype = DType::BF16, .tp = 2, .cut = 1});
}

TEST(Initialize, ElementWithoutValueIsAnError) {
  ForBackends([](const Backend& backend) {
    DrawFixture fixture(backend, {.rule = "1 / (index(0) - 20)"}, 0);
    const Status status = fixture.Draw();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ExitCode::RecipeRejected);
    EXPECT_EQ(status.error().message,
              "w cannot begin: the init rule `1 / (index(0) - 20)` has no value at element [20, 0]");
  });
}

TEST(Initialize, FaultOfOthersIsNone) {
  // The columns of the other rank have the fault.
  ForBackends([](const Backend& backend) {
    const DrawCase test{.rule = "sqrt(index(1) - 20)", .tp = 2, .cut = 1};
    DrawFixture fixture(backend, test, 0);
    const Status status = fixture.Draw();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, testing::HasSubstr("has no value at element [0, 0]"));
    DrawFixture other(backend, test, 1);
    ASSERT_TRUE(other.Draw().ok());
    EXPECT_EQ(other.drawn.count, 24 * 20);
    EXPECT_EQ(other.At<float>(ValueId{0})[128 + 9], 3);
  });
}

}  // namespace
}  // namespace shardc
