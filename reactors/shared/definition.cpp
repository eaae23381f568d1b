#include "rw/reactors/shared/definition.hpp"

#include "rw/k8s/objects/types.hpp"

#include <utility>

namespace rw {

using time_point = std::chrono::system_clock::time_point;

const k8s::resource_type& definitions_type() {
  static const k8s::resource_type type{{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
                                       "customresourcedefinitions",
                                       false};
  return type;
}

object_times times_of(const boost::json::value& object) {
  return {.created = k8s::created_at(object), .deleted = k8s::deleted_at(object)};
}

boost::asio::awaitable<k8s::result<std::optional<time_point>>> find_definition_time(
    k8s::client& kcp, k8s::resource_type type) {
  k8s::object_key name{{}, to_string(type)};
  const auto got = co_await kcp.get(definitions_type(), std::move(name), true);
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  if (!got || k8s::is_being_deleted(*got)) co_return std::nullopt;
  co_return k8s::created_at(*got).value_or(time_point());
}

definition_state state_of(std::optional<time_point> definition, object_times of) noexcept {
  using enum definition_state;
  if (!definition) return withdrawn;
  const bool is_older = of.created && *of.created < *definition;
  const bool went_before = !of.deleted || *of.deleted <= *definition;
  return is_older && went_before ? renewed : in_force;
}

boost::asio::awaitable<k8s::result<definition_state>> find_definition_state(k8s::client& kcp,
                                                                            k8s::resource_type type,
                                                                            object_times of) {
  using enum definition_state;
  const auto since = co_await find_definition_time(kcp, std::move(type));
  if (!since && since.error().is(k8s::errc::forbidden)) co_return unknown;
  if (!since) co_return since.error();
  co_return state_of(*since, of);
}

}  // namespace rw
