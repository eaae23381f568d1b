#pragma once

#include <boost/json/value.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// The names of our webhooks in a configuration that are not among those of `wanted`.
std::vector<std::string> unwanted_webhooks(const boost::json::value& wanted,
                                           const boost::json::value& present);

/// The webhooks of a configuration, or of none (null), whose names match.
std::vector<boost::json::value> webhooks_of(
    const boost::json::value* configuration,
    const std::function<bool(std::string_view name)>& matches);

/// Keeps those whose names match.
void retain_webhooks(boost::json::value& configuration,
                     const std::function<bool(std::string_view name)>& matches);

}  // namespace rw::watcher_installer
