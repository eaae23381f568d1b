#include "core/work_queue.hpp"

#include <cmath>

namespace rw::core::work_queue_detail {
namespace {

const std::vector<double> duration_bounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                             1e-2, 1e-1, 1,    10,   100,  1000};

counter& refused(metrics& registry, labels own, const char* reason) {
  own.emplace("reason", reason);
  return make_counter(registry, "workqueue_refused_total", "Additions that were refused", own);
}

gauge& depth_of(metrics& registry, labels own, const char* level) {
  own.emplace("priority", level);
  return make_gauge(registry, "workqueue_depth", "Keys that are to be processed", own);
}

double seconds(duration of) {
  return std::chrono::duration<double>(of).count();
}

}  // namespace

void tally::publish() {
  into.ObserveMultiple(counts, seconds(std::exchange(sum, duration(0))));
  std::ranges::fill(counts, 0);
}

series::series(metrics& r, const labels& own)
    : retries(make_counter(r, "workqueue_retries_total", "Additions after a delay", own)),
      refused_full(refused(r, own, "full")),
      refused_shut_down(refused(r, own, "shut_down")),
      adds(make_counter(r, "workqueue_adds_total", "Additions that made a key to be processed",
                        own)),
      unfinished(make_gauge(r, "workqueue_unfinished_work_seconds",
                            "Age of all keys that are being processed, added up", own)),
      longest(make_gauge(r, "workqueue_longest_running_processor_seconds",
                         "Age of the key that is being processed longest", own)),
      waited{make_histogram(r, "workqueue_queue_duration_seconds",
                            "How long keys waited to be taken", own, duration_bounds)},
      worked{make_histogram(r, "workqueue_work_duration_seconds", "How long keys were processed",
                            own, duration_bounds)},
      depth{&depth_of(r, own, "high"), &depth_of(r, own, "normal"), &depth_of(r, own, "low")} {}

void series::publish(duration unfinished_work, duration longest_running) {
  waited.publish();
  worked.publish();
  adds.Increment(static_cast<double>(std::exchange(added, 0)));
  unfinished.Set(seconds(unfinished_work));
  longest.Set(seconds(longest_running));
}

duration retry_delay(const work_queue_options& options, unsigned failures, std::uint64_t random) {
  const auto base = static_cast<double>(options.retry_base.count());
  const auto limit = static_cast<double>(options.retry_limit.count());
  const auto delay = std::ldexp(base, static_cast<int>(std::min(failures, 1000U)));
  // The upper 53 bits of a random number are a fraction between 0 and 1.
  const auto fraction = static_cast<double>(random >> 11) * 0x1p-53;
  const auto jittered =
      std::min(delay, limit) * (1 - std::clamp(options.retry_jitter, 0.0, 1.0) * fraction);
  return duration(static_cast<duration::rep>(jittered));
}

}  // namespace rw::core::work_queue_detail
