// Graphs of the launches on the compute stream of a CUDA device.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/launch_graphs.h"

namespace shardc {

class CudaGraphs final : public LaunchGraphs {
 public:
  explicit CudaGraphs(CudaDevice* device) : device_(*device) {}
  CudaGraphs(const CudaGraphs&) = delete;
  auto operator=(const CudaGraphs&) -> CudaGraphs& = delete;
  ~CudaGraphs() override;

  auto BeginRecording() -> Status override;
  auto EndRecording() -> ErrorOr<size_t> override;
  auto Launch(size_t graph, const Turns& turns, size_t last) -> Status override;

 private:
  CudaDevice& device_;
  std::vector<cudaGraphExec_t> graphs_;
};

/// Makes graphs as FamilyParts::make_launch_graphs says.
auto MakeCudaGraphs(RankDevice& device) -> std::unique_ptr<LaunchGraphs>;

}  // namespace shardc
