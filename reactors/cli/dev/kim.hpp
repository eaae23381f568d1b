#pragma once

#include "core/clock.hpp"
#include "k8s/client.hpp"
#include "k8s/controller.hpp"
#include "k8s/informer.hpp"
#include "k8s/reconciler.hpp"
#include "reactors/bootstrapper_mode.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/source_watch.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

namespace rw::cli::dev {

struct kim_options {
  bootstrapper_mode mode = bootstrapper_mode::signal;  ///< of Runtimes that do not say otherwise
  std::size_t workers = 25;
  core::duration duration = std::chrono::seconds(2);  ///< of one reconcile of a marked Runtime
  core::duration limit = std::chrono::seconds(5);     ///< beside that, for a runtime's answers
};

/// Stands for Kyma Infrastructure Manager in a trial system: takes a Runtime that is marked
/// (bootstrapper_mode.hpp), reads the sources, works on it for as long as it is told, writes
/// ConfigMap, pull Secret, trust bundle and manifests to the runtime under the field managers that
/// KIM has, and takes the mark off, in both forms. What fails is tried again with backoff, the mark
/// still in place.
///
/// A Runtime that it has not seen before, in a mode that is signalled, gets all of that at once, as
/// when it was made. Those that are suspended are left alone, and those in mode `direct` without a
/// mark. Metrics: k8s::controller's, with `controller="dev-kim"`. On one executor.
class kim final : private k8s::reconciler {
 public:
  /// The client of the runtime that a Runtime stands for; null: there is none.
  using runtime_client = std::function<k8s::client*(const std::string& runtime)>;

  /// All of it must outlive this; somebody else runs `sources`.
  kim(services& with, k8s::client& kcp, source_watch& sources, runtime_client find,
      kim_options options);
  ~kim() override;
  kim(const kim&) = delete;
  kim& operator=(const kim&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  struct write {
    boost::json::value object;
    std::string field_manager;
  };

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  k8s::result<std::vector<write>> read_sources() const;
  boost::asio::awaitable<k8s::result<void>> configure(k8s::client* api, std::vector<write> what);
  boost::asio::awaitable<k8s::result<void>> take_mark_off(k8s::object_key key);

  services& services_;
  k8s::client& kcp_;
  source_watch& sources_;
  const runtime_client find_;
  const kim_options with_;
  k8s::informer runtimes_;
  std::unordered_set<std::string> seen_;  ///< Runtimes that were configured at least once
  k8s::controller controller_;
};

}  // namespace rw::cli::dev
