#include "core/work_queue/statistics.hpp"

#include <numeric>
#include <utility>
#include <vector>

namespace rw::core::work_queue_detail {
namespace {

constexpr const char* level_names[levels] = {"high", "normal", "low"};

const std::vector<double>& bounds() {
  static const std::vector<double> upper = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                            1e-2, 1e-1, 1,    10,   100,  1000};
  return upper;
}

counter& refused(metrics& registry, const std::string& name, const char* reason) {
  return make_counter(registry, "workqueue_refused_total", "Additions that were refused",
                      {{"name", name}, {"reason", reason}});
}

void publish(std::uint64_t& number, counter& into) {
  if (number > 0) into.Increment(static_cast<double>(std::exchange(number, 0)));
}

}  // namespace

void tally::change(std::uint64_t value) noexcept {
  std::size_t bucket = 0;
  for (std::uint64_t bound = 10; bucket + 1 < buckets && latest_ > bound; bound *= 10) ++bucket;
  counts_[bucket] += times_;
  sum_ += latest_ * times_;
  latest_ = value;
  times_ = 0;
}

std::uint64_t tally::publish(histogram& into) {
  change(0);
  const auto all = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  if (all == 0) return 0;
  const std::vector<double> increments(counts_.begin(), counts_.end());
  into.ObserveMultiple(increments, static_cast<double>(sum_) * 1e-9);
  *this = {};
  return all;
}

series::series(metrics& registry, const std::string& name)
    : added(make_counter(registry, "workqueue_adds_total",
                         "Additions that made a key to be processed", {{"name", name}})),
      unfinished(make_gauge(registry, "workqueue_unfinished_work_seconds",
                            "Age of all keys that are being processed, added up",
                            {{"name", name}})),
      longest(make_gauge(registry, "workqueue_longest_running_processor_seconds",
                         "Age of the key that is being processed longest", {{"name", name}})),
      retried_(make_counter(registry, "workqueue_retries_total", "Additions after a delay",
                            {{"name", name}})),
      refused_full_(refused(registry, name, "full")),
      refused_shut_down_(refused(registry, name, "shut_down")),
      queued_(make_histogram(registry, "workqueue_queue_duration_seconds",
                             "How long keys waited to be taken", {{"name", name}}, bounds())),
      worked_(make_histogram(registry, "workqueue_work_duration_seconds",
                             "How long keys were processed", {{"name", name}}, bounds())) {
  for (std::size_t i = 0; i < levels; ++i) {
    depth[i] = &make_gauge(registry, "workqueue_depth", "Keys that are to be processed",
                           {{"name", name}, {"priority", level_names[i]}});
  }
}

std::uint64_t series::publish(counts& what) {
  work_queue_detail::publish(what.retried, retried_);
  work_queue_detail::publish(what.refused_full, refused_full_);
  work_queue_detail::publish(what.refused_shut_down, refused_shut_down_);
  what.worked.publish(worked_);
  return what.queued.publish(queued_);
}

}  // namespace rw::core::work_queue_detail
