#pragma once

#include "k8s/client.hpp"
#include "k8s/own_writes.hpp"
#include "k8s/reconciler.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace rw::bootstrapper {

/// Writes RuntimeBootstrappers, each as it is at its resourceVersion, so that nothing is decided on
/// a state that others have changed. Single executor.
class resource_writer {
 public:
  /// How a pass ends whose write failed; none: it was written. After a conflict nothing is lost,
  /// since the informer brings the newer state.
  using ended = std::optional<k8s::reconcile_result>;

  explicit resource_writer(k8s::client& kcp) : kcp_(kcp) {}

  /// The newest state that is known.
  boost::json::value newest(const k8s::object& stored) { return own_writes_.newest(stored); }
  void forget(const k8s::object_key& key) { own_writes_.forget(key); }

  /// Replaces `resource` by what was written.
  boost::asio::awaitable<ended> patch(boost::json::value* resource, boost::json::value change,
                                      std::string subresource);
  /// Replaces the status as a whole.
  boost::asio::awaitable<ended> write_status(boost::json::value* resource,
                                             boost::json::value status);
  /// Makes the finalizers those of `like`.
  boost::asio::awaitable<ended> write_finalizers(boost::json::value* resource,
                                                 boost::json::value like);

 private:
  k8s::client& kcp_;
  k8s::own_writes own_writes_;
};

}  // namespace rw::bootstrapper
