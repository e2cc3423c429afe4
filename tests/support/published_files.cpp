#include "tests/support/published_files.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "tests/support/temporary_folder.h"

namespace shardc {

using nlohmann::json;

auto PublishedTensor::num_elements() const -> int64_t {
  int64_t product = 1;
  for (const int64_t size : shape) {
    product *= size;
  }
  return product;
}

/// Returns the number with this sign, exponent and fraction, of a type with so many bits of each.
static auto NumberOf(uint32_t bits, int exponent_bits, int fraction_bits) -> float {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const auto fraction = static_cast<double>(bits & ((1U << fraction_bits) - 1));
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp(fraction + std::ldexp(1.0, fraction_bits), exponent - bias - fraction_bits);
  return static_cast<float>((bits >> (exponent_bits + fraction_bits)) != 0 ? -magnitude : magnitude);
}

auto PublishedTensor::At(int64_t element) const -> float {
  if (dtype == "F32") {
    float number = 0;
    std::memcpy(&number, bytes.data() + element * 4, 4);
    return number;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + element * 2, 2);
  return dtype == "F16" ? NumberOf(bits, 5, 10) : NumberOf(bits, 8, 7);
}

auto SafetensorsFile(const PublishedTensors& tensors) -> std::string {
  json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + text + data;
}

auto ReadSafetensors(const std::string& path) -> PublishedTensors {
  const std::string text = ReadText(path);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  const size_t data = sizeof(length) + length;
  PublishedTensors tensors;
  const json header = json::parse(text.substr(sizeof(length), length));
  for (const auto& [name, tensor] : header.items()) {
    if (name != "__metadata__") {
      const auto begin = tensor.at("data_offsets").at(0).get<size_t>();
      const auto end = tensor.at("data_offsets").at(1).get<size_t>();
      tensors[name] = {tensor.at("shape"), tensor.at("dtype"), text.substr(data + begin, end - begin)};
    }
  }
  return tensors;
}

auto PublishedFiles::Make(const std::string& model_type, const std::string& dtype, bool is_tied) -> PublishedFiles {
  constexpr int64_t Hidden = 60;
  constexpr int64_t Ffn = 102;
  constexpr int64_t Vocab = 257;
  constexpr int64_t Heads = 4;
  constexpr int64_t KvHeads = 2;
  const int64_t width = model_type == "qwen2" ? 14 : 12;
  const int64_t hidden = model_type == "qwen2" ? Heads * width : Hidden;
  PublishedFiles files;
  const std::map<std::string, std::string> classes{
      {"llama", "LlamaForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}, {"qwen3", "Qwen3ForCausalLM"}};
  const std::map<std::string, std::string> types{{"F32", "float32"}, {"F16", "float16"}, {"BF16", "bfloat16"}};
  files.config = {{"architectures", {classes.at(model_type)}},
                  {"model_type", model_type},
                  {"hidden_size", hidden},
                  {"intermediate_size", Ffn},
                  {"num_hidden_layers", 2},
                  {"num_attention_heads", Heads},
                  {"num_key_value_heads", KvHeads},
                  {"vocab_size", Vocab},
                  {"max_position_embeddings", 64},
                  {"rms_norm_eps", 1e-5},
                  {"rope_theta", 5000.0},
                  {"tie_word_embeddings", is_tied},
                  {"torch_dtype", types.at(dtype)},
                  {"hidden_act", "silu"},
                  {"use_cache", true}};
  if (model_type != "qwen2") {
    files.config["head_dim"] = width;
  }
  std::mt19937 random(std::hash<std::string>()(model_type + dtype));
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    PublishedTensor tensor{.shape = shape, .dtype = dtype, .bytes = {}};
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      // Any sign and fraction, and exponents from those of subnormals to that of 4.
      const uint32_t bits = random();
      if (dtype == "F32") {
        const float number = std::ldexp(static_cast<float>(bits) - 0x1p31F, -30 - static_cast<int>(random() % 12));
        tensor.bytes.append(reinterpret_cast<const char*>(&number), 4);
      } else {
        const uint32_t exponent = dtype == "F16" ? random() % 17 : 112 + random() % 17;
        const auto word = static_cast<uint16_t>(dtype == "F16" ? (bits & 0x83FFU) | exponent << 10U
                                                               : (bits & 0x807FU) | exponent << 7U);
        tensor.bytes.append(reinterpret_cast<const char*>(&word), 2);
      }
    }
    files.tensors[name] = std::move(tensor);
  };
  add("model.embed_tokens.weight", {Vocab, hidden});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    add(block + "input_layernorm.weight", {hidden});
    add(block + "post_attention_layernorm.weight", {hidden});
    for (const char* const projection : {"q_proj", "k_proj", "v_proj"}) {
      const int64_t outputs = (projection[0] == 'q' ? Heads : KvHeads) * width;
      add(fmt::format("{}self_attn.{}.weight", block, projection), {outputs, hidden});
      if (model_type == "qwen2") {
        add(fmt::format("{}self_attn.{}.bias", block, projection), {outputs});
      }
    }
    if (model_type == "qwen3") {
      add(block + "self_attn.q_norm.weight", {width});
      add(block + "self_attn.k_norm.weight", {width});
    }
    add(block + "self_attn.o_proj.weight", {hidden, Heads * width});
    add(block + "mlp.gate_proj.weight", {Ffn, hidden});
    add(block + "mlp.up_proj.weight", {Ffn, hidden});
    add(block + "mlp.down_proj.weight", {hidden, Ffn});
  }
  add("model.norm.weight", {hidden});
  if (!is_tied) {
    add("lm_head.weight", {Vocab, hidden});
  }
  return files;
}

auto PublishedFiles::Fused() const -> PublishedFiles {
  PublishedFiles fused = *this;
  fused.config["architectures"] = {"Phi3ForCausalLM"};
  fused.config["model_type"] = "phi3";
  const auto fuse = [&](const std::string& into, const std::vector<std::string>& parts) {
    PublishedTensor tensor;
    for (const std::string& part : parts) {
      const auto taken = fused.tensors.extract(part + ".weight");
      tensor.bytes += taken.mapped().bytes;
      tensor.dtype = taken.mapped().dtype;
      tensor.shape = {(tensor.shape.empty() ? 0 : tensor.shape[0]) + taken.mapped().shape[0], taken.mapped().shape[1]};
    }
    fused.tensors[into + ".weight"] = tensor;
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    fuse(attention + "qkv_proj", {attention + "q_proj", attention + "k_proj", attention + "v_proj"});
    fuse(mlp + "gate_up_proj", {mlp + "gate_proj", mlp + "up_proj"});
  }
  return fused;
}

auto PublishedFiles::Write(const std::string& directory, int num_files) const -> void {
  std::filesystem::create_directories(directory);
  WriteText(directory + "/config.json", config.dump(2));
  if (num_files == 1) {
    WriteText(directory + "/model.safetensors", SafetensorsFile(tensors));
    return;
  }
  std::vector<PublishedTensors> parts(static_cast<size_t>(num_files));
  json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", json::object()}};
  const auto name_of = [&](size_t part) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, num_files);
  };
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    index["weight_map"][name] = name_of(at);
    parts[at][name] = tensor;
    at = (at + 1) % parts.size();
  }
  for (size_t part = 0; part < parts.size(); ++part) {
    WriteText(directory + "/" + name_of(part), SafetensorsFile(parts[part]));
  }
  WriteText(directory + "/model.safetensors.index.json", index.dump(2));
}

}  // namespace shardc
