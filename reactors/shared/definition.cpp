#include "rw/reactors/shared/definition.hpp"

#include "rw/k8s/objects/types.hpp"

#include <utility>

namespace rw {

const k8s::resource_type& definitions_type() {
  static const k8s::resource_type type{{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
                                       "customresourcedefinitions",
                                       false};
  return type;
}

boost::asio::awaitable<k8s::result<definition_state>> find_definition_state(
    k8s::client& kcp, k8s::resource_type type, std::chrono::system_clock::time_point created) {
  using enum definition_state;
  k8s::object_key name{{}, type.plural + "." + type.gvk.group};
  const auto got = co_await kcp.get(definitions_type(), std::move(name), true);
  if (!got) {
    if (got.error().is(k8s::errc::not_found)) co_return withdrawn;
    if (got.error().is(k8s::errc::forbidden)) co_return in_force;
    co_return got.error();
  }
  if (k8s::is_being_deleted(*got)) co_return withdrawn;
  const bool known = created != std::chrono::system_clock::time_point();
  const bool is_younger = known && k8s::created_at(*got).value_or(created) > created;
  co_return is_younger ? renewed : in_force;
}

}  // namespace rw
