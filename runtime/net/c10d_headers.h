// LibTorch's headers of sockets, before anything else of a file that uses them: c10 defines a macro of our name.
#pragma once

#define USE_C10D_GLOO
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#undef CHECK
