#include "rw/core/work_queue.hpp"

namespace rw::core {
namespace {

const std::vector<double> bounds = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                    1e-2, 1e-1, 1,    10,   100,  1000};

constexpr double per_second = duration::period::den;

counter& refused(metrics& r, labels own, const char* reason) {
  own.emplace("reason", reason);
  return make_counter(r, "workqueue_refused_total", "Additions that were refused", own);
}

gauge* depth_of(metrics& r, labels own, const char* level) {
  own.emplace("priority", level);
  return &make_gauge(r, "workqueue_depth", "Keys that are to be processed", own);
}

}  // namespace

namespace work_queue_detail {

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
      waited(r, "workqueue_queue_duration_seconds", "How long keys waited to be taken", own, bounds,
             per_second),
      worked(r, "workqueue_work_duration_seconds", "How long keys were processed", own, bounds,
             per_second),
      depth{depth_of(r, own, "high"), depth_of(r, own, "normal"), depth_of(r, own, "low")} {}

}  // namespace work_queue_detail
}  // namespace rw::core
