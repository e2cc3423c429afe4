#include "compiler/driver/absolute_paths.h"

#include <filesystem>

namespace shardc {

auto MakePathsAbsolute(Plan& plan) -> void {
  const auto make_absolute = [](std::string& path) {
    path = path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  for (TokenSource& source : plan.data.sources) {
    for (std::string& file : source.files) {
      make_absolute(file);
    }
  }
  for (std::string& file : plan.data.eval_files) {
    make_absolute(file);
  }
  for (TargetHead& head : plan.heads) {
    for (std::string& file : head.files) {
      make_absolute(file);
    }
  }
  make_absolute(plan.seed.path);
  make_absolute(plan.seed.adapter_path);
  make_absolute(plan.run.run_dir);
  make_absolute(plan.run.checkpoint_dir);
}

}  // namespace shardc
