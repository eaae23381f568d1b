#pragma once

#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/admission.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/k8s/devserver/write_plan.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Context of a write, for webhooks, in addition to the plan.
struct write_context {
  bool dry_run = false;
  bool of_collection = false;       ///< part of a deletecollection: webhooks get no name
  boost::json::value options = {};  ///< without apiVersion and kind; null: none
};

/// Returns a write in the form for webhooks (admission.k8s.io/v1, AdmissionRequest).
admission_attributes attributes_of(const call& to, const write_plan& plan,
                                   const write_context& context);

/// Returns the options of a creation, update or patch (meta.k8s.io/v1, CreateOptions or
/// UpdateOptions), without their kind: whether a patch creates is known later.
boost::json::value options_of(const call& from);

/// The webhooks of each cluster, and the admission of writes by them. Follows the writes of
/// webhook configurations, so that one applies to every later write. A cluster without
/// webhooks costs nothing. On one executor.
class admission_gate {
 public:
  /// `services` resolves the Services of clientConfig; it may be empty.
  admission_gate(boost::asio::any_io_executor executor, webhooks::environment with,
                 devserver::service_resolver services);

  /// Observes a write.
  void follow(const cluster& in, const resource& of, const change& change);

  /// Returns true if the cluster has no webhooks.
  bool is_open(const cluster& in) const;

  /// As webhooks::mutate. The cluster may be forgotten meanwhile.
  boost::asio::awaitable<outcome<boost::json::value>> mutate(const cluster* in,
                                                             admission_attributes write);

  /// As webhooks::admit. The cluster may be forgotten meanwhile.
  boost::asio::awaitable<outcome<void>> admit(const cluster* in, admission_attributes write);

  /// Handles the removal of a cluster: ends calls of its webhooks in the background.
  void forget(const cluster& in);

  boost::asio::awaitable<void> close();

 private:
  std::shared_ptr<webhooks> open(const cluster& in);

  const boost::asio::any_io_executor executor_;
  const webhooks::environment environment_;
  const devserver::service_resolver services_;
  std::map<const cluster*, std::shared_ptr<webhooks>> all_;
  bool closed_ = false;
  core::task_group forgotten_;
};

}  // namespace rw::k8s::devserver
