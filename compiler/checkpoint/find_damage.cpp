#include "compiler/checkpoint/find_damage.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/safetensors.h"

namespace shardc {

/// Returns the tensors that the manifest has in a file, for a file whose own header does not read.
static auto TensorsByManifest(const Manifest& manifest, const std::string& file) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const StateRole role : RolesOf(manifest, tensor)) {
      if (std::ranges::any_of(PiecesOf(manifest, tensor, role),
                              [&](const Piece& piece) { return piece.file == file; })) {
        names.push_back(StoredName(name, role));
      }
    }
  }
  return names;
}

/// Returns the tensors that have bytes in a range of an open file.
static auto TensorsIn(const Descriptor& file, const Manifest& manifest, const std::string& name, Interval bytes)
    -> std::vector<std::string> {
  const auto header = ReadSafetensorsHeader(file);
  if (!header) {
    return TensorsByManifest(manifest, name);
  }
  std::vector<std::string> names;
  for (const SafetensorsTensor& tensor : header->tensors) {
    if (header->data_begin + tensor.data.begin < bytes.end && bytes.begin < header->data_begin + tensor.data.end) {
      names.push_back(tensor.name);
    }
  }
  return names;
}

/// Returns the blocks of an open file that differ from their digests; neighbours are one range.
static auto DamagedBlocks(const Descriptor& file, const Manifest& manifest, const std::string& name, int64_t bytes,
                          const std::vector<DigestBytes>& digests, std::atomic<int64_t>& bytes_read)
    -> std::vector<Damage> {
  std::vector<std::byte> read(static_cast<size_t>(BlockBytes));
  std::vector<Damage> all;
  for (size_t block = 0; block < digests.size(); ++block) {
    const Interval own = BlockAt(static_cast<int64_t>(block), bytes);
    const Status status = ReadAll(file, read.data(), own.size(), own.begin);
    bytes_read += own.size();
    if (status && DigestBytesOf(read.data(), own.size()) == digests[block]) {
      continue;
    }
    if (!all.empty() && all.back().bytes.end == own.begin) {
      all.back().bytes.end = own.end;
    } else {
      all.push_back({.file = name,
                     .bytes = own,
                     .tensors = {},
                     .why = status ? "their digest is another" : status.error().message});
    }
  }
  for (Damage& own : all) {
    own.tensors = TensorsIn(file, manifest, name, own.bytes);
  }
  return all;
}

/// Returns the damage of one file.
static auto DamageOfFile(const Descriptor& directory, const Manifest& manifest, const std::string& name,
                         std::atomic<int64_t>& bytes_read) -> std::vector<Damage> {
  const ManifestFile& expected = manifest.files.at(name);
  Damage whole{.file = name, .bytes = {0, expected.bytes}, .tensors = {}, .why = ""};
  const auto file = OpenFileAt(directory, name);
  const auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    whole.tensors = TensorsByManifest(manifest, name);
    whole.why = bytes.error().message;
    return {whole};
  }
  if (*bytes != expected.bytes) {
    whole.why = fmt::format("it has {} bytes, the manifest says {}", *bytes, expected.bytes);
  } else if (manifest.version >= Manifest::DigestsBlocks) {
    const auto digests = ReadBlockDigests(directory, name, *bytes, expected.digest);
    if (digests) {
      return DamagedBlocks(*file, manifest, name, *bytes, *digests, bytes_read);
    }
    whole.file = BlocksName(name);
    whole.bytes = {0, NumBlocks(*bytes) * static_cast<int64_t>(sizeof(DigestBytes))};
    whole.tensors = TensorsByManifest(manifest, name);
    whole.why = digests.error().message;
    return {whole};
  } else if (const auto digest = DigestOf(*file, *bytes, [&](int64_t more) { bytes_read += more; }); !digest) {
    whole.why = digest.error().message;
  } else if (*digest != expected.digest) {
    whole.why = fmt::format("its digest is {}, the manifest says {}", *digest, expected.digest);
  }
  if (whole.why.empty()) {
    return {};
  }
  whole.tensors = TensorsIn(*file, manifest, name, whole.bytes);
  return {whole};
}

auto FindDamage(const Descriptor& directory, const Manifest& manifest, int num_threads,
                std::atomic<int64_t>& bytes_read) -> std::vector<Damage> {
  std::vector<std::string> names;
  for (const auto& [name, file] : manifest.files) {
    names.push_back(name);
  }
  std::vector<std::vector<Damage>> by_file(names.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < names.size(); i = next++) {
      by_file[i] = DamageOfFile(directory, manifest, names[i], bytes_read);
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 1; i < num_threads; ++i) {
      threads.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // Those that run do the work.
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<Damage> all;
  for (const std::vector<Damage>& own : by_file) {
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace shardc
