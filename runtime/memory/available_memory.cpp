#include "runtime/memory/available_memory.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>

namespace shardc {

/// The number in a file that holds nothing else; none for "max" and missing files.
static auto ReadNumber(const std::string& path) -> std::optional<int64_t> {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) {
    return number;
  }
  return std::nullopt;
}

/// The number after `key` in a file of "key number" lines.
static auto ReadNumberOf(const std::string& path, const std::string& key) -> std::optional<int64_t> {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word >> number && word == key) {
      return number;
    }
  }
  return std::nullopt;
}

namespace {

/// How one version of control groups spells its files.
struct GroupFiles {
  std::string mount;
  std::string limit;
  std::string usage;
  /// Key in memory.stat of file pages that can be dropped.
  std::string reclaimable;
};

struct MemoryGroup {
  std::string path;
  /// Device and number of its folder, which a process in another group sees too, by whatever path.
  std::string inode;
  int64_t limit = 0;
  /// Without the file pages that can be dropped.
  int64_t usage = 0;
};

}  // namespace

/// Adds the group at `path` and all above it, those that have a limit.
static auto AddGroups(const GroupFiles& files, std::string path, std::vector<MemoryGroup>& groups) -> void {
  // Version 1 says that there is no limit by a number near the largest.
  constexpr int64_t NoLimit = int64_t{1} << 62;
  while (true) {
    const std::string folder = files.mount + (path == "/" ? "" : path) + "/";
    const auto limit = ReadNumber(folder + files.limit);
    const auto usage = ReadNumber(folder + files.usage);
    if (limit && usage && *limit < NoLimit) {
      const int64_t droppable = ReadNumberOf(folder + "memory.stat", files.reclaimable).value_or(0);
      struct stat folder_status {};
      stat(folder.c_str(), &folder_status);
      groups.push_back({.path = path,
                        .inode = fmt::format("{}:{}", folder_status.st_dev, folder_status.st_ino),
                        .limit = *limit,
                        .usage = std::max<int64_t>(0, *usage - droppable)});
    }
    if (path.size() <= 1) {
      return;
    }
    path.resize(std::max<size_t>(1, path.rfind('/')));
  }
}

/// The memory control groups of this process that have a limit (v1 and v2).
static auto MemoryGroups(const std::string& root) -> std::vector<MemoryGroup> {
  std::vector<MemoryGroup> found;
  // Lines "hierarchy:controllers:path". In a container the path may name a folder that is mounted as the root: then
  // only the root's files are found, which is right.
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/') {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      AddGroups({root + "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}, path, found);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      AddGroups(
          {root + "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
          path, found);
    }
  }
  return found;
}

auto MeasureAvailableMemory(const std::string& root) -> AvailableMemory {
  // A number that the kernel draws when the machine starts.
  std::string machine;
  std::ifstream(root + "/proc/sys/kernel/random/boot_id") >> machine;
  AvailableMemory least{
      .bytes = Bytes{std::numeric_limits<int64_t>::max()}, .limit = "available on this host", .pool = machine};
  if (const auto kib = ReadNumberOf(root + "/proc/meminfo", "MemAvailable:")) {
    least.bytes = Bytes{*kib * 1024};
  }
  for (const MemoryGroup& group : MemoryGroups(root)) {
    const Bytes left{std::max<int64_t>(0, group.limit - group.usage)};
    if (left < least.bytes) {
      least = {.bytes = left,
               .limit = fmt::format("left in control group {}", group.path),
               .pool = fmt::format("{} {}", machine, group.inode)};
    }
  }
  return least;
}

auto GroupLimitText(const std::string& root) -> std::string {
  const std::vector<MemoryGroup> groups = MemoryGroups(root);
  const auto least = std::min_element(groups.begin(), groups.end(),
                                      [](const MemoryGroup& a, const MemoryGroup& b) { return a.limit < b.limit; });
  return least == groups.end()
             ? ""
             : fmt::format("control group {} has a limit of {}", least->path, FormatMemory(Bytes{least->limit}));
}

auto CheckFits(const ArenaSizes& sizes, const MachinePart& part, const OutsideUse& outside,
               const AvailableMemory& available, const std::string& remedy) -> Status {
  // In double: the product may not fit the integer.
  const auto of_host = static_cast<double>(sizes[static_cast<size_t>(Arena::Gathered)]);
  const double of_rank = std::accumulate(sizes.begin(), sizes.end(), -of_host);
  const Bytes taken = std::min(outside.taken, outside.planned);
  const auto num_hosts = static_cast<double>(part.num_hosts);
  const double arenas = num_hosts * (of_rank * static_cast<double>(part.ranks_per_host) + of_host);
  const double still = num_hosts * static_cast<double>((outside.planned - taken).value);
  if (arenas + still > static_cast<double>(available.bytes.value)) {
    constexpr double GiB = 1024.0 * 1024.0 * 1024.0;
    const std::string hosts = part.num_hosts == 1 ? "" : fmt::format("{} hosts on this machine, each ", part.num_hosts);
    return Fail(ExitCode::DoesNotFit,
                "does not fit: {:.2f} GiB more are needed, and {} is {} ({}{} rank{} x {} in arenas, and {} outside of "
                "them, of which the launcher has {} already); {}",
                (arenas + still) / GiB, FormatMemory(available.bytes), available.limit, hosts, part.ranks_per_host,
                part.ranks_per_host == 1 ? "" : "s", FormatMemory(Bytes{static_cast<int64_t>(of_rank)}),
                FormatMemory(outside.planned), FormatMemory(taken), remedy);
  }
  return Success{};
}

auto MeasurePeakResident() -> Bytes { return Bytes{ReadNumberOf("/proc/self/status", "VmHWM:").value_or(0) * 1024}; }

auto MeasureResident() -> Bytes { return Bytes{ReadNumberOf("/proc/self/status", "VmRSS:").value_or(0) * 1024}; }

auto MeasureAnonymous() -> Bytes { return Bytes{ReadNumberOf("/proc/self/status", "RssAnon:").value_or(0) * 1024}; }

auto GiveBackFreedMemory() -> void { malloc_trim(0); }

auto MeasureProportional(int32_t pid) -> ProportionalMemory {
  const std::string path = fmt::format("/proc/{}/smaps_rollup", pid);
  const auto bytes = [&](const std::string& row) { return Bytes{ReadNumberOf(path, row).value_or(0) * 1024}; };
  return {.all = bytes("Pss:"), .files = bytes("Pss_File:")};
}

}  // namespace shardc
