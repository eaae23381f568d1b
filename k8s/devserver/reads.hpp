#pragma once

#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/faults.hpp"
#include "rw/k8s/devserver/watch.hpp"

#include <chrono>

namespace rw::k8s::devserver {

/// The verbs that change nothing: get, list, watch. One instance for a server.
class reads {
 public:
  reads(watch_schedule& schedule, watch_counters& counters,
        std::chrono::milliseconds bookmark_interval)
      : schedule_(schedule), counters_(counters), bookmark_interval_(bookmark_interval) {}

  outcome<void> get(const call& from, http::response& into) const;
  outcome<void> list(const call& from, http::response& into) const;
  outcome<void> begin_watch(const call& from, const fault& wrong, http::response& into) const;

 private:
  watch_schedule& schedule_;
  watch_counters& counters_;
  const std::chrono::milliseconds bookmark_interval_;
};

}  // namespace rw::k8s::devserver
