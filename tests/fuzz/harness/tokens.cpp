// A token file of any bytes, in the format and with the vocabulary that its first two bytes choose: it is refused, or
// every id that is read lies in the vocabulary, and a scan says the same. Of Megatron's format, the first half of the
// bytes is the index.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "compiler/data/scan.h"
#include "runtime/data/id_stream.h"
#include "tests/fuzz/harness/scratch_file.h"

static auto WriteBytes(const std::string& path, const uint8_t* data, size_t size) -> void {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

/// The path of a file with these bytes.
static auto FileOf(shardc::TokenFormat format, const uint8_t* data, size_t size) -> std::string {
  const std::string path = shardc::ScratchFileOf(data, size);
  if (format != shardc::TokenFormat::Megatron) {
    return path;
  }
  WriteBytes(path + ".idx", data, size / 2);
  WriteBytes(path + ".bin", data + size / 2, size - size / 2);
  return path + ".bin";
}

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  if (size < 2) {
    return 0;
  }
  const auto format = static_cast<TokenFormat>(data[0] % CountOf<TokenFormat>());
  const int64_t vocab = data[0] < 128 ? 1 + data[1] : 1000 * (1 + data[1]);
  const uint8_t none = (data[0] >> 2) % 2;
  const VocabRange range{.vocab = vocab, .vocab_name = "model.vocab", .none = none};
  const FileList list{.name = "", .purpose = {}, .range = range, .paths = {FileOf(format, data + 2, size - 2)}};
  const auto stream = IdStream::Open(list, format);
  const auto scanned = ScanIds({list}, format, {});
  if (!stream.ok()) {
    CHECK(!stream.error().message.empty() && !scanned.ok(), "refused without a word, or scanned");
    return 0;
  }
  const int64_t count = (*stream)->num_ids();
  std::vector<int32_t> ids(static_cast<size_t>(count));
  const bool is_sound = (*stream)->Read(0, count, ids.data()).ok();
  CHECK(is_sound == scanned.ok(), "a scan says otherwise");
  if (is_sound) {
    const int32_t least = none == 1 ? -1 : 0;
    CHECK(std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return id >= least && id < vocab; }), "an id outside");
  }
  return 0;
}
