// Memory that processes of one host share though none of them forked the others: a file without a name, which its maker
// holds open and the others open by way of /proc.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// Errors: ExitCode::DoesNotFit where the kernel refuses.
auto MakeSharedFile(int64_t bytes) -> ErrorOr<Descriptor>;

/// Returns the name by which the other processes of this host open the file. It is valid for as long as this process
/// has the file open.
auto NameOfSharedFile(const Descriptor& file) -> std::string;

/// Errors: ExitCode::Environment where its maker is gone, is not of this host, or belongs to another user.
auto OpenSharedFile(const std::string& name) -> ErrorOr<Descriptor>;

}  // namespace shardc
