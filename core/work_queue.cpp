#include "core/work_queue.hpp"

#include <cmath>

namespace rw::core {
namespace {

const std::vector<double> bounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                    1e-2, 1e-1, 1,    10,   100,  1000};

labels with(labels own, const char* name, const char* value) {
  own.emplace(name, value);
  return own;
}

counter& refused(metrics& r, const labels& own, const char* reason) {
  return make_counter(r, "workqueue_refused_total", "Additions that were refused",
                      with(own, "reason", reason));
}

gauge* depth_of(metrics& r, const labels& own, const char* level) {
  return &make_gauge(r, "workqueue_depth", "Keys that are to be processed",
                     with(own, "priority", level));
}

}  // namespace

duration work_queue_options::retry_delay(unsigned failures, std::uint64_t random) const {
  const auto doubled = std::ldexp(static_cast<double>(retry_base.count()),
                                  static_cast<int>(std::min(failures, 1000U)));
  const auto delay = std::min(doubled, static_cast<double>(retry_limit.count()));
  // The upper 53 bits of a random number are a fraction between 0 and 1.
  const auto part = static_cast<double>(random >> 11) * 0x1p-53;
  return duration(
      static_cast<duration::rep>(delay * (1 - std::clamp(retry_jitter, 0.0, 1.0) * part)));
}

namespace work_queue_detail {

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
                            "How long keys waited to be taken", own, bounds)},
      worked{make_histogram(r, "workqueue_work_duration_seconds", "How long keys were processed",
                            own, bounds)},
      depth{depth_of(r, own, "high"), depth_of(r, own, "normal"), depth_of(r, own, "low")} {}

void series::publish(const figures& now) {
  waited.publish();
  worked.publish();
  adds.Increment(static_cast<double>(std::exchange(added, 0)));
  unfinished.Set(seconds(now.unfinished));
  longest.Set(seconds(now.longest));
  for (std::size_t i = 0; i < depth.size(); ++i) depth[i]->Set(static_cast<double>(now.depth[i]));
}

}  // namespace work_queue_detail
}  // namespace rw::core
