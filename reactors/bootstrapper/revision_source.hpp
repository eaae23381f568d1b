#pragma once

#include "core/lru_map.hpp"
#include "core/metrics.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper/last_good.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/bootstrapper/status.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::bootstrapper {

/// What is read of the control plane, kept by informers that others may share and run. All of it
/// must outlive the reactor.
struct sources {
  k8s::informer& bootstrappers;
  k8s::informer& runtimes;     ///< Runtimes; their metadata suffice
  k8s::informer& kubeconfigs;  ///< Secrets with kubeconfigs; may hold others
  k8s::informer& config_maps;  ///< of kcp-system; may hold others than the sources
  k8s::informer& secrets;      ///< of kcp-system: the pull Secrets; may hold others
  /// ClusterTrustBundles; null where the control plane does not serve them.
  k8s::informer* trust_bundles = nullptr;
};

/// A source that exists.
struct live_source {
  std::string name = {};  ///< "ConfigMap kcp-system/a"; empty: none is referenced
  k8s::object object = {};
  const k8s::informer* in = nullptr;
};

/// A unit as one runtime is to have it.
struct resolved_unit {
  /// Valid revisions, the most desired first: of the sources, then of the stored contents, newest
  /// and former ones in all combinations.
  std::vector<revision_ptr> revisions = {};
  unit_status status = {};
  /// The sources of the first revision, to be stored once it is applied; empty if they are invalid.
  std::vector<live_source> contents = {};
  /// The newest revision, if the runtime must wait for its turn in a roll-out; null: it need not.
  revision_ptr withheld = {};
};
using resolved_units = std::array<resolved_unit, all_units.size()>;

/// Renders revisions from the sources and from their stored contents. Most runtimes have the same
/// sources and names, so what was rendered for one serves the others.
///
/// Metric: `rw_bootstrapper_gathered_total`, the revisions that were rendered.
///
/// Single executor.
class revision_source {
 public:
  /// `from` and `stored` must outlive it.
  revision_source(const sources& from, last_good& stored, core::metrics& registry);

  /// Fails if a stored content is needed and can't be read: a request to the control plane.
  boost::asio::awaitable<k8s::result<resolved_units>> resolve(
      resource_view view, std::chrono::system_clock::time_point now);

  /// Unit `bootstrapper` of given contents, by source_kind; null of null, and if it is invalid.
  revision_ptr render_contents(const resource_view& view, const boost::json::value& contents,
                               std::chrono::system_clock::time_point now);

  /// Stores the contents of the first revision, as far as they are still those of the sources.
  /// `absent_only`: of sources of which none is stored yet.
  boost::asio::awaitable<k8s::result<void>> store(const resolved_unit* unit, bool absent_only);

 private:
  using located = std::array<live_source, all_source_kinds.size()>;

  located locate(const resource_view& view) const;
  boost::asio::awaitable<k8s::result<resolved_unit>> resolve_unit(
      unit of, const resource_view* view, const located* live,
      std::chrono::system_clock::time_point now);
  template <class Objects>
  revision_ptr render_once(unit of, std::string key, const render_input& like, Objects objects,
                           std::chrono::system_clock::time_point now);

  const sources& from_;
  last_good& stored_;
  core::counter& rendered_;
  core::lru_map<std::string, revision_ptr> cache_{64};
  std::unordered_map<std::string, k8s::object> stored_objects_;  ///< by source
};

}  // namespace rw::bootstrapper
