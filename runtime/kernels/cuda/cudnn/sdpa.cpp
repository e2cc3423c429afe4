// A graph of one op, through cudnn-frontend. Tensors are named by ids, so that a call hands over a table of pointers.
// Exceptions of the library end here.
#include "runtime/kernels/cuda/cudnn/sdpa.h"

#include <cudnn_frontend.h>

#include <cmath>
#include <exception>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace shardc::cuda {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum TensorId : int64_t { Q = 1, K, V, Y, Lse, Dy, Dq, Dk, Dv };

auto FaultOf(const char* what, const char* message) -> Error {
  return Fail(ExitCode::InternalFault, "cuDNN: {}: {}", what, message);
}

auto Check(const fe::error_t& error, const char* what) -> Status {
  return error.is_good() ? Status(Success{}) : FaultOf(what, error.err_msg.c_str());
}

auto Check(cudnnStatus_t status, const char* what) -> Status {
  return status == CUDNN_STATUS_SUCCESS ? Status(Success{}) : FaultOf(what, cudnnGetErrorString(status));
}

/// A handle of the library, which its destructor gives back.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  auto operator=(const Library&) -> Library& = delete;
  ~Library() {
    if (handle_ != nullptr) {
      cudnnDestroy(handle_);
    }
  }

  auto Create() -> Status { return Check(cudnnCreate(&handle_), "cudnnCreate"); }
  auto handle() const -> cudnnHandle_t { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

/// Returns the one handle for all plans of a rank, which binds its ops on one thread.
auto LibraryOfThread() -> ErrorOr<std::shared_ptr<Library>> {
  static thread_local std::weak_ptr<Library> of_thread;
  std::shared_ptr<Library> library = of_thread.lock();
  if (library == nullptr) {
    library = std::make_shared<Library>();
    RETURN_IF_ERROR(library->Create());
    of_thread = library;
  }
  return library;
}

/// Operands lie sequence by position: [S, B, heads * D], of which a call takes a box.
class Layouts {
 public:
  explicit Layouts(const SdpaShape& shape) : shape_(shape) {}

  auto query_heads() const -> int64_t { return shape_.kv_heads * shape_.whole.heads_per_kv(); }
  auto Dims(int64_t heads) const -> std::vector<int64_t> {
    return {shape_.sequences, heads, shape_.whole.sequence, shape_.whole.head_dim};
  }
  auto Strides(int64_t whole_heads) const -> std::vector<int64_t> {
    const int64_t width = whole_heads * shape_.whole.head_dim;
    return {width, shape_.whole.head_dim, shape_.whole.batch * width, 1};
  }
  auto OfQueries(fe::graph::Tensor_attributes& tensor) const -> void {
    tensor.set_dim(Dims(query_heads())).set_stride(Strides(shape_.whole.heads));
  }
  auto OfKeys(fe::graph::Tensor_attributes& tensor) const -> void {
    tensor.set_dim(Dims(shape_.kv_heads)).set_stride(Strides(shape_.whole.kv_heads));
  }
  /// Describes [B, A, S]. A box of it is contiguous, as the library asks: several sequences come with all their heads.
  auto OfLse(fe::graph::Tensor_attributes& tensor) const -> void {
    const int64_t sequence = shape_.whole.sequence;
    tensor.set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape_.sequences, query_heads(), sequence, 1})
        .set_stride({query_heads() * sequence, sequence, 1, 1});
  }

 private:
  SdpaShape shape_;
};

class CudnnPlan : public SdpaPlan {
 public:
  auto Build(const SdpaShape& shape) -> Status {
    ErrorOr<std::shared_ptr<Library>> library = LibraryOfThread();
    RETURN_IF_ERROR(library);
    library_ = *library;
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    switch (shape.pass) {
      case SdpaPass::Forward: DescribeForward(shape); break;
      case SdpaPass::Backward: DescribeBackward(shape); break;
    }
    RETURN_IF_ERROR(Check(graph_.validate(), "validate"));
    RETURN_IF_ERROR(Check(graph_.build_operation_graph(library_->handle()), "build_operation_graph"));
    RETURN_IF_ERROR(Check(graph_.create_execution_plans({fe::HeurMode_t::A}), "create_execution_plans"));
    if (shape.deterministic) {
      // The graph makes the backward deterministic: its dq is a product of the scores. With cuDNN 9.19 the same engine
      // runs both graphs and has no such note.
      graph_.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
    }
    RETURN_IF_ERROR(Check(graph_.check_support(), "check_support"));
    RETURN_IF_ERROR(Check(graph_.build_plans(), "build_plans"));
    workspace_bytes_ = graph_.get_workspace_size();
    return Success{};
  }

  auto WorkspaceBytes() const -> int64_t override { return workspace_bytes_; }

