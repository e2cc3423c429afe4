// The purpose that a checkpoint is read for, and the plan and data that it has to match.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/plan/plan.h"
#include "runtime/control/rank_control.h"

namespace shardc {

/// Resume: parameters, moments, scalars, the data's position. Parameters: for evaluation, which needs no moments and no
/// data. Seed: the tensors that a first start reads. The plan fixes which tensor goes where, for the manifest whose
/// digest it holds.
enum class ReadPurpose : uint8_t { Resume, Parameters, Seed };

struct CheckpointReaderOptions {
  std::string path;
  /// Outlives the reader.
  const Plan* plan = nullptr;
  /// TokenReader::Fingerprint(). For Resume.
  std::string data_fingerprint;
  /// TokenReader::SourceFingerprints(). Of a mixture.
  std::vector<std::string> source_fingerprints;
  /// Digests of the token files, as in ManifestData.
  std::vector<std::string> data_digests;
  ReadPurpose purpose = ReadPurpose::Resume;
  /// True for the base of a checkpoint, which has no plan to match.
  bool is_base = false;
  /// With it Open is collective: the ranks share the work of checking digests, and agree on the outcome. Without it
  /// this process checks all files.
  RankControl* control = nullptr;
  Fs* fs = &PosixFs();
};

}  // namespace shardc
