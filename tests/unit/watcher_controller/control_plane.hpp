#pragma once

#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/k8s/devserver/faults.hpp"
#include "rw/reactors/watcher_controller/watcher_controller.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rw::watcher_controller_test {

/// How strict the Watcher's schema is.
enum class schema { ours, without_bounds };

/// A control plane with one watcher controller in it, and a namespace of its own that it cares for.
/// The API server is an embedded one with deploy/crds and deploy/dev, or the one that
/// RW_CONFORMANCE_KUBECONFIG names, with the CustomResourceDefinitions of the folder RW_TEST_CRDS
/// if that is given; those have no bounds.
class control_plane {
 public:
  using value = boost::json::value;

  explicit control_plane(schema watchers = schema::ours,
                         rw::watcher_controller::watcher_controller_options options = {});
  ~control_plane();
  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  /// Starts the controller, and ends it, as another leader's coming and going would.
  void start();
  void stop();

  /// What the request brings, which must succeed.
  template <class T>
  T ok(boost::asio::awaitable<k8s::result<T>> request) {
    auto got = here_.call(std::move(request));
    BOOST_REQUIRE_MESSAGE(got.has_value(), (got.has_value() ? "" : got.error().message));
    if constexpr (!std::is_void_v<T>) return std::move(*got);
  }

  // The test's own requests, for objects of its namespace.
  value create(const k8s::resource_type& type, value object);
  value get(const k8s::resource_type& type, std::string_view name);
  bool there(const k8s::resource_type& type, std::string_view name);
  value merge(const k8s::resource_type& type, std::string_view name, std::string_view change);
  void remove(const k8s::resource_type& type, std::string_view name);

  /// A Watcher named `name` that selects Gateways by the label gw=default, for the manager of the
  /// same name.
  value watcher(std::string_view name) const;
  /// A Gateway that they select.
  value gateway(std::string_view name, std::string_view host) const;

  /// Waits until a Watcher is in a state that has seen its present spec, and returns it.
  value await_state(std::string_view name, std::string_view state);
  /// Waits until the controller has seen everything there is, and has nothing left to do.
  void settle();
  void eventually(const std::function<bool()>& condition, std::string_view what);
  /// The message of the condition.
  static std::string message_of(const value& watcher);

  /// True if the API server is the embedded one. To be asked at any time.
  static bool embedded();

  /// Requests that the controller has made so far, events apart; and those that met a conflict.
  double requests() const;
  double conflicts() const;
  double reconciles() const;
  /// The reason in `controller::faults`; empty: none.
  std::string fault_of(std::string_view watcher);
  bool has_event(std::string_view watcher, std::string_view reason);
  k8s::failure refused_creation(const k8s::resource_type& type, value object);

  /// What is to go wrong with requests to the embedded server; nothing when empty.
  void fail(std::function<k8s::devserver::fault(const std::string& verb, const std::string& path)>);

  const std::string& ns() const noexcept { return ns_; }

 private:
  struct backend;
  struct running;

  double sum(std::string_view series) const;
  void make_namespace();

  http::test::host here_;
  std::unique_ptr<backend> backend_;
  std::unique_ptr<running> running_;
  std::string ns_;
  rw::watcher_controller::watcher_controller_options options_;
};

}  // namespace rw::watcher_controller_test
