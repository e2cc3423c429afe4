#include "compiler/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "compiler/base/json_reader.h"
#include "compiler/base/text/json_text.h"
#include "compiler/checkpoint/checked_multiply.h"
#include "compiler/checkpoint/digest.h"

namespace shardc {

using nlohmann::json;

namespace {

struct StoredDType {
  std::string_view name;
  int64_t bits;
};
/// Source: safetensors/src/tensor.rs (Dtype::bitsize).
constexpr std::array StoredDTypes{std::to_array<StoredDType>(
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}})};

/// Returns the row of a type that is known, or the end.
auto FindStoredDType(std::string_view name) {
  return std::find_if(StoredDTypes.begin(), StoredDTypes.end(),
                      [&](const StoredDType& row) { return row.name == name; });
}

auto ReadTensor(const std::string& name, const JsonReader& entry) -> ErrorOr<SafetensorsTensor> {
  SafetensorsTensor tensor{.name = name};
  ASSIGN_OR_RETURN(tensor.dtype, entry.String("dtype"));
  const auto known = FindStoredDType(tensor.dtype);
  FAIL_IF(known == StoredDTypes.end(), ExitCode::Checkpoint, "dtype \"{}\" is not known", tensor.dtype);

  ASSIGN_OR_RETURN(auto shape, entry.Member("shape"));
  FAIL_IF(!shape->is_array() || shape->size() > Dims::max_size(), ExitCode::Checkpoint,
          "\"shape\" is no list of at most {} numbers", Dims::max_size());
  int64_t elements = 1;
  for (const json& item : *shape) {
    auto dim = JsonCount(item, ExitCode::Checkpoint);
    auto product = dim ? CheckedMultiply(elements, *dim) : dim;
    FAIL_IF(!product, ExitCode::Checkpoint, "\"shape\": {}", product.error().message);
    elements = *product;
    tensor.shape.push_back(*dim);
  }
  const auto bits = CheckedMultiply(elements, known->bits);
  FAIL_IF(!bits || *bits % 8 != 0, ExitCode::Checkpoint, "\"shape\": {}",
          bits ? fmt::format("{} bits are no whole bytes", *bits) : bits.error().message);
  const int64_t bytes = *bits / 8;

  ASSIGN_OR_RETURN(auto offsets, entry.Member("data_offsets"));
  FAIL_IF(!offsets->is_array() || offsets->size() != 2, ExitCode::Checkpoint, "\"data_offsets\" is no pair of numbers");
  const auto begin = JsonCount((*offsets)[0], ExitCode::Checkpoint);
  const auto end = JsonCount((*offsets)[1], ExitCode::Checkpoint);
  FAIL_IF(!begin || !end, ExitCode::Checkpoint, "\"data_offsets\": {}", (begin ? end : begin).error().message);
  tensor.data = {*begin, *end};
  FAIL_IF(*begin > *end || *end - *begin != bytes, ExitCode::Checkpoint,
          "data_offsets are [{}, {}], shape {} of {} takes {} bytes", *begin, *end, ToText(tensor.shape), tensor.dtype,
          bytes);
  return tensor;
}

}  // namespace

