#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::k8s {

// What discovery's answers say (Kubernetes API concepts, "Discovery API", its unaggregated form,
// which every version serves). Without a value the answer is not what it should be.

/// An APIResourceList: of subresources only whether there is a status is kept.
std::optional<std::vector<discovered_resource>> resources_of(const boost::json::value& response,
                                                             const group_version_kind& of);
/// The group's versions, the preferred one first, in an APIVersions (of the core group, "") or in
/// an APIGroupList; empty if that lacks the group.
std::optional<std::vector<std::string>> versions_of(const boost::json::value& response,
                                                    std::string_view group);
/// The server's version Info: numbers such as "32" or "20+".
std::optional<std::pair<unsigned, unsigned>> server_version_of(const boost::json::value& response);

/// What is served in each group version, for a while.
class discovery_cache {
 public:
  static constexpr core::duration lifetime = std::chrono::minutes(10);

  void keep(const std::string& api_version, const std::vector<discovered_resource>& found,
            core::time_point now);

  /// None if it is not known, or not any more.
  std::optional<resource_type> find(const group_version_kind& gvk, core::time_point now) const;

 private:
  struct entry {
    std::vector<resource_type> types;
    core::time_point until;
  };
  std::unordered_map<std::string, entry> by_version_;
};

}  // namespace rw::k8s
