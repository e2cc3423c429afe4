// The header of a file of any bytes, and of the same bytes after a length that fits them: it is refused, or its
// tensors lie one after another in the file.
#include <cstdint>
#include <cstring>
#include <vector>

#include "compiler/checkpoint/safetensors.h"
#include "tests/fuzz/harness/scratch_file.h"

namespace shardc {
namespace {

auto Judge(const uint8_t* data, size_t size) -> void {
  const std::string& path = ScratchFileOf(data, size);
  const Descriptor file(PosixFs(), open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  const auto header = ReadSafetensorsHeader(file);
  if (!header.ok()) {
    CHECK(!header.error().message.empty(), "refused without a word");
    return;
  }
  int64_t end = 0;
  for (const SafetensorsTensor& tensor : header->tensors) {
    CHECK(tensor.data.begin == end && tensor.data.end >= end, "`{}` does not follow the one before", tensor.name);
    end = tensor.data.end;
  }
  CHECK(header->data_begin + end == static_cast<int64_t>(size), "the tensors do not fill the file");
}

}  // namespace
}  // namespace shardc

extern "C" auto LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) -> int {
  using namespace shardc;
  Judge(data, size);
  // The header ends after its last brace; the rest is data.
  size_t header = size;
  while (header > 0 && data[header - 1] != '}') {
    --header;
  }
  std::vector<uint8_t> fitted(sizeof(uint64_t) + size);
  const uint64_t length = header;
  std::memcpy(fitted.data(), &length, sizeof length);
  if (size > 0) {
    std::memcpy(fitted.data() + sizeof length, data, size);
  }
  Judge(fitted.data(), fitted.size());
  return 0;
}
