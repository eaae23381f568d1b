#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/watcher_controller/virtual_service.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw::watcher_controller {

/// The desired status of a Watcher: its state, and the condition "VirtualService". Of the states in
/// its schema, a Watcher goes through "" -> Processing -> Ready or Error -> Deleting.
struct desired_status {
  std::string state;
  std::optional<k8s::condition> condition = {};  ///< nothing: it stays
};

/// The first reconcile of the Watcher.
desired_status processing();
/// Its VirtualService exists, and is up to date. `unobserved`: why no watch on the runtimes shows
/// its changes (managers_file.hpp); empty: one does. `status_field`: it watches that part, whose
/// webhook is called for neither creations nor deletions.
desired_status ready(std::string_view unobserved = {}, bool status_field = false);
/// It has no VirtualService, or only its previous one, because of `error`.
desired_status failed(const watcher_error& error);
/// It is deleted once its VirtualService is; or why that is impossible yet.
desired_status deleting();
desired_status deleting(const watcher_error& error);

/// Returns the status with `to` for the Watcher's current generation. Nothing if it has that
/// already, so that nothing is written without a change. Sets the condition's lastTransitionTime to
/// `now` only if its status changes.
std::optional<boost::json::value> next_status(const boost::json::value& watcher,
                                              const desired_status& to,
                                              std::chrono::system_clock::time_point now);

std::string_view state_of(const boost::json::value& watcher) noexcept;

}  // namespace rw::watcher_controller