auto ReadSafetensorsHeader(int64_t file_bytes, const ReadBytes& read) -> ErrorOr<SafetensorsHeader> {
  constexpr int64_t LengthBytes = 8;
  FAIL_IF(file_bytes < LengthBytes, ExitCode::Checkpoint, "{} bytes are no safetensors file", file_bytes);
  uint64_t length = 0;
  RETURN_IF_ERROR(read(&length, LengthBytes, 0));
  FAIL_IF(length == 0 || length > static_cast<uint64_t>(MaxSafetensorsHeaderBytes), ExitCode::Checkpoint,
          "a header of {} bytes; the format allows 1 to {}", length, MaxSafetensorsHeaderBytes);
  FAIL_IF(static_cast<int64_t>(length) > file_bytes - LengthBytes, ExitCode::Checkpoint,
          "a header of {} bytes in a file of {}", length, file_bytes);
  std::string text(length, '\0');
  RETURN_IF_ERROR(read(text.data(), static_cast<int64_t>(length), LengthBytes));
  auto parsed = ParseJson(text, ExitCode::Checkpoint);
  FAIL_IF(!parsed || !parsed->is_object(), ExitCode::Checkpoint, "its header: {}",
          parsed ? "no object" : parsed.error().message);

  SafetensorsHeader header;
  header.data_begin = LengthBytes + static_cast<int64_t>(length);
  header.digest = DigestOf(text);
  for (const auto& [name, entry] : parsed->items()) {
    if (name == "__metadata__") {
      // Null has no items.
      FAIL_IF(!entry.is_object() && !entry.is_null(), ExitCode::Checkpoint, "__metadata__ is no object");
      for (const auto& [key, value] : entry.items()) {
        FAIL_IF(!value.is_string(), ExitCode::Checkpoint, "__metadata__ \"{}\" is no string", key);
        header.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    auto tensor = ReadTensor(name, JsonReader(entry, ExitCode::Checkpoint));
    FAIL_IF(!tensor, ExitCode::Checkpoint, "tensor \"{}\": {}", name, tensor.error().message);
    header.tensors.push_back(std::move(*tensor));
  }

  std::sort(header.tensors.begin(), header.tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::pair(a.data.begin, a.data.end) < std::pair(b.data.begin, b.data.end);
  });
  int64_t covered = 0;
  for (const SafetensorsTensor& tensor : header.tensors) {
    FAIL_IF(tensor.data.begin != covered, ExitCode::Checkpoint,
            "tensor \"{}\" begins at byte {} of the data, the one before it ends at {}", tensor.name, tensor.data.begin,
            covered);
    covered = tensor.data.end;
  }
  FAIL_IF(covered != file_bytes - header.data_begin, ExitCode::Checkpoint,
          "its tensors take {} bytes, and {} follow the header", covered, file_bytes - header.data_begin);
  return header;
}

auto ReadSafetensorsHeader(const Descriptor& file) -> ErrorOr<SafetensorsHeader> {
  const auto read = [&](void* to, int64_t bytes, int64_t offset) { return ReadAll(file, to, bytes, offset); };
  const auto bytes = FileBytes(file);
  auto header = bytes ? ReadSafetensorsHeader(*bytes, read) : bytes.error();
  FAIL_IF(!header, header.error().code, "{}: {}", file.path(), header.error().message);
  return header;
}

auto SafetensorsTypeOf(DType dtype) -> std::string_view {
  switch (dtype) {
    case DType::F32: return "F32";
    case DType::F64: return "F64";
    case DType::BF16: return "BF16";
    case DType::F16: return "F16";
    case DType::I32: return "I32";
    case DType::I64: return "I64";
  }
  CHECK(false, "element type {}", static_cast<int>(dtype));
}

template <class Numbers>
static auto IntegersOf(const Numbers& numbers) -> std::string {
  JsonList list;
  for (const int64_t number : numbers) {
    list.Json(std::to_string(number));
  }
  return list.text();
}

auto SafetensorsHeaderText(std::vector<SafetensorsTensor>& tensors, const std::map<std::string, std::string>& metadata)
    -> ErrorOr<std::string> {
  constexpr size_t Alignment = 8;
  JsonObject metadata_object;
  for (const auto& [key, value] : metadata) {
    metadata_object.Text(key, value);
  }
  // A tensor a line, in order of the data.
  JsonObject header(",\n");
  header.Json("__metadata__", metadata_object.text());
  std::unordered_set<std::string_view> names;
  int64_t offset = 0;
  for (SafetensorsTensor& tensor : tensors) {
    FAIL_IF(!names.insert(tensor.name).second, ExitCode::Checkpoint, "two tensors would be stored as {}", tensor.name);
    const auto known = FindStoredDType(tensor.dtype);
    CHECK(known != StoredDTypes.end(), "tensor {} of {}", tensor.name, tensor.dtype);
    tensor.data = {offset, offset + NumElements(tensor.shape) * known->bits / 8};
    offset = tensor.data.end;
    JsonObject entry;
    entry.Text("dtype", tensor.dtype)
        .Json("shape", IntegersOf(tensor.shape))
        .Json("data_offsets", IntegersOf(std::array{tensor.data.begin, tensor.data.end}));
    header.Json(tensor.name, entry.text());
  }
  std::string text = header.text();
  text.append((Alignment - text.size() % Alignment) % Alignment, ' ');
  FAIL_IF(static_cast<int64_t>(text.size()) > MaxSafetensorsHeaderBytes, ExitCode::Checkpoint,
          "a safetensors header of {} bytes; the format allows {}", text.size(), MaxSafetensorsHeaderBytes);
  const auto length = static_cast<uint64_t>(text.size());
  std::string field(sizeof(length), '\0');
  std::memcpy(field.data(), &length, sizeof(length));
  return field + text;
}

}  // namespace shardc
