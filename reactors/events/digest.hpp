#pragma once

#include "rw/core/json/json_view.hpp"
#include "rw/reactors/events/delivery.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rw::observation {

using dispatch::absent_state;
using dispatch::state_hash;
using dispatch::unknown_state;

/// Returns the state of an object as one Watcher sees it: a hash of its uid, of whether it is being
/// deleted, of the watched part, and for `spec`, where `has_status`, of metadata.generation, by
/// which a list shows a change that was taken back. (Without the subresource a write of the status
/// increases the generation too: an operator's own would become an event.) Two states that differ
/// in nothing else have the same mark. `field`: "spec" or "status". The order of members does not
/// matter. An object without a spec, or for `status` with neither part, is marked by its
/// resourceVersion too.
state_hash state_of(core::json_view object, std::string_view field, bool has_status);
state_hash state_of(const boost::json::value& object, std::string_view field, bool has_status);

/// Returns true if the object has all of the labels.
bool has_labels(const boost::json::value& object, const std::map<std::string, std::string>& labels);

}  // namespace rw::observation
