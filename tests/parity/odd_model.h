// The model of runs that are compared with oracles: a Llama whose sizes are not powers of two.
#pragma once

#include <fmt/format.h>

#include <string>

namespace shardc {

/// Returns the section [model].
inline auto OddModel(int ffn, int vocab, int seq, int layers = 3) -> std::string {
  return fmt::format(
      "[model]\nfamily = \"llama\"\nlayers = {}\nhidden = 60\nheads = 4\nkv_heads = 2\nhead_dim = 12\nffn = {}\n"
      "vocab = {}\nseq = {}\n",
      layers, ffn, vocab, seq);
}

}  // namespace shardc
