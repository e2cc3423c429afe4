#include "runtime/core/generate.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/base/bfloat16.h"
#include "compiler/base/files.h"
#include "compiler/checkpoint/safetensors.h"
#include "compiler/expr/random.h"

namespace shardc {

namespace {

/// An id that may be the next one. Of two with one score the lower id is taken.
struct NextId {
  double score = -INFINITY;
  int64_t id = -1;

  auto IsBefore(const NextId& other) const -> bool {
    return score > other.score || (score == other.score && id >= 0 && (other.id < 0 || id < other.id));
  }
};

/// Draws from the law of Gumbel, for one id at one place: the id with the greatest sum of logit / temperature and draw
/// is a sample of the softmax. Source: Maddison, Tarlow, Minka 2014, "A* Sampling", sec. 2.
class GumbelDraws {
 public:
  explicit GumbelDraws(uint64_t seed) : key_(RandomKey(seed, "sampled ids")) {}

  auto At(int64_t place, int64_t id) -> double {
    const int64_t block = id / ElementsPerBlock;
    if (place != place_ || block != block_) {
      words_ = Philox4x32({static_cast<uint64_t>(block), 0, static_cast<uint64_t>(place), RandomPurposeSample}, key_);
      place_ = place;
      block_ = block;
    }
    const auto word = static_cast<double>(words_[static_cast<size_t>(id % ElementsPerBlock)]);
    return -std::log(-std::log((word + 0.5) * 0x1p-32));
  }

 private:
  /// The last word of the counter, which says what is drawn for. That of init rules is 0.
  static constexpr uint64_t RandomPurposeSample = 1;

  PhiloxKey<uint64_t> key_;
  int64_t place_ = -1;
  int64_t block_ = -1;
  PhiloxBlock<uint64_t> words_{};
};

auto LogitOf(DType dtype, const std::byte* row, int64_t column) -> double {
  return dtype == DType::BF16 ? Load(reinterpret_cast<const BFloat16*>(row)[column])
                              : Load(reinterpret_cast<const float*>(row)[column]);
}

/// Writes to the terminal, or wherever stdout goes, at once.
auto Print(std::string_view text) -> Status {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    const int code = errno;
    return Fail(ExitCode::Environment, "cannot write to stdout: {}", std::strerror(code));
  }
  return Success{};
}

auto PrintId(const GenerateRequest& request, int64_t id) -> Status {
  if (!request.are_bytes) {
    return Print(fmt::format("{}\n", id));
  }
  if (id > UINT8_MAX) {
    return Fail(ExitCode::Usage, "\nid {} was sampled, which is no byte; use --prompt-ids, which prints ids", id);
  }
  return Print(std::string(1, static_cast<char>(id)));
}

/// The file of logits: [ids, vocabulary] in the type that the model computes in, and the ids.
class LogitsFile {
 public:
  static auto Create(const GenerateRequest& request, int64_t vocab, DType dtype) -> ErrorOr<LogitsFile> {
    const int64_t num_ids = std::ssize(request.ids);
    const int64_t bytes_of_logits = num_ids * vocab * SizeOf(dtype);
    std::vector<SafetensorsTensor> tensors{
        {"logits", std::string(SafetensorsTypeOf(dtype)), {num_ids, vocab}, {0, bytes_of_logits}},
        {"tokens", std::string(SafetensorsTypeOf(DType::I32)), {num_ids}, {}}};
    ASSIGN_OR_RETURN(const auto header, SafetensorsHeaderText(tensors, {}));
    ASSIGN_OR_RETURN(auto file, AtomicFile::Create(request.logits));
    RETURN_IF_ERROR(file.Append(header));
    const auto begin = static_cast<int64_t>(header.size());
    const std::string_view ids(reinterpret_cast<const char*>(request.ids.data()), request.ids.size() * sizeof(int32_t));
    RETURN_IF_ERROR(file.Overwrite(begin + bytes_of_logits, ids));
    return LogitsFile(std::move(file), begin, vocab, SizeOf(dtype));
  }

  auto Put(int64_t id, int64_t column, std::string_view bytes) -> Status {
    return file_.Overwrite(begin_ + (id * vocab_ + column) * element_, bytes);
  }
  auto Commit() -> Status { return file_.Commit(); }

 private:
  LogitsFile(AtomicFile file, int64_t begin, int64_t vocab, int64_t element)
      : file_(std::move(file)), begin_(begin), vocab_(vocab), element_(element) {}

  AtomicFile file_;
  int64_t begin_;
  int64_t vocab_;
  /// Bytes of a logit.
  int64_t element_;
};

}  // namespace

