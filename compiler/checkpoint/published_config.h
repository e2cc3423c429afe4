// config.json of a model of Hugging Face: which model of ours it describes, by the rows of schemas/hf_config.def. What
// could change the forward and is not known here is an error, never a guess.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/keys/plan_keys.h"
#include "compiler/plan/types.h"

namespace shardc {

constexpr const char* ConfigName = "config.json";

struct PublishedConfig {
  /// The class of transformers that computes the model: "LlamaForCausalLM".
  std::string architecture;
  /// The keys of [model]; all that the family has, save those that have their defaults: rope_frequency, and kv_heads
  /// and head_dim where they follow from other keys. `seq` is the longest sequence that the model takes.
  ModelSectionOf<InPlan> model;
  /// The keys that decide about the model, with their values as they are in the file, in JSON.
  std::map<std::string, std::string> read;
};

/// Returns true for a config.json that says that the weights have fewer bits than are read: HF_QUANTIZED.
auto IsQuantized(std::string_view text) -> bool;

/// Reads the text of a config.json. Errors: ExitCode::Checkpoint, with key and remedy.
auto ReadPublishedConfig(std::string_view text) -> ErrorOr<PublishedConfig>;

/// Returns the class by which a model of ours is written, where `model` is the line `model` of a plan: the preferred
/// one, if it computes the family with these sizes, or else the first that does. Errors: Usage.
auto ClassOfModel(const std::map<std::string, std::string>& model, std::string_view preferred)
    -> ErrorOr<std::string_view>;

/// Returns the text of a config.json of this class for a model of ours: `model` is the line `model` of a plan, `dtype`
/// the type of the weights, `special_tokens` what SpecialTokens returns: those that it lacks are null. Its spelling is
/// one that transformers 4 and 5 read. Errors: Usage, where no config.json says what the model computes.
auto ConfigOfModel(std::string_view architecture, const std::map<std::string, std::string>& model, DType dtype,
                   const std::map<std::string, std::string>& special_tokens) -> ErrorOr<std::string>;

/// Returns true for a tensor that transformers computes and does not load: HF_BUFFER.
auto IsPublishedBuffer(std::string_view tensor) -> bool;

/// Returns the tensors that are one if a model is tied, and the other that each of them is: HF_TIED.
auto TiedTensors() -> const std::map<std::string, std::string>&;

}  // namespace shardc
