#pragma once

#include "rw/reactors/dispatch/observed_objects.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rw::observation {

using dispatch::absent_mark;
using dispatch::mark;
using dispatch::unknown_mark;

/// Returns the state of an object as one Watcher sees it: a hash of its uid, of whether it is being
/// deleted, and of the watched part. Two states that differ in nothing else have the same mark.
/// `field`: "spec" or "status". The order of members does not matter. An object without a spec, or
/// for `status` with neither part, is marked by its resourceVersion too.
mark mark_of(const boost::json::value& object, std::string_view field);

/// Returns true if the object has all of the labels.
bool has_labels(const boost::json::value& object, const std::map<std::string, std::string>& labels);

}  // namespace rw::observation
