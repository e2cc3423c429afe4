// The version of LibTorch that the kernels were built with, for records.
#pragma once

#include <string_view>

namespace shardc {

/// "2.9.1".
auto TorchVersion() -> std::string_view;

}  // namespace shardc
