#pragma once

#include "reactors/shared/watcher.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_controller {

/// Why a Watcher has no working VirtualService, for programs (a word in CamelCase) and people.
struct obstacle {
  std::string reason;
  std::string message;
};

/// The VirtualService (networking.istio.io/v1beta1) that leads a Watcher's events to its service:
/// all Gateways that the Watcher selects, all hosts of their servers, and one route for the paths
/// that begin with `/v2/<manager>/event`. It has the Watcher's name and namespace, and the Watcher
/// as an owner that does not control it. Only what this project decides stands in it.
///
/// `gateways` are the Gateways of one namespace, in any order, as the API writes them; `where`
/// names it in messages. The result does not depend on their order. A server's host may begin with
/// the namespace that it is for ("ns/host", Istio: "Server"), which a VirtualService's must not:
/// it is left out.
///
/// Obstacles: GatewayNotFound, none is selected; GatewayWithoutHosts, one is that has no hosts.
boost::system::result<boost::json::value, obstacle> virtual_service_for(
    const watcher& of, std::vector<boost::json::value> gateways, std::string_view where);

/// True if `live` has everything that `desired` asks for. What others added beside it counts as
/// theirs; lists are compared whole, but for the owners, as server-side apply replaces them whole.
bool is_as_desired(const boost::json::value& live, const boost::json::value& desired);

/// True if the Watcher with this uid is among the object's owners.
bool is_owned_by(const boost::json::value& object, std::string_view uid);

}  // namespace rw::watcher_controller
