#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/devserver/service_route.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// A write as webhooks receive it (admission.k8s.io/v1, AdmissionRequest).
struct admission_attributes {
  resource_type type;
  std::optional<group_version_kind> shown_as = {};  ///< the objects' kind if it differs (Scale)
  std::string subresource;
  std::string operation;  ///< CREATE, UPDATE, DELETE
  object_key key;
  boost::json::value object;      ///< null on DELETE
  boost::json::value old_object;  ///< null on CREATE
  boost::json::value options;     ///< CreateOptions and so on
  boost::json::value namespace_labels;
  std::string user;
  std::vector<std::string> groups;
  bool dry_run = false;
  /// Other versions that the resource is served in.
  std::vector<std::string> other_versions = {};
  bool refuse_unsupported = false;  ///< call::refuse_unsupported
  /// Receives those of the webhooks, in their order.
  warning_list warnings = std::make_shared<std::vector<std::string>>();
};

/// Calls the webhooks of one cluster (admissionregistration.k8s.io/v1): rules, object and namespace
/// selectors, timeouts, failurePolicy, sideEffects, warnings. Calls matching mutating webhooks one
/// after the other, by the names of their configurations, then all matching validating ones at once
/// and awaits all; the response is the first rejection. Treats matchPolicy
/// Equivalent as Exact, with a warning (or 501) where that matters, and matchConditions as true.
///
/// As many writes wait for their webhooks at once as kube-apiserver admits (200, its
/// max-mutating-requests-inflight); further ones get 429 with Retry-After.
///
/// Keeps connections to each webhook (HTTP/2 if it offers that); a changed configuration replaces
/// them. Metrics: `rw_devserver_webhook_calls_total{result}` (allowed, denied, failed, ignored),
/// `rw_devserver_admission_refused_total` (writes beyond `most_writes`), and those of http::client
/// as "webhook". On one executor.
class webhooks {
 public:
  struct environment {
    const core::clock& clock;
    core::watchdog& watchdog;
    core::logger& log;
    core::metrics& metrics;
  };
  /// Called with namespace, name and port of clientConfig.service, at each webhook call.
  using service_resolver = std::function<service_route(const object_key& service, unsigned port)>;

  webhooks(boost::asio::any_io_executor executor, environment with);
  /// The owner calls close() before, unless the execution context is destroyed first.
  ~webhooks();
  webhooks(const webhooks&) = delete;
  webhooks& operator=(const webhooks&) = delete;

  void resolve_services_by(service_resolver resolver);

  /// Handles a ValidatingWebhookConfiguration, or (`mutates`) a MutatingWebhookConfiguration, that
  /// was written or (null) removed.
  void set_configuration(const std::string& name, const boost::json::value& configuration,
                         bool mutates = false);

  bool empty() const noexcept;

  /// Returns the object with the patches of the mutating webhooks, or null if they have changed
  /// nothing. Problems as those of `admit`.
  boost::asio::awaitable<outcome<boost::json::value>> mutate(admission_attributes write);

  /// Returns a problem unless the validating webhooks admit the write. Problems are worded as in
  /// kube-apiserver: 'admission webhook "x" denied the request: …' (400, or the webhook's status),
  /// 'Internal error occurred: failed calling webhook "x": …' (500). Ends within the longest
  /// timeout of the webhooks. Throws boost::system::system_error (operation_aborted) if the
  /// coroutine is cancelled.
  boost::asio::awaitable<outcome<void>> admit(admission_attributes write);

  /// Ends all calls and closes all connections.
  boost::asio::awaitable<void> close();

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::k8s::devserver
