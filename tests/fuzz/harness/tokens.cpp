// A token file of any bytes, in the format and with the vocabulary that its first two bytes choose: it is refused, or
// every id that is read lies in the vocabulary.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/data/id_stream.h"
#include "tests/fuzz/harness/scratch_file.h"

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  if (size < 2) {
    return 0;
  }
  const auto format = static_cast<TokenFormat>(data[0] % CountOf<TokenFormat>());
  const int64_t vocab = data[0] < 128 ? 1 + data[1] : 1000 * (1 + data[1]);
  const uint8_t none = (data[0] >> 2) % 2;
  const VocabRange range{.vocab = vocab, .vocab_name = "model.vocab", .none = none};
  const auto stream =
      IdStream::Open({.name = "", .purpose = {}, .range = range, .paths = {ScratchFileOf(data + 2, size - 2)}}, format);
  if (!stream.ok()) {
    CHECK(!stream.error().message.empty(), "refused without a word");
    return 0;
  }
  const int64_t count = (*stream)->num_ids();
  std::vector<int32_t> ids(static_cast<size_t>(count));
  if ((*stream)->Read(0, count, ids.data()).ok()) {
    const int32_t least = none == 1 ? -1 : 0;
    CHECK(std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return id >= least && id < vocab; }), "an id outside");
  }
  return 0;
}
