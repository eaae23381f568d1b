#pragma once

#include "rw/k8s/cache/own_writes.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/write_preview.hpp"
#include "rw/k8s/controller/reconciler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rw {

/// Writes resources of one type in the control plane, each at its resourceVersion only, so that no
/// decision relies on an outdated state. Single executor.
class resource_writer {
 public:
  /// The result of a reconcile whose write failed; nothing: it succeeded. After a conflict the
  /// informer delivers the newer state.
  using ended = std::optional<k8s::reconcile_result>;

  resource_writer(k8s::client& kcp, k8s::resource_type type)
      : kcp_(kcp), type_(std::move(type)), own_writes_(kcp.clock()) {}

  /// Returns the newest known state: the informer's, or that of a later own write.
  boost::json::value newest(const k8s::object& stored) { return own_writes_.newest(stored); }
  void forget(const k8s::object_key& key) { own_writes_.forget(key); }

  /// Merges `change` (RFC 7386), and replaces `resource` by the response.
  boost::asio::awaitable<ended> patch(boost::json::value* resource, boost::json::value change,
                                      std::string subresource = {});
  boost::asio::awaitable<ended> write_status(boost::json::value* resource,
                                             boost::json::value status);
  /// Adds or removes a finalizer; writes nothing if that is done already.
  boost::asio::awaitable<ended> set_finalizer(boost::json::value* resource, std::string name,
                                              bool present);
  /// Tries the removal of a finalizer as a dry run, and adds it to `into`; nothing if it is not
  /// there.
  boost::asio::awaitable<k8s::result<void>> try_release(boost::json::value resource,
                                                        std::string finalizer,
                                                        std::shared_ptr<k8s::write_preview> into);

 private:
  k8s::client& kcp_;
  const k8s::resource_type type_;
  k8s::own_writes own_writes_;
};

}  // namespace rw