  auto Run(CUstream_st* stream, const SdpaOperands& operands, void* workspace) const -> Status override {
    try {
      RETURN_IF_ERROR(Check(cudnnSetStream(library_->handle(), stream), "cudnnSetStream"));
      // The table takes pointers to write through for what is read, too.
      const auto read = [](const void* from) { return const_cast<void*>(from); };
      std::unordered_map<int64_t, void*> table{
          {Q, read(operands.q)}, {K, read(operands.k)}, {V, read(operands.v)}, {Y, operands.y}, {Lse, operands.lse}};
      if (operands.dy != nullptr) {
        table.insert({{Dy, read(operands.dy)}, {Dq, operands.dq}, {Dk, operands.dk}, {Dv, operands.dv}});
      }
      return Check(graph_.execute(library_->handle(), table, workspace), "execute");
    } catch (const std::exception& exception) {
      return FaultOf("execute", exception.what());
    }
  }

 private:
  auto Input(TensorId id, const char* name) -> Tensor {
    return graph_.tensor(fe::graph::Tensor_attributes().set_name(name).set_uid(id));
  }

  auto DescribeForward(const SdpaShape& shape) -> void {
    const Layouts layouts(shape);
    const Tensor q = Input(Q, "q");
    const Tensor k = Input(K, "k");
    const Tensor v = Input(V, "v");
    layouts.OfQueries(*q);
    layouts.OfKeys(*k);
    layouts.OfKeys(*v);
    const auto [y, lse] = graph_.sdpa(q, k, v,
                                      fe::graph::SDPA_attributes()
                                          .set_name("attention")
                                          .set_generate_stats(true)
                                          .set_attn_scale(ScaleOf(shape))
                                          .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                                          .set_diagonal_band_right_bound(0));
    y->set_output(true).set_uid(Y);
    layouts.OfQueries(*y);
    lse->set_output(true).set_uid(Lse);
    layouts.OfLse(*lse);
  }

  auto DescribeBackward(const SdpaShape& shape) -> void {
    const Layouts layouts(shape);
    const Tensor q = Input(Q, "q");
    const Tensor k = Input(K, "k");
    const Tensor v = Input(V, "v");
    const Tensor y = Input(Y, "y");
    const Tensor dy = Input(Dy, "dy");
    const Tensor lse = Input(Lse, "lse");
    layouts.OfQueries(*q);
    layouts.OfKeys(*k);
    layouts.OfKeys(*v);
    layouts.OfQueries(*y);
    layouts.OfQueries(*dy);
    layouts.OfLse(*lse);
    const auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, y, dy, lse,
                                                   fe::graph::SDPA_backward_attributes()
                                                       .set_name("attention_backward")
                                                       .set_attn_scale(ScaleOf(shape))
                                                       .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                                                       .set_diagonal_band_right_bound(0)
                                                       .set_deterministic_algorithm(shape.deterministic));
    dq->set_output(true).set_uid(Dq);
    dk->set_output(true).set_uid(Dk);
    dv->set_output(true).set_uid(Dv);
    layouts.OfQueries(*dq);
    layouts.OfKeys(*dk);
    layouts.OfKeys(*dv);
  }

  static auto ScaleOf(const SdpaShape& shape) -> float {
    return 1 / std::sqrt(static_cast<float>(shape.whole.head_dim));
  }

  std::shared_ptr<Library> library_;
  /// A call changes nothing of it, but the library does not say so.
  mutable fe::graph::Graph graph_;
  int64_t workspace_bytes_ = 0;
};

/// Returns what tells one shape from another.
auto KeyOf(const SdpaShape& shape) {
  return std::tuple(shape.pass, shape.whole.batch, shape.whole.heads, shape.whole.kv_heads, shape.whole.sequence,
                    shape.whole.head_dim, shape.sequences, shape.kv_heads, shape.deterministic);
}

}  // namespace

auto SdpaPlan::LibraryVersion() -> size_t { return cudnnGetVersion(); }

auto SdpaPlan::Make(const SdpaShape& shape) -> ErrorOr<std::shared_ptr<const SdpaPlan>> {
  // Held by kernels alone.
  static thread_local std::map<decltype(KeyOf(shape)), std::weak_ptr<const SdpaPlan>> of_thread;
  std::weak_ptr<const SdpaPlan>& known = of_thread[KeyOf(shape)];
  if (std::shared_ptr<const SdpaPlan> plan = known.lock()) {
    return plan;
  }
  const auto made = std::make_shared<CudnnPlan>();
  const auto build = [&]() -> Status {
    try {
      return made->Build(shape);
    } catch (const std::exception& exception) {
      return FaultOf("plan", exception.what());
    }
  };
  if (const Status status = build(); !status) {
    return Fail(status.error().code, "attention of {} sequences of {}, {} / {} heads of {}: {}", shape.sequences,
                shape.whole.sequence, shape.whole.heads, shape.whole.kv_heads, shape.whole.head_dim,
                status.error().message);
  }
  std::shared_ptr<const SdpaPlan> plan = made;
  known = plan;
  return plan;
}

}  // namespace shardc::cuda
