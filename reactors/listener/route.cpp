#include "rw/reactors/listener/route.hpp"

#include <algorithm>

namespace rw::listener {

std::optional<route> find_route(std::string_view target, std::string_view component,
                                std::string_view of_heartbeats) noexcept {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with('/')) return {};
  target.remove_prefix(1);
  const auto slash = target.find('/');
  route out;
  if (!parse_contract(target.substr(0, slash), out.contract)) return {};
  target.remove_prefix(std::min(slash, target.size()));
  const auto rest = target.substr(std::min<std::size_t>(1, target.size()));
  const auto is = [&](std::string_view name, std::string_view form) {
    return rest.starts_with(name) && rest.substr(name.size()) == form;
  };
  out.heartbeats = !of_heartbeats.empty() && is(of_heartbeats, "/event");
  out.batch = !out.heartbeats && is(component, "/events");
  if (out.heartbeats || out.batch || is(component, "/event")) return out;
  return {};
}

}  // namespace rw::listener
