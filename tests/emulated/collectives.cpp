// The collectives of tests_ranks_cuda on emulated GPUs: what needs a GPU there has at least run, with small vectors.
#include <gtest/gtest.h>

#include "tests/comm/programs/collectives_cuda.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

TEST(EmulatedCollectives, EqualFoldOnHost) {
  UseEmulatedCuda();
  for (const Mesh& mesh : {Mesh{{1, 2, 1}}, Mesh{{1, 4, 1}}, Mesh{{1, 2, 2}}, Mesh{{2, 1, 2}}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", mesh.sizes[0], mesh.sizes[1], mesh.sizes[2]));
    ExpectEqualFold({.mesh = mesh,
                     .num_rounds = 10,
                     .most_elements = 1'500,
                     .most_elements_as_it_is = 1'500,
                     .largest_bytes = int64_t{256} << 10});
  }
}

}  // namespace
}  // namespace shardc
