#include "compiler/data/megatron_index.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace shardc {

constexpr std::string_view Magic("MMIDIDX\0\0", 9);
constexpr int64_t HeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr int64_t LengthBytes = 4;
constexpr int64_t PointerBytes = 8;
/// Entries that are read at once.
constexpr int64_t EntriesAtOnce = 64 << 10;

auto IndexPathOf(const std::string& bin_path) -> std::string {
  return bin_path.substr(0, bin_path.size() - std::min<size_t>(bin_path.size(), 4)) + ".idx";
}

/// Nothing for a type that no ids have.
static auto IdTypeOf(uint8_t code) -> IdType {
  switch (code) {
    case 1: return {.bytes = 1};
    case 3: return {.bytes = 2, .is_signed = true};
    case 4: return {.bytes = 4, .is_signed = true};
    case 5: return {.bytes = 8, .is_signed = true};
    case 8: return {.bytes = 2};
    default: return {};
  }
}

auto MegatronIndex::begin_of_lengths() const -> int64_t { return HeaderBytes; }
auto MegatronIndex::begin_of_pointers() const -> int64_t { return HeaderBytes + LengthBytes * num_sequences_; }

auto MegatronIndex::begin_of_documents() const -> int64_t {
  return begin_of_pointers() + PointerBytes * num_sequences_;
}

auto MegatronIndex::Read(void* data, int64_t bytes, int64_t offset) const -> Status {
  const Status read = ReadAll(file_, data, bytes, offset);
  return read ? read : Status(Fail(ExitCode::RecipeRejected, "{} file: {}", noun_, read.error().message));
}

auto MegatronIndex::Open(const std::string& bin_path, int64_t bin_bytes, const FilePurpose& purpose)
    -> ErrorOr<MegatronIndex> {
  FAIL_IF(!bin_path.ends_with(".bin"), ExitCode::RecipeRejected,
          "{} file {}: with `data.format` = megatron, name the .bin of each dataset; its .idx lies beside it",
          purpose.noun, bin_path);
  auto file = OpenDataFile(IndexPathOf(bin_path), purpose);
  FAIL_IF(!file, ExitCode::RecipeRejected, "{}; with `data.format` = megatron, {} has its index there",
          file.error().message, bin_path);
  MegatronIndex index(*std::move(file), purpose.noun, bin_bytes);
  RETURN_IF_ERROR(index.ReadHeader());
  RETURN_IF_ERROR(index.CheckEnd());
  return index;
}

