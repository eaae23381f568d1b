#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/config_sync/runtime_signal.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

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
  /// The marks of one change are spread over so long for each Runtime, `spread_limit` at most.
  core::duration spread_each = std::chrono::milliseconds(2);
  core::duration spread_limit = std::chrono::seconds(10);
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
class config_sync {
 public:
  /// `sources` and `runtimes` are run elsewhere, also before this process leads.
  config_sync(boost::asio::any_io_executor executor, source_watch& sources, k8s::informer& runtimes,
              sync_options options, sync_environment environment);
  ~config_sync();
  config_sync(const config_sync&) = delete;
  config_sync& operator=(const config_sync&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::config_sync
