// Sections of the report for people, each from a file of its own.
#pragma once

#include <string>

#include "compiler/report/report.h"

namespace shardc {

/// Returns the memory part of the report: what is alive at the peak and how much, section by section and arena by
/// arena; what a block keeps; a chart of a step.
auto MemoryText(const Report& report) -> std::string;
auto BlocksText(const Report& report) -> std::string;
auto StepMemoryChart(const Report& report) -> std::string;

/// Returns the lines on what is trained and what is frozen, and on adapters; empty if everything is trained.
auto SharesText(const Report& report) -> std::string;

/// Returns the table of init rules, in two lines each if one line would be too long.
auto InitText(const Report& report) -> std::string;

}  // namespace shardc
