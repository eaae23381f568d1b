#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/dev/gateway/dev_gateway.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::dev_gateway {

/// One route of the gateway.
struct route {
  std::string prefix;              ///< of the path
  std::vector<std::string> hosts;  ///< empty: all
  service_port to;
};

/// Returns the routes of a VirtualService: each `match.uri.prefix` of each `http` with a
/// destination `<service>.<namespace>.svc[...]` and a port. Ignores other forms.
std::vector<route> routes_of(const boost::json::value& virtual_service);

/// The routes of all VirtualServices. Not thread-safe.
class route_table {
 public:
  /// Adds or replaces a VirtualService.
  void put(const k8s::object_key& key, const boost::json::value& virtual_service);
  void erase(const k8s::object_key& key);

  /// Returns the destination of the longest prefix of `path`; of equal ones that of the
  /// VirtualService first by name. `host` may have a port. Null: there is none. Valid until the
  /// next change.
  const service_port* find(std::string_view host, std::string_view path) const;

  std::size_t size() const noexcept { return size_; }

 private:
  struct by_name {
    bool operator()(const k8s::object_key& a, const k8s::object_key& b) const {
      return a.ns != b.ns ? a.ns < b.ns : a.name < b.name;
    }
  };
  std::map<k8s::object_key, std::vector<route>, by_name> routes_;
  std::size_t size_ = 0;
};

}  // namespace rw::dev_gateway
