#pragma once

#include "k8s/objects/types.hpp"
#include "reactors/watcher_controller/virtual_service.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::watcher_controller {

/// What a Watcher's status is to say: its state, and the condition "VirtualService". Of the states
/// that its schema knows, a Watcher goes through "" -> Processing -> Ready or Error -> Deleting.
struct verdict {
  std::string state;
  std::optional<k8s::condition> condition = {};  ///< none: stays as it is
};

/// It has been seen for the first time.
verdict processing();
/// Its VirtualService is there, and as it should be.
verdict ready();
/// It has none, or only its former one, and why.
verdict failed(const obstacle& why);
/// It is about to go, once its VirtualService is gone; or why that can't be yet.
verdict deleting();
verdict deleting(const obstacle& why);

/// The status that tells `to` of the Watcher's present generation. None if it tells that already,
/// so that nothing is written when nothing changed. The condition's lastTransitionTime becomes
/// `now` only where its status changes.
std::optional<boost::json::value> next_status(const boost::json::value& watcher, const verdict& to,
                                              std::chrono::system_clock::time_point now);

/// status.state; empty if there is none.
std::string_view state_of(const boost::json::value& watcher) noexcept;

}  // namespace rw::watcher_controller
