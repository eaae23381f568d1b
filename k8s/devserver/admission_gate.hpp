#pragma once

#include "core/task_group.hpp"
#include "k8s/devserver/admission.hpp"
#include "k8s/devserver/call.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/devserver/write_plan.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// How a write came about, as webhooks are told of it beside the plan.
struct write_context {
  bool dry_run = false;
  bool of_collection = false;  ///< one of the objects of a deletecollection: its name is not told
  boost::json::value options = {};  ///< without apiVersion and kind; null: none
};

/// What webhooks are told of a write (admission.k8s.io/v1, AdmissionRequest).
admission_attributes attributes_of(const call& to, const write_plan& plan,
                                   const write_context& context);

/// What a creation, update or patch says beside its body (meta.k8s.io/v1, CreateOptions or
/// UpdateOptions), without its kind: whether a patch creates is known later.
boost::json::value options_of(const call& from);
/// The same of a deletion (DeleteOptions).
boost::json::value options_of(const delete_options& from);

/// Which webhooks each cluster has, and the way of a write past them. Follows the writes of
/// ValidatingWebhookConfigurations, so that a write behind such a one is judged by it. A cluster
/// without webhooks costs nothing. On one executor.
class admission_gate {
 public:
  /// Services of clientConfig are looked up with `services`, which may be empty.
  admission_gate(boost::asio::any_io_executor executor, webhooks::environment with,
                 devserver::service_resolver services);

  /// Takes note of a write.
  void follow(const cluster& in, const resource& of, const change& what);

  /// True if there is nobody to ask.
  bool is_open(const cluster& in) const;

  /// As webhooks::admit. The cluster may be forgotten meanwhile.
  boost::asio::awaitable<outcome<std::vector<std::string>>> admit(const cluster* in,
                                                                  admission_attributes write);

  /// The cluster is gone: calls of its webhooks end, in the background.
  void forget(const cluster& in);

  /// Ends all calls.
  boost::asio::awaitable<void> close();

 private:
  std::shared_ptr<webhooks> open(const cluster& in);

  const boost::asio::any_io_executor executor_;
  const webhooks::environment with_;
  const devserver::service_resolver services_;
  std::map<const cluster*, std::shared_ptr<webhooks>> all_;
  bool closed_ = false;
  core::task_group forgotten_;
};

}  // namespace rw::k8s::devserver
