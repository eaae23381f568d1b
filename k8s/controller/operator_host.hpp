#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/controller/operator_request.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/k8s/objects/described.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s {

struct operator_options {
  /// The operator's name: user agent, field manager, Lease, reporter of Events. A DNS label.
  std::string name = {};
  std::optional<config> api = {};  ///< nothing: as `load_config` finds it
  bool elect = true;               ///< false: it reconciles without a Lease; then run one replica
  std::string ns = {};             ///< of the Lease; empty: that of `api`
  /// Where `/metrics`, `/healthz`, `/livez` and `/readyz` are.
  boost::asio::ip::tcp::endpoint pages = {boost::asio::ip::address_v4::any(), 8080};
  core::log_level level = core::log_level::info;
  core::duration shutdown = std::chrono::seconds(10);  ///< grace period of running reconciles

  // What a host brings; null: one of its own.
  core::logger* log = nullptr;
  core::metrics* metrics = nullptr;
  /// Gets the address of the pages, once it is bound; may be empty.
  std::function<void(boost::asio::ip::tcp::endpoint)> on_listening = {};
};

/// What `operator_host::watch` builds, without its type.
struct operator_plan {
  using call = std::function<boost::asio::awaitable<reconcile_result>(operator_scope)>;
  struct owned_resource {
    resource_type type;
    selection objects;
  };

  resource_type type;
  boost::json::value definition;
  selection objects = {};
  std::vector<owned_resource> owned = {};
  bool every_change = false;
  std::size_t concurrent = 4;
  std::string finalizer = {};
  call reconcile = {};
  call finalize = {};
};

/// A resource that an operator reconciles. Made by `operator_host::watch`; `run` ends it.
template <resource_struct T>
class operator_watch {
 public:
  using reconcile_function =
      std::function<boost::asio::awaitable<reconcile_result>(operator_request<T>)>;

  explicit operator_watch(std::vector<operator_plan>& to) : plans_(to) {}

  /// Watches what its objects own (`operator_request::apply`): a change or deletion reconciles the
  /// owner. `objects` selects those to watch; they are watched by their metadata.
  operator_watch& owns(resource_type type, selection objects = {}) {
    objects.metadata_only = true;
    plan_.owned.push_back({std::move(type), std::move(objects)});
    return *this;
  }
  /// Only these objects; by default all of all namespaces.
  operator_watch& select(selection objects) {
    plan_.objects = std::move(objects);
    return *this;
  }
  /// Reconciles at changes of status and metadata, too. By default only at those that raise the
  /// object's generation, so that an operator's status does not wake it.
  operator_watch& on_every_change() {
    plan_.every_change = true;
    return *this;
  }
  /// Reconciles so many objects at once; by default 4.
  operator_watch& concurrent(std::size_t reconciles) {
    plan_.concurrent = reconciles;
    return *this;
  }
  /// Gives each object a finalizer of this name ("example.com/cleanup") before its first reconcile.
  /// A deleted object is passed to `finalize` in place of the reconcile; when that returns `done`
  /// the finalizer is removed.
  operator_watch& finalizer(std::string name, reconcile_function finalize) {
    plan_.finalizer = std::move(name);
    plan_.finalize = erased(std::move(finalize));
    return *this;
  }

  /// Adds it to the host. `reconcile` is not called for objects that are being deleted. An object
  /// that cannot be read as a T is an error that is not retried before it changes.
  void run(reconcile_function reconcile) {
    plan_.type = T::type;
    plan_.definition = definition_of<T>();
    plan_.reconcile = erased(std::move(reconcile));
    plans_.push_back(std::move(plan_));
  }

 private:
  static boost::asio::awaitable<reconcile_result> call(reconcile_function function,
                                                       operator_scope scope) {
    auto object = from_json<T>(scope.object);
    if (!object) co_return reconcile_result::terminal(object.error().message, "InvalidObject");
    operator_request<T> of(std::move(*object), std::move(scope));
    co_return co_await function(std::move(of));
  }
  static operator_plan::call erased(reconcile_function function) {
    return [function = std::move(function)](operator_scope scope) {
      return call(function, std::move(scope));
    };
  }

  std::vector<operator_plan>& plans_;
  operator_plan plan_;
};

/// An operator as a process, or in one: configuration, client, informers, one controller for each
/// watched resource, leader election with its fence, Events, metrics and health pages.
///
///     rw::k8s::operator_host host({.name = "backup-operator"});
///     host.watch<backup>().owns(config_map::type).run(reconcile);
///     return host.run(argc, argv);
///
/// Every replica watches; the one that holds the Lease reconciles, and its writes end with the
/// lease (fence.hpp). A reconcile is called with a key's newest object, at most once at a time for
/// each; with backoff after an error; at the start for all objects (controller.hpp). Metrics are
/// those of the parts.
///
/// The operator needs the rights to list and watch what it watches, to patch that and its status
/// and what it applies, to get, create and update its Lease, and to create and patch Events.
class operator_host {
 public:
  /// Throws std::invalid_argument if the options have no name.
  explicit operator_host(operator_options options);

  /// Adds a resource, before the host runs.
  template <resource_struct T>
  operator_watch<T> watch() {
    return operator_watch<T>(plans_);
  }

  /// Returns the CustomResourceDefinitions of the watched resources, of their structs.
  std::vector<boost::json::value> definitions() const;

  /// Runs the process until SIGINT or SIGTERM; a second one ends it at once. Returns the exit code:
  /// 1 after a failure, 2 if an argument or the configuration can't be used; all are logged.
  ///
  ///     definitions             prints the definitions as a List, for `kubectl apply -f -`
  ///     --pages=ADDRESS:PORT    in place of `operator_options::pages`
  int run(int argc = 0, const char* const* argv = nullptr);

  /// Runs it on `executor` (thread or strand) until cancelled: then running reconciles end, the
  /// Lease is released, and it returns. Throws std::runtime_error if the configuration can't be
  /// used or the pages' address is taken, and what a part that must not fail has thrown.
  boost::asio::awaitable<void> serve(boost::asio::any_io_executor executor);

 private:
  class running;

  bool set_argument(std::string_view argument);

  operator_options options_;
  std::vector<operator_plan> plans_;
};

}  // namespace rw::k8s
