#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/reactors/dev/source_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw::dev {

/// Result of one reconcile of the simulated Kyma Infrastructure Manager.
enum class kim_outcome : std::uint8_t {
  unchanged,     ///< the shoot did not change: status.state stays as it is until the end
  changed,       ///< the shoot changed: Pending until Gardener has reconciled it
  fails_before,  ///< Failed, and the mark stays
  fails_after,   ///< Failed after the mark was removed, nothing configured
};

/// May be changed while it runs; durations count from the next step.
struct kim_options {
  std::size_t workers = 25;                               ///< read at the start
  core::duration patch = std::chrono::milliseconds(200);  ///< of the shoot, then unmarks
  core::duration wait = std::chrono::seconds(10);         ///< for Gardener, if the shoot changed
  core::duration work = std::chrono::seconds(2);  ///< half of it before the sources are read
  bool bootstrapper = true;                       ///< KIM's --runtime-bootstrapper-enabled
  bool config_watcher = false;  ///< KIM's own watcher; runs only together with `bootstrapper`
  bool held = false;            ///< its Deployment is scaled to zero
  std::function<kim_outcome(const std::string& runtime)> outcome = {};  ///< empty: unchanged
  std::function<core::duration(core::duration)> vary = {};              ///< of each duration
};

/// All of it must outlive the simulation.
struct kim_environment {
  boost::asio::any_io_executor executor;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Simulates Kyma Infrastructure Manager in the order of its source (its state machine of Runtimes
/// and its ConfigReloadWatcher, as of July 2026), for trial systems and tests:
///
/// 1. For a Runtime with the mark (the annotation), or with a generation newer than the shoot's, it
///   patches the shoot, then removes the mark, by an update at the resourceVersion. It skips
///   suspended Runtimes, and leaves all others alone that are Ready or Failed.
/// 2. If the shoot changed, it sets status.state to Pending, and waits for the shoot.
/// 3. It reads the sources and writes them to the runtime (`configure`).
/// 4. It sets status.state to Ready, with the condition RuntimeBootstrapperReady.
///
/// A failure ends in the state Failed, without a retry. Runtimes that are Ready or Failed when the
/// simulation begins count as reconciled. At each update of a source the config watcher adds the
/// mark to every Runtime: it applies the whole object, by force, under the field manager
/// `config-watcher`.
///
/// Metrics: k8s::controller's, with `controller="dev-kim"`. On one executor.
class kim final : private k8s::reconciler {
 public:
  /// Reads the sources and writes them to the runtime of this Runtime.
  using configure_function =
      std::function<boost::asio::awaitable<k8s::result<void>>(boost::json::value runtime)>;

  /// `kcp` and `sources` must outlive this; the caller runs `sources`.
  kim(k8s::client& kcp, source_watch& sources, configure_function configure, kim_options options,
      kim_environment environment);
  ~kim() override;
  kim(const kim&) = delete;
  kim& operator=(const kim&) = delete;

  /// Runs until cancelled, once.
  boost::asio::awaitable<void> run();

  kim_options& options() noexcept { return options_; }
  /// Returns the number of shoots patched because of a mark, and for any reason.
  std::size_t reconciles() const noexcept { return reconciles_; }

 private:
  struct shoot {
    std::int64_t generation = 0;  ///< of the Runtime applied last
    core::time_point ready_at{};
    bool fails = false;
  };
  enum class next : std::uint8_t { configure, stop, requeue };

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  boost::asio::awaitable<next> patch_shoot(boost::json::value runtime, bool marked);
  boost::asio::awaitable<void> set_state(k8s::object_key key, std::string_view state);
  void set_status(boost::json::value& runtime, std::string_view state) const;
  boost::asio::awaitable<void> watch_config();
  boost::asio::awaitable<bool> mark_all();
  boost::asio::awaitable<bool> pause(core::duration by);
  void on_source_change();

  k8s::client& kcp_;
  source_watch& sources_;
  const configure_function configure_;
  kim_options options_;
  const kim_environment environment_;
  k8s::informer runtimes_;
  std::unordered_map<std::string, shoot> shoots_;
  std::size_t reconciles_ = 0;
  std::array<k8s::object, all_sources.size()> known_;  ///< the sources, for the config watcher
  core::wake source_updated_;
  k8s::controller controller_;
};

/// Writes ConfigMap, pull Secret, trust bundle and manifests to a runtime under the field managers
/// of KIM: the first installation is a plain create (`manager`), later ones are applied. Skips an
/// absent source.
boost::asio::awaitable<k8s::result<void>> configure_as_kim(k8s::client* runtime,
                                                           source_watch* sources);

}  // namespace rw::dev
