// A step whose forward is finite and whose gradients are not, by the final norm's weight alone.
//
// With embeddings, o_proj and down_proj all zero the residual stream is zero, so forward is finite whatever the final
// norm's weight w is, and every gradient below the head is zero but the embedding's: the loss reaches it through
// w / sqrt(norm_eps). With w near the largest float each token's part is finite, and their sum in the one row that the
// data use is not.
#pragma once

#include <fmt/format.h>

#include <string>

namespace shardc {

/// The init rules that make the stream zero.
inline auto ZeroStream(const std::string& norm) -> std::string {
  std::string rules =
      fmt::format(R"({{match = "*layernorm.weight", value = 1}}, {{match = "model.norm.weight", value = {}}})", norm);
  for (const char* zero : {"*.o_proj.weight", "*.down_proj.weight", "*.embed_tokens.weight"}) {
    rules += fmt::format(R"(, {{match = "{}", value = 0}})", zero);
  }
  for (const char* random : {"*.q_proj.weight", "*.k_proj.weight", "*.v_proj.weight", "*.gate_proj.weight",
                             "*.up_proj.weight", "lm_head.weight"}) {
    rules += fmt::format(R"--(, {{match = "{}", value = "normal(0, 0.2)"}})--", random);
  }
  return "init.rule=[" + rules + "]";
}

}  // namespace shardc
