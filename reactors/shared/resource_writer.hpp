#pragma once

#include "k8s/cache/own_writes.hpp"
#include "k8s/client/client.hpp"
#include "k8s/controller/reconciler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <utility>

namespace rw {

/// Writes resources of one type in the control plane, each as it is at its resourceVersion, so that
/// nothing is decided on a state that others have changed. Single executor.
class resource_writer {
 public:
  /// How a reconcile ends whose write failed; none: it was written. After a conflict nothing is
  /// lost, since the informer brings the newer state.
  using ended = std::optional<k8s::reconcile_result>;

  resource_writer(k8s::client& kcp, k8s::resource_type type) : kcp_(kcp), type_(std::move(type)) {}

  /// The newest state that is known: the informer's, or what was written after it.
  boost::json::value newest(const k8s::object& stored) { return own_writes_.newest(stored); }
  void forget(const k8s::object_key& key) { own_writes_.forget(key); }

  /// Merges `change` (RFC 7386), and replaces `resource` by what was written.
  boost::asio::awaitable<ended> patch(boost::json::value* resource, boost::json::value change,
                                      std::string subresource = {});
  /// Replaces the status as a whole.
  boost::asio::awaitable<ended> write_status(boost::json::value* resource,
                                             boost::json::value status);
  /// Adds or removes a finalizer; nothing is written where it is so already.
  boost::asio::awaitable<ended> set_finalizer(boost::json::value* resource, std::string name,
                                              bool present);

 private:
  k8s::client& kcp_;
  const k8s::resource_type type_;
  k8s::own_writes own_writes_;
};

}  // namespace rw
