#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

// Parts of builtin_rules.hpp: the kinds whose content is checked in detail. `before` is null for a
// new object.

namespace rw::k8s::devserver {

void require(std::vector<cause>& found, const std::string& field);

void check_config_map(const boost::json::value& before, const boost::json::value& object,
                      std::vector<cause>& found);
void check_secret(const boost::json::value& before, const boost::json::value& object,
                  std::vector<cause>& found);
/// Checks both kinds of webhook configurations.
void check_webhooks(const boost::json::value& before, const boost::json::value& object,
                    std::vector<cause>& found);

}  // namespace rw::k8s::devserver
