#pragma once

#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/bootstrapper/state.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::bootstrapper {

/// What is read of the control plane, kept by informers that others may share and run. All of it
/// must outlive the reactor.
struct sources {
  k8s::informer& bootstrappers;
  /// Runtimes; their metadata suffice, and with options::runtime_condition status.state and
  /// status.conditions.
  k8s::informer& runtimes;
  k8s::informer& kubeconfigs;  ///< Secrets with kubeconfigs; may hold others
  source_informers contents;
};

/// What becomes of a pull Secret or trust bundle on runtimes whose source in KCP is deleted.
struct source_removal {
  bool enabled = false;  ///< false: its last valid content stays
  std::chrono::milliseconds delay = std::chrono::hours(1);

  /// When what is missing since then is removed; none: it stays.
  std::optional<content_store::time_point> time_of(
      source_kind kind, std::optional<content_store::time_point> since) const {
    const bool removable = kind == source_kind::pull_secret || kind == source_kind::trust_bundle;
    if (!enabled || !removable || !since) return std::nullopt;
    return *since + delay;
  }
};

/// Takes the removal from the unit's revisions: the runtime keeps the pull Secret.
void keep_credentials(unit_state& unit);

/// Renders revisions from the sources and from their stored contents. Most runtimes have the same
/// sources and names, so what was rendered for one serves the others.
///
/// Metric: `rw_bootstrapper_rendered_total`, the number of rendered revisions.
///
/// Single executor.
class revision_source {
 public:
  /// `from` and `stored` must outlive it.
  revision_source(const sources& from, target_names to, source_removal removal,
                  content_store& stored, core::metrics& registry);

  /// Sets what a runtime is to have: revisions of the sources, then of the newest stored contents,
  /// and of those that its status names: what it has, and what it was becoming. Where a source has
  /// been missing for long enough, the first revision is without it, unless the configuration
  /// refers to it. Fails if a stored content is needed and can't be read: a request to the control
  /// plane. `pinned`: contents of unit `bootstrapper` that take the place of the sources. Where a
  /// source is missing, or there again, that is stored if `records`.
  boost::asio::awaitable<k8s::result<void>> resolve(resource_view view,
                                                    std::chrono::system_clock::time_point now,
                                                    std::optional<content_set> pinned,
                                                    sync_state* into, bool records = true);

  /// Unit `bootstrapper` of these contents; null if it is invalid.
  revision_ptr render_stored(const resource_view& view, const content_set& contents,
                             std::chrono::system_clock::time_point now);

  /// Stores the contents that a status may name next; adds a warning if that fails.
  boost::asio::awaitable<void> keep(unit_state* unit);

  /// Stores the contents of the unit's first revision, as far as they are still those of the
  /// sources, as the newest ones; adds a warning if that fails. Fails if a later pass may store
  /// what could not be, and for contents of sources that have changed since they were resolved,
  /// unless they are stored as the newest or the previous ones, or the runtime has them.
  boost::asio::awaitable<k8s::result<void>> store(bootstrapper_sources names, unit_state* unit);

 private:
  /// A source as it was when it was read last.
  struct live_source {
    k8s::object object = {};
    content_ptr content = {};
  };

  boost::asio::awaitable<k8s::result<void>> resolve_unit(unit of, const resource_view* view,
                                                         std::chrono::system_clock::time_point now,
                                                         const content_set* pinned,
                                                         unit_state* into, bool records);
  boost::asio::awaitable<k8s::result<std::optional<content_set>>> find(content_digests digests);
  boost::asio::awaitable<k8s::result<void>> add_own(unit of, const resource_view* view,
                                                    std::chrono::system_clock::time_point now,
                                                    unit_state* into);
  boost::asio::awaitable<k8s::result<void>> settle_order(std::string source, content_set newest,
                                                         content_set previous, unit_state* into);
  bool note_missing(source_kind kind, const std::string& name,
                    std::chrono::system_clock::time_point now, unit_state* into);
  /// `unlabelled`: as in `render_input`.
  revision_ptr render_once(unit of, const resource_view& view, const content_set& contents,
                           bool unlabelled, std::chrono::system_clock::time_point now);

  const sources& sources_;
  const target_names names_;
  const source_removal removal_;
  content_store& stored_;
  core::counter& rendered_;
  core::lru_map<std::string, revision_ptr> cache_{64};
  std::unordered_map<std::string, live_source> live_;  ///< by name
};

}  // namespace rw::bootstrapper
