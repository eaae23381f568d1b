#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <memory>

namespace rw::k8s {

/// What leader election and the event recorder ask of an API server: the part of k8s::client that
/// they use. Embedders and tests may give another one. On one executor; calls are as those of the
/// client.
class object_api {
 public:
  using value = boost::json::value;

  virtual ~object_api() = default;

  virtual boost::asio::awaitable<result<value>> get(resource_type type, object_key key) = 0;
  virtual boost::asio::awaitable<result<value>> create(resource_type type, value object) = 0;
  virtual boost::asio::awaitable<result<value>> update(resource_type type, value object) = 0;
  /// A merge patch (RFC 7386).
  virtual boost::asio::awaitable<result<value>> merge(resource_type type, object_key key,
                                                      value change) = 0;
};

/// A client as such; it must outlive the result.
std::shared_ptr<object_api> objects_of(client& api);

}  // namespace rw::k8s
