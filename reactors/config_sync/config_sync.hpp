#pragma once

#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/reactors/config_sync/runtime_signal.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"
#include "rw/reactors/shared/state_counts.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::config_sync {

/// How Runtimes are to be watched for it, in `kcp_namespace`: metadata and status.state; for others
/// `conditions`, too.
k8s::informer_options runtimes_informer(bool conditions = false);

/// All of it must outlive the reactor.
struct sync_environment {
  k8s::client& api;  ///< with the leader's fence, where there is one
  k8s::event_sink& events;
  k8s::controller_environment common;
};

/// Has Kyma Infrastructure Manager (KIM) configure every runtime with the content of the sources:
/// when one of them is created, changed or deleted, every Runtime in a mode that is signalled gets
/// the mark that KIM reconciles for.
///
/// Every observed change of the sources makes a new target, even one that is undone at once. No
/// change is lost, and none is signalled again after a restart, since the state is stored on
/// objects: the target in a ConfigMap (target.hpp), before the first Runtime is marked for it, and
/// on each Runtime what its last mark stood for (runtime_signal.hpp). Mark and signal are one write
/// at the resourceVersion that was read. What is created and deleted again while no replica watches
/// is not observed.
///
/// What KIM makes of a mark is watched. A Runtime on which KIM fails, then or later, is marked
/// again, with a backoff of its own, and gets the event `ConfigurationFailed`. Other events:
/// `BootstrapperModeUnknown`, `ConfigurationNotSignalled`. Suspended Runtimes are marked when their
/// suspension ends. One Runtime's failure does not delay the others.
///
/// Metrics:
///   - those of state_counts.hpp, by signal_state; a Runtime waits from `outdated` to `current`
///     and while it is `direct_marked`
///   - `rw_config_sync_marks_total{reason}`: change, retry
///   - `rw_config_sync_conflicts_total`, `rw_config_sync_revision` (the target's number)
///   - k8s::controller's with `controller="config-sync"`
///
/// To be run by the leader only. Everything happens on one executor, which is also the client's and
/// the informers'.
class config_sync final : private k8s::reconciler {
 public:
  /// The informers are run elsewhere, that of Runtimes also before this process leads.
  config_sync(boost::asio::any_io_executor executor, source_informers sources,
              k8s::informer& runtimes, sync_options options, sync_environment environment);
  ~config_sync() override;
  config_sync(const config_sync&) = delete;
  config_sync& operator=(const config_sync&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

 private:
  using result = k8s::reconcile_result;
  struct tracked {
    signal_machine machine = {};
    std::uint64_t written = 0;  ///< the version of our last write, until the store has shown it
    bool mode_unknown = false;  ///< an event says so
    bool rejected = false;      ///< an event says so
  };
  /// The sources as they are, and what was stored of them.
  struct known_target {
    std::string digest = {};             ///< of the sources; empty: not known yet
    std::uint64_t changes = 0;           ///< of the digest
    std::uint64_t recorded_changes = 0;  ///< those that `current` includes
    core::time_point changed_at = {};
    core::time_point series_began = {};             ///< the changes that the latest one belongs to
    std::optional<boost::json::value> stored = {};  ///< the record; null: absent; none: to be read
    std::optional<target> current = {};             ///< none: not known yet
    std::uint64_t version = 0;     ///< the sources had the digest's content at it, or before
    std::uint64_t visible_at = 0;  ///< the same of `current`
  };

  boost::asio::awaitable<result> reconcile(k8s::object_key key) override;

  void on_source(const k8s::informer& from, const k8s::delta& change, k8s::controller::keys& out);
  bool update_digest();
  std::optional<std::uint64_t> last_signalled() const;
  boost::asio::awaitable<result> record_target();
  void publish(target to);

  boost::asio::awaitable<result> write(boost::json::value runtime, signal_decision decision);
  result on_failure(const boost::json::value& runtime, const k8s::failure& error);
  signal_decision decide(tracked& state, const boost::json::value& runtime);
  bootstrapper_mode mode_for(tracked& state, const boost::json::value& runtime);
  void report(const boost::json::value& runtime, const signal_decision& decision);
  void warn(const boost::json::value& runtime, const std::string& reason, const std::string& text);
  result recheck_at(core::time_point time) const;

  const source_informers sources_;
  k8s::informer& runtimes_;
  const sync_options options_;
  const sync_environment environment_;
  std::array<core::counter*, 2> marks_{};
  core::counter& conflicts_;
  core::gauge& revision_;
  state_counts states_;
  std::unordered_map<k8s::object_key, tracked, k8s::object_key_hash> tracked_;
  known_target target_;
  k8s::controller controller_;
};

}  // namespace rw::config_sync
