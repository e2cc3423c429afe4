// Stands in for Gloo's header, of which c10d's headers use this declaration. See docs/decisions/0007.
#pragma once

#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
