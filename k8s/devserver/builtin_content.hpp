#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

// Parts of builtin_rules.hpp: the kinds whose content is checked in detail. `before` is null for a
// new object.

namespace rw::k8s::devserver {

void require(std::vector<cause>& found, const std::string& field);

/// Adds a cause if the value is none of those that are supported.
void check_choice(std::vector<cause>& found, const std::string& field, std::string_view value,
                  std::initializer_list<std::string_view> supported);

void check_config_map(const boost::json::value& before, const boost::json::value& object,
                      std::vector<cause>& found);
void check_secret(const boost::json::value& before, const boost::json::value& object,
                  std::vector<cause>& found);
/// Checks Deployments, ReplicaSets, DaemonSets.
void check_workload(const boost::json::value& before, const boost::json::value& object,
                    std::vector<cause>& found);
void check_stateful_set(const boost::json::value& before, const boost::json::value& object,
                        std::vector<cause>& found);
void check_job(const boost::json::value& before, const boost::json::value& object,
               std::vector<cause>& found);
void check_cron_job(const boost::json::value& before, const boost::json::value& object,
                    std::vector<cause>& found);
void check_lease(const boost::json::value& before, const boost::json::value& object,
                 std::vector<cause>& found);
/// Checks RoleBindings and ClusterRoleBindings.
void check_role_binding(const boost::json::value& before, const boost::json::value& object,
                        std::vector<cause>& found);

/// Gives a new Job the selector and the labels by which its pods are found.
void begin_job(boost::json::value& object);

/// Checks both kinds of webhook configurations.
void check_webhooks(const boost::json::value& before, const boost::json::value& object,
                    std::vector<cause>& found);

}  // namespace rw::k8s::devserver
