// Stands in for Gloo's header, of which c10d's headers use these declarations. See docs/decisions/0007.
#pragma once

namespace gloo::transport {

class Device;

struct UnboundBuffer {
  virtual ~UnboundBuffer() = default;
};

}  // namespace gloo::transport
