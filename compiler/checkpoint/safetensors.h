// safetensors: an 8-byte little-endian header length, a JSON header, then the tensors' bytes. The reader trusts
// nothing. Source: huggingface/safetensors, README "Format" and safetensors/src/tensor.rs (SafeTensors::read_metadata,
// validate).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/types.h"

namespace shardc {

struct SafetensorsTensor {
  std::string name;
  /// As the format spells it: "F32".
  std::string dtype;
  Dims shape;
  /// In bytes from the end of the header.
  Interval data;
};

struct SafetensorsHeader {
  /// Bytes before the first tensor's: length field and header.
  int64_t data_begin = 0;
  /// In order of their bytes.
  std::vector<SafetensorsTensor> tensors;
  std::map<std::string, std::string> metadata;
  /// XXH3-128 of the header's text.
  std::string digest;
};

/// Returns "F32" for f32.
auto SafetensorsTypeOf(DType dtype) -> std::string_view;

constexpr int64_t MaxSafetensorsHeaderBytes = 100'000'000;

/// Reads and checks the header of an open file: length within the file and the limit, an object, depth, duplicates,
/// known dtypes, shape times element size equal to the bytes, tensors one after another without hole or overlap up to
/// the end of the file. It takes what the package safetensors takes, but for what docs/hugging_face.md names.
/// Errors: ExitCode::Checkpoint, naming file and tensor. Cost: linear but for the sort by offset.
auto ReadSafetensorsHeader(const Descriptor& file) -> ErrorOr<SafetensorsHeader>;

/// Reads bytes of a file from an offset on.
using ReadBytes = std::function<Status(void* to, int64_t bytes, int64_t offset)>;
/// Reads and checks the header of a file of `file_bytes` bytes by `read`. Errors: as above, without the file's name.
auto ReadSafetensorsHeader(int64_t file_bytes, const ReadBytes& read) -> ErrorOr<SafetensorsHeader>;

/// Returns length field and header for tensors that follow one another in this order; `data` of each is filled in.
/// Padded with blanks to a multiple of 8 bytes. Errors: a name twice, or a header beyond the limit.
auto SafetensorsHeaderText(std::vector<SafetensorsTensor>& tensors, const std::map<std::string, std::string>& metadata)
    -> ErrorOr<std::string>;

}  // namespace shardc
