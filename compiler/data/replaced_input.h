// Outputs that would destroy what is read, or what a run keeps.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "compiler/data/data_files.h"

namespace shardc {

/// Looks at what a command is about to write. `inputs`: files and folders. `option`: "-o". Errors: ExitCode::Usage, if
/// `output` is "-", if it exists and is one of the files, by whatever name, or if it lies in one of the folders, in the
/// directory of a run or in one of checkpoints.
auto CheckReplacesNone(const std::string& option, const std::string& output, std::span<const std::string> inputs)
    -> Status;

/// Checks that bytes can be written anywhere in the output, for commands that do not write it from its begin to its
/// end. Errors: ExitCode::Usage, if it is a FIFO or a socket.
auto CheckHasOffsets(const std::string& option, const std::string& output) -> Status;

/// Returns what a run reads: its files of tokens and targets, Megatron's index of each, and the directories that it
/// begins from, without empty names.
auto InputsOf(const DataSource& data, const HeadTable& heads, std::initializer_list<std::string> begun_from)
    -> std::vector<std::string>;

}  // namespace shardc
