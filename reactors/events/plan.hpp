#pragma once

#include "rw/reactors/shared/managers_file.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rw::observation {

/// One list and watch, and the Watchers that share it.
struct observed_resource {
  watcher::resource resource = {};
  std::map<std::string, std::string> labels = {};
  std::vector<managed_watch> watches = {};

  bool same_selection(const observed_resource& as) const {
    return resource == as.resource && labels == as.labels;
  }
  friend bool operator==(const observed_resource&, const observed_resource&) = default;
};

/// Returns true if they are of one manager and resource, in whatever version, part or selection.
bool is_same_resource(const managed_watch& watch, const managed_watch& as);

/// A Watcher whose events come from reviews alone.
struct unobserved_watch {
  managed_watch watch;
  std::string_view reason;  ///< static storage
};

/// Which Watchers are observed. Wildcards, Secrets (unless `secrets`) and subresources other than
/// status are not: what a watch would show of them is not what the Watcher asks for, or too much.
struct observation_plan {
  std::vector<observed_resource> resources;
  std::vector<unobserved_watch> unobserved;
};

observation_plan make_plan(const known_managers& managers, bool secrets);

}  // namespace rw::observation
