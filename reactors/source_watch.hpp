#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "k8s/client.hpp"
#include "k8s/object.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace rw {

/// One of the objects in KCP that all runtimes are kept in step with.
enum class source : std::uint8_t { config, manifests, pull_secret, trust_bundle };

inline constexpr std::array all_sources{source::config, source::manifests, source::pull_secret,
                                        source::trust_bundle};

/// What people call it, such as "pull Secret".
std::string_view to_string(source which);

struct source_watch_options {
  bootstrapper_sources names = {};
  /// How often it is asked whether the server serves ClusterTrustBundles by now, and whether it
  /// still does in the same version.
  core::duration ask_again = std::chrono::minutes(1);
};

/// All of it must outlive the watch.
struct source_watch_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Watches the four sources, and tells those who listen when one changes.
///
/// ClusterTrustBundles are found by discovery, in whichever version they are served. A server that
/// has none is logged once; the trust bundle then counts as absent, and is picked up within
/// `ask_again` when the server begins to serve it. Where the server stops serving it, what was seen
/// last stands.
///
/// Everything happens on the client's executor.
class source_watch {
 public:
  source_watch(k8s::client& api, source_watch_options options,
               source_watch_environment environment);
  ~source_watch();
  source_watch(const source_watch&) = delete;
  source_watch& operator=(const source_watch&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  /// True once it is known of each source what it holds, or that it is absent. It stays true.
  bool ready() const noexcept;
  /// Those of which it is not known, one a line; for readiness pages.
  std::string not_ready() const;

  /// The source as it is; empty: absent, or not known yet.
  k8s::object get(source which) const;
  /// "ConfigMap kcp-system/rt-bootstrapper-config"
  std::string name_of(source which) const;

  /// A digest of what all of them hold: data and type of ConfigMaps and the Secret, spec of the
  /// trust bundle. Metadata has no part in it; that a source is absent has. Empty until `ready`.
  std::string digest() const;

  /// Calls `changed` when `ready` becomes true, and after each change of a source, of its metadata
  /// too, as long as the caller keeps the result.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

/// The digest of one source's content; of an absent one (an empty object), too.
std::string digest_of(source which, const k8s::object& now);

}  // namespace rw
