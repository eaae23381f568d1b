#pragma once

#include "core/metrics.hpp"
#include "k8s/object.hpp"
#include "reactors/bootstrapper/desired_set.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rw::bootstrapper {

/// A source as the informers have it; not parsed.
struct located_source {
  part of = part::manifests;
  std::string name = {};   ///< for people: "ConfigMap kcp-system/a"; empty: it is not asked for
  k8s::object found = {};  ///< empty: it is not there
};

/// What `gather` made of sources.
struct gathered_set {
  desired_set set = {};
  std::string invalid = {};                  ///< why it is of no use; empty: it is valid
  std::map<part, std::string> digests = {};  ///< of the objects that each source makes
};

/// The sets that were gathered last. Most runtimes have the same sources and names, so what is
/// parsed and checked for one serves all the others. Holds at most `most`; the one that was asked
/// for longest ago goes first.
///
/// Metric: `rw_bootstrapper_gathered_total`, the times that sources were parsed and checked.
///
/// Not thread-safe.
class gathered_sets {
 public:
  using pointer = std::shared_ptr<const gathered_set>;
  static constexpr std::size_t most = 8;

  explicit gathered_sets(core::metrics& registry);

  /// `key` says all that the set depends on. Null if it is not there.
  pointer find(const std::string& key);
  pointer keep(std::string key, gathered_set made);

 private:
  core::counter& gathered_;
  std::list<std::pair<std::string, pointer>> sets_;  ///< the one asked for last at the front
};

}  // namespace rw::bootstrapper
