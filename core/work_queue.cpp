#include "core/work_queue.hpp"

#include <cmath>
#include <stdexcept>

namespace rw::core::work_queue_detail {
namespace {

const std::vector<double> duration_bounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                             1e-2, 1e-1, 1,    10,   100,  1000};

double seconds(duration of) {
  return std::chrono::duration<double>(of).count();
}

}  // namespace

void tally::publish() {
  into.ObserveMultiple(counts, seconds(std::exchange(sum, duration(0))));
  std::ranges::fill(counts, 0);
}

series::series(metrics& r, const std::string& name)
    : retries(
          make_counter(r, "workqueue_retries_total", "Additions after a delay", {{"name", name}})),
      refused_full(make_counter(r, "workqueue_refused_total", "Additions that were refused",
                                {{"name", name}, {"reason", "full"}})),
      refused_shut_down(make_counter(r, "workqueue_refused_total", "Additions that were refused",
                                     {{"name", name}, {"reason", "shut_down"}})),
      adds(make_counter(r, "workqueue_adds_total", "Additions that made a key to be processed",
                        {{"name", name}})),
      unfinished_work(make_gauge(r, "workqueue_unfinished_work_seconds",
                                 "Age of all keys that are being processed, added up",
                                 {{"name", name}})),
      longest_running(make_gauge(r, "workqueue_longest_running_processor_seconds",
                                 "Age of the key that is being processed longest",
                                 {{"name", name}})),
      waited{make_histogram(r, "workqueue_queue_duration_seconds",
                            "How long keys waited to be taken", {{"name", name}}, duration_bounds)},
      worked{make_histogram(r, "workqueue_work_duration_seconds", "How long keys were processed",
                            {{"name", name}}, duration_bounds)} {
  constexpr std::array levels = {"high", "normal", "low"};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    depth[i] = &make_gauge(r, "workqueue_depth", "Keys that are to be processed",
                           {{"name", name}, {"priority", levels[i]}});
  }
}

void series::publish(const std::array<std::size_t, 3>& keys, duration unfinished,
                     duration longest) {
  waited.publish();
  worked.publish();
  adds.Increment(static_cast<double>(std::exchange(added, 0)));
  unfinished_work.Set(seconds(unfinished));
  longest_running.Set(seconds(longest));
  for (std::size_t i = 0; i < keys.size(); ++i) depth[i]->Set(static_cast<double>(keys[i]));
}

work_queue_options checked(work_queue_options options) {
  if (options.capacity == 0 || options.capacity > std::size_t{1} << 31) {
    throw std::invalid_argument("work queue " + options.name + ": the capacity must be 1 to 2^31");
  }
  options.retry_jitter = std::clamp(options.retry_jitter, 0.0, 1.0);
  return options;
}

duration retry_delay(const work_queue_options& options, unsigned failures, std::uint64_t random) {
  const auto base = static_cast<double>(options.retry_base.count());
  const auto limit = static_cast<double>(options.retry_limit.count());
  const auto delay = std::ldexp(base, static_cast<int>(std::min(failures, 1000U)));
  // The upper 53 bits of a random number are a fraction between 0 and 1.
  const auto fraction = static_cast<double>(random >> 11) * 0x1p-53;
  const auto jittered = std::min(delay, limit) * (1 - options.retry_jitter * fraction);
  return duration(static_cast<duration::rep>(jittered));
}

}  // namespace rw::core::work_queue_detail
