#pragma once

#include "core/channel.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/controller.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "k8s/own_writes.hpp"
#include "k8s/reconciler.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/config_sync/runtime_signal.hpp"
#include "reactors/config_sync/target.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace rw::config_sync {

struct sync_options {
  bootstrapper_mode mode = bootstrapper_mode::signal;  ///< of Runtimes without the annotation
  mark_form form = mark_form::annotation;
  std::string field_manager = "runtime-watcher-config-sync";
  /// Runtimes are marked when the sources have been still for so long: changes that belong together
  /// become one. At most `settle_limit` after the first of them, and then every `settle_limit`.
  core::duration settle = std::chrono::seconds(2);
  core::duration settle_limit = std::chrono::seconds(30);
  bool signal_all_once = false;  ///< target.hpp
  signal_timing timing = {};
  std::size_t concurrent = 8;  ///< Runtimes at once
};

/// How Runtimes are to be watched for it, in `kcp_namespace`: metadata and status.state.
k8s::informer_options runtimes_informer();

/// All of it must outlive the reactor.
struct sync_environment {
  k8s::client& api;  ///< with the leader's fence, where there is one
  k8s::event_recorder& events;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  /// Whether a write of ours to this Runtime's runtime is under way, from when its mode was
  /// `direct`: then it is marked when that has ended. Empty: there never is.
  std::function<bool(const k8s::object_key& runtime)> is_written = {};
};

/// Has Kyma Infrastructure Manager (KIM) configure every runtime with the content of the sources:
/// when one of them is created, changed or deleted, every Runtime in a mode that is signalled gets
/// the mark that KIM reconciles for.
///
/// No change is lost, and none is signalled again after a restart, since the state is stored on
/// objects: the target in a ConfigMap (target.hpp), and on each Runtime what its last mark stood
/// for (runtime_signal.hpp). Mark and signal are one write at the resourceVersion that was read.
/// What is created and deleted again while no replica watches is not observed.
///
/// What KIM makes of a mark is watched to its end. A Runtime on which KIM fails is marked again,
/// with a backoff of its own, and gets the event `ConfigurationFailed`. Other events:
/// `BootstrapperModeUnknown`, `ConfigurationNotSignalled`. Suspended Runtimes are marked when their
/// suspension ends. One Runtime's failure does not delay the others.
///
/// Metrics:
///   - `rw_config_sync_runtimes{state}` (signal_state)
///   - `rw_config_sync_state_since_timestamp_seconds{state}`: since when the Runtime that has
///     waited longest, of those in this state, does so, in Unix time; 0: none. A Runtime waits
///     from `outdated` to `current`, and while it is `direct_marked`.
///   - `rw_config_sync_marks_total{reason}`: change, retry
///   - `rw_config_sync_writes_total{write}`: mark, note, withdraw
///   - `rw_config_sync_conflicts_total`, `rw_config_sync_revision` (the target's number)
///   - k8s::controller's with `controller="config-sync"`
///
/// To be run by the leader only. Everything happens on one executor, which is also the client's and
/// the informers'.
class config_sync final : private k8s::reconciler {
 public:
  /// `sources` and `runtimes` are run elsewhere, also before this process leads.
  config_sync(boost::asio::any_io_executor executor, source_watch& sources, k8s::informer& runtimes,
              sync_options options, sync_environment environment);
  ~config_sync() override;
  config_sync(const config_sync&) = delete;
  config_sync& operator=(const config_sync&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

 private:
  class state_metrics;
  struct tracked {
    signal_machine machine = {};
    bool mode_unknown = false;  ///< an event says so
    bool rejected = false;      ///< an event says so
  };

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  boost::asio::awaitable<k8s::reconcile_result> write(boost::json::value runtime,
                                                      signal_decision decision);
  k8s::reconcile_result on_failure(const boost::json::value& runtime, const k8s::failure& error);
  signal_decision decide(tracked& one, const boost::json::value& runtime);
  bootstrapper_mode mode_for(tracked& one, const boost::json::value& runtime);
  void report(const boost::json::value& runtime, signal_state state);
  void warn(const boost::json::value& runtime, const std::string& reason, const std::string& text);
  void on_target();

  const boost::asio::any_io_executor executor_;
  k8s::informer& runtimes_;
  const sync_options options_;
  const sync_environment environment_;
  std::array<core::counter*, 2> marks_{};
  std::array<core::counter*, 4> writes_{};
  core::counter& conflicts_;
  core::gauge& revision_;
  std::unique_ptr<state_metrics> states_;
  k8s::own_writes own_writes_;
  std::unordered_map<k8s::object_key, tracked, k8s::object_key_hash> tracked_;
  std::shared_ptr<core::channel<std::uint64_t>> published_;
  target_tracker tracker_;
  k8s::controller core_;
};

}  // namespace rw::config_sync
