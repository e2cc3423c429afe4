// What the ops of one rank are bound against: its device, views into its arenas, and its services.
#pragma once

#include "runtime/init/drawn.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Services may be null where no section that is bound uses them.
struct RankServices {
  Communicator* communicator = nullptr;
  RankControl* control = nullptr;
  /// The host's.
  ScalarTable* scalars = nullptr;
  TokenReader* tokens = nullptr;
  CheckpointWriter* writer = nullptr;
  /// Set once a checkpoint was chosen; ops that read it are bound after that.
  CheckpointReader* reader = nullptr;
  /// Set while a first start reads it.
  CheckpointReader* seed = nullptr;
  /// How often each section ran.
  std::array<int64_t, NumSections>* runs = nullptr;
  /// Sums over the elements that this rank drew.
  IdVector<ParameterId, Drawn>* drawn = nullptr;
  /// Algorithms of products, by product.
  std::map<std::string, std::string>* algorithms = nullptr;
};

class RankBinder : public Binder {
 public:
  RankBinder(const Plan* plan, int64_t rank, RankDevice* device, const RankServices* services)
      : plan_(plan), rank_(rank), device_(device), services_(services) {}

  auto plan() const -> const Plan& override { return *plan_; }
  auto rank() const -> int64_t override { return rank_; }
  auto ViewOf(ValueId value) -> View override;
  auto communicator() -> Communicator& override { return *Present(services_->communicator, "communicator"); }
  auto control() -> RankControl& override { return *Present(services_->control, "control"); }
  auto device() -> RankDevice& override { return *device_; }
  /// Returns the scalars that sections take over when they begin and give back when they end.
  auto host_scalars() -> ScalarTable& { return *Present(services_->scalars, "scalar table"); }
  auto tokens() -> TokenReader& override { return *Present(services_->tokens, "token reader"); }
  auto writer() -> CheckpointWriter& override { return *Present(services_->writer, "checkpoint writer"); }
  auto reader() -> CheckpointReader& override { return *Present(services_->reader, "checkpoint reader"); }
  auto seed() -> CheckpointReader* override { return services_->seed; }
  auto CountRun(SectionKind section) -> void override {
    if (services_->runs != nullptr) {
      ++(*services_->runs)[static_cast<size_t>(section)];
    }
  }
  /// Takes the last run of a section out of the count, because it was not a run of the plan's own.
  auto ForgetRun(SectionKind section) -> void {
    if (services_->runs != nullptr) {
      --(*services_->runs)[static_cast<size_t>(section)];
    }
  }
  auto DrawnOf(ParameterId parameter) -> Drawn* override {
    return services_->drawn == nullptr ? nullptr : &(*services_->drawn)[parameter];
  }
  auto algorithms() -> std::map<std::string, std::string>* override { return services_->algorithms; }

 private:
  template <class T>
  static auto Present(T* service, const char* name) -> T* {
    CHECK(service != nullptr, "no {} to bind against", name);
    return service;
  }

  const Plan* plan_;
  int64_t rank_;
  RankDevice* device_;
  const RankServices* services_;
};

}  // namespace shardc