static auto SampleIds(BoundRank& rank, const GenerateRequest& request) -> Status {
  std::vector<int32_t> ids = request.ids;
  const auto last_of = [&](const std::vector<int32_t>& all) {
    return std::vector<int32_t>(all.end() - std::min<int64_t>(std::ssize(all), rank.plan().data.seq), all.end());
  };
  if (rank.leads() && request.are_bytes) {
    for (const int32_t id : ids) {
      RETURN_IF_ERROR(PrintId(request, id));
    }
  }
  GumbelDraws draws(request.seed);
  const auto end_text = [&] { return rank.leads() && request.are_bytes ? Print("\n") : Success{}; };
  for (int64_t place = 0; place < request.num_sampled; ++place) {
    if (const Status goes_on = rank.CheckStop(place, request.num_sampled, "id"); !goes_on) {
      RETURN_IF_ERROR(end_text());
      return goes_on;
    }
    const std::vector<int32_t> window = last_of(ids);
    const int64_t last = std::ssize(window) - 1;
    rank.tokens().SetEvalIds(window);
    NextId best;
    rank.logits()->see = [&](LogitsPart& part) -> Status {
      const int64_t position = last - part.first_position;
      if (part.first_sample != 0 || position < 0 || position >= part.positions()) {
        return Success{};
      }
      ASSIGN_OR_RETURN(const auto row, part.Row(position, 0));
      for (int64_t column = 0; column < part.columns; ++column) {
        const int64_t id = part.first_column + column;
        const double logit = LogitOf(part.dtype(), row, column);
        const NextId candidate{request.temperature == 0 ? logit : logit / request.temperature + draws.At(place, id),
                               id};
        best = candidate.IsBefore(best) ? candidate : best;
      }
      return Success{};
    };
    RETURN_IF_ERROR(rank.RunSection(SectionKind::Eval));
    ASSIGN_OR_RETURN(const auto all, rank.control().GatherValues(AxisSet::All(), best));
    for (const NextId& candidate : all) {
      best = candidate.IsBefore(best) ? candidate : best;
    }
    CHECK(best.id >= 0, "no rank has a logit of the last position");
    ids.push_back(static_cast<int32_t>(best.id));
    if (rank.leads()) {
      RETURN_IF_ERROR(PrintId(request, best.id));
    }
  }
  return end_text();
}

static auto WriteLogits(BoundRank& rank, const GenerateRequest& request) -> Status {
  /// A part of a row, as a rank has it. Its logits follow.
  struct RowPiece {
    int64_t id = 0;
    int64_t column = 0;
    int64_t columns = 0;
  };
  const int64_t num_ids = std::ssize(request.ids);
  std::optional<LogitsFile> file;
  std::vector<std::byte> mine;
  std::vector<std::byte> all;
  rank.tokens().SetEvalIds(request.ids);
  const int64_t num_ranks = rank.plan().mesh.num_ranks();
  // Rank 0 writes what all have of a row, piece by piece, and needs no folder that the hosts share.
  rank.logits()->see = [&](LogitsPart& part) -> Status {
    const int64_t element = SizeOf(part.dtype());
    const int64_t capacity = RankControl::MaxBytes / num_ranks - static_cast<int64_t>(sizeof(RowPiece));
    const int64_t most = std::clamp(capacity / element, int64_t{1}, part.width());
    mine.assign(sizeof(RowPiece) + static_cast<size_t>(most * element), std::byte{});
    all.resize(mine.size() * static_cast<size_t>(num_ranks));
    if (rank.leads() && !file) {
      ASSIGN_OR_RETURN(auto made, LogitsFile::Create(request, rank.plan().data.vocab, part.dtype()));
      file.emplace(std::move(made));
    }
    for (int64_t row = 0; row < part.positions() * part.batch(); ++row) {
      const int64_t position = row / part.batch();
      const int64_t sample = row % part.batch();
      ASSIGN_OR_RETURN(const auto logits, part.Row(position, sample));
      const int64_t id = (part.first_sample + sample) * rank.plan().data.seq + part.first_position + position;
      for (int64_t begin = 0; begin < part.width(); begin += most) {
        const RowPiece own{id, part.first_column + begin, std::clamp(part.columns - begin, int64_t{0}, most)};
        std::memcpy(mine.data(), &own, sizeof(own));
        if (own.columns > 0) {
          std::memcpy(mine.data() + sizeof(own), logits + begin * element, static_cast<size_t>(own.columns * element));
        }
        RETURN_IF_ERROR(rank.control().Gather(AxisSet::All(), mine.data(), std::ssize(mine), all.data()));
        for (const std::byte* from = all.data(); rank.leads() && from != all.data() + all.size(); from += mine.size()) {
          RowPiece piece;
          std::memcpy(&piece, from, sizeof(piece));
          if (piece.id < num_ids && piece.columns > 0) {
            RETURN_IF_ERROR(file->Put(
                piece.id, piece.column,
                {reinterpret_cast<const char*>(from) + sizeof(piece), static_cast<size_t>(piece.columns * element)}));
          }
        }
      }
    }
    return Success{};
  };
  RETURN_IF_ERROR(rank.RunSection(SectionKind::Eval));
  return file ? file->Commit() : Status(Success{});
}

auto Generate(BoundRank& rank) -> Status {
  const GenerateRequest& request = *rank.context().options.generate;
  return request.logits.empty() ? SampleIds(rank, request) : WriteLogits(rank, request);
}

}  // namespace shardc
