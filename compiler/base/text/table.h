// A table of text, for reports.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// Columns as wide as their widest cell, or as `widths` if those are more; the first is flush left, numbers flush
/// right.
class Table {
 public:
  explicit Table(std::string left, std::vector<size_t> widths = {})
      : left_(std::move(left)), widths_(std::move(widths)) {}

  /// Keeps a column as text even if it looks like numbers.
  auto KeepLeft(size_t column) -> void { text_columns_.insert(column); }

  auto Row(std::vector<std::string> cells) -> void {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], cells[i].size());
    }
    rows_.push_back(std::move(cells));
  }
  auto Text() const -> std::string {
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        const bool number = !text_columns_.contains(i) && BeginsANumber(row[i]);
        line += i == 0 ? "" : "  ";
        line += number && i > 0 ? fmt::format("{:>{}}", row[i], widths_[i]) : fmt::format("{:<{}}", row[i], widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += left_ + line + "\n";
    }
    return out;
  }

 private:
  static auto BeginsANumber(const std::string& cell) -> bool {
    const size_t digit = cell.starts_with('-') || cell.starts_with('+') ? 1 : 0;
    return cell.size() > digit && std::isdigit(static_cast<unsigned char>(cell[digit])) != 0;
  }

  std::string left_;
  std::set<size_t> text_columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shardc
