#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/task_group.hpp"
#include "k8s/client.hpp"
#include "k8s/informer.hpp"
#include "k8s/object.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// One of the objects in KCP that all runtimes are configured from.
enum class source : std::uint8_t { config, manifests, pull_secret, trust_bundle };

inline constexpr std::array all_sources{source::config, source::manifests, source::pull_secret,
                                        source::trust_bundle};

/// For people, such as "pull Secret".
std::string_view to_string(source which);

struct source_watch_options {
  bootstrapper_sources names = {};
  /// The period of discovery: whether, and in which version, ClusterTrustBundles are served.
  core::duration ask_again = std::chrono::minutes(1);
};

/// All of it must outlive the watch.
struct source_watch_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Watches the four sources, and notifies subscribers of changes.
///
/// ClusterTrustBundles are found by discovery, in whichever version they are served. Where they are
/// not served, which is logged once, the trust bundle counts as absent; within `ask_again` after
/// the server begins to serve them it is found. Where the server ceases to serve them, the last
/// known content stays.
///
/// Everything happens on the client's executor.
class source_watch {
 public:
  source_watch(k8s::client& api, source_watch_options options,
               source_watch_environment environment);
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
  /// "ConfigMap kcp-system/rt-bootstrapper-config"
  std::string name_of(source which) const { return name_of(at(which)); }

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
    k8s::resource_type type = {};
    k8s::object now = {};
    std::string digest = {};  ///< of the content; empty: not known yet
    std::unique_ptr<k8s::informer> informer = {};
  };

  const watched& at(source which) const { return all_.at(static_cast<std::size_t>(which)); }
  watched& bundle() { return all_.back(); }  ///< its version is not known at first
  std::string name_of(const watched& one) const;
  void start(watched& one, core::task_group& tasks);
  void update(watched& one, k8s::object now);
  boost::asio::awaitable<void> follow(watched* one);
  boost::asio::awaitable<void> discover();
  boost::asio::awaitable<void> adopt(std::optional<k8s::resource_type> found);
  boost::asio::awaitable<void> end_bundle();

  k8s::client& api_;
  const source_watch_options options_;
  const source_watch_environment environment_;
  std::array<watched, all_sources.size()> all_;
  std::unique_ptr<core::task_group> bundle_tasks_;
  bool absence_logged_ = false;
  std::uint64_t version_ = 0;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
  core::log_limit log_limit_{1, std::chrono::minutes(5)};
};

/// The digest of one source's content; of an absent one (an empty object), too.
std::string digest_of(source which, const k8s::object& now);

}  // namespace rw
