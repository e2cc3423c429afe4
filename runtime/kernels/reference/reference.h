// The kernels of `[run] kernels = "reference"`: each op as a few LibTorch calls in f64, to compare with. No promise of
// speed or memory.
//
// An op has a reference kernel if it is declared here. All others (structure, data, collectives, checkpoints, single
// numbers) have the kernels of the cpu backend only.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::reference {

// elementwise.cpp
auto Bind(const op::Fill& op, Binder& binder) -> Kernel;
auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel;
auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::SwigluBackwardAgain& op, Binder& binder) -> Kernel;
auto Bind(const op::Gelu& op, Binder& binder) -> Kernel;
auto Bind(const op::GeluBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::Add& op, Binder& binder) -> Kernel;
auto Bind(const op::Scale& op, Binder& binder) -> Kernel;
auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel;
auto Bind(const op::Cast& op, Binder& binder) -> Kernel;
auto Bind(const op::BiasAdd& op, Binder& binder) -> Kernel;
auto Bind(const op::BiasAddBackward& op, Binder& binder) -> Kernel;

// normalize_and_rotate.cpp
auto Bind(const op::RmsNorm& op, Binder& binder) -> Kernel;
auto Bind(const op::AddRmsNorm& op, Binder& binder) -> Kernel;
auto Bind(const op::RmsNormBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::LayerNorm& op, Binder& binder) -> Kernel;
auto Bind(const op::LayerNormBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::HeadNorm& op, Binder& binder) -> Kernel;
auto Bind(const op::HeadNormBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::RopeTable& op, Binder& binder) -> Kernel;
auto Bind(const op::RopeTableAt& op, Binder& binder) -> Kernel;
auto Bind(const op::Rope& op, Binder& binder) -> Kernel;
auto Bind(const op::RopePair& op, Binder& binder) -> Kernel;

// products.cpp
auto Bind(const op::Matmul& op, Binder& binder) -> Kernel;
auto Bind(const op::MatmulAdd& op, Binder& binder) -> Kernel;
auto Bind(const op::Attention& op, Binder& binder) -> Kernel;
auto Bind(const op::AttentionBackward& op, Binder& binder) -> Kernel;

// tokens_and_loss.cpp
auto Bind(const op::Embedding& op, Binder& binder) -> Kernel;
auto Bind(const op::EmbeddingBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::CountValid& op, Binder& binder) -> Kernel;
auto Bind(const op::CrossEntropy& op, Binder& binder) -> Kernel;
auto Bind(const op::LogSumExp& op, Binder& binder) -> Kernel;
auto Bind(const op::ShardedCrossEntropy& op, Binder& binder) -> Kernel;
auto Bind(const op::CrossEntropyBackward& op, Binder& binder) -> Kernel;
auto Bind(const op::CrossEntropyAndGradient& op, Binder& binder) -> Kernel;

// update.cpp
auto Bind(const op::SumSquares& op, Binder& binder) -> Kernel;
auto Bind(const op::Adamw& op, Binder& binder) -> Kernel;
auto Bind(const op::Sgd& op, Binder& binder) -> Kernel;

/// Qualified, so that the kernels of the cpu backend are not found.
template <class Body>
concept HasKernel = requires(const Body& body, Binder& binder) {
  reference::Bind(body, binder);
};

}  // namespace shardc::reference
