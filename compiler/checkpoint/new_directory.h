// A directory that appears under its name whole or not at all.
#pragma once

#include <string>

#include "compiler/base/files.h"

namespace shardc {

/// A directory that is removed with what is in it, unless it was given its name.
class NewDirectory {
 public:
  /// Makes it under a temporary name. What killed processes left of the same path is removed first. Errors: Usage,
  /// Environment.
  static auto Make(const std::string& path) -> ErrorOr<NewDirectory>;
  NewDirectory(NewDirectory&& other) noexcept = default;
  NewDirectory(const NewDirectory&) = delete;
  auto operator=(const NewDirectory&) -> NewDirectory& = delete;
  auto operator=(NewDirectory&&) -> NewDirectory& = delete;
  ~NewDirectory() {
    if (!temporary_.empty() && parent_.is_open()) {
      static_cast<void>(RemoveDirectoryAt(parent_, temporary_));
    }
  }

  auto directory() const -> const Descriptor& { return directory_; }
  /// Gives the directory its name, if nothing has it by now.
  auto Commit() -> Status;

 private:
  NewDirectory(Descriptor parent, std::string name) : parent_(std::move(parent)), name_(std::move(name)) {}

  Descriptor parent_;
  std::string name_;
  /// Name until Commit; empty after it.
  std::string temporary_;
  Descriptor directory_;
};

}  // namespace shardc
