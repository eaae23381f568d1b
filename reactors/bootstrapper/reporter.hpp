#pragma once

#include "core/log.hpp"
#include "core/metrics.hpp"
#include "k8s/event_recorder.hpp"
#include "reactors/bootstrapper/drift_backoff.hpp"
#include "reactors/bootstrapper/status.hpp"
#include "reactors/runtimes.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace rw::bootstrapper {

/// Emits events, logs and counts what passes result in. All that it is made with must outlive it.
class reporter {
 public:
  reporter(k8s::event_recorder& events, core::logger& log, core::metrics& metrics,
           class runtimes& runtimes, drift_backoff& backoff)
      : events_(events), log_(log), metrics_(metrics), runtimes_(runtimes), backoff_(backoff) {}

  /// Emits the event of a runtime's state when it begins. `changed`: objects were written for it.
  void note(const boost::json::value& resource, runtime_state state, const std::string& reason,
            const std::string& message, bool changed = false);
  /// The state that the runtime was observed in.
  void note_observed(const boost::json::value& resource, const status_input& input);
  /// Counts the pass, and reports repairs that are undone again and again.
  void note_repair(const boost::json::value& resource, const status_input& input,
                   core::time_point now);
  /// `abandoned`: why objects may be left on the runtime; empty: none are.
  void note_removed(const boost::json::value& resource, const std::string& abandoned);
  /// `rw_bootstrapper_syncs_total{result}`.
  void count(const char* result);

 private:
  k8s::event_recorder& events_;
  core::logger& log_;
  core::metrics& metrics_;
  class runtimes& runtimes_;
  drift_backoff& backoff_;
};

}  // namespace rw::bootstrapper
