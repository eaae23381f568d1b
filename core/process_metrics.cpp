#include "rw/core/process_metrics.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace rw::core {
namespace {

struct process_state {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t started_ticks = 0;  ///< since boot
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
};

/// /proc/self/stat: the fields after the command, which is in parentheses and may contain anything.
std::optional<process_state> read_state() {
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  std::string skipped;
  const auto skip = [&](int count) {
    for (int i = 0; i < count; ++i) fields >> skipped;
  };
  process_state out;
  skip(11);  // state (3) to cmajflt (13)
  fields >> out.user_ticks >> out.system_ticks;
  skip(6);  // cutime (16) to itrealvalue (21)
  fields >> out.started_ticks >> out.virtual_bytes >> out.resident_pages;
  if (!fields) return std::nullopt;
  return out;
}

/// Unix time in seconds.
std::optional<double> boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return std::nullopt;
}

std::optional<double> open_descriptors() {
  std::error_code failed;
  const std::filesystem::directory_iterator all("/proc/self/fd", failed);
  if (failed) return std::nullopt;
  return static_cast<double>(std::distance(begin(all), end(all)) - 1);  // without the folder's
}

prometheus::MetricFamily family(const char* name, const char* help, prometheus::MetricType type,
                                double value) {
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {std::move(metric)}};
}

}  // namespace

std::vector<prometheus::MetricFamily> process_metrics() {
  using enum prometheus::MetricType;
  std::vector<prometheus::MetricFamily> out;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto state = read_state()) {
    out.push_back(family("process_cpu_seconds_total", "CPU time of the process in seconds", Counter,
                         static_cast<double>(state->user_ticks + state->system_ticks) / ticks));
    out.push_back(family("process_virtual_memory_bytes", "Virtual memory in bytes", Gauge,
                         static_cast<double>(state->virtual_bytes)));
    const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
    out.push_back(family("process_resident_memory_bytes", "Resident memory in bytes", Gauge,
                         static_cast<double>(state->resident_pages) * page));
    if (const auto boot = boot_time()) {
      out.push_back(family("process_start_time_seconds",
                           "Start of the process, Unix time in seconds", Gauge,
                           *boot + static_cast<double>(state->started_ticks) / ticks));
    }
  }
  if (const auto open = open_descriptors()) {
    out.push_back(family("process_open_fds", "Number of open file descriptors", Gauge, *open));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    out.push_back(family("process_max_fds", "Maximum number of open file descriptors", Gauge,
                         limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                                         : static_cast<double>(limit.rlim_cur)));
  }
  return out;
}

}  // namespace rw::core
