#pragma once

#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "k8s/objects/object.hpp"
#include "reactors/shared/bootstrapper_sources.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rw {

/// Watches the four sources, and notifies subscribers of changes. A trust bundle counts as absent
/// where ClusterTrustBundles are not served (trust_bundles_type.hpp).
///
/// Everything happens on the client's executor.
class source_watch {
 public:
  source_watch(k8s::client& api, bootstrapper_sources names, k8s::informer_environment in);
  source_watch(const source_watch&) = delete;
  source_watch& operator=(const source_watch&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

  /// True once the content of each source is known, or that it is absent. It stays true.
  bool ready() const noexcept;
  /// The sources that are not known yet, one a line; for readiness pages.
  std::string not_ready() const;

  /// The source as it is; empty: absent, or not known yet.
  k8s::object get(source which) const { return at(which).now; }

  /// A digest of all content: data and type of ConfigMaps and the Secret, spec of the trust bundle,
  /// and absence; not of metadata. Empty until `ready`.
  std::string digest() const;
  /// The sources had this content at this resourceVersion, or before. The largest number of all if
  /// resourceVersions are no numbers.
  std::uint64_t version() const noexcept { return version_; }

  /// Calls `changed` when `ready` becomes true, and after each change of a source, of its metadata
  /// too, until the returned handle is destroyed.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  struct watched {
    source which = source::config;
    k8s::object_key key = {};
    std::string name = {};  ///< for people
    std::unique_ptr<k8s::informer> informer = {};
    k8s::object now = {};
    std::string digest = {};  ///< of the content; empty: not known yet
  };

  watched& at(source which) { return all_.at(static_cast<std::size_t>(which)); }
  const watched& at(source which) const { return all_.at(static_cast<std::size_t>(which)); }
  void update(watched& one, k8s::object now);
  boost::asio::awaitable<void> follow(watched* one);

  std::array<watched, all_sources.size()> all_;
  std::uint64_t version_ = 0;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

/// The digest of one source's content; of an absent one (an empty object), too.
std::string digest_of(source which, const k8s::object& now);

}  // namespace rw
