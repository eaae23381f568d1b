#pragma once

#include "rw/core/task_group.hpp"
#include "rw/reactors/bootstrapper/direct_sync.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/environment/environment.hpp"
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {

namespace asio = boost::asio;
using test::bundles;
using test::deployments;
using test::is_gone;
using test::is_there;

inline const k8s::object_key skr{"kcp-system", "skr"};
inline const k8s::object_key credentials{"kyma-system", "registry-credentials"};
inline const k8s::object_key settings{"kyma-system", "rt-bootstrapper-config"};

/// Mode direct, and quick where the real one is patient.
bootstrapper::direct_sync_options quick_options();
/// Of clients of runtimes that give up soon.
k8s::client_pool_options impatient();
/// The object is there, with the data of another one.
test::object_check has_data(const json::value& of);

using place = std::source_location;
/// Waits until it holds, and ends the test where it does not.
asio::awaitable<void> soon(std::function<bool()> holds, place where = place::current());

/// A control plane with its runtimes, and the reactor.
class test_env : public test::environment {
 public:
  explicit test_env(bootstrapper::direct_sync_options with,
                    k8s::client_pool_options runtimes = impatient());
  ~test_env() override;

  /// Definitions, namespaces and good sources; then the reactor and its informers run.
  asio::awaitable<void> begin();

  /// A runtime that was never signalled; by the manager's mode where none is given.
  asio::awaitable<void> add_runtime(std::string name, std::string mode = {});
  asio::awaitable<void> add_bootstrapper(std::string name, json::value spec = json::object());
  /// Each a runtime with its RuntimeBootstrapper, synced.
  asio::awaitable<void> begin_with(std::vector<std::string> runtimes);
  asio::awaitable<void> annotate_runtime(std::string name, std::string annotation,
                                         json::value value);
  asio::awaitable<void> set_source(json::value object);
  asio::awaitable<void> remove_source(k8s::resource_type type, std::string name);
  asio::awaitable<void> change(std::string name, json::value spec);
  /// What a cluster's controllers would say of the Deployment.
  asio::awaitable<void> set_ready(std::string runtime);

  /// Ends the passes of the reactor, which stays.
  asio::awaitable<void> pause();
  /// Ends the reactor.
  asio::awaitable<void> stop();
  /// From now on changes of Runtimes are not observed.
  asio::awaitable<void> stop_observing_runtimes();
  /// Ends the reactor and begins another one, as after a crash.
  asio::awaitable<void> restart();

  // Each of these waits, and ends the test where what it waits for does not come.

  asio::awaitable<void> until(std::string cluster, k8s::resource_type type, k8s::object_key key,
                              test::object_check good, place where = place::current());
  asio::awaitable<void> until_event(std::string about, std::string reason, std::string text = {},
                                    place where = place::current());
  /// The RuntimeBootstrapper is, or becomes, as `good` says.
  asio::awaitable<void> until_resource(std::string name, test::object_check good,
                                       place where = place::current());
  /// The status' condition has this status and reason.
  asio::awaitable<void> until_condition(std::string name, std::string condition, std::string is,
                                        std::string reason, place where = place::current());
  asio::awaitable<void> until_state(std::string name, std::string state,
                                    place where = place::current());
  asio::awaitable<void> until_metric(std::string series, double least,
                                     place where = place::current());

  asio::awaitable<json::value> status(std::string name);

  bootstrapper::render_input now;  ///< as they are in the control plane
  std::unique_ptr<bootstrapper::direct_sync> reactor;
  content_gate* gate = nullptr;  ///< of the next reactor

 private:
  void start();
  void react();

  bootstrapper::direct_sync_options with_;
  k8s::client_pool& pool_;
  k8s::event_recorder* events_ = nullptr;
  std::unique_ptr<bootstrapper::sources> from_;
  std::unique_ptr<core::task_group> reacting_;
  std::unique_ptr<k8s::informer> runtimes_;
  core::task_group observing_runtimes_{context.get_executor()};
};

/// Begins, with the runtime "skr", which becomes ready.
asio::awaitable<void> one_ready_runtime(test_env* env);

/// A roll-out in which the turn of all runtimes comes, and goes, at once.
struct gate_by_hand final : content_gate {
  bool open = false;
  std::string admitted;  ///< the content that it was open for last
  callbacks to;

  void attach(callbacks given) override { to = std::move(given); }
  bool admit(const k8s::object_key&, const shared_content&, const content_revisions& desired,
             const content_facts&) override {
    if (open) admitted = desired.newest;
    return open;
  }
  bool still_admits(const k8s::object_key&, std::string_view) const override { return open; }
  std::string pinned() const override { return {}; }
  void note_unreadable(std::string_view, std::string) override {}
  bool may_be_pinned(std::string_view) const override { return true; }
  void refresh(const shared_content&) override {}
  void observe(const k8s::object_key&, const content_facts&) override {}
  void leave(const k8s::object_key&) override {}
};

}  // namespace rw::bootstrapper_test
