#include "rw/k8s/devserver/patch.hpp"

#include <boost/json/object.hpp>

namespace rw::k8s::devserver {

void merge_patch(boost::json::value& target, const boost::json::value& change) {
  const auto* const members = change.if_object();
  if (members == nullptr) {
    target = change;
    return;
  }
  auto& into = target.is_object() ? target.get_object() : target.emplace_object();
  for (const auto& [name, value] : *members) {
    if (value.is_null()) {
      into.stable_erase(name);
    } else {
      merge_patch(into[name], value);
    }
  }
}

}  // namespace rw::k8s::devserver
