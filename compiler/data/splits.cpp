#include "compiler/data/splits.h"

#include <algorithm>

#include "compiler/base/units.h"
#include "compiler/data/open_data_file.h"

namespace shardc {

auto CountSamples(int64_t seq, int64_t eval_tokens, int64_t num_tokens) -> Splits {
  const int64_t train_tokens = num_tokens - eval_tokens;
  return {.train_samples = train_tokens > 0 ? (train_tokens - 1) / seq : 0,
          .eval_samples = eval_tokens > 0 ? (eval_tokens - 1) / seq : 0};
}

auto CutIntoSamples(const DataSource& data, const TokenSource& source, int64_t num_tokens, size_t num_files)
    -> ErrorOr<Splits> {
  Splits splits = CountSamples(data.seq, data.eval_tokens, num_tokens);
  if (data.packs()) {
    // A document of one token fills a sample, whose other places are padding.
    splits = {.train_samples = CeilDiv(std::max<int64_t>(num_tokens - data.eval_tokens, 0), data.seq),
              .eval_samples = CeilDiv(data.eval_tokens, data.seq)};
    FAIL_IF(splits.train_samples == 0, ExitCode::RecipeRejected, "{}no tokens to train on in {} file{}",
            OfSource(source.name), num_files, num_files == 1 ? "" : "s");
    return splits;
  }
  FAIL_IF(splits.train_samples == 0, ExitCode::RecipeRejected,
          "{}{} tokens in {} file{}, {} of them held out by `data.eval_tokens`: {} left to train on, and one "
          "sample takes {} (`model.seq` + 1)",
          OfSource(source.name), num_tokens, num_files, num_files == 1 ? "" : "s", data.eval_tokens,
          std::max<int64_t>(num_tokens - data.eval_tokens, 0), data.seq + 1);
  FAIL_IF(data.eval_tokens > 0 && splits.eval_samples == 0, ExitCode::RecipeRejected,
          "`data.eval_tokens` is {}, and one sample takes {} (`model.seq` + 1); hold out more, or 0 for none",
          data.eval_tokens, data.seq + 1);
  return splits;
}

}  // namespace shardc
