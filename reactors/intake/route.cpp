#include "rw/reactors/intake/route.hpp"

namespace rw::listener {

std::optional<route> find_route(std::string_view target, std::string_view component,
                                std::string_view of_heartbeats) noexcept {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with(contract_path)) return {};
  const auto rest = target.substr(contract_path.size());
  route out;
  const auto is = [&](std::string_view name, std::string_view form) {
    return rest.starts_with(name) && rest.substr(name.size()) == form;
  };
  out.heartbeats = !of_heartbeats.empty() && is(of_heartbeats, "/event");
  out.batch = !out.heartbeats && is(component, "/events");
  if (out.heartbeats || out.batch || is(component, "/event")) return out;
  return {};
}

}  // namespace rw::listener
