#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/config_sync/signal.hpp"
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
  /// Of Runtimes whose annotation says nothing else.
  bootstrapper_mode mode = bootstrapper_mode::signal;
  mark_forms forms = {.annotation = true, .label = true};
  std::string field_manager = "runtime-watcher-config-sync";
  core::duration settle = std::chrono::seconds(2);         ///< target_keeper.hpp
  core::duration settle_limit = std::chrono::seconds(30);  ///< target_keeper.hpp
  /// A Runtime made so much later than a state of the sources was noticed got it when it was made.
  std::chrono::seconds late = std::chrono::minutes(5);
  std::size_t concurrent = 8;  ///< Runtimes at once
  /// Marks of one change are spread over so long for each Runtime there is, at most `spread_limit`
  /// in all, each at a place of its own.
  core::duration spread_each = std::chrono::milliseconds(2);
  core::duration spread_limit = std::chrono::seconds(10);
};

/// How Runtimes are to be watched for it: their metadata, in `kcp_namespace`.
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
  /// Whether somebody else may still be writing to this Runtime's runtime, from when its mode was
  /// `direct`: then it is marked a little later. Empty: nobody ever does.
  std::function<bool(const k8s::object_key& runtime)> is_written = {};
};

/// Has Kyma Infrastructure Manager (KIM) bring every runtime in step with the sources: when one is
/// made, changed or deleted, every Runtime in a mode that is signalled gets the mark that KIM looks
/// for, and KIM takes it off when it has reconciled that runtime.
///
/// No change is lost, and none is signalled twice, whenever it comes and whenever this process
/// ends, because all that is known lies on the objects:
///   - A ConfigMap (record.hpp) says which state of the sources was the last, before any Runtime is
///     marked for it. Without it the Runtimes say so. On the very first start nobody does: then no
///     Runtime is marked, and changes count from there.
///   - Each Runtime says which state its last mark stood for (signal.hpp). A change that comes
///     while it still carries a mark is signalled when KIM has taken that off, since KIM may have
///     read the sources before.
///   - Both stand in one write, at the resourceVersion that was judged: what KIM does meanwhile
///     makes it a conflict, and it is judged anew.
/// What comes and goes wholly while no replica watches is not noticed.
///
/// Suspended Runtimes are marked when their suspension ends. Those in mode `off` are left alone;
/// those in mode `direct` are only told apart, so that they are marked when they come back. A mark
/// that is still there when a Runtime becomes `direct` is KIM's to finish (carries_mark).
///
/// One Runtime's failure costs the others nothing; it has its own backoff. Told as events of the
/// Runtime: `BootstrapperModeUnknown`, `ConfigurationNotSignalled`.
///
/// Metrics: `rw_config_sync_marks_total`, `rw_config_sync_writes_total{step}` (mark, tidy, disown),
/// `rw_config_sync_conflicts_total`, `rw_config_sync_state` (the target's number), those of
/// progress.hpp, and k8s::controller's with `controller="config-sync"`.
///
/// To be run by the leader only. Everything happens on one executor, which is also the client's and
/// the informers'.
class config_sync {
 public:
  /// `sources` and `runtimes` are run by somebody else, also before this process leads.
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
