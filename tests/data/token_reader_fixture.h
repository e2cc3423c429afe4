// Token files of a few ids, and readers of them.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/data/token_reader.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

template <class T>
auto Raw(const std::vector<int64_t>& ids) -> std::string {
  std::string text;
  for (const int64_t id : ids) {
    const T value = static_cast<T>(id);
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return text;
}

inline auto Bin(const std::vector<int64_t>& ids, int32_t magic = 20240520, int32_t version = 1, int64_t count = -1)
    -> std::string {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count < 0 ? static_cast<int32_t>(ids.size()) : static_cast<int32_t>(count);
  return std::string(reinterpret_cast<const char*>(header.data()), 1024) + Raw<uint16_t>(ids);
}

inline auto Encode(TokenFormat format, const std::vector<int64_t>& ids) -> std::string {
  switch (format) {
    case TokenFormat::Bin: return Bin(ids);
    case TokenFormat::U8: return Raw<uint8_t>(ids);
    case TokenFormat::U16: return Raw<uint16_t>(ids);
    case TokenFormat::U32: return Raw<uint32_t>(ids);
    // Two files each: tests/data/megatron.cpp.
    case TokenFormat::Megatron: return "";
  }
  return "";
}

inline auto Count(int64_t n) -> std::vector<int64_t> {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

class TokenReaderTest : public testing::Test {
 protected:
  auto Source(const std::vector<std::string>& contents, TokenFormat format = TokenFormat::U8) -> DataSource {
    DataSource source;
    source.format = format;
    source.order = SampleOrder::Sequential;
    source.vocab = 256;
    source.seq = 4;
    // Names of their own: an earlier reader may still hold files open.
    ++num_sources_;
    std::vector<std::string>& files = source.sources.emplace_back().files;
    for (size_t i = 0; i < contents.size(); ++i) {
      files.push_back(folder_ / fmt::format("{}_tokens_{}.data", num_sources_, i));
      WriteText(files.back(), contents[i]);
    }
    return source;
  }
  auto ErrorOf(const DataSource& source) -> Error {
    auto reader = TokenReader::Open(source);
    EXPECT_FALSE(reader.ok());
    return reader.ok() ? Error{} : reader.error();
  }

  TemporaryFolder folder_;
  int num_sources_ = 0;
};

struct Sample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  friend auto operator==(const Sample&, const Sample&) -> bool = default;
};

inline auto Read(TokenReader& reader, Split split, int64_t index, int64_t seq = 4) -> Sample {
  Sample sample{std::vector<int32_t>(static_cast<size_t>(seq)), std::vector<int32_t>(static_cast<size_t>(seq))};
  const Status status = reader.ReadSample(split, index, sample.tokens.data(), sample.targets.data(), 1);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return sample;
}

}  // namespace shardc
