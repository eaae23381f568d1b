#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <functional>
#include <memory>
#include <vector>

namespace rw::dev {

/// Watches the four sources, and notifies subscribers of changes. A trust bundle counts as absent
/// if the API server does not serve ClusterTrustBundles (trust_bundles_type.hpp).
///
/// Everything happens on the client's executor.
class source_watch {
 public:
  source_watch(k8s::client& api, bootstrapper_sources names, k8s::informer_environment in);
  source_watch(const source_watch&) = delete;
  source_watch& operator=(const source_watch&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

  /// Returns true once the content or absence of each source is known. It stays true.
  bool ready() const noexcept;
  /// Returns the current state of a source; empty: absent, or not known yet.
  k8s::object get(source source) const { return at(source).now; }

  /// Calls `changed` when `ready` becomes true, and after each change of a source, of its metadata
  /// too, until the returned handle is destroyed.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  struct watched {
    source kind = source::config;
    k8s::object_key key = {};
    std::unique_ptr<k8s::informer> informer = {};
    k8s::object now = {};
    bool known = false;
  };

  watched& at(source source) { return all_.at(static_cast<std::size_t>(source)); }
  const watched& at(source source) const { return all_.at(static_cast<std::size_t>(source)); }
  void update(watched& watched, k8s::object now);
  boost::asio::awaitable<void> follow(watched* watched);

  std::array<watched, all_sources.size()> all_;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

}  // namespace rw::dev
