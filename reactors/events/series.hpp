#pragma once

#include "rw/core/metrics.hpp"

namespace rw::observation {

/// The metrics of observation; what they mean is said there.
struct series {
  explicit series(core::metrics& r)
      : objects(core::make_gauge(r, "rw_observation_objects",
                                 "Number of observed objects, for each Watcher")),
        live(core::make_gauge(r, "rw_observation_live_watches",
                              "Number of Watchers with a live watch")),
        unobserved(core::make_gauge(r, "rw_observation_unobserved_watches",
                                    "Number of Watchers whose events come from reviews alone")),
        undelivered(core::make_gauge(r, "rw_observation_undelivered",
                                     "Number of objects with an undelivered change")),
        waiting(core::make_gauge(r, "rw_observation_waiting_reviews",
                                 "Number of reviews whose event is not decided")),
        by_watch(events(r, "watch")),
        by_list(events(r, "list")),
        reviews(events(r, "review")),
        not_persisted(confirmations(r, "not_persisted")),
        missed(confirmations(r, "missed")),
        failed(confirmations(r, "failed")),
        lists(core::make_counter(r, "rw_observation_lists_total",
                                 "Number of lists that checked whether a watch shows all")) {}

  static core::counter& events(core::metrics& r, const char* cause) {
    return core::make_counter(r, "rw_observation_events_total",
                              "Number of events sent, by their cause", {{"cause", cause}});
  }
  static core::counter& confirmations(core::metrics& r, const char* result) {
    return core::make_counter(r, "rw_observation_confirmations_total",
                              "Number of objects read because no watch showed a review's write in "
                              "time",
                              {{"result", result}});
  }

  core::gauge& objects;
  core::gauge& live;
  core::gauge& unobserved;
  core::gauge& undelivered;
  core::gauge& waiting;
  core::counter& by_watch;
  core::counter& by_list;
  core::counter& reviews;
  core::counter& not_persisted;
  core::counter& missed;
  core::counter& failed;
  core::counter& lists;
};

}  // namespace rw::observation
