// What 24 hours of a landscape cost its leader's memory and CPU: by a modelled clock, 5,000
// runtimes that are sampled every 5 s and change as often as is remembered, each time with an
// Event, the Secret each minute, and five viewers who each read the history and a minute of it
// every minute. Prints one line of JSON for each figure. Ends with 1 if a limit is missed.
//
//   bench_history [RUNTIMES]

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/reactors/shared/fleet_history.hpp"
#include "rw/reactors/shared/recent_events.hpp"

#include <boost/json/serialize.hpp>

#include "bench/figure.hpp"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <string>
#include <vector>

namespace {

constexpr double memory_limit = 16;   // MiB
constexpr double cpu_limit = 1;       // % of a core
constexpr double secret_limit = 512;  // KiB
constexpr int viewers = 5;
constexpr std::chrono::seconds between_samples(5);
constexpr std::chrono::hours day(24);
constexpr std::chrono::minutes between_changes(1440 / rw::fleet_history::max_changes);

struct no_events final : rw::k8s::event_sink {
  void record(rw::k8s::event_note) noexcept override {}
};

double allocated_mib() {
  malloc_trim(0);
  const auto now = mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd) / (1 << 20);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int count, char** values) {
  const std::size_t runtimes = count > 1 ? std::strtoul(values[1], nullptr, 10) : 5000;
  std::vector<std::string> kymas;
  for (std::size_t i = 0; i < runtimes; ++i)
    kymas.push_back("kyma-of-runtime-" + std::to_string(i));

  const auto memory_before = allocated_mib();
  rw::fleet_history history;
  no_events nowhere;
  rw::core::real_clock clock;
  rw::recent_events events(nowhere, clock);
  std::size_t secret = 0;
  std::size_t response = 0;
  double reading = 0;
  const auto begin = std::chrono::system_clock::time_point(std::chrono::hours(500'000));
  const auto cpu_before = cpu_seconds();
  for (auto now = begin; now < begin + day; now += between_samples) {
    const auto passed = now - begin;
    rw::fleet_sample sample{.level = rw::fleet_level::degraded};
    sample.counts.fill(static_cast<std::uint32_t>(runtimes));
    sample.totals.fill(static_cast<std::uint64_t>(passed / std::chrono::milliseconds(1)));
    history.record(now, sample);
    for (std::size_t i = 0; i < runtimes; ++i) {
      // Not all at once.
      const bool is_ill = (passed + i * between_samples) / between_changes % 2 == 1;
      history.transition(now, kymas[i],
                         is_ill ? rw::runtime_condition::ill : rw::runtime_condition::well,
                         is_ill ? rw::status_reason::no_heartbeat : rw::status_reason::none);
      if ((passed + i * between_samples) % between_changes >= between_samples) continue;
      // Each with another time, so that none is the one before again.
      const auto text = "no heartbeat since " + std::to_string(passed / between_samples) +
                        ", though its installation is in place and its API server responds";
      events.warning({.kind = "Kyma", .ns = "kcp-system", .name = kymas[i]},
                     is_ill ? "WatcherSilent" : "WatcherLive", text);
    }
    for (const auto* const subject : {"roll-out watcher", "CA rotation"}) {
      history.change(now, subject, std::to_string(passed / between_changes), "CanaryFailed");
    }
    if (passed % std::chrono::minutes(1) != std::chrono::seconds(0)) continue;
    secret = rw::k8s::base64_encode(history.encode()).size();
    const auto reading_before = cpu_seconds();
    for (int i = 0; i < viewers; ++i) {
      response = boost::json::serialize(json_of(history)).size();
      const auto then = std::chrono::floor<std::chrono::seconds>(begin + passed / 2);
      response += boost::json::serialize(json_of(history, then)).size();
    }
    reading += cpu_seconds() - reading_before;
  }
  const auto cpu = cpu_seconds() - cpu_before;
  const auto memory = allocated_mib() - memory_before;
  const auto share = [](double seconds) { return 100 * seconds / 86400; };
  const auto print = [](const char* name, double value, const char* unit, double limit) {
    return rw::bench::print(
        {.name = std::string("history/") + name, .value = value, .unit = unit, .limit = limit});
  };
  const auto kib = [](std::size_t bytes) { return static_cast<double>(bytes) / 1024; };
  const bool memory_kept = print("memory", memory, "MiB", memory_limit);
  const bool cpu_kept = print("cpu", share(cpu), "% of a core", cpu_limit);
  const bool secret_kept = print("secret", kib(secret), "KiB", secret_limit);
  print("cpu_of_five_viewers", share(reading), "% of a core", 0);
  print("response_with_a_minute", kib(response), "KiB", 0);
  return memory_kept && cpu_kept && secret_kept ? 0 : 1;
}