auto MegatronIndex::ReadHeader() -> Status {
  const auto reject = [&](const std::string& what) {
    return Fail(ExitCode::RecipeRejected, "{} file {} {}", noun_, file_.path(), what);
  };
  const auto file_bytes = FileBytes(file_);
  FAIL_IF(!file_bytes, ExitCode::RecipeRejected, "{} file: {}", noun_, file_bytes.error().message);
  if (*file_bytes < HeaderBytes) {
    return reject(fmt::format("has {} bytes, and the header of Megatron's index has {}", *file_bytes, HeaderBytes));
  }
  std::vector<char> bytes(HeaderBytes);
  RETURN_IF_ERROR(Read(bytes.data(), HeaderBytes, 0));
  const auto number = [&](size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  if (std::string_view(bytes.data(), Magic.size()) != Magic) {
    return reject("does not begin with MMIDIDX, as Megatron's index does");
  }
  if (const uint64_t version = number(9); version != 1) {
    return reject(fmt::format("has version {} of Megatron's index; this program reads version 1", version));
  }
  const auto code = static_cast<uint8_t>(bytes[17]);
  type_ = IdTypeOf(code);
  if (type_.bytes == 0) {
    return reject(
        fmt::format("has ids of type {}; this program reads 1 (uint8), 3 (int16), 4 (int32), 5 (int64) and 8 "
                    "(uint16)",
                    code));
  }
  const uint64_t sequences = number(18);
  const uint64_t documents = number(26);
  // Each takes bytes of the file; so bounded, the sums below do not overflow.
  const auto most = static_cast<uint64_t>(*file_bytes);
  const bool is_bounded = sequences <= most && documents <= most;
  const int64_t expected = is_bounded ? HeaderBytes + static_cast<int64_t>(sequences) * (LengthBytes + PointerBytes) +
                                            static_cast<int64_t>(documents) * PointerBytes
                                      : 0;
  const bool has_modes = is_bounded && sequences > 0 && *file_bytes == expected + static_cast<int64_t>(sequences);
  if (!is_bounded || (*file_bytes != expected && !has_modes)) {
    return reject(
        fmt::format("has {} bytes, which is not the size of an index of {} sequences and {} entries of "
                    "documents; write it again",
                    *file_bytes, sequences, documents));
  }
  num_sequences_ = static_cast<int64_t>(sequences);
  num_entries_of_documents_ = static_cast<int64_t>(documents);
  return Success{};
}

auto MegatronIndex::CheckEnd() const -> Status {
  int64_t end = 0;
  if (num_sequences_ > 0) {
    int32_t length = 0;
    int64_t pointer = 0;
    RETURN_IF_ERROR(Read(&length, LengthBytes, begin_of_pointers() - LengthBytes));
    RETURN_IF_ERROR(Read(&pointer, PointerBytes, begin_of_pointers() + PointerBytes * (num_sequences_ - 1)));
    // A pointer of any bytes: as an unsigned number, the sum has no overflow.
    end = static_cast<int64_t>(static_cast<uint64_t>(pointer) + static_cast<uint64_t>(length * type_.bytes));
  }
  FAIL_IF(end != bin_bytes_, ExitCode::RecipeRejected,
          "{} file {}: its last sequence ends at byte {}, and the .bin beside it has {} bytes; the two do not "
          "belong together, or one is cut short",
          noun_, file_.path(), end, bin_bytes_);
  return Success{};
}

auto MegatronIndex::CheckEntries() const -> Status {
  RETURN_IF_ERROR(CheckSequences());
  return CheckDocuments();
}

auto MegatronIndex::CheckSequences() const -> Status {
  std::vector<int32_t> lengths(static_cast<size_t>(std::min(EntriesAtOnce, num_sequences_)));
  std::vector<int64_t> pointers(lengths.size());
  uint64_t expected = 0;
  for (int64_t begin = 0; begin < num_sequences_; begin += EntriesAtOnce) {
    const int64_t count = std::min(EntriesAtOnce, num_sequences_ - begin);
    RETURN_IF_ERROR(Read(lengths.data(), count * LengthBytes, begin_of_lengths() + begin * LengthBytes));
    RETURN_IF_ERROR(Read(pointers.data(), count * PointerBytes, begin_of_pointers() + begin * PointerBytes));
    for (int64_t i = 0; i < count; ++i) {
      const int32_t length = lengths[static_cast<size_t>(i)];
      const int64_t pointer = pointers[static_cast<size_t>(i)];
      FAIL_IF(length < 0 || static_cast<uint64_t>(pointer) != expected, ExitCode::RecipeRejected,
              "{} file {}: sequence {} has {} ids from byte {}, and the one before it ends at byte {}; datasets "
              "whose sequences do not follow one another are not read",
              noun_, file_.path(), begin + i, length, pointer, expected);
      expected += static_cast<uint64_t>(length * type_.bytes);
    }
  }
  return Success{};
}

auto MegatronIndex::ForEachDocumentEnd(const std::function<void(int64_t)>& visit) const -> Status {
  std::vector<int64_t> firsts(static_cast<size_t>(std::min(EntriesAtOnce, num_documents())));
  // The beginnings of sequences from `begin_of_read` on.
  std::vector<int64_t> pointers;
  int64_t begin_of_read = 0;
  const auto begin_of = [&](int64_t sequence) -> ErrorOr<int64_t> {
    if (sequence == num_sequences_) {
      return bin_bytes_;
    }
    if (sequence - begin_of_read >= std::ssize(pointers)) {
      begin_of_read = sequence;
      pointers.resize(static_cast<size_t>(std::min(EntriesAtOnce, num_sequences_ - sequence)));
      RETURN_IF_ERROR(Read(pointers.data(), std::ssize(pointers) * PointerBytes,
                           begin_of_pointers() + begin_of_read * PointerBytes));
    }
    return pointers[static_cast<size_t>(sequence - begin_of_read)];
  };
  for (int64_t begin = 0; begin < num_documents(); begin += EntriesAtOnce) {
    const int64_t count = std::min(EntriesAtOnce, num_documents() - begin);
    // A document ends where the next one begins, and the table's last entry is the end of the last.
    RETURN_IF_ERROR(Read(firsts.data(), count * PointerBytes, begin_of_documents() + (begin + 1) * PointerBytes));
    for (int64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const int64_t end, begin_of(firsts[static_cast<size_t>(i)]));
      visit(end / type_.bytes);
    }
  }
  return Success{};
}

auto MegatronIndex::CheckDocuments() const -> Status {
  const auto reject = [&](const std::string& what) {
    return Fail(ExitCode::RecipeRejected, "{} file {}: {}; write the index again", noun_, file_.path(), what);
  };
  if (num_entries_of_documents_ == 0) {
    return reject("it has no table of documents");
  }
  std::vector<int64_t> firsts(static_cast<size_t>(std::min(EntriesAtOnce, num_entries_of_documents_)));
  int64_t last = 0;
  for (int64_t begin = 0; begin < num_entries_of_documents_; begin += EntriesAtOnce) {
    const int64_t count = std::min(EntriesAtOnce, num_entries_of_documents_ - begin);
    RETURN_IF_ERROR(Read(firsts.data(), count * PointerBytes, begin_of_documents() + begin * PointerBytes));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = firsts[static_cast<size_t>(i)];
      if (begin + i == 0 && first != 0) {
        return reject(fmt::format("entry 0 of the table of documents is sequence {}, expected 0", first));
      }
      if (first < last || first > num_sequences_) {
        return reject(fmt::format(
            "entry {} of the table of documents is sequence {}, the one before it {}, and there are {} sequences",
            begin + i, first, last, num_sequences_));
      }
      last = first;
    }
  }
  return last == num_sequences_
             ? Status(Success{})
             : Status(reject(fmt::format("the last document ends before sequence {}, and there are {} sequences", last,
                                         num_sequences_)));
}

}  // namespace shardc
