#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/k8s/objects/described.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// What a reconcile works with, whatever the resource. A handle.
struct operator_scope {
  resource_type type;
  boost::json::value object;  ///< as it was observed
  client api;                 ///< its writes end with the lease
  event_sink* events;

  /// Applies `desired` by force, owned by the object: with an owner reference, which makes the
  /// garbage collector delete it, and in the object's namespace if it names none.
  boost::asio::awaitable<result<boost::json::value>> apply(resource_type of,
                                                           boost::json::value desired);
  /// Applies the status, unless the observed one is equal.
  boost::asio::awaitable<result<void>> set_status(boost::json::value status);
};

/// One object to reconcile. A value, valid as long as the reconcile that got it.
template <resource_struct T>
class operator_request {
 public:
  operator_request(T observed, operator_scope scope)
      : object(std::move(observed)), scope_(std::move(scope)) {}

  T object;  ///< as it was observed last, which may be outdated

  object_key key() const { return object.metadata.key(); }

  /// Applies an object that this one owns, by server-side apply with force: its fields become as
  /// they are here, those that an earlier apply set and this one lacks are removed, and those of
  /// other field managers stay. Its namespace, if it has none, and its owner are set. Returns it as
  /// the server has it.
  template <resource_struct C>
  boost::asio::awaitable<result<C>> apply(C child) {
    auto desired = to_json(child);
    auto applied = co_await scope_.apply(C::type, std::move(desired));
    if (!applied) co_return applied.error();
    co_return from_json<C>(*applied);
  }

  /// Writes the status, unless it was observed like that.
  template <class S>
  boost::asio::awaitable<result<void>> set_status(S status) {
    auto written = to_json(status);
    return scope_.set_status(std::move(written));
  }

  /// Records an Event of the object.
  void normal(std::string_view reason, std::string_view message) const {
    scope_.events->normal(reference_to(scope_.object), reason, message);
  }
  void warning(std::string_view reason, std::string_view message) const {
    scope_.events->warning(reference_to(scope_.object), reason, message);
  }

  /// For all other requests. Its writes end with the lease.
  client& api() noexcept { return scope_.api; }

 private:
  operator_scope scope_;
};

}  // namespace rw::k8s
