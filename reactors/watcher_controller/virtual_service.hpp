#pragma once

#include "rw/reactors/shared/watcher.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_controller {

/// Why a Watcher has no working VirtualService, for programs (a word in CamelCase) and people.
struct watcher_error {
  std::string reason;
  std::string message;
};

/// Returns the VirtualService (networking.istio.io/v1beta1) that routes a Watcher's events to its
/// service: all Gateways that the Watcher selects, all hosts of their servers, and one route for
/// the paths that begin with `/v2/<manager>/event`. It has the Watcher's name and namespace, and
/// the Watcher as an owner that does not control it. It has only fields that this project owns.
///
/// `gateways` are the Gateways of one namespace, in any order, as the API returns them; `location`
/// names it in messages. The result does not depend on their order. A server's host may begin with
/// a namespace ("ns/host", Istio: "Server"), which a VirtualService's must not: it is omitted.
///
/// Errors: GatewayNotFound, the Watcher selects none; GatewayWithoutHosts, a selected one has no
/// hosts.
boost::system::result<boost::json::value, watcher_error> virtual_service_for(
    const watcher& of, std::vector<boost::json::value> gateways, std::string_view location);

/// The same for a component without a Watcher: through one Gateway, and without an owner. `of`
/// needs a key, a manager and a receiver.
boost::system::result<boost::json::value, watcher_error> virtual_service_through(
    const watcher& of, const boost::json::value& gateway);

/// Returns true if `live` has everything in `desired`. Additional fields belong to other managers;
/// lists are compared as a whole, except for the owners, as server-side apply replaces them as a
/// whole.
bool is_as_desired(const boost::json::value& live, const boost::json::value& desired);

/// Returns true if the Watcher with this uid is among the object's owners.
bool is_owned_by(const boost::json::value& object, std::string_view uid);

}  // namespace rw::watcher_controller
