// The products of a plan on a GPU, to be measured in the memory of its arenas.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/device/product_bench.h"
#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Makes a bench as FamilyParts::make_product_bench says.
auto MakeProductBench(Binder& binder, const std::function<bool(const std::string& product)>& wants)
    -> ErrorOr<std::unique_ptr<ProductBench>>;

}  // namespace shardc::cuda
