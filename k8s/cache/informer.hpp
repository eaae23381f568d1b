#pragma once

#include "rw/core/channel.hpp"
#include "rw/k8s/cache/list_watch.hpp"
#include "rw/k8s/cache/store.hpp"
#include "rw/k8s/objects/delta.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace rw::k8s {

using informer_options = list_watch_options;
using informer_environment = list_watch_environment;

/// Keeps a store equal to what the API server has of one resource: list, then watch, for as long as
/// it runs (client-go's reflector and informer). What breaks is begun anew, from the last
/// resourceVersion where the server still knows it and by a list otherwise; what a list does not
/// have any more is told as deleted.
///
/// Each subscriber has a channel of its own and is told, for every object, how its newest state
/// differs from the one it was told last. A slow one is told less often, never wrongly: changes of
/// an object that it has not taken yet become one. So what waits for it is bounded by the number of
/// objects, an object that came and went unseen is not mentioned, and one that was deleted and made
/// anew (another uid) is told as both.
///
/// Metrics, with the label `resource`: `rw_informer_objects`, `rw_informer_events_total{type}`,
/// `rw_informer_lists_total`, `rw_informer_watches_total{end}`,
/// `rw_informer_failures_total{phase}`, `rw_informer_pending_deltas`.
///
/// Everything happens on the client's executor.
class informer {
 public:
  using subscription = std::shared_ptr<core::channel<delta>>;

  informer(client& api, resource_type type, informer_options options,
           informer_environment environment);
  /// The same with something that stands for a client.
  informer(std::shared_ptr<api_source> api, resource_type type, informer_options options,
           informer_environment environment);
  ~informer();
  informer(const informer&) = delete;
  informer& operator=(const informer&) = delete;

  /// Runs until cancelled; then all subscriptions are closed.
  boost::asio::awaitable<void> run();

  /// All deltas from now on, the objects that are there already first, as added. `capacity` deltas
  /// lie ready; others wait outside, coalesced. Ends with the informer, or when `close` is called
  /// on the channel.
  subscription subscribe(std::size_t capacity = 64);

  /// True once a first list was complete. It stays true.
  bool synced() const noexcept;
  /// Waits until then. False if the informer ended before.
  boost::asio::awaitable<bool> wait_synced();

  /// Why it is not live, from the first failed request on until a watch runs again.
  struct error {
    failure cause;  ///< the latest
    core::time_point since = {};
  };
  /// Returns nothing if it is live, or about to be for the first time. Valid until the next change.
  const std::optional<error>& failing() const noexcept;
  /// Since when its watches end without having brought anything: only lists show changes then.
  std::optional<core::time_point> suspect_since() const noexcept;

  const store& objects() const noexcept;
  /// As the store's.
  void add_index(const std::string& name, store::index_function by);
  void remove_index(const std::string& name);
  /// The version that the store is at; empty before the first list.
  const std::string& resource_version() const noexcept;
  const resource_type& type() const noexcept;

 private:
  class implementation;
  std::shared_ptr<implementation> impl_;
};

}  // namespace rw::k8s
