#include "compiler/checkpoint/find_damage.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <thread>

#include "compiler/base/copied_pieces.h"
#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/safetensors.h"
#include "compiler/checkpoint/stored_tensor.h"

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

/// Returns the tensors that have bytes in a range of a file.
static auto TensorsIn(const Descriptor& directory, const Manifest& manifest, const Damage& damage)
    -> std::vector<std::string> {
  const auto file = OpenFileAt(directory, damage.file);
  const auto header = file ? ReadSafetensorsHeader(*file) : file.error();
  if (!header) {
    return TensorsByManifest(manifest, damage.file);
  }
  std::vector<std::string> names;
  for (const SafetensorsTensor& tensor : header->tensors) {
    if (header->data_begin + tensor.data.begin < damage.bytes.end &&
        damage.bytes.begin < header->data_begin + tensor.data.end) {
      names.push_back(tensor.name);
    }
  }
  return names;
}

/// Adds damage; what is next to the last one becomes one range with it.
static auto Add(Damage damage, std::vector<Damage>& all) -> void {
  if (!all.empty() && all.back().file == damage.file && all.back().bytes.end == damage.bytes.begin) {
    all.back().bytes.end = damage.bytes.end;
  } else {
    all.push_back(std::move(damage));
  }
}

namespace {

/// One of the equal parts of a file's blocks.
struct FilePart {
  std::string file;
  int64_t part = 0;
  int64_t num_parts = 1;
};

}  // namespace

/// Returns the blocks of a part that differ from their digests.
static auto DamagedBlocks(const Descriptor& file, int64_t bytes, const std::vector<DigestBytes>& digests,
                          const FilePart& part, std::atomic<int64_t>& bytes_read) -> std::vector<Damage> {
  const auto read = std::make_unique_for_overwrite<BlockBuffer>();
  std::vector<Damage> all;
  const int64_t num_blocks = std::ssize(digests);
  const int64_t end = num_blocks * (part.part + 1) / part.num_parts;
  for (int64_t block = num_blocks * part.part / part.num_parts; block < end; ++block) {
    const Interval own = BlockAt(block, bytes);
    const Status status = ReadAll(file, read->bytes.data(), own.size(), own.begin);
    bytes_read += own.size();
    if (!status || DigestBytesOf(read->bytes.data(), own.size()) != digests[static_cast<size_t>(block)]) {
      Add({.file = part.file,
           .bytes = own,
           .tensors = {},
           .why = status ? "their digest is another" : status.error().message},
          all);
    }
  }
  return all;
}

/// Returns the damage of a part of a file. The first part has what is wrong with the file as a whole.
static auto DamageOfPart(const Descriptor& directory, const Manifest& manifest, const FilePart& part,
                         std::atomic<int64_t>& bytes_read) -> std::vector<Damage> {
  const ManifestFile& expected = manifest.files.at(part.file);
  Damage whole{.file = part.file, .bytes = {0, expected.bytes}, .tensors = {}, .why = ""};
  const auto file = OpenFileAt(directory, part.file);
  const auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    whole.why = bytes.error().message;
  } else if (*bytes != expected.bytes) {
    whole.why = fmt::format("it has {} bytes, the manifest says {}", *bytes, expected.bytes);
  } else if (manifest.digests_blocks()) {
    const auto digests = ReadBlockDigests(directory, part.file, *bytes, expected.digest);
    if (digests) {
      return DamagedBlocks(*file, *bytes, *digests, part, bytes_read);
    }
    whole.file = BlocksName(part.file);
    whole.bytes = {0, NumBlocks(*bytes) * static_cast<int64_t>(sizeof(DigestBytes))};
    whole.tensors = TensorsByManifest(manifest, part.file);
    whole.why = digests.error().message;
  } else if (const auto digest = DigestOf(*file, *bytes, [&](int64_t more) { bytes_read += more; }); !digest) {
    whole.why = digest.error().message;
  } else if (*digest != expected.digest) {
    whole.why = fmt::format("its digest is {}, the manifest says {}", *digest, expected.digest);
  }
  return whole.why.empty() || part.part > 0 ? std::vector<Damage>() : std::vector{whole};
}

auto FindDamage(const Descriptor& directory, const Manifest& manifest, int num_threads,
                std::atomic<int64_t>& bytes_read) -> std::vector<Damage> {
  std::vector<FilePart> parts;
  for (const auto& [name, file] : manifest.files) {
    const int64_t num_parts = manifest.digests_blocks() ? num_threads : 1;
    for (int64_t part = 0; part < num_parts; ++part) {
      parts.push_back({.file = name, .part = part, .num_parts = num_parts});
    }
  }
  std::vector<std::vector<Damage>> by_part(parts.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) {
      by_part[i] = DamageOfPart(directory, manifest, parts[i], bytes_read);
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
  for (std::vector<Damage>& of_part : by_part) {
    for (Damage& own : of_part) {
      Add(std::move(own), all);
    }
  }
  for (Damage& own : all) {
    if (own.tensors.empty()) {
      own.tensors = TensorsIn(directory, manifest, own);
    }
  }
  return all;
}

auto FindDamageOfBase(const Descriptor& directory, const Manifest& manifest, std::atomic<int64_t>& bytes_read)
    -> std::vector<Damage> {
  if (!manifest.base) {
    return {};
  }
  CheckpointFiles files(&directory, &manifest);
  if (const Status opened = files.OpenItsBase(); !opened) {
    return {{.file = manifest.base->path, .bytes = {}, .tensors = {}, .why = opened.error().message}};
  }
  constexpr int64_t ElementsAtOnce = int64_t{1} << 18;
  std::vector<Damage> all;
  std::vector<std::byte> elements;
  for (const auto& [name, own] : manifest.tensors) {
    if (!own.in_base) {
      continue;
    }
    StoredTensor tensor(&files, manifest, name);
    const int64_t size = SizeOf(tensor.dtype());
    elements.resize(static_cast<size_t>(std::min(ElementsAtOnce, tensor.num_elements()) * size));
    const Status read = ForEachPiece(tensor.num_elements(), ElementsAtOnce, [&](int64_t begin, int64_t count) {
      bytes_read += count * size;
      return tensor.Read(begin, begin + count, elements.data());
    });
    if (!read) {
      all.push_back({.file = manifest.base->path, .bytes = {}, .tensors = {name}, .why = read.error().message});
    }
  }
  return all;
}

}  // namespace shardc
