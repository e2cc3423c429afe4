#include "runtime/device/cuda/cuda_graphs.h"

#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/cuda/stream.h"

namespace shardc {

CudaGraphs::~CudaGraphs() {
  if (device_.is_lost()) {
    return;
  }
  for (const cudaGraphExec_t graph : graphs_) {
    cudaGraphExecDestroy(graph);
  }
}

auto CudaGraphs::BeginRecording() -> Status {
  device_.set_recording(true);
  // Calls of other threads, such as those of libraries, are theirs.
  return CudaStatus(cudaStreamBeginCapture(StreamOf(device_.queue(Stream::Compute)), cudaStreamCaptureModeThreadLocal),
                    "recording launches");
}

auto CudaGraphs::EndRecording() -> ErrorOr<size_t> {
  device_.set_recording(false);
  cudaGraph_t graph = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamEndCapture(StreamOf(device_.queue(Stream::Compute)), &graph), "recording launches"));
  cudaGraphExec_t executable = nullptr;
  const Status made = CudaStatus(cudaGraphInstantiate(&executable, graph, 0), "making a graph of launches");
  cudaGraphDestroy(graph);
  RETURN_IF_ERROR(made);
  graphs_.push_back(executable);
  return graphs_.size() - 1;
}

auto CudaGraphs::Launch(size_t graph, const Turns& turns, size_t last) -> Status {
  return device_.EnqueueOnCompute(turns, last, [&](cudaStream_t stream) {
    return CudaStatus(cudaGraphLaunch(graphs_[graph], stream), "launching a graph");
  });
}

auto MakeCudaGraphs(RankDevice& device) -> std::unique_ptr<LaunchGraphs> {
  return std::make_unique<CudaGraphs>(&static_cast<CudaDevice&>(device));
}

}  // namespace shardc
